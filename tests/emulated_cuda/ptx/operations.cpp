// What opcodes do. Compiled without strict aliasing: a register holds what its instruction says.
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <unordered_map>

#include "warp.h"

namespace keel::emulated::ptx {
namespace {

using Pred = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

// A lambda without a capture, for every lane that runs.
template <class F, class R, class... A>
struct EachLane {
  static void act(Warp& warp, const Instruction& in) {
    act(warp, in, std::index_sequence_for<A...>());
  }
  template <std::size_t... k>
  static void act(Warp& warp, const Instruction& in, std::index_sequence<k...>) {
    R* const to = warp.at<R>(in.at[0]);
    const std::tuple<const A*...> from(warp.at<A>(in.at[k + 1])...);
    if (warp.mask == ~u32{0}) {
      for (unsigned l = 0; l < kWarp; ++l) to[l] = F{}(std::get<k>(from)[l]...);
    } else {
      for (unsigned l = 0; l < kWarp; ++l)
        if (warp.runs(l)) to[l] = F{}(std::get<k>(from)[l]...);
    }
  }
};

template <class F, class R, class... A>
Operation each_lane(F, R (F::*)(A...) const) {
  return {&EachLane<F, R, A...>::act, Flow::next, {int{sizeof(R)}, int{sizeof(A)}...}};
}
template <class F>
Operation op(F f) {
  return each_lane(f, &F::operator());
}

using Table = std::unordered_map<std::string, Operation>;

template <class T>
T without_subnormals(T x) {
  return std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T(0), x) : x;
}
float rounded_down(float a, float b, float c) {
  std::fesetround(FE_DOWNWARD);
  const volatile float result = std::fmaf(a, b, c);
  std::fesetround(FE_TONEAREST);
  return result;
}
template <class To, class From>
To saturated(From x) {  // what is no number becomes the type's lowest, or 0 where it has no sign
  if (std::isnan(x)) return std::numeric_limits<To>::min();
  if (x >= std::ldexp(From(1), std::numeric_limits<To>::digits))
    return std::numeric_limits<To>::max();
  if (x <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  return static_cast<To>(x);
}

template <class T>
void any(Table& table, const std::string& type) {
  table["mov." + type] = op([](T a) { return a; });
  table["selp." + type] = op([](T a, T b, Pred p) { return p ? a : b; });
  table["setp.eq." + type] = op([](T a, T b) { return Pred(a == b); });
  table["setp.lt." + type] = op([](T a, T b) { return Pred(a < b); });
  table["setp.le." + type] = op([](T a, T b) { return Pred(a <= b); });
  table["setp.gt." + type] = op([](T a, T b) { return Pred(a > b); });
  table["setp.ge." + type] = op([](T a, T b) { return Pred(a >= b); });
}

template <class T>
void bits(Table& table, const std::string& type) {
  any<T>(table, type);
  table["and." + type] = op([](T a, T b) { return T(a & b); });
  table["or." + type] = op([](T a, T b) { return T(a | b); });
  table["xor." + type] = op([](T a, T b) { return T(a ^ b); });
  table["not." + type] = op([](T a) { return T(~a); });
  table["setp.ne." + type] = op([](T a, T b) { return Pred(a != b); });
  table["shl." + type] = op([](T a, u32 n) { return n < 8 * sizeof(T) ? T(a << n) : T(0); });
  // The lowest `count` bits of a in b's place, from bit `first` on.
  table["bfi." + type] = op([](T a, T b, u32 first, u32 count) {
    for (u32 i = 0; i < (count & 255) && (first & 255) + i < 8 * sizeof(T); ++i) {
      const T bit = T(T(1) << ((first & 255) + i));
      b = T(a >> i & 1 ? b | bit : b & ~bit);
    }
    return b;
  });
}

template <class T>
void integers(Table& table, const std::string& type) {
  any<T>(table, type);
  using Unsigned = std::make_unsigned_t<T>;
  constexpr u32 kBits = 8 * sizeof(T);
  table["add." + type] = op([](Unsigned a, Unsigned b) { return Unsigned(a + b); });
  table["sub." + type] = op([](Unsigned a, Unsigned b) { return Unsigned(a - b); });
  table["mul.lo." + type] = op([](Unsigned a, Unsigned b) { return Unsigned(a * b); });
  table["mad.lo." + type] =
      op([](Unsigned a, Unsigned b, Unsigned c) { return Unsigned(a * b + c); });
  table["neg." + type] = op([](Unsigned a) { return Unsigned(0 - a); });
  table["abs." + type] = op([](T a) { return T(a < 0 ? Unsigned(0 - Unsigned(a)) : a); });
  table["min." + type] = op([](T a, T b) { return std::min(a, b); });
  table["max." + type] = op([](T a, T b) { return std::max(a, b); });
  // By 0: no trap, and nothing that anybody may count on.
  table["div." + type] = op([](T a, T b) {
    if (b == 0) return T(-1);
    return std::is_signed_v<T> && b == T(-1) ? T(0 - Unsigned(a)) : T(a / b);
  });
  table["rem." + type] = op([](T a, T b) {
    if (b == 0) return T(-1);
    return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  });
  table["shr." + type] =
      op([](T a, u32 n) { return T(a >> std::min(n, kBits - 1) >> (n >= kBits)); });
  table["setp.ne." + type] = op([](T a, T b) { return Pred(a != b); });
}

template <class T>
void reals(Table& table, const std::string& type) {
  any<T>(table, type);
  table["add.rn." + type] = op([](T a, T b) { return a + b; });
  table["sub.rn." + type] = op([](T a, T b) { return a - b; });
  table["mul.rn." + type] = op([](T a, T b) { return a * b; });
  for (const char* name : {"add.", "sub.", "mul."})
    table[name + type] = table[name + ("rn." + type)];
  const Action sum = op([](T a, T b, T c) { return std::fma(a, b, c); }).action;
  table["mul." + type].product = true;
  table["add." + type].with_product[0] = table["add." + type].with_product[1] = sum;
  table["sub." + type].with_product[0] =
      op([](T a, T b, T c) { return std::fma(a, b, -c); }).action;
  table["sub." + type].with_product[1] =
      op([](T a, T b, T c) { return std::fma(-a, b, c); }).action;
  table["fma.rn." + type] = op([](T a, T b, T c) { return std::fma(a, b, c); });
  table["div.rn." + type] = op([](T a, T b) { return a / b; });
  table["rcp.rn." + type] = op([](T a) { return T(1) / a; });
  table["sqrt.rn." + type] = op([](T a) { return std::sqrt(a); });
  table["neg." + type] = op([](T a) { return -a; });
  table["abs." + type] = op([](T a) { return std::fabs(a); });
  table["copysign." + type] = op([](T sign, T size) { return std::copysign(size, sign); });
  table["min." + type] = op([](T a, T b) { return std::fmin(a, b); });
  table["max." + type] = op([](T a, T b) { return std::fmax(a, b); });
  table["cvt.rzi." + type + "." + type] = op([](T a) { return std::trunc(a); });
  table["cvt.rni." + type + "." + type] = op([](T a) { return std::nearbyint(a); });  // to even
  table["cvt.sat." + type + "." + type] = op([](T a) { return a > 0 ? std::min(a, T(1)) : T(0); });
  table["setp.ne." + type] = op([](T a, T b) { return Pred(a < b || a > b); });
  // With a u: also where one of them is no number.
  table["setp.equ." + type] = op([](T a, T b) { return Pred(!(a < b || a > b)); });
  table["setp.neu." + type] = op([](T a, T b) { return Pred(a != b); });
  table["setp.ltu." + type] = op([](T a, T b) { return Pred(!(a >= b)); });
  table["setp.leu." + type] = op([](T a, T b) { return Pred(!(a > b)); });
  table["setp.gtu." + type] = op([](T a, T b) { return Pred(!(a <= b)); });
  table["setp.geu." + type] = op([](T a, T b) { return Pred(!(a < b)); });
  table["setp.nan." + type] = op([](T a, T b) { return Pred(a != a || b != b); });
  table["setp.num." + type] = op([](T a, T b) { return Pred(a == a && b == b); });
}

void conversions(Table& table) {
  table["cvt.u16.u32"] = op([](u32 a) { return u16(a); });
  table["cvt.u32.u16"] = op([](u16 a) { return u32(a); });
  table["cvt.u32.u64"] = op([](u64 a) { return u32(a); });
  table["cvt.u64.u32"] = op([](u32 a) { return u64(a); });
  table["cvt.s64.s32"] = op([](s32 a) { return s64(a); });
  table["cvt.f64.f32"] = op([](float a) { return double(a); });
  table["cvt.rn.f32.f64"] = op([](double a) { return float(a); });
  table["cvt.rn.f32.u32"] = op([](u32 a) { return float(a); });
  table["cvt.rn.f32.s32"] = op([](s32 a) { return float(a); });
  table["cvt.rn.f32.s64"] = op([](s64 a) { return float(a); });
  table["cvt.rn.f64.s32"] = op([](s32 a) { return double(a); });
  table["cvt.rn.f64.u32"] = op([](u32 a) { return double(a); });
  table["cvt.rn.f64.s64"] = op([](s64 a) { return double(a); });
  table["cvt.rzi.s32.f32"] = op([](float a) { return saturated<s32>(a); });
  table["cvt.rzi.s64.f32"] = op([](float a) { return saturated<s64>(a); });
  table["cvt.rzi.s64.f64"] = op([](double a) { return saturated<s64>(a); });
  table["clz.b32"] = op([](u32 a) { return u32(std::countl_zero(a)); });
  table["clz.b64"] = op([](u64 a) { return u32(std::countl_zero(a)); });
  table["cvta.to.global.u64"] = op([](u64 a) { return a; });
  table["mul.wide.s32"] = op([](s32 a, s32 b) { return s64{a} * b; });
  table["mul.wide.u32"] = op([](u32 a, u32 b) { return u64{a} * b; });
  table["mul.wide.u16"] = op([](u16 a, u16 b) { return u32{a} * b; });
  table["mul.hi.s32"] = op([](s32 a, s32 b) { return s32(s64{a} * b >> 32); });
  table["mul.hi.u32"] = op([](u32 a, u32 b) { return u32(u64{a} * b >> 32); });
  table["fma.rm.f32"] = op([](float a, float b, float c) { return rounded_down(a, b, c); });
  // Where hardware is off by an ulp or two, which of them is NVIDIA's to say.
  table["ex2.approx.ftz.f32"] = op([](float a) {
    return without_subnormals(static_cast<float>(std::exp2(double{without_subnormals(a)})));
  });
  table["rcp.approx.ftz.f32"] =
      op([](float a) { return without_subnormals(1 / without_subnormals(a)); });
  table["rcp.approx.ftz.f64"] = op([](double a) {  // a first guess: the upper half of the bits
    const double all = without_subnormals(1 / without_subnormals(a));
    return std::bit_cast<double>(std::bit_cast<u64>(all) & ~u64{0xffffffff});
  });
}

void predicates(Table& table) {
  table["mov.pred"] = op([](Pred a) { return a; });
  table["not.pred"] = op([](Pred a) { return Pred(!a); });
  table["and.pred"] = op([](Pred a, Pred b) { return Pred(a && b); });
  table["or.pred"] = op([](Pred a, Pred b) { return Pred(a || b); });
  table["xor.pred"] = op([](Pred a, Pred b) { return Pred(!a != !b); });
}

// shfl.sync.bfly.b32 to|found, value, distance, clamp, members
void butterfly(Warp& warp, const Instruction& in) {
  u32* const to = warp.at<u32>(in.at[0]);
  Pred* const found = warp.at<Pred>(in.at[1]);
  const u32 *value = warp.at<u32>(in.at[2]), *distance = warp.at<u32>(in.at[3]),
            *clamp = warp.at<u32>(in.at[4]), *members = warp.at<u32>(in.at[kMembers]);
  u32 before[kWarp];
  std::copy(value, value + kWarp, before);
  for (unsigned l = 0; l < warp.lanes; ++l) {
    if (!warp.runs(l)) continue;
    const u32 segment = clamp[l] >> 8 & 31, last = (l & segment) | (clamp[l] & 31 & ~segment);
    const u32 from = l ^ (distance[l] & 31);
    found[l] = from <= last;
    if (found[l] && !(members[l] >> from & 1))
      warp.fail("a lane reads from one that is not of its shuffle");
    to[l] = before[found[l] ? from : l];
  }
}

// mma.sync.aligned.m16n8k8: d = a b + c, by PTX ISA's tables of who holds what: of lane 4 g + t
// a0 .. a3 are (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4) of a; b0, b1 (t, g), (t + 4, g) of b;
// c0 .. c3 (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1). TF32 has float's upper 19 bits.
void multiply_tf32(Warp& warp, const Instruction& in) {
  if (warp.lanes < kWarp) warp.fail("a product of less than a warp");
  double a[16][8], b[8][8];
  const auto cut = [&](int at, unsigned lane) {
    return double{std::bit_cast<float>(warp.at<u32>(in.at[at])[lane] & 0xffffe000)};
  };
  for (unsigned l = 0; l < kWarp; ++l) {
    const unsigned g = l / 4, t = l % 4;
    for (unsigned k = 0; k < 4; ++k) a[g + k % 2 * 8][t + k / 2 * 4] = cut(4 + int(k), l);
    for (unsigned k = 0; k < 2; ++k) b[t + k * 4][g] = cut(8 + int(k), l);
  }
  float result[4][kWarp];
  for (unsigned l = 0; l < kWarp; ++l)
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned row = l / 4 + k / 2 * 8, col = l % 4 * 2 + k % 2;
      double sum = double{warp.at<float>(in.at[10 + k])[l]};
      for (unsigned i = 0; i < 8; ++i) sum += a[row][i] * b[i][col];
      result[k][l] = static_cast<float>(sum);
    }
  for (unsigned k = 0; k < 4; ++k) std::copy_n(result[k], kWarp, warp.at<float>(in.at[k]));
}

Table make_table() {
  Table table;
  bits<u16>(table, "b16");
  bits<u32>(table, "b32");
  bits<u64>(table, "b64");
  integers<u16>(table, "u16");
  integers<std::int16_t>(table, "s16");
  integers<u32>(table, "u32");
  integers<s32>(table, "s32");
  integers<u64>(table, "u64");
  integers<s64>(table, "s64");
  reals<float>(table, "f32");
  reals<double>(table, "f64");
  conversions(table);
  predicates(table);
  table["shfl.sync.bfly.b32"] = {&butterfly, Flow::members, {4, 1, 4, 4, 4, 4}, 2};
  table["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"] = {&multiply_tf32, Flow::together,
                                                                 std::vector<int>(14, 4)};
  table["bra"] = table["bra.uni"] = {nullptr, Flow::branch, {}, 0};
  table["ret"] = table["exit"] = {nullptr, Flow::leave, {}, 0};
  table["bar.sync"] = {nullptr, Flow::barrier, {}, 0};
  return table;
}

}  // namespace

const Operation* find_operation(std::string_view opcode) {
  static const Table table = make_table();
  const auto found = table.find(std::string(opcode));
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace keel::emulated::ptx
