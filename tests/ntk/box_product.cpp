// t times values that have forms, against draws of all that these may be.
#include "../../ntk/box_product.h"

#include <doctest/doctest.h>

#include <cmath>

#include "drawn_boxes.h"

namespace keel {
namespace {

using namespace drawn_boxes;

// Of two inputs, t the second, and of one variable of a norm; two are the product's.
constexpr std::size_t kInputs = 2, kGiven = 3, kVariables = 5;

Forms drawn_forms(Dice& dice, double spread, double radius) {
  Forms n = empty_forms(static_cast<std::size_t>(1 + dice.below(6)), kVariables);
  for (std::size_t j = 0; j < n.units; ++j) {
    n.centre[j] = 2 * dice.normal();
    n.radius[j] = radius * std::abs(dice.normal());
    for (std::size_t k = 0; k < kGiven; ++k) n.of(k)[j] = spread * dice.normal();
  }
  const Vector reach = reaches(n);
  for (std::size_t j = 0; j < n.units; ++j) {
    const double low = dice.below(3) == 0 ? n.centre[j] - 0.5 * reach[j] : -kInfinity;
    set_ends(n, j, reach[j], {low, kInfinity});
  }
  return n;
}

TEST_CASE("box_product: draws keep to the ends, to the forms and to the bound that goes back") {
  constexpr int kDraws = 400;
  Dice dice{std::mt19937_64(41)};
  int kept = 0;
  for (const double spread : {1.0, 0.1, 1e-3})
    for (const double radius : {0.0, 0.2, 1.0})
      for (int i = 0; i < 30; ++i) {
        CAPTURE(spread);
        CAPTURE(radius);
        const Forms n = drawn_forms(dice, spread, radius);
        const Interval t = i % 3 == 0 ? Interval{0, 0.5} : Interval{0.2, 0.9};
        const double middle = (t.low + t.high) / 2, half = (t.high - t.low) / 2;
        const ProductForms product(n, kInputs, t);
        const Forms result = product.forms(kGiven);
        Vector given, lost(kInputs);
        for (std::size_t j = 0; j < n.units; ++j) given.push_back(dice.normal());
        Vector of_n = given;
        double constant = 0, size = 0;
        const double of_t = product.back(of_n, constant, size, &lost);
        for (int draw = 0; draw < kDraws; ++draw) {
          Vector e(kVariables), value(n.units);
          for (std::size_t k = 0; k < kGiven; ++k) e[k] = share_of(dice);
          const double of = middle + half * e[kInputs - 1];
          for (std::size_t k = 0; k < kInputs; ++k) e[kGiven + k] = e[k] * e[kInputs - 1];
          double left = 0, right = constant + of_t * of;
          bool meant = true;  // of draws whose values are within their ends
          for (std::size_t j = 0; j < n.units; ++j) {
            value[j] = n.centre[j] + n.radius[j] * share_of(dice);
            for (std::size_t k = 0; k < kGiven; ++k) value[j] += n.of(k)[j] * e[k];
            meant = meant && value[j] >= n.low[j] && value[j] <= n.high[j];
            left += given[j] * of * value[j];
            right += of_n[j] * value[j];
          }
          if (!meant) continue;
          ++kept;
          CHECK(left <= right + 1e-12 * (size + 1));
          for (std::size_t j = 0; j < n.units; ++j) {
            const double is = of * value[j];
            double form = result.centre[j];
            for (std::size_t k = 0; k < kVariables; ++k) form += result.of(k)[j] * e[k];
            CHECK(std::abs(is - form) <= result.radius[j] + 1e-12);
            CHECK(is >= result.low[j]);
            CHECK(is <= result.high[j]);
          }
        }
        for (const double of : lost) CHECK(of >= 0);
      }
  CHECK(kept > 9 * 30 * kDraws / 2);
}

}  // namespace
}  // namespace keel
