#include "factor_gram_check.h"

#include <utility>

namespace keel {
namespace {

void check_factor(const char* name, const Tensor& factor, int64_t rows, const Tensor& into) {
  check_same_kind("factor_gram", name, factor, "into", into);
  check<ShapeError>(factor.rank() == 2 && factor.size(0) == rows, "factor_gram",
                    "got {} {}, wanted [{}, cols]", name, factor.shape(), rows);
}

int64_t check_side(const GramSide& side, int64_t rows, const Tensor& into) {
  check<ShapeError>(!side.u.empty(), "factor_gram",
                    "got a side without u, wanted at least a piece");
  int64_t depth = 0;
  for (const Tensor& piece : side.u) {
    check_factor("u", piece, rows, into);
    depth += piece.size(1);
  }
  if (side.v.defined()) check_factor("v", side.v, rows, into);
  return depth;
}

}  // namespace

void check_gram_matrix(const GramMatrix& matrix) {
  const int64_t most = matrix.into.elements();
  check<ShapeError>(matrix.rows >= 0 && matrix.cols >= 0, "factor_gram",
                    "got {} x {} entries, wanted at least 0 of each", matrix.rows, matrix.cols);
  if (matrix.rows > 0 && matrix.cols > 0) {
    // By division, as products may pass the number range. `left` elements lie behind the first.
    bool fits = matrix.offset >= 0 && matrix.offset < most;
    int64_t left = fits ? most - 1 - matrix.offset : 0;
    for (const auto& [count, stride] :
         {std::pair(matrix.rows, matrix.row_stride), std::pair(matrix.cols, matrix.col_stride)}) {
      if (count == 1) continue;
      fits = fits && stride >= 1 && (count - 1) <= left / stride;
      if (fits) left -= (count - 1) * stride;
    }
    check<ShapeError>(fits, "factor_gram",
                      "got into {} for {} x {} entries from {} on, {} and {} apart",
                      matrix.into.shape(), matrix.rows, matrix.cols, matrix.offset,
                      matrix.row_stride, matrix.col_stride);
  }
  check<ShapeError>(!matrix.lower || matrix.rows == matrix.cols, "factor_gram",
                    "got the lower triangle of {} x {} entries, wanted as many rows as columns",
                    matrix.rows, matrix.cols);
  for (const GramTerm& term : matrix.terms) {
    const int64_t left = check_side(term.left, matrix.rows, matrix.into);
    const int64_t right = check_side(term.right, matrix.cols, matrix.into);
    check<ShapeError>(left == right && left > 0, "factor_gram",
                      "got u of {} and of {} columns, wanted as many, and some", left, right);
    const bool v = term.left.v.defined();
    check<ShapeError>(
        v == term.right.v.defined() &&
            (!v || (term.left.v.size(1) == term.right.v.size(1) && term.left.v.size(1) > 0)),
        "factor_gram", "got v on one side alone, or of two widths");
  }
}

}  // namespace keel
