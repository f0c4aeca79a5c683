// Emulated GPUs: memory that the host must not touch, and streams whose work waits, as late as it
// may, until somebody synchronises. So what a real GPU breaks now and then breaks here always: a
// missing wait, a host that reads device memory, an argument that did not live long enough.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace keel::emulated {

inline constexpr int kDevices = 2;

using Work = std::function<void()>;

/// Ends the program: something was done that a GPU would not survive, or not do.
[[noreturn]] void give_up(const char* why);

/// A GPU's memory: one range of addresses that is open only while work runs. What is handed out,
/// and what comes back, is all bits one: NaN.
class Memory {
 public:
  static constexpr std::size_t kBytes = std::size_t{2} << 30;
  static constexpr int kFresh = 0xff;  // each byte of what nobody has written yet

  Memory();
  void* allocate(std::size_t bytes);  // null: no room
  bool free(void* data);              // false: not ours; ends the test where it was written beyond
  bool holds(const void* address, std::size_t bytes = 1) const;  // within one allocation
  bool spans(const void* address) const;                         // anywhere in the range
  std::size_t in_use() const { return in_use_; }
  const void* base() const { return base_; }

  /// Open while it lives: for work of the device, or for a copy to or from it.
  class Open {
   public:
    explicit Open(Memory& memory) : memory_(memory) {
      if (memory_.opened_++ == 0) memory_.protect(false);
    }
    ~Open() {
      if (--memory_.opened_ == 0) memory_.protect(true);
    }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    Memory& memory_;
  };

 private:
  void protect(bool from_all);

  char* base_;
  std::map<std::size_t, std::size_t> taken_;  // offset: bytes asked for
  std::size_t in_use_ = 0;
  int opened_ = 0;
};

/// What a recorded graph does, in order.
struct Graph {
  std::vector<Work> nodes;
};

struct Stream {
  int device;
  std::deque<Work> waiting;
  Graph* recorded = nullptr;  // while a graph is recorded
  bool spoilt = false;        // by a call that recording does not allow
};

/// When the stream got there; nothing before.
struct Event {
  std::optional<std::chrono::steady_clock::time_point> reached;
};

/// One mutex over everything the driver has: nothing here is fast.
std::recursive_mutex& driver_mutex();
Memory& memory_of(int device);
int current_device();
/// To the end of the stream, or into the graph that it records.
void enqueue(Stream&, Work);
void run_all(Stream&);
/// Makes NaN, in the stream's order, of what a pool hands out again: nobody may count on it.
void forget(Stream*, void* data, std::size_t bytes);

}  // namespace keel::emulated
