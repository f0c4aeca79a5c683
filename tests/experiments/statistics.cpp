#include "../../experiments/statistics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "../../core/error.h"

namespace keel {
namespace {

TEST_CASE("statistics: Student's t quantiles of the tables") {
  struct Case {
    double probability, degrees, t;
  };
  for (const Case& c : {Case{0.975, 1, 12.706204736174705}, Case{0.975, 2, 4.302652729911275},
                        Case{0.975, 4, 2.776445105197793}, Case{0.975, 9, 2.2621571627409915},
                        Case{0.975, 249, 1.9695368676395}, Case{0.95, 10, 1.8124611228107335},
                        Case{0.995, 30, 2.7499956535672260}, Case{0.975, 1e7, 1.959964221}}) {
    CAPTURE(c.degrees);
    CHECK(student_t_quantile(c.probability, c.degrees) == doctest::Approx(c.t).epsilon(1e-9));
    CHECK(student_t_quantile(1 - c.probability, c.degrees) == doctest::Approx(-c.t).epsilon(1e-9));
  }
  CHECK(std::abs(student_t_quantile(0.5, 3)) < 1e-12);
  CHECK(student_t_cdf(0, 5) == 0.5);
  CHECK(student_t_cdf(1, 1) == doctest::Approx(0.75).epsilon(1e-13));  // Cauchy
  CHECK(student_t_cdf(-1e8, 1) == doctest::Approx(1e-8 / std::acos(-1.0)).epsilon(1e-7));
  CHECK_THROWS_WITH_AS(student_t_quantile(1, 3),
                       "student_t: got probability 1, wanted one between 0 and 1", Error);
  CHECK_THROWS_WITH_AS(student_t_cdf(1, 0),
                       "student_t: got 0 degrees of freedom, wanted more than 0", Error);
}

TEST_CASE("statistics: the interval of a mean") {
  const std::vector<double> five = {1, 2, 3, 4, 5};
  const Estimate estimate = mean_with_interval(five);
  CHECK(estimate.mean == 3);
  CHECK(estimate.half_width == doctest::Approx(2.776445105197793 * std::sqrt(2.5 / 5)));
  CHECK(sample_deviation(five) == doctest::Approx(std::sqrt(2.5)));
  const std::vector<double> one = {7};
  CHECK(mean_with_interval(one).mean == 7);
  CHECK(std::isnan(mean_with_interval(one).half_width));
  CHECK_THROWS_WITH_AS(mean_with_interval({}),
                       "mean_with_interval: got no values, wanted at least 1", Error);
}

TEST_CASE("statistics: fits") {
  const std::vector<double> wanted = {1, 2, 3}, predicted = {1, 2, 5}, mean = {2, 2, 2};
  CHECK(rmse(predicted, wanted) == doctest::Approx(std::sqrt(4.0 / 3)));
  CHECK(r_squared(predicted, wanted) == doctest::Approx(-1));
  CHECK(r_squared(wanted, wanted) == 1);
  CHECK(r_squared(mean, wanted) == doctest::Approx(0));
  for (const double scale : {1e-300, 1e-200, 1e200, 1e300}) {  // squares leave double
    CAPTURE(scale);
    std::vector<double> a, b;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      a.push_back(scale * predicted[i]);
      b.push_back(scale * wanted[i]);
    }
    CHECK(rmse(a, b) == doctest::Approx(scale * std::sqrt(4.0 / 3)).epsilon(1e-12));
    CHECK(r_squared(a, b) == doctest::Approx(-1));
  }
  const std::vector<double> none = {1, NAN, 3};
  CHECK(std::isnan(rmse(none, wanted)));
  const std::vector<double> constant = {0.1, 0.1, 0.1};  // their mean is not 0.1
  CHECK(std::isnan(r_squared(wanted, constant)));
  const std::vector<double> line = {7, 10, 13};
  CHECK(least_squares_slope(wanted, line) == doctest::Approx(3));
  // Slope 0.9, residuals -0.2, 0.4, -0.2, of one degree of freedom: se = sqrt(0.24 / 2).
  const std::vector<double> bent = {1, 2.5, 2.8};
  CHECK(least_squares_slope(wanted, bent) == doctest::Approx(0.9));
  CHECK(slope_half_width(wanted, bent) == doctest::Approx(12.706204736 * std::sqrt(0.12)));
  CHECK(std::isnan(slope_half_width(std::span(wanted).first(2), std::span(bent).first(2))));
  CHECK_THROWS_WITH_AS(least_squares_slope(constant, line),
                       "least_squares_slope: got 3 equal x, wanted at least two different ones",
                       Error);
  CHECK_THROWS_WITH_AS(rmse(wanted, {}), "rmse: got 3 and 0 values, wanted equally many, 1 or more",
                       Error);
}

}  // namespace
}  // namespace keel
