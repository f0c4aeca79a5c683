// Every row of the table of op cases through every check. Under test_threaded the same file runs
// with each Program executed by 32 threads, under test_emulated by the GPU's own groups.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>

#include "../../core/max_or_nan.h"
#include "../bits.h"
#include "../gpu.h"
#include "../op_cases.h"
#include "../sanitized.h"

using namespace keel;
using namespace keel::test;

namespace {

// Out and the derivatives of <cotangent, out> with respect to each input.
std::vector<Tensor> run(const OpCase& c, const std::vector<Tensor>& inputs) {
  Tape tape;
  std::vector<Var> leaves;
  for (const Tensor& input : inputs) leaves.push_back(tape.leaf(input));
  const Var out = c.op(leaves);
  const Tensor d_out = normal(out.shape(), {3, 9}, 1, out.value().dtype()).to(out.value().device());
  GradientSink gradients;
  tape.backward(out, d_out, gradients);
  std::vector<Tensor> results = {out.value()};
  for (const Var& leaf : leaves) results.push_back(gradients[leaf]);
  return results;
}

// Largest difference, relative to the largest expected value where that is above 1.
double difference(const std::vector<double>& got, const std::vector<double>& wanted) {
  double largest = 1, worst = 0;
  for (double w : wanted) largest = std::max(largest, std::abs(w));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    worst = max_or_nan(worst, std::abs(got[i] - wanted[i]) / largest);
  }
  return worst;
}

// 32 threads meet at a barrier for every sum of every row: there, forward, bits and errors are
// checked on the smaller cases, and what does not depend on the group is left to test_kernels.
#ifdef KEEL_CPU_GROUP_HEADER
constexpr bool kThreaded = true;
#else
constexpr bool kThreaded = false;
#endif
#ifdef KEEL_EMULATED_CUDA
constexpr bool kEmulated = true;  // a row takes 20 us to a millisecond
#else
constexpr bool kEmulated = false;
#endif
// Many rows are there for a GPU's grid.
bool skipped_here(const Size& size) {
  return (kThreaded || kEmulated || kSanitized) && many_rows(size);
}

template <class F>
void for_each_case(F f) {
  for (const OpCase& c : op_cases())
    for (const Size& size : sizes()) {
      if (skipped_here(size) || (size.n == 0 && !c.empty_allowed)) continue;
      CAPTURE(c.name);
      CAPTURE(size.n);
      CAPTURE(size.d);
      f(c, size);
    }
}

// Everything that pullbacks hand over, leaf by leaf, samples apart.
struct Kept final : Sink {
  std::vector<Tensor> pieces;
  void begin(const Tape&) override { pieces.clear(); }
  bool per_sample() const override { return true; }
  void outer(Slot, const Outer& factor) override { pieces.push_back(factor.delta); }
  void rows(Slot, const Rows& factor) override { pieces.push_back(factor.g); }
  void total(Slot, const Tensor& d_leaf) override { pieces.push_back(d_leaf); }
  Tensor contract(const Outer&) override { fail("test", "no weight here is computed"); }
  Tensor contract(const Rows&) override { fail("test", "no parameter here is computed"); }
};

std::string key_of(const OpCase& c, const Size& size) {
  return fmt::format("{} {} x {}", c.name, size.n, size.d);
}

}  // namespace

TEST_CASE("forward agrees with a naive oracle in double") {
  for_each_case([](const OpCase& c, const Size& size) {
    for (DType dtype : {DType::f32, DType::f64}) {
      const std::vector<Tensor> inputs = draw_inputs(c, size, dtype);
      oracle::Arrays arrays;
      for (const Tensor& input : inputs) arrays.emplace_back(input);
      const oracle::Array expected = c.expected(arrays);
      const Var out = c.op(std::vector<Var>(inputs.begin(), inputs.end()));
      REQUIRE(out.shape() == expected.shape);
      const double tolerance = dtype == DType::f32 ? c.tolerance : 1e-12;
      CHECK(difference(out.value().to_vector<double>(), expected.v) <= tolerance);
    }
  });
}

TEST_CASE("pullback agrees with central differences in double" * doctest::skip(kThreaded)) {
  for_each_case([](const OpCase& c, const Size& size) {
    if (!small(size) || size.n == 0) return;
    const Gradcheck checked = gradcheck(c.op, draw_inputs(c, size, DType::f64));
    CAPTURE(checked.where);
    CHECK(checked.max_relative_error <= 1e-7);
  });
}

// The thread sanitizer's only sight of every pullback: elsewhere bits are compared below.
TEST_CASE("float32 derivatives agree with float64 ones" * doctest::skip(kThreaded && !kSanitized)) {
  for_each_case([](const OpCase& c, const Size& size) {
    if (c.name.find("relu") != std::string::npos) return;  // a mask may flip where z is about 0
    const std::vector<Tensor> single = draw_inputs(c, size, DType::f32);
    std::vector<Tensor> twice;
    for (const Tensor& t : single) twice.push_back(t.to(DType::f64));
    const std::vector<Tensor> narrow = run(c, single), wide = run(c, twice);
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      CAPTURE(i);
      CHECK(difference(narrow[i].to_vector<double>(), wide[i].to_vector<double>()) <= 3e-4);
    }
  });
}

TEST_CASE("two runs agree bit for bit" * doctest::skip(kThreaded)) {
  for_each_case([](const OpCase& c, const Size& size) {
    const std::vector<Tensor> inputs = draw_inputs(c, size, DType::f32);
    const std::vector<Tensor> first = run(c, inputs), second = run(c, inputs);
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(same_bits(first[i], second[i]));
  });
}

TEST_CASE("a stack of cotangents pulls back as each of them alone" * doctest::skip(kThreaded)) {
  std::map<std::string, int> taken;
  for_each_case([&](const OpCase& c, const Size& size) {
    if (size.n == 0 || many_rows(size)) return;
    Tape tape;
    std::vector<Var> leaves;
    for (const Tensor& input : draw_inputs(c, size, DType::f32)) leaves.push_back(tape.leaf(input));
    const Var out = c.op(leaves);
    constexpr int64_t kCotangents = 3;
    if (out.value().rank() != 2) return;
    const int64_t n = out.value().size(0);
    const Tensor stack = normal({kCotangents * n, out.value().size(1)}, {3, 9});
    Kept all, one;
    if (!tape.takes_stacks()) {
      CHECK_THROWS_AS(tape.backward(out, stack, all), ShapeError);
      return;
    }
    ++taken[c.name];
    GradientSink summed;
    CHECK_THROWS_AS(tape.backward(out, stack, summed), ShapeError);
    CHECK_THROWS_AS(tape.backward(out, normal({kCotangents * n, stack.size(1) + 1}, {3, 9}), all),
                    ShapeError);
    tape.backward(out, stack, all);
    for (int64_t k = 0; k < kCotangents; ++k) {
      tape.backward(out, stack.slice(k * n, (k + 1) * n), one);
      REQUIRE(one.pieces.size() == all.pieces.size());
      for (std::size_t p = 0; p < all.pieces.size(); ++p) {
        const int64_t rows = one.pieces[p].size(0);
        REQUIRE(all.pieces[p].size(0) == kCotangents * rows);
        const Tensor part = all.pieces[p].slice(k * rows, (k + 1) * rows);
        if (c.programs_only)
          CHECK(same_bits(part, one.pieces[p]));
        else
          CHECK(difference(part.to_vector<double>(), one.pieces[p].to_vector<double>()) <= 1e-6);
      }
    }
  });
  for (const char* name : {"relu", "gelu", "silu", "add", "scale", "layer_norm", "dense", "prelu",
                           "prelu, a slope a unit", "add_bias"}) {
    CAPTURE(name);
    CHECK(taken[name] > 0);
  }
}

TEST_CASE("no rows give no rows, and zero derivatives of parameters") {
  for (const OpCase& c : op_cases()) {
    if (!c.empty_allowed) continue;
    CAPTURE(c.name);
    const std::vector<Tensor> inputs = draw_inputs(c, {0, 7}, DType::f32);
    const std::vector<Tensor> results = run(c, inputs);
    for (std::size_t i = 1; i < results.size(); ++i) {
      CHECK(results[i].shape() == inputs[i - 1].shape());
      for (double d : results[i].to_vector<double>()) CHECK(d == 0);
    }
  }
}

TEST_CASE("a bad call says what it got and what it wanted") {
  for (const OpCase& c : op_cases()) {
    CAPTURE(c.name);
    REQUIRE(c.bad_call);
    CHECK_THROWS_WITH_AS(c.bad_call(), c.complaint.c_str(), Error);
  }
}

TEST_CASE("one thread and 32 cooperating threads agree bit for bit") {
  // test_kernels writes every result here, test_threaded compares: two builds, one table.
  using Results = std::map<std::string, std::string>;
  const char* out_path = std::getenv("KEEL_TEST_BITS_OUT");
  const char* in_path = std::getenv("KEEL_TEST_BITS_IN");
  if (!out_path && !in_path) {
    fmt::print("SKIPPED one thread and 32 threads agree: run by ctest, which pairs two builds\n");
    return;
  }
  Results results;
  for (const OpCase& c : op_cases())
    for (const Size& size : sizes()) {
      if (!c.programs_only || many_rows(size) || (size.n == 0 && !c.empty_allowed)) continue;
      std::string& bits = results[key_of(c, size)];
      for (const Tensor& t : run(c, draw_inputs(c, size, DType::f32)))
        bits.append(reinterpret_cast<const char*>(t.data<float>()), t.bytes());
    }
  if (out_path) {
    std::ofstream file(out_path, std::ios::binary);
    for (const auto& [name, bits] : results)
      file << name << '\n' << bits.size() << '\n' << bits << '\n';
    REQUIRE(file.good());
    return;
  }
  std::ifstream file(in_path, std::ios::binary);
  REQUIRE(file.good());
  std::size_t compared = 0;
  for (std::string name; std::getline(file, name); ++compared) {
    std::size_t bytes = 0;
    file >> bytes;
    file.get();
    std::string bits(bytes, '\0');
    file.read(bits.data(), static_cast<std::streamsize>(bytes));
    file.get();
    CAPTURE(name);
    REQUIRE(results.count(name) == 1);
    CHECK(results[name] == bits);
  }
  CHECK(compared == results.size());
}

TEST_CASE("the CPU and the GPU agree") {
  if (!gpu_here("the CPU and the GPU agree")) return;
  for_each_case([](const OpCase& c, const Size& size) {
    const Device gpu = Device::cuda();
    const auto host = run(c, draw_inputs(c, size, DType::f64));
    const auto device = run(c, draw_inputs(c, size, DType::f64, gpu));
    for (std::size_t i = 0; i < host.size(); ++i)
      CHECK(difference(device[i].to_vector<double>(), host[i].to_vector<double>()) <= 1e-11);
    const auto inputs = draw_inputs(c, size, DType::f32, gpu);
    const auto first = run(c, inputs), second = run(c, inputs);
    const double tolerance = std::max(c.tolerance, 1e-6);
    CHECK(difference(first[0].to_vector<double>(),
                     run(c, draw_inputs(c, size, DType::f32))[0].to_vector<double>()) <= tolerance);
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(same_bits(first[i], second[i]));
  });
}
