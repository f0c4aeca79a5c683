// ThreadGroup: a Program run by 32 real threads that meet at a barrier, as a warp's lanes do on a
// GPU. The whole of kernels/ is built a second time with it in HostGroup's place (test_threaded),
// so that a Program which reads what another member wrote is wrong here, and a data race under
// TSan.
#pragma once

#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "../kernels/group.h"

namespace keel {

class ThreadGroup {
 public:
  static constexpr int kMembers = kPartials;

  /// Calls body(group) on all members and waits for them; launches queue one behind the other.
  /// `held`: elements that the GPU's group for the same launch would hold.
  template <class Body>
  static void run(const Body& body, int64_t held = std::numeric_limits<int64_t>::max()) {
    crew().run([&](int member) { body(ThreadGroup(member, held)); });
  }

  template <class T>
  const T* load(int64_t n, const T* source) const {
    each(n, [](int64_t) {});
    return source;
  }

  template <class T>
  T* take(int64_t n, T* home) const {
    each(n, [](int64_t) {});
    return home;
  }

  template <class T>
  T* zeros(int64_t n, T* home) const {
    each(n, [&](int64_t i) { home[i] = 0; });
    return home;
  }
  template <class T>
  void flush(int64_t, const T*, T*) const {}

  template <class F>
  void each(int64_t n, F f) const {
    if (n > held_) {
      std::fprintf(stderr,
                   "law 5: a Program works on %lld elements, its launch on a GPU holds %lld\n",
                   static_cast<long long>(n), static_cast<long long>(held_));
      std::abort();
    }
    for (int64_t i = member_; i < n; i += kMembers) f(i);
  }

  template <class T, class F>
  void store(int64_t n, T* target, F f) const {
    each(n, [&](int64_t i) { target[i] = f(i); });
  }

  template <class F>
  auto sum(int64_t n, F f) const {
    using V = decltype(f(int64_t{}));
    V mine{};
    each(n, [&](int64_t i) { mine = mine + f(i); });
    return combine(mine, [](V a, V b) { return a + b; });
  }

  template <class F>
  auto max(int64_t n, F f) const {
    using T = decltype(f(int64_t{}));
    const auto larger = [](T a, T b) { return b > a ? b : a; };
    T mine = -std::numeric_limits<T>::infinity();
    each(n, [&](int64_t i) { mine = larger(mine, f(i)); });
    return combine(mine, larger);
  }

  template <class F>
  void once(F f) const {
    if (member_ == 0) f();
  }

 private:
  ThreadGroup(int member, int64_t held) : member_(member), held_(held) {}

  // The butterfly, which ends alike for all members: each folds all values by itself, at the cost
  // of one barrier in place of ten.
  template <class V, class Combine>
  V combine(V mine, Combine with) const {
    static_assert(std::is_trivially_copyable_v<V> && sizeof(V) <= sizeof(Crew::Slot));
    Crew& all = crew();
    auto& slots = all.slots[next_round() % 2];  // nobody is two rounds ahead of a reader
    std::memcpy(&slots[member_], &mine, sizeof(V));
    all.barrier.arrive_and_wait();
    V values[kMembers];
    for (int member = 0; member < kMembers; ++member)
      std::memcpy(&values[member], &slots[member], sizeof(V));
    // Lower member first, as fold_partials has it: then -0, NaN payloads and all are alike.
    for (int distance = kMembers / 2; distance > 0; distance /= 2)
      for (int member = 0; member < distance; ++member)
        values[member] = with(values[member], values[member + distance]);
    return values[0];
  }

  /// Exchanges that this member has taken part in.
  static unsigned next_round() {
    static thread_local unsigned rounds = 0;
    return rounds++;
  }

  // 32 threads that live as long as the program and wait for launches.
  struct Crew {
    struct Slot {
      alignas(64) std::byte bytes[64];
    };

    Crew() {
      for (int member = 0; member < kMembers; ++member)
        threads.emplace_back([this, member] { serve(member); });
    }
    ~Crew() {
      {
        std::lock_guard lock(mutex);
        stopping = true;
      }
      wake.notify_all();
      for (std::thread& thread : threads) thread.join();
    }

    void run(std::function<void(int)> work) {
      std::lock_guard one_launch(launches);
      std::unique_lock lock(mutex);
      job = std::move(work);
      ++launch;
      working = kMembers;
      wake.notify_all();
      done.wait(lock, [this] { return working == 0; });
    }

    void serve(int member) {
      std::uint64_t seen = 0;
      for (;;) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stopping || launch != seen; });
        if (stopping) return;
        seen = launch;
        lock.unlock();
        job(member);
        lock.lock();
        if (--working == 0) done.notify_one();
      }
    }

    std::barrier<> barrier{kMembers};
    Slot slots[2][kMembers];
    std::mutex launches, mutex;
    std::condition_variable wake, done;
    std::function<void(int)> job;
    std::uint64_t launch = 0;
    int working = 0;
    bool stopping = false;
    std::vector<std::thread> threads;
  };

  static Crew& crew() {
    static Crew crew;
    return crew;
  }

  int member_;
  int64_t held_;
};

}  // namespace keel
