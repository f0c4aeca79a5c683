#include "../../kernels/factor_gram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "../../core/threads.h"
#include "../gpu.h"
#include "gram_terms.h"

using namespace gram_terms;

namespace {

constexpr int64_t kSizes[] = {1, 2, 13, 33, 65, 130};

void check_gram(int64_t n, int64_t m, DType dtype, bool lower, Device device = {}) {
  CAPTURE(n);
  CAPTURE(m);
  CAPTURE(lower);
  GramMatrix matrix = GramMatrix::over(Tensor::full({n, m}, -3, dtype, device));
  matrix.terms = terms_of(n, m, dtype, device);
  matrix.factor = 0.25;
  matrix.lower = lower;
  factor_gram({&matrix, 1});
  CHECK(wrong(matrix.into, matrix.terms, 0.25, lower, -3, tolerance_of(dtype)) == 0);
}

}  // namespace

TEST_CASE("factor_gram agrees with plain loops in double") {
  for (const int gpu : kGpus) {
    const EmulatedGpu on(gpu);
    for (const DType dtype : {DType::f32, DType::f64})
      for (const int64_t n : kSizes) {
        check_gram(n, n, dtype, true);
        for (const int64_t m : kSizes) check_gram(n, m, dtype, false);
      }
  }
}

TEST_CASE("factor_gram: entries may lie apart, and several matrices in one tensor") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const int64_t n = 37, m = 50;
    const Tensor into = Tensor::full({n, m, 3}, -3, dtype);
    std::vector<GramMatrix> matrices;
    for (const int64_t c : {0, 2})
      matrices.push_back(
          {n, m, terms_of(n, m, dtype), 1.0 + static_cast<double>(c), false, into, c, m * 3, 3});
    factor_gram(matrices);
    GramMatrix alone = GramMatrix::over(Tensor::empty({n, m}, dtype));
    alone.terms = terms_of(n, m, dtype);
    factor_gram({&alone, 1});
    const auto got = into.to_vector<double>(), wanted = alone.into.to_vector<double>();
    int differ = 0;
    for (std::size_t e = 0; e < wanted.size(); ++e) {
      differ += got[3 * e] != wanted[e] || got[3 * e + 1] != -3;
      differ += std::abs(got[3 * e + 2] - 3 * wanted[e]) > 1e-5;
    }
    CHECK(differ == 0);
  }
}

TEST_CASE("factor_gram: the bits of an entry depend on its two rows alone") {
  for (const auto& [dtype, gpu] : std::vector<std::pair<DType, int>>{
           {DType::f32, kGpus[0]}, {DType::f32, std::end(kGpus)[-1]}, {DType::f64, kGpus[0]}}) {
    const EmulatedGpu on(gpu);
    const int64_t n = 150;
    GramMatrix whole = GramMatrix::over(Tensor::empty({n, n}, dtype));
    whole.terms = terms_of(n, n, dtype);
    factor_gram({&whole, 1});
    const auto wanted = whole.into.to_vector<double>();
    int differ = 0;
    for (const int64_t begin : {0, 1, 13, 31, 149})
      for (const int64_t col : {0, 5, 40}) {
        const int64_t rows = std::min<int64_t>(50, n - begin), cols = n - col;
        GramMatrix part = GramMatrix::over(Tensor::empty({rows, cols}, dtype));
        for (const GramTerm& term : whole.terms) {
          const auto cut = [](const GramSide& side, int64_t from, int64_t to) {
            GramSide some;
            for (const Tensor& piece : side.u) some.u.push_back(piece.slice(from, to));
            if (side.v.defined()) some.v = side.v.slice(from, to);
            return some;
          };
          part.terms.push_back({cut(term.left, begin, begin + rows), cut(term.right, col, n),
                                term.scale, term.offset});
        }
        factor_gram({&part, 1});
        const auto got = part.into.to_vector<double>();
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < cols; ++j)
            differ += got[i * cols + j] != wanted[(begin + i) * n + col + j];
      }
    for (const int threads : {1, 4}) {
      const ThreadLimit limit(threads);
      factor_gram({&whole, 1});
      differ += whole.into.to_vector<double>() != wanted;
    }
    CHECK(differ == 0);
  }
}

TEST_CASE("factor_gram: wide factors are cut into tiles of any shape") {
  const int64_t n = 70, wide = 9000;  // one panel of them is more than a tile's share of the cache
  GramMatrix matrix = GramMatrix::over(Tensor::empty({n, n}, DType::f64));
  const GramSide side{{draw({n, wide}, 1, DType::f64)}, draw({n, 2}, 2, DType::f64)};
  matrix.terms = {{side, side, 1e-4, 0}};
  factor_gram({&matrix, 1});
  CHECK(wrong(matrix.into, matrix.terms, 1, false, 0, 1e-14) == 0);
}

TEST_CASE("factor_gram: no rows, no columns, no terms") {
  for (const auto& [n, m] : std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {0, 4}, {4, 0}}) {
    GramMatrix none = GramMatrix::over(Tensor::empty({n, m}));
    none.terms = terms_of(n, m, DType::f32);
    factor_gram({&none, 1});
  }
  const GramMatrix zero = GramMatrix::over(Tensor::full({3, 50}, 7));
  factor_gram({&zero, 1});
  for (const double v : zero.into.to_vector<double>()) CHECK(v == 0);
}

TEST_CASE("factor_gram: what does not fit is refused in one line") {
  const Tensor u = Tensor::zeros({4, 2}), v = Tensor::zeros({4, 3});
  const auto with = [](GramSide left, GramSide right) {
    GramMatrix matrix = GramMatrix::over(Tensor::zeros({4, 4}));
    matrix.terms = {{std::move(left), std::move(right)}};
    factor_gram({&matrix, 1});
  };
  CHECK_THROWS_WITH_AS(with({{u}, v}, {{v}, v}),
                       "factor_gram: got u of 2 and of 3 columns, wanted as many, and some",
                       ShapeError);
  CHECK_THROWS_WITH_AS(with({{u}, v}, {{u}, {}}),
                       "factor_gram: got v on one side alone, or of two widths", ShapeError);
  CHECK_THROWS_WITH_AS(with({{u}, v}, {{u}, u}),
                       "factor_gram: got v on one side alone, or of two widths", ShapeError);
  CHECK_THROWS_WITH_AS(with({{Tensor::zeros({5, 2})}, {}}, {{u}, {}}),
                       "factor_gram: got u [5, 2], wanted [4, cols]", ShapeError);
  CHECK_THROWS_WITH_AS(with({{}, v}, {{}, v}),
                       "factor_gram: got a side without u, wanted at least a piece", ShapeError);
  GramMatrix outside = GramMatrix::over(Tensor::zeros({4, 4}));
  outside.offset = 1;
  CHECK_THROWS_WITH_AS(factor_gram({&outside, 1}),
                       "factor_gram: got into [4, 4] for 4 x 4 entries from 1 on, 4 and 1 apart",
                       ShapeError);
  struct Layout {
    int64_t rows, cols, offset, row_stride, col_stride;
  };
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  for (const Layout& at : {Layout{4, 4, 15, -4, 1},
                           {4, 4, kLargest, 4, 1},
                           {4, 4, -1, 4, 1},
                           {4, 4, -kLargest - 1, 4, 1},
                           {4, 4, 0, 0, 1},
                           {4, 4, 0, 4, 0},
                           {4, 4, 0, 4, int64_t{1} << 62},
                           {int64_t{1} << 61, 1, 0, 8, 1},
                           {kLargest, kLargest, 0, 1, 1},
                           {2, 1, 12, 4, 0}}) {
    GramMatrix matrix = GramMatrix::over(Tensor::zeros({4, 4}));
    std::tie(matrix.rows, matrix.cols) = std::pair(at.rows, at.cols);
    std::tie(matrix.offset, matrix.row_stride, matrix.col_stride) =
        std::tuple(at.offset, at.row_stride, at.col_stride);
    CHECK_THROWS_AS(factor_gram({&matrix, 1}), ShapeError);
  }
  // Strides that are never taken, and the last element.
  GramMatrix last = GramMatrix::over(Tensor::zeros({4, 4}));
  std::tie(last.rows, last.cols) = std::pair(1, 1);
  std::tie(last.offset, last.row_stride, last.col_stride) = std::tuple(15, 0, -1);
  factor_gram({&last, 1});
  GramMatrix fewer = GramMatrix::over(Tensor::zeros({4, 4}));
  fewer.rows = -1;
  CHECK_THROWS_WITH_AS(factor_gram({&fewer, 1}),
                       "factor_gram: got -1 x 4 entries, wanted at least 0 of each", ShapeError);
  GramMatrix wide = GramMatrix::over(Tensor::zeros({4, 5}));
  wide.lower = true;
  CHECK_THROWS_WITH_AS(
      factor_gram({&wide, 1}),
      "factor_gram: got the lower triangle of 4 x 5 entries, wanted as many rows as columns",
      ShapeError);
}

TEST_CASE("factor_gram: CUDA agrees with plain loops") {
  if (!test::gpu_here("factor_gram: CUDA agrees with plain loops")) return;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int64_t n : {1, 33, 127, 130, 300}) {
      check_gram(n, n, dtype, true, Device::cuda());
      for (const int64_t m : {1, 66, 129}) check_gram(n, m, dtype, false, Device::cuda());
    }
}
