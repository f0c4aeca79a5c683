#include "norm_span.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "length.h"

namespace keel {

using Vector = std::vector<double>;

void centre(Vector& x) {
  const double first = x[0];
  long double sum = 0;  // of thousands of units the mean must be as good as one number
  for (double& value : x) sum += value -= first;
  const auto mean = static_cast<double>(sum / static_cast<long double>(x.size()));
  for (double& value : x) value -= mean;
}

double part_of(double deviation, double eps) {
  return deviation > 0 ? (1 - kRounding) / std::sqrt(1 + eps / deviation / deviation) : 0;
}

namespace {

constexpr double kSmallest = std::numeric_limits<double>::denorm_min();

enum class Added { nothing, direction, unclear };

// An orthonormal basis, and how far rounding may have turned each of its vectors out of the span:
// what a column shares with those before, it takes over of their errors, over what is left of it.
// If `centred`, of the columns less their means.
struct Basis {
  bool centred = true;
  std::vector<Vector> columns{};
  Vector errors{};
  double distance = 0;  // of the latest from those before

  // Gram and Schmidt, twice: once more than enough to be orthogonal to the last digits. x may be
  // `off` from the vector that is meant.
  Added add(Vector x, double off) {
    double largest = 0;
    for (double value : x) largest = std::max(largest, std::abs(value));
    const Added none = off > 0 ? Added::unclear : Added::nothing;
    if (largest == 0) return none;
    for (double& value : x) value /= largest;  // or squares underflow
    const double rounding = 4e-16 * std::sqrt(static_cast<double>(x.size())) * length_of(x) +
                            (kSmallest + off) / largest;
    if (centred) centre(x);
    if (length_of(x) == 0) return none;
    double error = rounding;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t c = 0; c < columns.size(); ++c) {
        double along = 0;
        for (std::size_t i = 0; i < x.size(); ++i) along += columns[c][i] * x[i];
        for (std::size_t i = 0; i < x.size(); ++i) x[i] -= along * columns[c][i];
        error += std::abs(along) * errors[c];
      }
      if (centred) centre(x);  // what is left may be small beside the mean that rounding left
    }
    const double left = length_of(x);
    if (!(error <= kOfSpan * left)) return Added::unclear;
    for (double& value : x) value /= left;
    distance = left * largest;
    errors.push_back(error / left);
    columns.push_back(std::move(x));
    return Added::direction;
  }
};

}  // namespace

NormSpan norm_span(const Vector& weight, const Vector& bias, std::int64_t inputs, double eps,
                   bool centred, const Vector& off) {
  const auto off_of = [&](std::int64_t j) {
    return off.empty() ? 0 : off[static_cast<std::size_t>(j)];
  };
  const auto width = static_cast<std::int64_t>(bias.size());
  const NormSpan every{every_normed(width, centred)};
  if (inputs + 1 >= width - centred) return every;
  Basis basis{centred};
  for (std::int64_t j = 0; j < inputs; ++j) {
    Vector column;
    for (std::int64_t i = 0; i < width; ++i)
      column.push_back(weight[static_cast<std::size_t>(i * inputs + j)]);
    if (basis.add(std::move(column), off_of(j)) == Added::unclear) return every;
  }
  const Added by_bias = basis.add(bias, off_of(inputs));
  const std::vector<Vector>& columns = basis.columns;
  if (by_bias == Added::unclear || columns.empty()) return every;

  NormSpan result;
  NormSet& set = result.set;
  set.width = width;
  set.rank = static_cast<std::int64_t>(columns.size());
  set.centred = centred;
  set.whole = false;
  // The bias has the weight +1 in every z: its own direction is never left, nor turned round.
  set.half = by_bias == Added::direction;
  if (set.half) {
    result.of_bias = basis.distance / std::sqrt(static_cast<double>(width));
    set.inner = part_of(result.of_bias, eps);
  }
  set.turned = *std::ranges::max_element(basis.errors);
  set.basis.resize(static_cast<std::size_t>(width * set.rank));
  for (std::size_t j = 0; j < columns.size(); ++j)
    for (std::size_t i = 0; i < columns[j].size(); ++i)
      set.basis[i * columns.size() + j] = columns[j][i];
  return result;
}

}  // namespace keel
