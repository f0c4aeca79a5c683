// OpenBLAS rounds differently with another number of threads. Where the bits must not depend on it,
// BLAS gets one thread, and threads take blocks that are cut by the shape alone.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

namespace keel {

/// While it lives, this thread's calls of BLAS stay on it.
class OneBlasThread {
#ifdef _OPENMP
 public:
  OneBlasThread() { omp_set_num_threads(1); }
  ~OneBlasThread() { omp_set_num_threads(before_); }
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;

 private:
  int before_ = omp_get_max_threads();
#endif
};

}  // namespace keel
