// A loop over independent parts on all threads.
#pragma once

#include <cstddef>
#include <exception>

#include "device.h"

namespace keel {

/// An exception must not leave a parallel region: this takes it out.
class ParallelProblem {
 public:
  /// part(), by any thread; keeps what it throws, of several the last.
  template <class Part>
  void keep(Part part) {
    try {
      part();
    } catch (...) {
#pragma omp critical(keel_problem)
      kept_ = std::current_exception();
    }
  }

  /// Behind the region.
  void rethrow() const {
    if (kept_) std::rethrow_exception(kept_);
  }

 private:
  std::exception_ptr kept_;
};

/// body(i) for 0 <= i < count, in any order. The last exception of any part is thrown when all have
/// ended. One part alone is in no region, which would make each of its own regions start threads
/// anew.
template <class Body>
void each_in_parallel(std::size_t count, Body body) {
  if (count == 1) return static_cast<void>(body(std::size_t{0}));
  ParallelProblem problem;
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < count; ++i) problem.keep([&] { body(i); });
  problem.rethrow();
}

/// body(i) for 0 <= i < count, whose work is the device's: side by side on a GPU, of which one
/// leaves most idle, in order on a CPU, of which each takes all threads.
template <class Body>
void each_on(Device device, std::size_t count, Body body) {
  if (device.is_cuda()) return each_in_parallel(count, body);
  for (std::size_t i = 0; i < count; ++i) body(i);
}

}  // namespace keel
