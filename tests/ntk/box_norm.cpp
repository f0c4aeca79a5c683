// A norm over a box, against draws of all that its forms may be.
#include "../../ntk/box_norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "drawn_boxes.h"

namespace keel {
namespace {

using namespace drawn_boxes;

struct Drawn {
  BoxNorm norm{};
  Forms c{};
  Interval last{};
};

// Forms of two inputs and one variable of an earlier norm; the next three are this one's.
Drawn drawn_norm(Dice& dice, double spread, double radius) {
  Drawn result;
  const auto n = static_cast<std::size_t>(2 + dice.below(5));
  result.norm = {n, std::vector<double>{0, 1e-5, 0.5}[dice.below(3)], dice.below(2) == 0};
  result.c = empty_forms(n, 6);
  result.last = {0.2, 0.9};
  for (std::size_t j = 0; j < n; ++j) {
    result.norm.gain.push_back(dice.normal());
    result.norm.bias.push_back(dice.normal());
    result.norm.most.push_back(std::sqrt(static_cast<double>(n)));
    result.c.centre[j] = dice.normal() + (j == 0 ? 2 : 0);
    result.c.radius[j] = radius * std::abs(dice.normal());
    for (std::size_t k = 0; k < 3; ++k) result.c.of(k)[j] = spread * dice.normal();
  }
  const Vector reach = reaches(result.c);
  for (std::size_t j = 0; j < n; ++j) set_ends(result.c, j, reach[j], {-kInfinity, kInfinity});
  return result;
}

Vector normed(const BoxNorm& norm, const Vector& c, double last) {
  double square = norm.eps * (norm.eps_of_last ? last * last : 1);
  for (const double value : c) square += value * value / static_cast<double>(c.size());
  Vector h;
  for (std::size_t j = 0; j < c.size(); ++j)
    h.push_back(c[j] / std::sqrt(square) * norm.gain[j] + norm.bias[j]);
  return h;
}

TEST_CASE("box_norm: draws of c keep to the bound that goes back, to the ends and to the forms") {
  constexpr int kDraws = 300;
  Dice dice{std::mt19937_64(31)};
  for (const double spread : {1.0, 0.1, 1e-3})
    for (const double radius : {0.0, 0.1, 1.0}) {
      CAPTURE(spread);
      CAPTURE(radius);
      for (int i = 0; i < 60; ++i) {
        CAPTURE(i);
        const Drawn drawn = drawn_norm(dice, spread, radius * spread);
        const Forms& c = drawn.c;
        const NormLines lines(drawn.norm, c, 2, drawn.last);
        const Forms h = lines.forms(3);
        Vector weights, lost(2);
        for (std::size_t j = 0; j < c.units; ++j) weights.push_back(dice.normal());
        Vector before = weights;
        double value = 0, size = 0;
        lines.back(before, value, size, &lost);
        CHECK(lost[0] >= 0);
        CHECK(size > 0);
        for (int draw = 0; draw < kDraws; ++draw) {
          Vector e, of;
          for (int k = 0; k < 3; ++k) e.push_back(share_of(dice));
          for (std::size_t j = 0; j < c.units; ++j) {
            of.push_back(c.centre[j] + c.radius[j] * share_of(dice));
            for (std::size_t k = 0; k < 3; ++k) of[j] += e[k] * c.of(k)[j];
          }
          const double last =
              drawn.last.low + (drawn.last.high - drawn.last.low) * (0.5 + 0.5 * share_of(dice));
          const Vector is = normed(drawn.norm, of, last);
          double reached = 0, at_most = value + 1e-9 * size;
          for (std::size_t j = 0; j < c.units; ++j) {
            reached += weights[j] * is[j];
            at_most += before[j] * of[j];
            CHECK(is[j] >= h.low[j]);
            CHECK(is[j] <= h.high[j]);
            double off = h.centre[j], allowed = h.radius[j];
            for (std::size_t k = 0; k < 3; ++k) off += e[k] * h.of(k)[j];
            for (std::size_t k = 3; k < 6; ++k) allowed += std::abs(h.of(k)[j]);
            CHECK(std::abs(is[j] - off) <= allowed);
          }
          CHECK(reached <= at_most);
        }
      }
    }
}

TEST_CASE("box_norm: of all c that may be 0, with eps 0, no more is known than how long h is") {
  const BoxNorm norm{2, 0, false, {1, 2}, {0, 1}, {1.5, 1.5}};
  Forms c = empty_forms(2, 3);
  c.of(0)[0] = c.of(0)[1] = 1e-160;
  for (std::size_t j = 0; j < 2; ++j) set_ends(c, j, 1e-160, {-1, 1});
  const Forms h = NormLines(norm, c, 1, {0, 0}).forms(1);
  CHECK(h.high[0] == doctest::Approx(1.5));
  CHECK(h.low[0] == doctest::Approx(-1.5));
  CHECK(h.high[1] == doctest::Approx(4));
  CHECK(h.low[1] == doctest::Approx(-2));
}

}  // namespace
}  // namespace keel
