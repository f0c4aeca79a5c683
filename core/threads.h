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

}  // namespace keel
