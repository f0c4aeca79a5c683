// Conjugate gradients on their own: several right-hand sides at once, and one that is not a number.
#include "../../ntk/conjugate_gradients.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../../core/random.h"
#include "../../kernels/gemm.h"
#include "../difference.h"

using namespace keel;

namespace {

constexpr std::int64_t kSize = 12, kColumns = 3;

// I + v v'.
Tensor matrix() {
  const Tensor v = normal({kSize, 1}, {3, 0}, 1, DType::f64);
  const Tensor a = Tensor::zeros({kSize, kSize}, DType::f64);
  for (std::int64_t i = 0; i < kSize; ++i) a.data<double>()[i * kSize + i] = 1;
  gemm(Transpose::no, Transpose::yes, 1, v, v, 1, a);
  return a;
}

Tensor times(const Tensor& a, const Tensor& x) {
  const Tensor out = Tensor::empty(x.shape(), DType::f64);
  gemm(Transpose::no, Transpose::no, 1, a, x, 0, out);
  return out;
}

CgResult solve(const Tensor& a, const Tensor& b, const Tensor& x) {
  return conjugate_gradients([&](const Tensor& v) { return times(a, v); },
                             [](const Tensor& v) { return v.clone(); }, b, x, 1e-12, 100, {});
}

}  // namespace

TEST_CASE("conjugate gradients solve for all columns at once") {
  const Tensor a = matrix(), wanted = normal({kSize, kColumns}, {4, 0}, 1, DType::f64);
  const Tensor x = Tensor::zeros({kSize, kColumns}, DType::f64);
  const CgResult result = solve(a, times(a, wanted), x);
  CHECK(result.outcome == CgResult::converged);
  CHECK(result.residual <= 1e-12);
  CHECK(test::largest_difference(x, wanted) < 1e-10);
}

TEST_CASE("conjugate gradients: of thousands of rows none is left out") {
  constexpr std::int64_t kRows = 8200;  // sums are made in parts of 4096
  const Tensor b = Tensor::zeros({kRows, 1}, DType::f64), x = b.clone();
  for (std::int64_t row : {std::int64_t{0}, std::int64_t{4095}, std::int64_t{4096}, kRows - 1})
    b.data<double>()[row] = 1;
  const auto diagonal = [](std::int64_t row) { return static_cast<double>(1 + row % 7); };
  const CgResult result = conjugate_gradients(
      [&](const Tensor& v) {
        const Tensor out = v.clone();
        for (std::int64_t i = 0; i < kRows; ++i) out.data<double>()[i] *= diagonal(i);
        return out;
      },
      [](const Tensor& v) { return v.clone(); }, b, x, 1e-12, 100, {});
  CHECK(result.outcome == CgResult::converged);
  double most = 0;
  for (std::int64_t i = 0; i < kRows; ++i)
    most = max_or_nan(most, std::abs(x.data<double>()[i] - b.data<double>()[i] / diagonal(i)));
  CHECK(most < 1e-10);
}

TEST_CASE("conjugate gradients: a column of NaN has not converged, whatever follows it") {
  const Tensor a = matrix();
  for (std::int64_t column = 0; column < kColumns; ++column) {
    CAPTURE(column);
    const Tensor b = normal({kSize, kColumns}, {4, 0}, 1, DType::f64);
    for (std::int64_t i = 0; i < kSize; ++i)
      b.data<double>()[i * kColumns + column] = std::numeric_limits<double>::quiet_NaN();
    const CgResult result = solve(a, b, Tensor::zeros({kSize, kColumns}, DType::f64));
    CHECK(result.outcome != CgResult::converged);
    CHECK(std::isnan(result.residual));
  }
}
