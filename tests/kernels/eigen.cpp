// Eigendecompositions: A V = V w, V orthonormal, w ascending and right.
#include "../../kernels/eigen.h"
#include "../difference.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../core/random.h"
#include "../../kernels/gemm.h"
#include "../../kernels/triangle.h"
#include "../gpu.h"

using namespace keel;

namespace {

using std::int64_t;

double largest(const Tensor& a, bool minus_identity) {
  const std::vector<double> v = a.to_vector<double>();
  const int64_t n = a.size(0);
  double most = 0;
  for (int64_t i = 0; i < n * n; ++i)
    most = max_or_nan(most, std::abs(v[i] - (minus_identity && i / n == i % n ? 1 : 0)));
  return most;
}

void check_decompositions(Device device) {
  for (int64_t n : {1, 2, 63, 64, 65, 300})
    for (DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(n);
      const double epsilon = dtype == DType::f32 ? std::numeric_limits<float>::epsilon()
                                                 : std::numeric_limits<double>::epsilon();
      const Tensor a = normal({n, n}, {.seed = 2, .stream = 1}, 1, dtype);
      const Tensor vectors = a.to(device).clone();  // the upper triangle is another matrix's
      const Tensor w = symmetric_eigen(vectors);
      mirror_lower(a);
      const Tensor v = vectors.to(Device::cpu());
      const std::vector<double> values = w.to_vector<double>();
      const double norm = std::max(-values.front(), values.back());
      CHECK(std::is_sorted(values.begin(), values.end()));
      const Tensor gram = Tensor::empty({n, n}, dtype), residual = Tensor::empty({n, n}, dtype);
      gemm(Transpose::no, Transpose::yes, 1, v, v, 0, gram);
      CHECK(largest(gram, true) < 30 * static_cast<double>(n) * epsilon);
      const Tensor scaled = v.clone();  // rows times eigenvalues
      dispatch(dtype, [&](auto t) {
        using T = decltype(t);
        for (int64_t i = 0; i < n * n; ++i) scaled.data<T>()[i] *= static_cast<T>(values[i / n]);
      });
      gemm(Transpose::no, Transpose::no, 1, v, a, 0, residual);
      CHECK(test::largest_difference(residual, scaled) <
            30 * static_cast<double>(n) * norm * epsilon);
    }
}

}  // namespace

TEST_CASE("eigenvectors are orthonormal and solve A v = w v") {
  check_decompositions(Device::cpu());
}

TEST_CASE("eigenvalues of a matrix solved by hand") {
  const Tensor a = Tensor::from(std::vector<double>{2, 99, 1, 2}, {2, 2});
  const std::vector<double> w = symmetric_eigen(a).to_vector<double>(), v = a.to_vector<double>();
  CHECK(w[0] == doctest::Approx(1).epsilon(1e-15));
  CHECK(w[1] == doctest::Approx(3).epsilon(1e-15));
  CHECK(v[0] == doctest::Approx(-v[1]).epsilon(1e-15));
  CHECK(v[2] == doctest::Approx(v[3]).epsilon(1e-15));
}

void check_not_finite(Device device) {
  for (DType dtype : {DType::f32, DType::f64})
    CHECK_THROWS_WITH_AS(symmetric_eigen(Tensor::full(
                             {3, 3}, std::numeric_limits<double>::quiet_NaN(), dtype, device)),
                         "symmetric_eigen: got a [3, 3] that is not finite", Error);
}

TEST_CASE("symmetric_eigen refuses what is no finite square") {
  CHECK(symmetric_eigen(Tensor::zeros({0, 0})).elements() == 0);
  CHECK_THROWS_WITH_AS(symmetric_eigen(Tensor::zeros({2, 3})),
                       "symmetric_eigen: got [2, 3], wanted [n, n]", ShapeError);
  check_not_finite(Device::cpu());
}

TEST_CASE("eigendecompositions on the GPU") {
  if (!test::gpu_here("eigendecompositions on the GPU")) return;
  check_decompositions(Device::cuda());
  check_not_finite(Device::cuda());
}
