// Matrix products on the CPU, of the sizes that nets are made of. A library spends those on packing
// and threads; here operands are read where they lie, or packed where that repays it.
#pragma once

#include <cstdint>

#include "vector_register.h"

namespace keel {

/// One product c = alpha op(a) op(b) + beta c of row-major matrices whose rows lie lda, ldb and ldc
/// elements apart: op(a) [m, k], op(b) [k, n], c [m, n]; k > 0.
template <class T>
struct CpuGemm {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  T alpha, beta;
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  T* c;
  std::int64_t ldc;

  /// Whether run() does this product better than a library: its right operand fits the second-level
  /// cache and k is not so long that deeper blocking wins, or few rows meet a large matrix.
  bool suits() const { return small() || (kFusedVectors && m <= 256 && k <= 8192); }

  /// A row of c then has the same bits whatever the number of rows.
  bool small() const { return n <= 512 && k <= 1024; }

  /// Each element of c is summed in the order of k, whatever the number of threads.
  void run() const;
};

}  // namespace keel
