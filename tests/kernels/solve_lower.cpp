#include "../../kernels/solve_lower.h"
#include "../difference.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/gemm.h"
#include "../gpu.h"

using namespace keel;
using std::int64_t;

namespace {

constexpr double kPoison = 1e30;  // in the other triangle, where nobody must look

/// A triangle far from singular, `above` above it.
Tensor triangle(int64_t n, DType dtype, double above) {
  const Tensor l =
      normal({n, n}, {.seed = 3, .stream = 2}, 0.3 / std::sqrt(static_cast<double>(n)), dtype);
  dispatch(dtype, [&](auto t) {
    using T = decltype(t);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i; j < n; ++j)
        l.data<T>()[i * n + j] = j == i ? static_cast<T>(1 + i % 3) : static_cast<T>(above);
  });
  return l;
}

void check_solves(Device device, int64_t n, int64_t k) {
  for (DType dtype : {DType::f32, DType::f64}) {
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(dtype);
    const Tensor l = triangle(n, dtype, kPoison), clean = triangle(n, dtype, 0);
    const Tensor x = normal({n, k}, {.seed = 3, .stream = 1}, 1, dtype);
    for (bool transposed : {false, true}) {
      const Tensor b = Tensor::empty({n, k}, dtype);
      gemm(transposed ? Transpose::yes : Transpose::no, Transpose::no, 1, clean, x, 0, b);
      const Tensor solution = b.to(device).clone();
      (transposed ? solve_lower_transposed : solve_lower)(l.to(device), solution);
      CHECK(test::largest_difference(solution, x) < (dtype == DType::f32 ? 3e-5 : 1e-13));
    }
  }
}

// Blocks of the diagonal end within, at, and behind the last row; of a vector on a GPU, too.
void check_solves_on(Device device) {
  for (int64_t n : {1, 2, 65, 256, 257, 600})
    for (int64_t k : {1, 8, 9, 70}) check_solves(device, n, k);
  for (int64_t n : {2048, 2049, 4100}) check_solves(device, n, 1);
}

}  // namespace

TEST_CASE("triangular solves undo triangular products") { check_solves_on(Device::cpu()); }

TEST_CASE("triangular solves on the GPU") {
  if (!test::gpu_here("triangular solves on the GPU")) return;
  check_solves_on(Device::cuda());
}

TEST_CASE("triangular solves refuse what does not fit and do nothing for no columns") {
  CHECK_THROWS_WITH_AS(solve_lower(Tensor::zeros({2, 2}), Tensor::zeros({3, 1})),
                       "solve_lower: got b [3, 1], wanted [2, k]", ShapeError);
  CHECK_THROWS_WITH_AS(solve_lower(Tensor::zeros({2, 3}), Tensor::zeros({2, 1})),
                       "solve_lower: got l [2, 3], wanted [n, n] of fewer than 2^31 rows",
                       ShapeError);
  CHECK_THROWS_AS(solve_lower_transposed(Tensor::zeros({2, 2}), Tensor::zeros({2, 1}, DType::f64)),
                  ShapeError);
  solve_lower(Tensor::zeros({2, 2}), Tensor::zeros({2, 0}));
}
