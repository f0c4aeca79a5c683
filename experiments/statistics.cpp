#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../core/error.h"
#include "../core/max_or_nan.h"

namespace keel {
namespace {

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double squares_about(std::span<const double> values, double centre) {
  double sum = 0;
  for (double value : values) sum += (value - centre) * (value - centre);
  return sum;
}

// In a unit, a power of two, in which no square leaves double.
double root_mean_square(std::span<const double> values) {
  double largest = 0, sum = 0;
  for (double value : values) largest = max_or_nan(largest, std::abs(value));
  if (largest == 0 || !std::isfinite(largest)) return largest;
  const double unit = std::exp2(std::ilogb(largest));
  for (double value : values) sum += value / unit * (value / unit);
  return unit * std::sqrt(sum / static_cast<double>(values.size()));
}

// Asked of the values, since squares about a rounded mean are not zero.
bool all_equal(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
}

void check_pair(const char* tag, std::span<const double> a, std::span<const double> b,
                std::size_t at_least) {
  check(a.size() == b.size() && a.size() >= at_least, tag,
        "got {} and {} values, wanted equally many, {} or more", a.size(), b.size(), at_least);
}

// Continued fraction of the incomplete beta function by Lentz's method; converges fast for
// x < (a + 1) / (a + b + 2). Press et al., Numerical Recipes, section 6.4.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto away_from_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m < 10000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double step = 1;
    for (double term : {even, odd}) {
      d = 1 / away_from_zero(1 + term * d);
      c = away_from_zero(1 + term / c);
      step = c * d;
      fraction *= step;
    }
    if (std::abs(step - 1) < 1e-16) break;
  }
  return fraction;
}

// Regularised incomplete beta function I_x(a, b); y = 1 - x, given apart so as not to be rounded.
double incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log(y));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, y) / b;
}

}  // namespace

double student_t_cdf(double t, double degrees) {
  check(degrees > 0, "student_t", "got {} degrees of freedom, wanted more than 0", degrees);
  const double whole = degrees + t * t;
  const double tail = incomplete_beta(degrees / 2, 0.5, degrees / whole, t * t / whole) / 2;
  return t > 0 ? 1 - tail : tail;
}

double student_t_quantile(double probability, double degrees) {
  check(probability > 0 && probability < 1, "student_t",
        "got probability {}, wanted one between 0 and 1", probability);
  if (probability > 0.5) return -student_t_quantile(1 - probability, degrees);
  double low = -1, high = 0;
  while (student_t_cdf(low, degrees) > probability) low *= 2;
  // Halving until no double lies in between.
  for (double middle = low / 2; middle > low && middle < high; middle = low + (high - low) / 2)
    (student_t_cdf(middle, degrees) < probability ? low : high) = middle;
  return high;
}

Estimate mean_with_interval(std::span<const double> values) {
  check(!values.empty(), "mean_with_interval", "got no values, wanted at least 1");
  const double n = static_cast<double>(values.size());
  if (values.size() == 1) return {values[0], std::numeric_limits<double>::quiet_NaN()};
  return {mean_of(values),
          student_t_quantile(0.975, n - 1) * sample_deviation(values) / std::sqrt(n)};
}

std::vector<Estimate> means_with_intervals(const std::vector<std::vector<double>>& curves) {
  std::vector<Estimate> means;
  std::vector<double> at(curves.size());
  for (std::size_t i = 0; i < curves[0].size(); ++i) {
    for (std::size_t s = 0; s < curves.size(); ++s) at[s] = curves[s][i];
    means.push_back(mean_with_interval(at));
  }
  return means;
}

double sample_deviation(std::span<const double> values) {
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  return std::sqrt(squares_about(values, mean_of(values)) / static_cast<double>(values.size() - 1));
}

double rmse(std::span<const double> predicted, std::span<const double> wanted) {
  check_pair("rmse", predicted, wanted, 1);
  std::vector<double> errors;
  for (std::size_t i = 0; i < wanted.size(); ++i) errors.push_back(predicted[i] - wanted[i]);
  return root_mean_square(errors);
}

double relative_distance(std::span<const double> a, std::span<const double> b) {
  check<ShapeError>(a.size() == b.size(), "statistics", "got {} and {} values, wanted as many",
                    a.size(), b.size());
  double squares = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(squares / size);
}

double r_squared(std::span<const double> predicted, std::span<const double> wanted) {
  check_pair("r_squared", predicted, wanted, 1);
  if (all_equal(wanted)) return std::numeric_limits<double>::quiet_NaN();
  const double mean = mean_of(wanted);
  std::vector<double> spread;
  for (double value : wanted) spread.push_back(value - mean);
  const double share = rmse(predicted, wanted) / root_mean_square(spread);
  return 1 - share * share;
}

double least_squares_slope(std::span<const double> x, std::span<const double> y) {
  check_pair("least_squares_slope", x, y, 2);
  const double centre_x = mean_of(x), centre_y = mean_of(y);
  double both = 0;
  for (std::size_t i = 0; i < x.size(); ++i) both += (x[i] - centre_x) * (y[i] - centre_y);
  check(!all_equal(x), "least_squares_slope", "got {} equal x, wanted at least two different ones",
        x.size());
  return both / squares_about(x, centre_x);
}

double slope_half_width(std::span<const double> x, std::span<const double> y) {
  const double slope = least_squares_slope(x, y), degrees = static_cast<double>(x.size()) - 2;
  if (degrees < 1) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> off;
  for (std::size_t i = 0; i < x.size(); ++i) off.push_back(y[i] - slope * x[i]);
  const double variance = squares_about(off, mean_of(off)) / degrees;
  return student_t_quantile(0.975, degrees) * std::sqrt(variance / squares_about(x, mean_of(x)));
}

}  // namespace keel
