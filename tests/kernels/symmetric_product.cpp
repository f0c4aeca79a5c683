#include "../../kernels/symmetric_product.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/gemm.h"
#include "../../kernels/triangle.h"
#include "../gpu.h"

using namespace keel;

namespace {

using std::int64_t;

constexpr double kPoison = 1e30;  // in the other triangle, where nobody must look

void check_symmetric_products(Device device) {
  for (int64_t n : {1, 2, 3, 4, 5, 31, 129, 255, 257, 640})
    for (int64_t k : {1, 2, 8, 9, 130}) {
      CAPTURE(n);
      CAPTURE(k);
      const Tensor a = normal({n, n}, {.seed = 7, .stream = 1}, 1, DType::f64), whole = a.clone();
      mirror_lower(whole);
      for (int64_t i = 0; i < n; ++i)
        std::fill(a.data<double>() + i * n + i + 1, a.data<double>() + (i + 1) * n, kPoison);
      const Tensor v = normal({n, k}, {.seed = 3, .stream = 1}, 1, DType::f64);
      const Tensor expected = Tensor::empty({n, k}, DType::f64);
      gemm(Transpose::no, Transpose::no, 1, whole, v, 0, expected);
      const Tensor upper = whole.clone();
      for (int64_t i = 0; i < n; ++i)
        std::fill(upper.data<double>() + i * n, upper.data<double>() + i * n + i, kPoison);
      for (bool lower : {true, false}) {
        const Tensor into = Tensor::full({n, k}, kPoison, DType::f64, device);
        symmetric_product((lower ? a : upper).to(device), lower ? Triangle::lower : Triangle::upper,
                          v.to(device), into);
        const std::vector<double> got = into.to_vector<double>();
        double most = 0;
        for (int64_t e = 0; e < n * k; ++e) {
          most = max_or_nan(most, std::abs(got[e] - expected.data<double>()[e]));
        }
        CHECK(most < 1e-11);
      }
    }
}

}  // namespace

TEST_CASE("symmetric_product reads one triangle and multiplies by both") {
  check_symmetric_products(Device::cpu());
}

TEST_CASE("symmetric_product on the GPU, with the same bits each time") {
  if (!test::gpu_here("symmetric_product on the GPU, with the same bits each time")) return;
  check_symmetric_products(Device::cuda());
  const int64_t n = 700;
  const Tensor a = normal({n, n}, {.seed = 7, .stream = 1}, 1, DType::f64).to(Device::cuda()),
               v = normal({n, 1}, {.seed = 3, .stream = 1}, 1, DType::f64).to(Device::cuda());
  const Tensor once = Tensor::empty({n, 1}, DType::f64, a.device()), again = once.clone();
  for (const Tensor& into : {once, again}) symmetric_product(a, Triangle::lower, v, into);
  CHECK(once.to_vector<double>() == again.to_vector<double>());
}

TEST_CASE("symmetric_product: what does not fit is refused") {
  const auto zeros = [](Shape shape) { return Tensor::zeros(shape, DType::f64); };
  for (const Shape& into : {Shape{3, 1}, {2, 2}, {3}})
    CHECK_THROWS_AS(symmetric_product(zeros({3, 3}), Triangle::lower, zeros({3, 2}), zeros(into)),
                    ShapeError);
  CHECK_THROWS_AS(symmetric_product(zeros({3, 3}), Triangle::lower, zeros({2, 2}), zeros({2, 2})),
                  ShapeError);
}

TEST_CASE("symmetric_product: a NaN in the other triangle is not looked at, one in its own shows") {
  std::vector<Device> devices{Device::cpu()};
  if (cuda_device_count() > 0) devices.push_back(Device::cuda());
  const int64_t n = 300, i = 290, j = 3;
  for (const Device device : devices)
    for (const bool lower : {true, false}) {
      CAPTURE(device);
      CAPTURE(lower);
      const Tensor a = Tensor::full({n, n}, 1, DType::f64);
      const Triangle triangle = lower ? Triangle::lower : Triangle::upper;
      const int64_t other = lower ? j * n + i : i * n + j, own = lower ? i * n + j : j * n + i;
      const Tensor v = Tensor::full({n, 1}, 1, DType::f64).to(device), into = v.clone();
      a.data<double>()[other] = std::numeric_limits<double>::quiet_NaN();
      symmetric_product(a.to(device), triangle, v, into);
      CHECK(into.to_vector<double>() == std::vector<double>(n, static_cast<double>(n)));
      a.data<double>()[own] = std::numeric_limits<double>::quiet_NaN();
      symmetric_product(a.to(device), triangle, v, into);
      const std::vector<double> got = into.to_vector<double>();
      for (int64_t row = 0; row < n; ++row)
        CHECK(std::isnan(got[static_cast<std::size_t>(row)]) == (row == i || row == j));
    }
}
