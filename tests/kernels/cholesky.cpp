// Factorisations by their residuals, as LAPACK's own tests measure them, and what solves with them.
#include "../../kernels/cholesky.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../../core/random.h"
#include "../../core/threads.h"
#include "../../kernels/gemm.h"
#include "../../kernels/solve_lower.h"
#include "../../kernels/symmetric_product.h"
#include "../../kernels/triangle.h"
#include "../gpu.h"

using namespace keel;

namespace {

using std::int64_t;

constexpr double kPoison = 1e30;  // above the diagonal, where nobody must look

double epsilon_of(DType dtype) {
  return dtype == DType::f32 ? std::numeric_limits<float>::epsilon()
                             : std::numeric_limits<double>::epsilon();
}

/// Lower triangle, in double and rounded to dtype, of B B' / n + I / condition.
Tensor positive_definite(int64_t n, double condition, DType dtype) {
  const Tensor b = normal({n, n}, {.seed = 7, .stream = static_cast<std::uint64_t>(n)}, 1, dtype);
  const Tensor a = Tensor::empty({n, n}, dtype);
  // Of rank n / 2: with the identity's share, a condition of about that number.
  const Tensor half = condition > 100 ? b.reshape({n * n}).slice(0, n * ((n + 1) / 2)) : b;
  const int64_t rank = half.elements() / n;
  gemm(Transpose::no, Transpose::yes, 1.0 / static_cast<double>(rank), half.reshape({n, rank}),
       half.reshape({n, rank}), 0, a);
  dispatch(dtype, [&](auto t) {
    using T = decltype(t);
    T* v = a.data<T>();
    for (int64_t i = 0; i < n; ++i) {
      v[i * n + i] += static_cast<T>(1 / condition);
      for (int64_t j = i + 1; j < n; ++j) v[i * n + j] = static_cast<T>(kPoison);
    }
  });
  return a;
}

Tensor lower_part(const Tensor& a, bool symmetric) {
  const Tensor full = a.clone();
  if (symmetric) {
    mirror_lower(full);
    return full;
  }
  const int64_t n = a.size(0);
  dispatch(a.dtype(), [&](auto t) {
    for (int64_t i = 0; i < n; ++i)
      std::fill(full.data<decltype(t)>() + i * n + i + 1, full.data<decltype(t)>() + (i + 1) * n,
                0);
  });
  return full;
}

/// Largest sum along a row: of a symmetric matrix, its 1-norm.
double norm1(const Tensor& a) {
  const double* v = a.data<double>();
  double most = 0;
  for (int64_t i = 0; i < a.size(0); ++i) {
    double sum = 0;
    for (int64_t j = 0; j < a.size(1); ++j) sum += std::abs(v[i * a.size(1) + j]);
    most = max_or_nan(most, sum);
  }
  return most;
}

/// norm1(A - L L') / (n norm1(A) epsilon) in double; of a large matrix, over every 16th column.
double residual(const Tensor& a, const Tensor& factor) {
  const int64_t n = a.size(0), stride = n > 1000 ? 16 : 1, count = (n + stride - 1) / stride;
  const Tensor whole = lower_part(a, true).to(DType::f64);
  const Tensor l = lower_part(factor, false).to(DType::f64);
  const Tensor columns = Tensor::empty({count, n}, DType::f64), l_rows = columns.clone();
  for (int64_t i = 0; i < count; ++i) {  // by symmetry, rows
    copy(columns[i], whole[i * stride]);
    copy(l_rows[i], l[i * stride]);
  }
  const double norm = norm1(whole);
  gemm(Transpose::no, Transpose::yes, -1, l_rows, l, 1, columns);
  return norm1(columns) / (static_cast<double>(n) * norm * epsilon_of(a.dtype()));
}

void check_factor(const Tensor& a, Device device) {
  CAPTURE(a.shape().str());
  const Tensor on_device = a.clone().to(device);
  const auto pivot = cholesky(on_device);
  CHECK_FALSE(pivot.has_value());
  const Tensor factor = on_device.to(Device::cpu());
  CHECK(residual(a, factor) < 30);
  const int64_t n = a.size(0);
  bool untouched = true;
  dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i + 1; j < n; ++j)
        untouched = untouched && factor.data<T>()[i * n + j] == static_cast<T>(kPoison);
  });
  CHECK(untouched);
}

void check_factors(Device device) {
  for (int64_t n : {1, 2, 63, 64, 65, 1000})
    for (DType dtype : {DType::f32, DType::f64})
      for (double condition : {10.0, dtype == DType::f32 ? 1e6 : 1e12})
        if (n < 1000 || dtype == DType::f64 || condition < 1e6)  // 1e6 is what float32 has at 1000
          check_factor(positive_definite(n, condition, dtype), device);
}

/// The first row whose pivot is at most zero: pivots of the rows before are 1.
void check_pivot(int64_t n, int64_t bad, double value, DType dtype, Device device) {
  CAPTURE(n);
  CAPTURE(bad);
  std::vector<double> v(n * n, 0.0);
  for (int64_t i = 0; i < n; ++i) v[i * n + i] = i == bad ? value : 1;
  const auto pivot = cholesky(Tensor::from(v, {n, n}).to(dtype).to(device));
  REQUIRE(pivot.has_value());
  CHECK(*pivot == bad);
}

}  // namespace

TEST_CASE("cholesky has LAPACK's residual and leaves the upper triangle alone") {
  check_factors(Device::cpu());
}

// Six panels of columns, the last a narrow one; two chunks of rows beside the first.
TEST_CASE("cholesky of 2625 rows, well and ill conditioned") {
  const int64_t n = 2625;
  for (double rho : {0.5, 0.998}) {  // rho^|i - j|: condition ((1 + rho) / (1 - rho))^2, 9 and 1e6
    std::vector<float> power(n), v(n * n, static_cast<float>(kPoison));
    for (int64_t i = 0; i < n; ++i)
      power[i] = static_cast<float>(std::pow(rho, static_cast<double>(i)));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) v[i * n + j] = power[i - j];
    check_factor(Tensor::from(v, {n, n}), Device::cpu());
  }
}

TEST_CASE("cholesky names the first pivot that is not positive, or not finite") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (DType dtype : {DType::f32, DType::f64})
    for (double value : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()}) {
      for (int64_t n : {1, 2, 65, 300}) {
        check_pivot(n, 0, value, dtype, Device::cpu());
        check_pivot(n, n / 2, value, dtype, Device::cpu());
        check_pivot(n, n - 1, value, dtype, Device::cpu());
      }
      check_pivot(600, 511, value, dtype, Device::cpu());  // the last row of a panel of columns,
      check_pivot(600, 512, value, dtype, Device::cpu());  // and the first of the next
    }
}

TEST_CASE("cholesky of no rows is done, of no square is refused") {
  CHECK_FALSE(cholesky(Tensor::zeros({0, 0})).has_value());
  CHECK_THROWS_WITH_AS((void)cholesky(Tensor::zeros({2, 3})), "cholesky: got [2, 3], wanted [n, n]",
                       ShapeError);
}

TEST_CASE("solves and symmetric products have the same bits for any number of threads") {
  const int64_t n = 1001;
  const Tensor a = positive_definite(n, 10, DType::f64), l = a.clone();
  REQUIRE_FALSE(cholesky(l).has_value());
  for (int64_t k : {1, 5, 100}) {
    const Tensor b = normal({n, k}, {.seed = 3, .stream = 1}, 1, DType::f64);
    std::vector<double> first_solve, first_product;
    for (int count : {1, 2, 3}) {
      const ThreadLimit limit(count);
      const Tensor x = b.clone(), product = Tensor::empty({n, k}, DType::f64);
      solve_lower(l, x);
      solve_lower_transposed(l, x);
      symmetric_product(a, Triangle::lower, b, product);
      if (count == 1) first_solve = x.to_vector<double>();
      if (count == 1) first_product = product.to_vector<double>();
      CHECK(x.to_vector<double>() == first_solve);
      CHECK(product.to_vector<double>() == first_product);
    }
  }
}

TEST_CASE("factorisations on the GPU") {
  if (!test::gpu_here("factorisations on the GPU")) return;
  const Device device = Device::cuda();
  check_factors(device);
  for (int64_t n : {1, 2, 65, 700}) check_pivot(n, n / 2, -1, DType::f64, device);
}
