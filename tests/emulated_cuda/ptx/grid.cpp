// Runs a kernel's blocks, one after another, each by its warps: lanes that are at the same place go
// on together, those least far first, so that they meet again where their ways do.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "../races.h"
#include "../traffic.h"
#include "warp.h"

namespace keel::emulated::ptx {
namespace {

using State = Warp::State;

class Grid {
 public:
  Grid(const Kernel& kernel, unsigned threads, unsigned blocks, std::size_t dynamic,
       const std::vector<std::string>& parameters)
      : kernel_(kernel), threads_(threads) {
    place_parameters(parameters);
    block_ = {&kernel, nullptr,          kernel.shared_bytes + dynamic, parameters_.data(),
              false,   Traffic::counts()};
    shared_.resize(block_.shared_bytes / sizeof(Register) + 1);
    block_.shared = shared_[0].bytes;
    for (unsigned first = 0; first < threads; first += kWarp) {
      auto warp = std::make_unique<Warp>();
      warp->block = &block_;
      warp->first = first;
      warp->lanes = std::min(kWarp, threads - first);
      warp->registers.resize(static_cast<std::size_t>(kernel.registers));
      std::memset(warp->registers.data(), 0xff, warp->registers.size() * sizeof(Register));
      for (const Kernel::Constant& constant : kernel.constants) set(*warp, constant);
      for (unsigned l = 0; l < kWarp && kernel.thread >= 0; ++l)
        warp->at<std::uint32_t>(kernel.thread)[l] = first + l;
      set(*warp, {kernel.threads, 4, threads});
      set(*warp, {kernel.blocks, 4, blocks});
      warps_.push_back(std::move(warp));
    }
  }

  void watch(bool races) { block_.watched = races; }

  void run(unsigned index, bool forwards) {
    std::memset(block_.shared, 0xff, shared_.size() * sizeof(Register));
    Races::begin_block(index, block_.shared, block_.shared_bytes);
    if (Traffic::counts()) Traffic::begin_block(block_.shared, block_.shared_bytes);
    for (const auto& warp : warps_) {
      set(*warp, {kernel_.block, 4, index});
      for (unsigned l = 0; l < kWarp; ++l) {
        warp->place[l] = 0;
        warp->state[l] = l < warp->lanes ? State::ready : State::done;
      }
    }
    for (;; forwards = !forwards) {
      for (std::size_t i = 0; i < warps_.size(); ++i)
        run_warp(*warps_[forwards ? i : warps_.size() - 1 - i]);
      const unsigned waiting = count(State::at_barrier);
      if (waiting == 0) return check_copies();
      if (waiting < threads_) fail("a thread has left that others wait for");
      for (const auto& warp : warps_)
        for (unsigned l = 0; l < warp->lanes; ++l) warp->state[l] = State::ready;
      Races::pass_barrier();
    }
  }

 private:
  static void set(Warp& warp, const Kernel::Constant& value) {
    if (value.at < 0) return;
    for (unsigned l = 0; l < kWarp; ++l)
      std::memcpy(warp.at<unsigned char>(value.at) + l * static_cast<unsigned>(value.width),
                  &value.bits, static_cast<std::size_t>(value.width));
  }

  void place_parameters(const std::vector<std::string>& given) {
    const auto& wanted = kernel_.parameters;
    bool fits = given.size() == wanted.size();
    for (std::size_t i = 0; fits && i < given.size(); ++i)
      fits = given[i].size() == wanted[i].second;
    if (!fits) fail("its parameters are not what the launch gives");
    parameters_.resize(kernel_.parameter_bytes);
    for (std::size_t i = 0; i < given.size(); ++i)
      std::memcpy(parameters_.data() + wanted[i].first, given[i].data(), given[i].size());
  }

  unsigned count(State state) const {
    unsigned result = 0;
    for (const auto& warp : warps_)
      for (unsigned l = 0; l < warp->lanes; ++l) result += warp->state[l] == state;
    return result;
  }

  void check_copies() const {
    for (const auto& warp : warps_)
      for (const auto& copies : warp->copies)
        if (!copies.empty()) fail("a thread left copies that it never waited for");
  }

  // Until nothing but the block's barrier can help it.
  void run_warp(Warp& warp) {
    for (;;) {
      constexpr std::uint32_t kNone = ~std::uint32_t{0};
      std::uint32_t least = kNone, next = kNone, mask = 0;
      for (unsigned l = 0; l < warp.lanes; ++l)
        if (warp.state[l] == State::ready) least = std::min(least, warp.place[l]);
      if (least == kNone) {
        if (!meet(warp)) return;
        continue;
      }
      for (unsigned l = 0; l < warp.lanes; ++l) {
        if (warp.state[l] != State::ready) continue;
        if (warp.place[l] == least)
          mask |= 1u << l;
        else
          next = std::min(next, warp.place[l]);
      }
      run_lanes(warp, least, mask, next);
    }
  }

  // No lane can go on alone: those do that want each other. Whether any lane was left.
  static bool meet(Warp& warp) {
    std::uint32_t waiting = 0;
    for (unsigned l = 0; l < warp.lanes; ++l)
      if (warp.state[l] == State::together) waiting |= 1u << l;
    std::uint32_t left = waiting;
    for (unsigned l = 0; l < warp.lanes; ++l) {
      if (!(left >> l & 1)) continue;
      const std::uint32_t place = warp.place[l];
      const Instruction& in = warp.block->kernel->code[place];
      warp.line = in.line;
      std::uint32_t here = 0;
      for (unsigned other = 0; other < warp.lanes; ++other)
        if (left >> other & 1 && warp.place[other] == place) here |= 1u << other;
      const std::uint32_t wanted = members(warp, in, l);
      if ((wanted & ~here) != 0 || !agree(warp, in, wanted)) continue;
      warp.mask = wanted;
      in.action(warp, in);
      move(warp, wanted, place + 1, State::ready);
      left &= ~wanted;
    }
    if (left != 0 && left == waiting)
      warp.fail("lanes of a warp wait for others that are not there");
    return waiting != 0;
  }

  // Whether these lanes want each other, and no others.
  static bool agree(Warp& warp, const Instruction& in, std::uint32_t lanes) {
    for (unsigned l = 0; l < warp.lanes; ++l)
      if (lanes >> l & 1 && members(warp, in, l) != lanes) return false;
    return true;
  }

  // The lanes that this one wants to be there.
  static std::uint32_t members(Warp& warp, const Instruction& in, unsigned lane) {
    const std::uint32_t all = everybody(warp);
    if (in.flow == Flow::together) return all;
    const std::uint32_t wanted = warp.at<std::uint32_t>(in.at[kMembers])[lane];
    if (!(wanted >> lane & 1)) warp.fail("a lane is not of its own shuffle");
    return wanted == ~std::uint32_t{0} ? all : wanted;
  }

  static std::uint32_t everybody(const Warp& warp) {
    return warp.lanes == kWarp ? ~std::uint32_t{0} : (1u << warp.lanes) - 1;
  }

  static void move(Warp& warp, std::uint32_t lanes, std::uint32_t place, State state) {
    for (unsigned l = 0; l < kWarp; ++l)
      if (lanes >> l & 1) {
        warp.place[l] = place;
        warp.state[l] = state;
      }
  }

  // From `at`, until they part, wait, or come to where others are.
  static void run_lanes(Warp& warp, std::uint32_t at, std::uint32_t lanes, std::uint32_t others) {
    const std::vector<Instruction>& code = warp.block->kernel->code;
    for (; at < others;) {
      const Instruction& in = code[at];
      warp.line = in.line;
      warp.mask = lanes;
      if (warp.block->counted) ++warp.block->kernel->issued[static_cast<std::size_t>(in.unit)];
      if (in.guard >= 0) {
        const auto* condition = warp.at<std::uint8_t>(in.guard);
        for (unsigned l = 0; l < kWarp; ++l)
          if (!condition[l] != in.unless) warp.mask &= ~(1u << l);
      }
      if (warp.mask == 0) {
        ++at;
        continue;
      }
      const std::uint32_t rest = lanes & ~warp.mask;
      switch (in.flow) {
        case Flow::next:
          in.action(warp, in);
          ++at;
          continue;
        case Flow::branch:
          if (rest != 0) {
            move(warp, warp.mask, static_cast<std::uint32_t>(in.number), State::ready);
            return move(warp, rest, at + 1, State::ready);
          }
          at = static_cast<std::uint32_t>(in.number);
          continue;
        case Flow::leave:
          move(warp, warp.mask, at, State::done);
          if (rest == 0) return;
          lanes = rest;
          ++at;
          continue;
        case Flow::barrier:
          if (rest != 0) warp.fail("some lanes leave out a barrier");
          return move(warp, lanes, at + 1, State::at_barrier);
        case Flow::together:
        case Flow::members:
          if (rest != 0) warp.fail("some lanes leave out a shuffle");
          if (lanes != everybody(warp) || !agree(warp, in, lanes))
            return move(warp, lanes, at, State::together);
          in.action(warp, in);
          ++at;
          continue;
      }
    }
    move(warp, lanes, at, State::ready);
  }

  [[noreturn]] void fail(const std::string& why) const {
    ptx::fail(kernel_.file, 0, kernel_.name + ": " + why);
  }

  const Kernel& kernel_;
  unsigned threads_;
  Block block_;
  std::vector<Register> shared_;
  std::vector<unsigned char> parameters_;
  std::vector<std::unique_ptr<Warp>> warps_;
};

}  // namespace

void fail(const std::string& file, int line, const std::string& why) {
  std::fprintf(stderr, "emulated CUDA: %s:%d: %s\n", file.c_str(), line, why.c_str());
  std::abort();
}

void run_grid(const Kernel& kernel, std::int64_t blocks, unsigned threads, std::size_t shared_bytes,
              const std::vector<std::string>& parameters) {
  static std::mutex one_at_a_time;
  static bool forwards = false;
  const std::lock_guard<std::mutex> turn(one_at_a_time);
  forwards = !forwards;  // no order of blocks may be relied on
  Grid grid(kernel, threads, static_cast<unsigned>(blocks), shared_bytes, parameters);
  grid.watch(Races::begin_launch());
  for (std::int64_t b = 0; b < blocks; ++b)
    grid.run(static_cast<unsigned>(forwards ? b : blocks - 1 - b), (b & 1) == forwards);
  Races::end_launch();
  if (Traffic::counts()) Traffic::end_launch();
}

}  // namespace keel::emulated::ptx
