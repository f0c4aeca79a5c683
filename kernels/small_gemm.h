// Matrix products of the sizes that small nets are made of, on the CPU. A library spends such
// products on packing and threads; here the micro-kernel reads its operands where they lie.
#pragma once

#include <cstdint>

namespace keel {

/// One product c = alpha op(a) op(b) + beta c of row-major matrices: op(a) [m, k], op(b) [k, n].
template <class T>
struct SmallGemm {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  T alpha, beta;
  const T *a, *b;
  T* c;

  /// Whether run() does this product better than a library: its right operand fits the second-level
  /// cache, and k is not so long that the library's deeper blocking wins.
  bool suits() const { return n <= 512 && k <= 1024; }

  /// k > 0. Each element of c is summed in the order of k, whatever the number of threads.
  void run() const;
};

}  // namespace keel
