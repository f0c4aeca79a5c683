// Products with one triangle of a symmetric matrix, and the maps of triangles and diagonals.
#include "../../kernels/triangle.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/gemm.h"
#include "../gpu.h"

using namespace keel;

namespace {

using std::int64_t;

constexpr double kPoison = 1e30;  // in the other triangle, where nobody must look

void check_symmetric_products(Device device) {
  for (int64_t n : {1, 2, 3, 4, 5, 31, 129, 640})
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

void check_triangle_maps(Device device, DType dtype, DType into_dtype) {
  for (int64_t n : {1, 2, 33, 100, 300, 1030}) {
    CAPTURE(n);
    const Tensor a = normal({n, n}, {.seed = 5, .stream = 1}, 1, dtype).to(device);
    const std::vector<double> v = a.to_vector<double>();
    const Tensor s = normal({n}, {.seed = 5, .stream = 2}, 1, DType::f64);
    const std::vector<double> scale = s.to_vector<double>();
    const Tensor into = Tensor::full({n, n}, 7, into_dtype, device);
    scale_lower(a, s.to(device), 2, into);
    const std::vector<double> got = into.to_vector<double>();
    const Tensor mirrored = a.clone(), swapped = a.clone();
    const Tensor d = Tensor::full({n}, 9, dtype, device);
    mirror_lower(mirrored);
    swap_triangles(swapped);
    swap_diagonal(mirrored, d);
    const std::vector<double> whole = mirrored.to_vector<double>(), was = d.to_vector<double>();
    const std::vector<double> transpose = swapped.to_vector<double>();
    CHECK(was == diagonal(a).to_vector<double>());
    bool same = true;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const double product = v[i * n + j] * scale[i] * scale[j];
        const double scaled = into_dtype == DType::f32 ? static_cast<float>(product) : product;
        same = same && got[i * n + j] == (j < i ? scaled : j == i ? 2 : 7);
        const double mirror = j < i ? v[i * n + j] : v[j * n + i];
        same = same && whole[i * n + j] == (i == j ? 9 : mirror);
        same = same && transpose[i * n + j] == v[j * n + i];
      }
    CHECK(same);
  }
}

void check_triangle_maps_on(Device device) {
  for (const DType from : {DType::f32, DType::f64})
    for (const DType to : {DType::f32, DType::f64}) check_triangle_maps(device, from, to);
}

}  // namespace

TEST_CASE("symmetric_product reads one triangle and multiplies by both") {
  check_symmetric_products(Device::cpu());
}

TEST_CASE("scale_lower, mirror_lower, swap_triangles and the diagonal touch what they say") {
  check_triangle_maps_on(Device::cpu());
}

TEST_CASE("triangles on the GPU") {
  if (!test::gpu_here("triangles on the GPU")) return;
  check_symmetric_products(Device::cuda());
  check_triangle_maps_on(Device::cuda());
}
