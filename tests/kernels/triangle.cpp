// The maps of triangles and diagonals.
#include "../../kernels/triangle.h"

#include <doctest/doctest.h>

#include <vector>

#include "../../core/random.h"
#include "../gpu.h"

using namespace keel;

namespace {

using std::int64_t;

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

TEST_CASE("scale_lower, mirror_lower, swap_triangles and the diagonal touch what they say") {
  check_triangle_maps_on(Device::cpu());
}

TEST_CASE("triangles on the GPU") {
  if (!test::gpu_here("triangles on the GPU")) return;
  check_triangle_maps_on(Device::cuda());
}
