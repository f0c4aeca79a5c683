// Programs of whole rows, one each: at every width that a GPU has a group for, against loops.
#include "../../kernels/factor_rows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/gather_rows.h"
#include "../../kernels/kernel_pairs.h"
#include "../gpu.h"

using namespace keel;
using std::int64_t;

namespace {

constexpr int64_t kWidths[] = {1, 35, 128, 513, 1030};
constexpr DType kTypes[] = {DType::f32, DType::f64};

Tensor draw(Shape shape, std::uint64_t stream, DType dtype, Device device) {
  return normal(shape, {17, stream}, 1, dtype).to(device);
}

void check_near(double got, double wanted, double size, DType dtype) {
  CHECK(std::abs(got - wanted) <= (dtype == DType::f32 ? 1e-5 : 1e-13) * size);
}

void check_factor_rows(Device device, DType dtype, int64_t p) {
  const int64_t s = 2, n = 3;
  const Tensor x = draw({s, n, p}, 1, dtype, device), y = draw({s, n, p}, 2, dtype, device),
               one = draw({s, p}, 3, dtype, device), shared = draw({n, p + 2}, 4, dtype, device);
  const auto vx = x.to_vector<double>(), vy = y.to_vector<double>(), vo = one.to_vector<double>(),
             vs = shared.to_vector<double>();
  const Tensor into = Tensor::full({s, n, 2}, 1, dtype, device),
               diagonal = Tensor::zeros({s, n}, dtype, device);
  add_row_dots(0.5, x, y, into, 1);
  add_row_dots(2, x, one, into, 0);
  const Tensor by_column = scale_rows(x, shared, p);
  const auto scaled = by_column.to_vector<double>();
  add_gram_diagonal(x, y, shared, shared, 0.7, 0.2, diagonal);  // v is the wider
  add_gram_diagonal(x, y, {}, {}, 3, 0, diagonal);
  const auto got = into.to_vector<double>(), theta = diagonal.to_vector<double>();
  for (int64_t row = 0; row < s * n; ++row) {
    double by_row = 0, by_member = 0, square = 0, size = 1;
    for (int64_t k = 0; k < p; ++k) {
      const double product = vx[row * p + k] * vy[row * p + k];
      by_row += product;
      size += std::abs(product);
      by_member += vx[row * p + k] * vo[row / n * p + k];
      const double wanted = vx[row * p + k] * vs[row % n * (p + 2) + p];
      check_near(scaled[row * p + k], wanted, std::abs(wanted), dtype);
    }
    for (int64_t k = 0; k < p + 2; ++k) square += std::pow(vs[row % n * (p + 2) + k], 2);
    check_near(got[row * 2 + 1], 1 + 0.5 * by_row, size, dtype);
    check_near(got[row * 2], 1 + 2 * by_member, size + std::abs(by_member), dtype);
    check_near(theta[row], by_row * (0.7 * square + 0.2) + 3 * by_row, size * (square + 4), dtype);
  }
}

void check_gather(Device device, DType dtype, int64_t cols) {
  const int64_t length = 7, rows = 3;
  for (const int64_t members : {1, 2})
    for (const bool own : {false, true}) {
      if (own && members == 1) continue;
      const Tensor source =
          draw(own ? Shape{members, length, cols} : Shape{length, cols}, 5, dtype, device);
      std::vector<double> order, first;
      for (int64_t m = 0; m < members; ++m) {
        for (int64_t r = 0; r < length; ++r)
          order.push_back(static_cast<double>((3 * r + m) % length));
        first.push_back(static_cast<double>(m + 1));
      }
      const Tensor into = Tensor::full({members, rows, cols}, -7, dtype, device);
      gather_rows(source, Tensor::from(order, {members, length}).to(device),
                  Tensor::from(first, {members}).to(device), into);
      const auto from = source.to_vector<double>(), got = into.to_vector<double>();
      bool same = true;
      for (int64_t m = 0; m < members; ++m)
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t k = 0; k < cols; ++k) {
            const int64_t row = (own ? m * length : 0) + (3 * (m + 1 + r) + m) % length;
            same = same && got[(m * rows + r) * cols + k] == from[row * cols + k];
          }
      CHECK(same);
    }
}

void check_mean_squares(Device device, int64_t cols) {
  const Tensor x = draw({3, cols}, 6, DType::f64, device);
  const auto values = x.to_vector<double>(), got = mean_squares(x).to_vector<double>();
  for (int64_t row = 0; row < 3; ++row) {
    double wanted = 0;
    for (int64_t k = 0; k < cols; ++k) wanted += std::pow(values[row * cols + k], 2);
    wanted /= static_cast<double>(cols);
    check_near(got[row], wanted, wanted, DType::f64);
  }
}

void check_rows_on(Device device) {
  for (const int64_t width : kWidths) {
    CAPTURE(width);
    for (const DType dtype : kTypes) {
      CAPTURE(dtype);
      check_factor_rows(device, dtype, width);
      check_gather(device, dtype, width);
    }
    check_mean_squares(device, width);
  }
}

}  // namespace

TEST_CASE("rows: dots, scaled ones, diagonals, gathered ones and mean squares, at every width") {
  check_rows_on(Device::cpu());
}

TEST_CASE("rows of every width on the GPU") {
  if (!test::gpu_here("rows of every width on the GPU")) return;
  check_rows_on(Device::cuda());
}

TEST_CASE("factor_rows: what does not fit is refused") {
  const auto zeros = [](Shape shape) { return Tensor::zeros(shape, DType::f64); };
  const Tensor x = zeros({2, 6, 35}), shared = zeros({6, 3});
  CHECK_THROWS_AS(add_row_dots(1, x, shared, zeros({2, 6, 2}), 0), ShapeError);
  CHECK_THROWS_AS(scale_rows(x, shared, 3), ShapeError);
  CHECK_THROWS_AS(add_gram_diagonal(x, x, shared, {}, 1, 0, zeros({2, 6})), ShapeError);
  CHECK_THROWS_AS(add_gram_diagonal(x, x, shared, zeros({6, 2}), 1, 0, zeros({2, 6})), ShapeError);
  const Tensor rows = zeros({4, 3});
  CHECK_THROWS_AS(add_row_dots(1, rows, rows, zeros({4, 2}), 2), ShapeError);
  CHECK_THROWS_AS(add_row_dots(1, rows, rows, zeros({4, 2}), -1), ShapeError);
}

TEST_CASE("gather_rows: an order that is not of the source's rows is refused") {
  const auto zeros = [](Shape shape) { return Tensor::zeros(shape, DType::f64); };
  for (const int64_t length : {6, 8})
    CHECK_THROWS_WITH_AS(
        gather_rows(zeros({7, 2}), zeros({length}), zeros({1}), zeros({3, 2})),
        fmt::format("gather_rows: got source [7, 2], order [{}], first [1] for 1 members", length)
            .c_str(),
        ShapeError);
}
