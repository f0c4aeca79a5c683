// What the tests of both norms of rows share.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "../../core/tape.h"

namespace keel::test {

template <class T>
Tensor row(const std::vector<T>& values) {
  return Tensor::from(values, {1, static_cast<std::int64_t>(values.size())});
}

inline void check_near(const std::vector<double>& got, const std::vector<double>& wanted,
                       double tolerance) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(tolerance));
  }
}

/// `norm` of x and eps makes rows with a NaN or an infinity NaN, and no other.
template <class Norm>
void check_nans_keep_to_their_rows(Norm norm) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from(
      std::vector<float>{1, 2, 3, nan, 5, 6, -infinity, 8, 9, 10, 11, 12, 0, nan, 0}, {5, 3});
  for (double eps : {0.0, 1e-5}) {
    const std::vector<double> got = norm(Var(x), eps).value().template to_vector<double>();
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(std::isnan(got[i]) == (i / 3 == 1 || i / 3 == 2 || i / 3 == 4));
  }
}

}  // namespace keel::test
