// Loads, stores, asynchronous copies and vectors of registers. Compiled without strict aliasing.
#include <cstring>
#include <map>

#include "../races.h"
#include "../traffic.h"
#include "warp.h"

namespace keel::emulated::ptx {
namespace {

// Where a lane's address points to, checked: aligned to all that is moved at once, and within.
unsigned char* place_of(Warp& warp, const Instruction& in, Space space, int address, unsigned lane,
                        std::size_t bytes) {
  const std::uint64_t value =
      (in.wide || space == Space::global ? warp.at<std::uint64_t>(address)[lane]
                                         : warp.at<std::uint32_t>(address)[lane]) +
      static_cast<std::uint64_t>(in.number);
  if (value % bytes != 0)
    warp.fail("an address of " + std::to_string(bytes) + " bytes is not aligned");
  if (space == Space::global) return reinterpret_cast<unsigned char*>(value);
  const Block& block = *warp.block;
  const std::size_t end =
      space == Space::shared ? block.shared_bytes : block.kernel->parameter_bytes;
  if (value > end || bytes > end - value)
    warp.fail("an access at " + std::to_string(value) + " of " + std::to_string(end) + " bytes");
  // Parameters are only read.
  return space == Space::shared ? block.shared + value
                                : const_cast<unsigned char*>(block.parameters) + value;
}

void find_races(const Warp& warp, unsigned lane, const void* place, std::size_t bytes,
                bool writes) {
  if (!warp.block->watched) return;
  Races::switch_to(static_cast<std::int32_t>(warp.first + lane));
  Races::touch(place, bytes, writes);
}

// The lanes of an instruction make one request, which ends with `count_request`.
void count(const Warp& warp, const Instruction& in, unsigned lane, const void* place,
           std::size_t bytes, bool writes) {
  if (!Traffic::counts()) return;
  Traffic::switch_to(warp.first + lane);
  Traffic::touch(place, bytes, writes, &in);
}
void count_request() {
  if (Traffic::counts()) Traffic::meet();
}

// An element in memory as wide as T, in a register as wide as R.
template <class T, class R>
void load(Warp& warp, const Instruction& in) {
  for (unsigned l = 0; l < warp.lanes; ++l) {
    if (!warp.runs(l)) continue;
    const std::size_t bytes = sizeof(T) * in.count;
    const unsigned char* from = place_of(warp, in, in.space, in.address, l, bytes);
    if (in.space != Space::parameter) {
      find_races(warp, l, from, bytes, false);
      count(warp, in, l, from, bytes, false);
    }
    for (unsigned k = 0; k < in.count; ++k) {
      T value;
      std::memcpy(&value, from + k * sizeof(T), sizeof(T));
      warp.at<R>(in.at[k])[l] = static_cast<R>(value);
    }
  }
  count_request();
}

template <class T>
void store(Warp& warp, const Instruction& in) {
  for (unsigned l = 0; l < warp.lanes; ++l) {
    if (!warp.runs(l)) continue;
    const std::size_t bytes = sizeof(T) * in.count;
    unsigned char* to = place_of(warp, in, in.space, in.address, l, bytes);
    find_races(warp, l, to, bytes, true);
    count(warp, in, l, to, bytes, true);
    for (unsigned k = 0; k < in.count; ++k)
      std::memcpy(to + k * sizeof(T), &warp.at<T>(in.at[k])[l], sizeof(T));
  }
  count_request();
}

template <int kBytes>
void copy_async(Warp& warp, const Instruction& in) {
  Instruction plain = in;  // no offsets here
  plain.number = 0;
  for (unsigned l = 0; l < warp.lanes; ++l) {
    if (!warp.runs(l)) continue;
    unsigned char* to = place_of(warp, plain, Space::shared, in.at[0], l, kBytes);
    const unsigned char* from = place_of(warp, plain, Space::global, in.at[1], l, kBytes);
    count(warp, in, l, from, kBytes, false);
    count(warp, in, l, to, kBytes, true);
    warp.copies[l].push_back({to, from, kBytes, warp.commits[l]});
  }
  count_request();
}

void commit(Warp& warp, const Instruction&) {
  for (unsigned l = 0; l < warp.lanes; ++l) warp.commits[l] += warp.runs(l);
}

// Waits for all but the youngest in.number commits.
void await(Warp& warp, const Instruction& in) {
  for (unsigned l = 0; l < warp.lanes; ++l) {
    if (!warp.runs(l)) continue;
    std::vector<Warp::Copy>& copies = warp.copies[l];
    std::size_t arrived = 0;
    for (; arrived < copies.size() && copies[arrived].commit < warp.commits[l] - in.number;
         ++arrived) {
      const Warp::Copy& copy = copies[arrived];
      find_races(warp, l, copy.from, copy.bytes, false);
      find_races(warp, l, copy.to, copy.bytes, true);
      std::memcpy(copy.to, copy.from, copy.bytes);
    }
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(arrived));
  }
}

template <class Narrow, class Wide>
void pack(Warp& warp, const Instruction& in) {
  for (unsigned l = 0; l < warp.lanes; ++l)
    if (warp.runs(l))
      warp.at<Wide>(in.at[0])[l] = static_cast<Wide>(
          Wide{warp.at<Narrow>(in.at[2])[l]} << 8 * sizeof(Narrow) | warp.at<Narrow>(in.at[1])[l]);
}

template <class Narrow, class Wide>
void unpack(Warp& warp, const Instruction& in) {
  for (unsigned l = 0; l < warp.lanes; ++l) {
    if (!warp.runs(l)) continue;
    const Wide all = warp.at<Wide>(in.at[2])[l];
    warp.at<Narrow>(in.at[0])[l] = static_cast<Narrow>(all);
    warp.at<Narrow>(in.at[1])[l] = static_cast<Narrow>(all >> 8 * sizeof(Narrow));
  }
}

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

Action load_action(std::string_view type, int width) {
  static const std::map<std::pair<std::string_view, int>, Action> known = {
      {{"u8", 2}, &load<u8, u16>},
      {{"u8", 4}, &load<u8, u32>},
      {{"b8", 2}, &load<u8, u16>},
      {{"u16", 2}, &load<u16, u16>},
      {{"u32", 4}, &load<u32, u32>},
      {{"s32", 4}, &load<u32, u32>},
      {{"b32", 4}, &load<u32, u32>},
      {{"f32", 4}, &load<u32, u32>},
      {{"u64", 8}, &load<u64, u64>},
      {{"u32", 8}, &load<u32, u64>},
      {{"s32", 8}, &load<std::int32_t, u64>},
      {{"s64", 8}, &load<u64, u64>},
      {{"b64", 8}, &load<u64, u64>},
      {{"f64", 8}, &load<u64, u64>}};
  const auto found = known.find({type, width});
  return found == known.end() ? nullptr : found->second;
}

Action store_action(std::string_view type, int width) {
  const std::string_view bits = type.substr(type.empty() ? 0 : 1);
  if (bits == "32" && width == 4) return &store<u32>;
  if (bits == "64" && width == 8) return &store<u64>;
  return nullptr;
}

}  // namespace

Instruction memory_instruction(bool stores, std::string_view parts, int width) {
  Instruction in;
  std::string_view type;
  while (!parts.empty()) {
    parts.remove_prefix(1);
    const std::string_view part = parts.substr(0, parts.find('.'));
    parts.remove_prefix(part.size());
    if (part == "global")
      in.space = Space::global;
    else if (part == "shared")
      in.space = Space::shared;
    else if (part == "param")
      in.space = Space::parameter;
    else if (part == "v2")
      in.count = 2;
    else if (part == "v4")
      in.count = 4;
    else if (part != "nc")
      type = part;
  }
  in.action = stores ? store_action(type, width) : load_action(type, width);
  if (stores && in.space == Space::parameter) in.action = nullptr;
  in.results = stores ? 0 : in.count;
  return in;
}

Instruction copy_instruction(std::string_view opcode, std::int64_t number) {
  Instruction in;
  in.results = 0;
  if (opcode == "cp.async.commit_group") {
    in.action = &commit;
  } else if (opcode == "cp.async.wait_group") {
    in.action = &await;
    in.number = number;
  } else if (opcode == "cp.async.ca.shared.global") {
    in.action = number == 4 ? &copy_async<4> : number == 8 ? &copy_async<8> : nullptr;
    if (number == 16) in.action = &copy_async<16>;
  } else if (opcode == "cp.async.cg.shared.global" && number == 16) {
    in.action = &copy_async<16>;
  }
  return in;
}

Action pack_action(int width) { return width == 2 ? &pack<u16, u32> : &pack<u32, u64>; }
Action unpack_action(int width) { return width == 2 ? &unpack<u16, u32> : &unpack<u32, u64>; }

}  // namespace keel::emulated::ptx
