#include "../../kernels/factor_rows.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../core/random.h"

using namespace keel;
using std::int64_t;

namespace {

Tensor draw(Shape shape, std::uint64_t stream) {
  return normal(shape, {17, stream}, 1, DType::f64);
}

}  // namespace

TEST_CASE("factor_rows: row dots, scaled rows and diagonals, shared or per member") {
  const int64_t s = 2, n = 6, p = 35;
  const Tensor x = draw({s, n, p}, 1), y = draw({s, n, p}, 2), one = draw({s, p}, 3),
               shared = draw({n, 3}, 4);
  const auto vx = x.to_vector<double>(), vy = y.to_vector<double>(), vo = one.to_vector<double>(),
             vs = shared.to_vector<double>();
  const Tensor into = Tensor::full({s, n, 2}, 1, DType::f64),
               diagonal = Tensor::zeros({s, n}, DType::f64);
  add_row_dots(0.5, x, y, into, 1);
  add_row_dots(2, x, one, into, 0);
  const auto scaled = scale_rows(x, shared, 2).to_vector<double>();
  add_gram_diagonal(x, y, shared, shared, 0.7, 0.2, diagonal);
  add_gram_diagonal(x, y, {}, {}, 3, 0, diagonal);
  const auto got = into.to_vector<double>(), theta = diagonal.to_vector<double>();
  for (int64_t row = 0; row < s * n; ++row) {
    double by_row = 0, by_member = 0, square = 0;
    for (int64_t k = 0; k < p; ++k) {
      by_row += vx[row * p + k] * vy[row * p + k];
      by_member += vx[row * p + k] * vo[row / n * p + k];
      CHECK(scaled[row * p + k] == vx[row * p + k] * vs[row % n * 3 + 2]);
    }
    for (int64_t k = 0; k < 3; ++k) square += std::pow(vs[row % n * 3 + k], 2);
    CHECK(got[row * 2 + 1] == doctest::Approx(1 + 0.5 * by_row).epsilon(1e-13));
    CHECK(got[row * 2] == doctest::Approx(1 + 2 * by_member).epsilon(1e-13));
    CHECK(theta[row] == doctest::Approx(by_row * (0.7 * square + 0.2) + 3 * by_row).epsilon(1e-13));
  }
  CHECK_THROWS_AS(add_row_dots(1, x, shared, into, 0), ShapeError);
  CHECK_THROWS_AS(scale_rows(x, shared, 3), ShapeError);
  CHECK_THROWS_AS(add_gram_diagonal(x, y, shared, {}, 1, 0, diagonal), ShapeError);
}
