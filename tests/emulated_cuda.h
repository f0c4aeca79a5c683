// A GPU's thread blocks on one CPU thread: the device code of kernels/ (group.cuh, launch.cuh) runs
// as it stands, each of a block's threads a context of its own that stops at barriers and shuffles.
// The whole of kernels/ is built once more with it (test_emulated), so that what a warp's lanes and
// a block's warps do to each other is tested where there is no GPU. What this cannot show: real
// concurrency, the memory model, speed.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <cmath>
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

  unsigned lane() const { return now_->id % kWarp; }

  /// Hands a value to the warp's other lanes, and returns what says which a lane handed over: valid
  /// until the next but one exchange.
  template <class T>
  auto exchange(const T& value) {
    static_assert(sizeof(T) <= sizeof(Thread::slots[0]));
    Thread& me = *now_;
    const int slot = me.exchanges++ % 2;  // a lane is never two exchanges ahead of another
    std::memcpy(me.slots[slot], &value, sizeof(T));
    wait(State::at_shuffle);
    return [this, slot, first = me.id - me.id % kWarp](unsigned lane) {
      T got;
      std::memcpy(&got, threads_[first + lane]->slots[slot], sizeof(T));
      return got;
    };
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
    std::uint64_t slots[2][3];
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

/// A sum as a tensor core makes it, without a bit to spare: of every addend what lies below 24 bits
/// of the largest is cut off, and of the sum what lies below 24 of its own (Fasi, Higham, Mikaitis
/// and Pranesh, PeerJ CS 2021: how many bits more a generation keeps differs).
template <int kCount>
float cut_sum(const double (&addends)[kCount]) {
  double largest = 0, plain = 0;
  for (const double x : addends) {
    largest = std::fmax(largest, std::fabs(x));
    plain += x;
  }
  if (largest == 0 || !std::isfinite(plain)) return static_cast<float>(plain);
  const int last = std::max(std::ilogb(largest) - 23, -149);
  const double unit = std::ldexp(1.0, last), per_unit = std::ldexp(1.0, -last);
  std::int64_t sum = 0;
  for (const double x : addends) sum += static_cast<std::int64_t>(x * per_unit);
  std::uint64_t bits = static_cast<std::uint64_t>(std::abs(sum));
  const int beyond = std::max(0, static_cast<int>(std::bit_width(bits)) - 24);
  bits = bits >> beyond << beyond;
  return static_cast<float>((sum < 0 ? -unit : unit) * static_cast<double>(bits));
}

/// The tensor cores of a warp (kernels/factor_gram_tensor.h): all lanes hand their parts of a and b
/// over, and each sums its own four entries.
struct TensorCores {
  template <class Fragment>
  static void multiply_add(Fragment& d, const Fragment& a, float b0, float b1) {
    struct Parts {
      float a[4], b[2];
    };
    Block& block = Block::current();
    const unsigned lane = block.lane();
    const auto of = block.exchange(
        Parts{{cut(a.v[0]), cut(a.v[1]), cut(a.v[2]), cut(a.v[3])}, {cut(b0), cut(b1)}});
    Parts row[4], col[2][4];  // by column of a, and row of b, modulo 4
    for (unsigned k = 0; k < 4; ++k) {
      row[k] = of(lane / 4 * 4 + k);
      for (unsigned right = 0; right < 2; ++right)
        col[right][k] = of((lane % 4 * 2 + right) * 4 + k);
    }
    for (unsigned entry = 0; entry < 4; ++entry) {
      double addends[9] = {d.v[entry]};
      for (unsigned k = 0; k < 8; ++k)
        addends[1 + k] = static_cast<double>(row[k % 4].a[k / 4 * 2 + entry / 2]) *
                         col[entry % 2][k % 4].b[k / 4];
      d.v[entry] = cut_sum(addends);
    }
  }

 private:
  static float cut(float x) {  // to the 19 bits that TF32 has
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffffe000);
  }
};

/// What the emulated device says it is: kernels choose by it. Tests set it.
struct Capability {
  int major = 8, minor = 6;
};
inline Capability& capability() {
  static Capability it;
  return it;
}

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
  auto& block = keel::emulated::Block::current();
  return block.exchange(value)(block.lane() ^ static_cast<unsigned>(distance));
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
