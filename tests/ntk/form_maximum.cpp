// The largest value of a convex form of what paths bring: never passed, exact where it can be.
#include "../../ntk/form_maximum.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/gemm.h"

using namespace keel;

namespace {

struct Drawn {
  std::size_t paths, each;
  std::vector<double> linear;
  Tensor form;
};

// Of `rank` squares.
Drawn draw_form(std::size_t paths, std::size_t places, std::int64_t rank, std::uint64_t seed) {
  const auto rows = static_cast<std::int64_t>(paths * (1 + places));
  const Tensor factor = normal({rows, rank}, {seed, 0}, 1, DType::f64);
  const Tensor form = Tensor::empty({rows, rows}, DType::f64);
  gemm(Transpose::no, Transpose::yes, 1, factor, factor, 0, form);
  return {paths, 1 + places, normal({rows}, {seed, 1}, 1, DType::f64).to_vector<double>(), form};
}

double at(const Drawn& drawn, const std::vector<double>& u) {
  double value = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    value += drawn.linear[i] * u[i];
    for (std::size_t j = 0; j < u.size(); ++j)
      value += u[i] * drawn.form.data<double>()[i * u.size() + j] * u[j];
  }
  return value;
}

// Whatever a path may bring: at the rim of one place's half plane, or a mean of two such.
double search(const Drawn& drawn, std::uint64_t seed) {
  double largest = -std::numeric_limits<double>::infinity();
  const std::size_t places = drawn.each - 1;
  const std::int64_t n = 3000, of_path = 6;
  const std::vector<double> draws =
      uniform({n, static_cast<std::int64_t>(drawn.paths), of_path}, {seed, 2}, DType::f64)
          .to_vector<double>();
  for (std::int64_t k = 0; k < n; ++k) {
    std::vector<double> u(drawn.paths * drawn.each);
    for (std::size_t path = 0; path < drawn.paths; ++path) {
      const double* d =
          &draws[(static_cast<std::size_t>(k) * drawn.paths + path) * std::size_t{of_path}];
      const double share = k % 2 == 0 ? 1 : d[4];
      for (const int which : {0, 1}) {
        const double angle = std::numbers::pi * (d[2 * which] - 0.5);
        const auto place = static_cast<std::size_t>(d[2 * which + 1] * static_cast<double>(places));
        const double weight = which == 0 ? share : 1 - share;
        u[path * drawn.each] += weight * std::sin(angle);
        u[path * drawn.each + 1 + std::min(place, places - 1)] += weight * std::cos(angle);
      }
    }
    largest = std::max(largest, at(drawn, u));
  }
  return largest;
}

}  // namespace

TEST_CASE("form maximum: of one path it is the largest, but for its angles' grid") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Drawn drawn = draw_form(1, 1 + seed % 4, 1 + static_cast<std::int64_t>(seed % 3), seed);
    FormMaximum maximum(1, drawn.each);
    const double most = maximum.most(drawn.linear, drawn.form);
    double found = -std::numeric_limits<double>::infinity();
    std::vector<double> best;
    for (std::size_t row = 1; row < drawn.each; ++row)
      for (double angle = -std::numbers::pi / 2; angle <= std::numbers::pi / 2; angle += 1e-3) {
        std::vector<double> u(drawn.each);
        u[0] = std::sin(angle);
        u[row] = std::cos(angle);
        if (const double value = at(drawn, u); value > found) {
          found = value;
          best = u;
        }
      }
    CAPTURE(seed);
    CHECK(found <= most);
    CHECK(most <= found + 2e-3 * (1 + std::abs(found)));
    const FormMaximum::Turn& own = maximum.own()[0];
    CHECK(own.first == 0);
    CHECK(std::abs(best[own.row] - own.angle.cos) < 0.05);
    CHECK(std::abs(best[0] - own.angle.sin) < 0.05);
  }
}

TEST_CASE("form maximum: no mean of what paths bring passes it, wherever its messages are") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Drawn drawn =
        draw_form(2 + seed % 4, 1 + seed % 5, 1 + static_cast<std::int64_t>(seed % 7), seed);
    FormMaximum maximum(drawn.paths, drawn.each);
    const double found = search(drawn, seed), begin = maximum.most(drawn.linear, drawn.form);
    double least = begin;
    CAPTURE(seed);
    for (int step = 0; step < 100; ++step) {
      maximum.step(0.05);
      const double most = maximum.most(drawn.linear, drawn.form);
      CHECK(found <= most);
      least = std::min(least, most);
    }
    // One place a path leaves nothing to choose, and messages nothing to do.
    if (drawn.each == 2) CHECK(least >= begin - 1e-9 * std::abs(begin));
    // Of one square, (c.u)^2, all pairs want the same of a path.
    if (drawn.paths == 5 && seed % 7 > 0) CHECK(least < 0.98 * begin);
  }
}

TEST_CASE("form maximum: where a pair is taken its product is the larger singular value") {
  const Drawn drawn = draw_form(2, 1, 4, 5);
  FormMaximum maximum(2, 2);
  const std::vector<double> nothing(4);
  // Of pairs alone.
  const Tensor form = drawn.form.clone();
  for (const std::size_t i : {0u, 1u, 4u, 5u, 10u, 11u, 14u, 15u}) form.data<double>()[i] = 0;
  const double most = maximum.most(nothing, form);
  const auto& [one, other, first, second] = maximum.pairs()[0];
  CHECK(first == 0);
  CHECK(second == 1);
  const double* m = form.data<double>();
  const double product = one.angle.sin * (m[2] * other.angle.sin + m[3] * other.angle.cos) +
                         one.angle.cos * (m[6] * other.angle.sin + m[7] * other.angle.cos);
  CHECK(2 * product == doctest::Approx(most).epsilon(1e-12));
  CHECK(std::hypot(one.angle.sin, one.angle.cos) == doctest::Approx(1));
  CHECK(std::hypot(other.angle.sin, other.angle.cos) == doctest::Approx(1));
}

TEST_CASE("form maximum: of no numbers it is none") {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    const Drawn drawn = draw_form(3, 2, 4, 1);
    FormMaximum maximum(3, drawn.each);
    const Tensor form = drawn.form.clone();
    form.data<double>()[4] = bad;  // between the first path's vector and the second's
    CHECK_FALSE(std::isfinite(maximum.most(drawn.linear, form)));
    std::vector<double> linear = drawn.linear;
    linear[1] = bad;
    CHECK_FALSE(std::isfinite(maximum.most(linear, drawn.form)));
  }
}
