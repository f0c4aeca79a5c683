// A loop over independent parts on all threads.
#pragma once

#include <cstddef>
#include <exception>

namespace keel {

/// body(i) for 0 <= i < count, in any order. An exception must not leave a parallel region: the
/// last one of any part is thrown when all have ended.
template <class Body>
void each_in_parallel(std::size_t count, Body body) {
  std::exception_ptr problem;
#pragma omp parallel for schedule(dynamic) if (count > 1)
  for (std::size_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (...) {
#pragma omp critical(keel_each_in_parallel)
      problem = std::current_exception();
    }
  }
  if (problem) std::rethrow_exception(problem);
}

}  // namespace keel
