// A GPU's thread blocks on one CPU thread: device code runs as it stands, each of a block's threads
// a context of its own that stops at barriers and shuffles, so that what a warp's lanes and a
// block's warps do to each other is tested where there is no GPU.
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

#include "accesses.h"
#include "races.h"
#include "settings.h"
#include "traffic.h"

namespace keel::emulated {

/// One block: a thread runs until it waits for its warp, a warp until it waits for the block. So
/// warps are as far apart as barriers let them; every other turn, and every other block's first,
/// goes backwards: a missing barrier shows whichever warp it would have held up.
class Block {
 public:
  static constexpr unsigned kWarp = 32;
  static constexpr std::uint32_t kAllLanes = 0xffffffff;

  static Block& current() { return *running(); }
  unsigned block_index() const { return index_; }
  unsigned thread_index() const { return now_->id; }

  /// A launch of `blocks` such blocks, one after another. `body` is what each of their threads
  /// does.
  static void run_grid(std::int64_t blocks, unsigned threads, std::size_t shared_bytes,
                       const std::function<void()>& body) {
    static std::mutex one_at_a_time;
    static auto* block = new Block();
    const std::lock_guard<std::mutex> turn(one_at_a_time);
    static bool forwards = false;
    forwards = !forwards;  // no order of blocks may be relied on
    running() = block;
    Accesses::watched = Races::begin_launch() || Traffic::counts();
    for (std::int64_t b = 0; b < blocks; ++b) {
      const auto index = static_cast<unsigned>(forwards ? b : blocks - 1 - b);
      block->shared_.assign((shared_bytes + 15) / 16, Quad{-1, -1});
      Races::begin_block(index, block->shared_.data(), shared_bytes);
      if (Traffic::counts()) Traffic::begin_block(block->shared_.data(), shared_bytes);
      block->run(index, threads, body);
    }
    Accesses::watched = false;
    Races::end_launch();
    if (Traffic::counts()) Traffic::end_launch();
    running() = nullptr;
  }

  /// Whether a kernel is running: its code may also be called by a test, thread after thread.
  static bool runs() { return running() != nullptr; }

  /// cp.async: the bytes arrive when the thread waits for them, and no sooner.
  void copy_async(void* to, const void* from, std::size_t bytes) {
    now_->copies.push_back({to, from, bytes, now_->commits});
  }
  void commit_copies() { ++now_->commits; }
  /// All but those of the youngest `youngest` commits.
  void wait_for_copies(int youngest) {
    std::vector<Copy>& copies = now_->copies;
    std::size_t arrived = 0;
    for (; arrived < copies.size() && copies[arrived].commit < now_->commits - youngest; ++arrived)
      copies[arrived].make();
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(arrived));
  }

  /// The shared memory whose size the launch gave: all bits one at first.
  void* dynamic_shared() { return shared_.data(); }

 private:
  void run(unsigned index, unsigned threads, const std::function<void()>& body) {
    index_ = index;
    body_ = &body;
    while (threads_.size() < threads)
      threads_.push_back(std::make_unique<Thread>(static_cast<unsigned>(threads_.size())));
    count_ = threads;
    free(0, count_);
    for (unsigned id = 0; id < count_; ++id) threads_[id]->exchanges = 0;
    for (bool forwards = ++runs_ % 2 == 0;; forwards = !forwards) {
      const unsigned warps = (count_ + kWarp - 1) / kWarp;
      for (unsigned i = 0; i < warps; ++i)
        run_warp((forwards ? i : warps - 1 - i) * kWarp, forwards);
      const unsigned done = in(State::done, 0, count_);
      if (done == count_) return check_copies();
      if (done > 0) give_up("a thread has left that others wait for");
      if (in(State::at_barrier, 0, count_) < count_)
        give_up("its threads wait for different things");
      free(0, count_);
      Races::pass_barrier();
    }
  }

 public:
  /// __syncthreads.
  void wait_for_block() { wait(State::at_barrier); }

  unsigned lane() const { return now_->id % kWarp; }

  /// Hands a value to others of the warp's lanes, and returns what says which a lane handed over:
  /// valid until the next but one exchange.
  template <class T>
  auto exchange(const T& value, std::uint32_t members = kAllLanes) {
    static_assert(sizeof(T) <= sizeof(Thread::slots[0]));
    Thread& me = *now_;
    me.members = members;
    const int slot = me.exchanges++ % 2;  // a lane is never two exchanges ahead of another
    std::memcpy(me.slots[slot], &value, sizeof(T));
    wait(State::at_shuffle);
    return [this, slot, members, first = me.id - me.id % kWarp](unsigned lane) {
      if (!(members >> lane & 1)) give_up("a lane reads from one that is not of its shuffle");
      T got;
      std::memcpy(&got, threads_[first + lane]->slots[slot], sizeof(T));
      return got;
    };
  }

 private:
  struct alignas(16) Quad {
    std::int64_t v[2];
  };
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
    int commit;
    void make() const {
      Races::touch(from, bytes, false);
      Races::touch(to, bytes, true);
      std::memcpy(to, from, bytes);
    }
  };
  enum class State { ready, at_shuffle, at_barrier, done };
  struct Thread {
    static constexpr std::size_t kStack = Accesses::kStack;
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
    std::uint32_t members = 0;  // of the shuffle it waits for
    bool begun = false;
    State state = State::ready;
    std::uint64_t slots[2][3];
    std::vector<Copy> copies;
    int commits = 0;
  };

  static Block*& running() {
    static thread_local Block* block = nullptr;
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
    Accesses::stack = reinterpret_cast<std::uintptr_t>(thread.stack.get());
    Races::switch_to(static_cast<std::int32_t>(thread.id));
    if (Traffic::counts()) Traffic::switch_to(thread.id);
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
      if (Traffic::counts()) Traffic::meet();
      std::uint32_t complete = 0;
      for (unsigned id = begin; id < end; ++id)
        if (!(complete >> (id - begin) & 1) && shuffles(begin, end, id))
          complete |= threads_[id]->members;  // which name the same
      if (complete == 0) return;
      for (unsigned id = begin; id < end; ++id)
        if (complete >> (id - begin) & 1) free(id, id + 1);
    }
  }

  // Whether all are there that this thread's shuffle names.
  bool shuffles(unsigned begin, unsigned end, unsigned id) const {
    const Thread& mine = *threads_[id];
    if (mine.state != State::at_shuffle) return false;
    if (!(mine.members >> (id - begin) & 1)) give_up("a lane is not of its own shuffle");
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if (!(mine.members >> lane & 1)) continue;
      if (begin + lane >= end) return false;
      const Thread& other = *threads_[begin + lane];
      if (other.state != State::at_shuffle || other.members != mine.members) return false;
      if ((other.exchanges - mine.exchanges) % 2 != 0)
        give_up("lanes shuffle together after different numbers of shuffles: not emulated");
    }
    return true;
  }

  void check_copies() const {
    for (unsigned id = 0; id < count_; ++id)
      if (!threads_[id]->copies.empty()) give_up("a thread left copies that it never waited for");
  }

  [[noreturn]] void give_up(const char* why) const {
    std::fprintf(stderr, "emulated CUDA: block %u of %u threads: %s\n", index_, count_, why);
    std::abort();
  }

  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Quad> shared_;
  Thread* now_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  jmp_buf scheduler_;
  unsigned index_ = 0, count_ = 0, runs_ = 0;
};

}  // namespace keel::emulated
