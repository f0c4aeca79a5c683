// What the bodies of factor_gram compute from: factors packed into panels. A panel of width w holds
// w rows of a matrix [n, depth] side by side, column after column: element (r, k) of a panel lies
// at k w + r. Missing rows and columns are zeros, so that no body has edges to guard.
#pragma once

#include <cstdint>
#include <span>

namespace keel {

/// A GramTerm of packed factors; v_left is null where the term has no v.
template <class T>
struct PackedTerm {
  const T *u_left, *u_right, *v_left, *v_right;
  std::int64_t u_depth, v_depth;
  T scale, offset;
};

/// Where the entries go.
template <class T>
struct GramTarget {
  T* into;
  std::int64_t rows, cols, row_stride, col_stride;
  T factor;
  bool lower;
};

/// The CPU's body, in factor_gram_cpu.cpp.
template <class T>
struct CpuGram {
  static int panel_rows();  ///< width of the left side's panels,
  static int panel_cols();  ///< and of the right side's
  static void run(std::span<const PackedTerm<T>> terms, const GramTarget<T>& target);
};

}  // namespace keel
