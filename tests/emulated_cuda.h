// A GPU's thread blocks on one CPU thread: the device code of kernels/ (group.cuh, launch.cuh) runs
// as it stands, each of a block's threads a context of its own that stops at barriers and shuffles.
// The whole of kernels/ is built once more with it (test_emulated), so that what a warp's lanes and
// a block's warps do to each other is tested where there is no GPU. What this cannot show: real
// concurrency, the memory model, speed.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "../core/device.h"

// The toolkit's Thrust, where there is one, brings the toolkit's own along.
#undef __device__
#undef __global__
#undef __shared__
#undef __launch_bounds__
#define __device__
#define __global__
#define __shared__ static  // blocks run one after another
#define __launch_bounds__(...)

namespace keel::emulated {

/// One block: a thread runs until it waits for its warp, a warp until it waits for the block. So
/// warps are as far apart as barriers let them; every other turn, and every other block's first,
/// goes backwards: a missing barrier shows whichever warp it would have held up.
class Block {
 public:
  static constexpr unsigned kWarp = 32;

  static Block& current() { return *running(); }
  unsigned block_index() const { return index_; }
  unsigned thread_index() const { return now_->id; }

  void run(unsigned index, unsigned threads, const std::function<void()>& body) {
    running() = this;
    index_ = index;
    body_ = &body;
    while (threads_.size() < threads)
      threads_.push_back(std::make_unique<Thread>(static_cast<unsigned>(threads_.size())));
    count_ = threads;
    free(0, count_);
    for (bool forwards = ++runs_ % 2 == 0;; forwards = !forwards) {
      const unsigned warps = (count_ + kWarp - 1) / kWarp;
      for (unsigned i = 0; i < warps; ++i)
        run_warp((forwards ? i : warps - 1 - i) * kWarp, forwards);
      const unsigned done = in(State::done, 0, count_);
      if (done == count_) return;
      if (done > 0) give_up("a thread has left that others wait for");
      if (in(State::at_barrier, 0, count_) < count_)
        give_up("its threads wait for different things");
      free(0, count_);
    }
  }

  /// __syncthreads.
  void wait_for_block() { wait(State::at_barrier); }

  /// __shfl_xor_sync of all lanes.
  template <class T>
  T exchange(T value, int distance) {
    static_assert(sizeof(T) <= sizeof(std::uint64_t));
    Thread& me = *now_;
    const int slot = me.exchanges++ % 2;  // a lane is never two exchanges ahead of another
    std::memcpy(&me.slots[slot], &value, sizeof(T));
    wait(State::at_shuffle);
    T got;
    std::memcpy(&got, &threads_[me.id ^ static_cast<unsigned>(distance)]->slots[slot], sizeof(T));
    return got;
  }

 private:
  enum class State { ready, at_shuffle, at_barrier, done };
  struct Thread {
    static constexpr std::size_t kStack = 128 << 10;
    explicit Thread(unsigned index) : id(index) {
      getcontext(&context);
      context.uc_stack = {};
      context.uc_stack.ss_sp = stack.get();
      context.uc_stack.ss_size = kStack;
      context.uc_link = nullptr;
      makecontext(&context, &Block::enter, 0);
    }
    const unsigned id;
    const std::unique_ptr<char[]> stack{new char[kStack]};
    ucontext_t context;
    jmp_buf place;
    int exchanges = 0;
    bool begun = false;
    State state = State::ready;
    std::uint64_t slots[2];
  };

  static Block*& running() {
    static Block* block = nullptr;
    return block;
  }

  // A thread lives on from block to block.
  static void enter() {
    for (;;) {
      (*current().body_)();
      current().wait(State::done);
    }
  }

  // setcontext asks the system at every switch; after the first time a jump will do.
  void resume(Thread& thread) {
    now_ = &thread;
    if (_setjmp(scheduler_)) return;
    if (thread.begun) _longjmp(thread.place, 1);
    thread.begun = true;
    setcontext(&thread.context);
  }

  void wait(State state) {
    now_->state = state;
    if (!_setjmp(now_->place)) _longjmp(scheduler_, 1);
  }

  unsigned in(State state, unsigned begin, unsigned end) const {
    unsigned count = 0;
    for (unsigned id = begin; id < end; ++id) count += threads_[id]->state == state;
    return count;
  }
  void free(unsigned begin, unsigned end) {
    for (unsigned id = begin; id < end; ++id) threads_[id]->state = State::ready;
  }

  // The warp whose first thread is `begin`, until nothing but the block's barrier can help it.
  void run_warp(unsigned begin, bool forwards) {
    const unsigned end = begin + kWarp < count_ ? begin + kWarp : count_;
    for (;;) {
      for (unsigned i = begin; i < end; ++i) {
        Thread& thread = *threads_[forwards ? i : begin + end - 1 - i];
        if (thread.state == State::ready) resume(thread);
      }
      if (in(State::at_shuffle, begin, end) < kWarp) return;
      free(begin, end);
    }
  }

  [[noreturn]] void give_up(const char* why) const {
    std::fprintf(stderr, "emulated CUDA: block %u of %u threads: %s\n", index_, count_, why);
    std::abort();
  }

  std::vector<std::unique_ptr<Thread>> threads_;
  Thread* now_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  jmp_buf scheduler_;
  unsigned index_ = 0, count_ = 0, runs_ = 0;
};

struct BlockIndex {
  struct X {
    operator unsigned() const { return Block::current().block_index(); }
  } x;
};
struct ThreadIndex {
  struct X {
    operator unsigned() const { return Block::current().thread_index(); }
  } x;
};

}  // namespace keel::emulated

inline constexpr keel::emulated::BlockIndex blockIdx;
inline constexpr keel::emulated::ThreadIndex threadIdx;

inline void __syncthreads() { keel::emulated::Block::current().wait_for_block(); }
template <class T>
T __shfl_xor_sync(unsigned, T value, int distance) {
  return keel::emulated::Block::current().exchange(value, distance);
}

namespace keel {

inline int min(int a, int b) { return b < a ? b : a; }

/// These two as core/cuda.cuh has them: every device is emulated, and its memory the CPU's.
inline bool runs_device_code(Device) { return true; }
inline void copy_to_device(Device, void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

/// As core/cuda.cuh has it; launches queue one behind the other.
template <class... Parameters, class... Arguments>
void launch_kernel(Device, const char*, void (*kernel)(Parameters...), std::int64_t blocks,
                   int threads, const Arguments&... arguments) {
  static std::mutex one_at_a_time;
  static emulated::Block block;
  const std::lock_guard<std::mutex> turn(one_at_a_time);
  const std::function<void()> body = [&] { kernel(arguments...); };
  for (std::int64_t b = 0; b < blocks; ++b)
    block.run(static_cast<unsigned>(b), static_cast<unsigned>(threads), body);
}

}  // namespace keel
