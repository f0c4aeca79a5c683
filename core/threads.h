// How many threads there are, and which one this is: the same words with and without OpenMP.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

namespace keel {

/// Threads that a parallel region entered from here would have.
inline int thread_count() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

/// This thread's number within its team, from 0.
inline int thread_index() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

/// Whether this thread is one of a parallel region's, even of one thread.
inline bool inside_parallel_region() {
#ifdef _OPENMP
  return omp_get_level() > 0;
#else
  return false;
#endif
}

/// Parallel regions have at most so many threads while this lives; 0: as many as before. Without
/// OpenMP there is one, whatever is asked for.
class ThreadLimit {
 public:
  explicit ThreadLimit([[maybe_unused]] int threads) : before_(thread_count()) {
#ifdef _OPENMP
    if (threads > 0) omp_set_num_threads(threads);
#endif
  }
  ~ThreadLimit() {
#ifdef _OPENMP
    omp_set_num_threads(before_);
#endif
  }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  [[maybe_unused]] int before_;
};

}  // namespace keel
