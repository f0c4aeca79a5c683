#include "../../kernels/solve_lower.h"
#include "../difference.h"

#include <doctest/doctest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/diagonal_inverses.h"
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
      (transposed ? solve_lower_transposed : solve_lower)(l.to(device), solution, {});
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

TEST_CASE("a block of a triangle's diagonal is 32 to 1024 rows, a power of 2") {
  const std::vector<std::pair<int64_t, int64_t>> blocks = {
      {1, 32}, {32, 32}, {33, 64}, {1000, 1024}, {1024, 1024}, {40132, 1024}};
  for (const auto& [rows, block] : blocks) CHECK(diagonal_block(rows) == block);
}

TEST_CASE("inverses of a triangle's diagonal blocks on the GPU") {
  if (!test::gpu_here("inverses of a triangle's diagonal blocks on the GPU")) return;
  for (const int64_t n : {1, 31, 32, 33, 100, 1024, 1500, 2048})
    for (const DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(n);
      CAPTURE(dtype);
      const Tensor l = triangle(n, dtype, kPoison);
      const Tensor inverses = invert_diagonal_blocks(l.to(Device::cuda())).to(Device::cpu());
      const int64_t side = diagonal_block(n), blocks = (n + side - 1) / side;
      REQUIRE(inverses.shape() == Shape{blocks, side, side});
      const std::vector<double> of_l = l.to_vector<double>();
      for (int64_t block = 0; block < blocks; ++block) {
        const Tensor whole = Tensor::zeros({side, side}, dtype), product = whole.clone();
        const Tensor identity = whole.clone();
        dispatch(dtype, [&](auto t) {
          using T = decltype(t);
          for (int64_t i = 0; i < side; ++i) {
            identity.data<T>()[i * side + i] = whole.data<T>()[i * side + i] = 1;
            const int64_t row = block * side + i;
            for (int64_t j = 0; row < n && j <= i; ++j)
              whole.data<T>()[i * side + j] = static_cast<T>(of_l[row * n + block * side + j]);
            // Above the diagonal: zeros, as products take whole squares.
            for (int64_t j = i + 1; j < side; ++j)
              REQUIRE(inverses.data<T>()[(block * side + i) * side + j] == 0);
          }
        });
        gemm(Transpose::no, Transpose::no, 1, whole, inverses[block], 0, product);
        CHECK(test::largest_difference(product, identity) < (dtype == DType::f32 ? 1e-5 : 1e-14));
      }
    }
}

TEST_CASE("triangular solves by inverses that were handed over have the same bits") {
  if (!test::gpu_here("triangular solves by inverses that were handed over")) return;
  const Tensor l = triangle(1100, DType::f32, kPoison).to(Device::cuda());
  const Tensor b = normal({1100, 3}, {.seed = 4, .stream = 1}, 1, DType::f32).to(Device::cuda());
  const Tensor inverses = invert_diagonal_blocks(l), once = b.clone(), again = b.clone();
  solve_lower(l, once);
  solve_lower(l, again, inverses);
  CHECK(once.to_vector<float>() == again.to_vector<float>());
  CHECK_THROWS_WITH_AS(solve_lower(l, b, inverses[0]),
                       "solve_lower: got inverses [1024, 1024], wanted [2, 1024, 1024]",
                       ShapeError);
}

TEST_CASE("inverses of diagonal blocks are a GPU's") {
  CHECK_THROWS_WITH_AS(invert_diagonal_blocks(Tensor::zeros({2, 2})),
                       "invert_diagonal_blocks: got a tensor on cpu, wanted a GPU's", DeviceError);
  CHECK_THROWS_WITH_AS(invert_diagonal_blocks(Tensor::zeros({2, 3})),
                       "invert_diagonal_blocks: got [2, 3], wanted [n, n] of at least a row",
                       ShapeError);
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
