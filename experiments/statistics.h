// Means with confidence intervals, and how well predictions fit.
#pragma once

#include <span>
#include <vector>

namespace keel {

/// A mean over seeds and half the width of its confidence interval: mean +- half_width.
struct Estimate {
  double mean = 0;
  double half_width = 0;  ///< NaN for a single value, which has no interval
};

/// Mean and 95% confidence interval of the mean (Student's t, n - 1 degrees of freedom).
/// Throws keel::Error where there is no value.
Estimate mean_with_interval(std::span<const double> values);

/// The same at each place of several curves, all as long as the first.
std::vector<Estimate> means_with_intervals(const std::vector<std::vector<double>>& curves);

/// Sample standard deviation (divided by n - 1); NaN for a single value.
double sample_deviation(std::span<const double> values);

/// P(T <= t) for Student's t with `degrees` > 0 degrees of freedom; absolute error below 1e-13.
double student_t_cdf(double t, double degrees);

/// The t with student_t_cdf(t, degrees) = probability, 0 < probability < 1.
double student_t_quantile(double probability, double degrees);

/// Root of the mean squared difference. The spans must be equally long and not empty.
double rmse(std::span<const double> predicted, std::span<const double> wanted);

/// |a - b| / |b| in the 2-norm: of matrices, the Frobenius norm. The spans must be equally long.
double relative_distance(std::span<const double> a, std::span<const double> b);

/// 1 - sum of squared residuals / sum of squares about the mean of `wanted`.
/// NaN where `wanted` is constant: there is no variance to explain.
double r_squared(std::span<const double> predicted, std::span<const double> wanted);

/// Slope of the least-squares line of y over x; at least two points and two different x.
double least_squares_slope(std::span<const double> x, std::span<const double> y);

/// Half the width of that slope's 95% interval, by what y is off the line: Student's t of n - 2
/// degrees of freedom times the standard error. NaN of two points.
double slope_half_width(std::span<const double> x, std::span<const double> y);

}  // namespace keel
