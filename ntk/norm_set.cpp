#include "norm_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "length.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
constexpr double kClear = 1e-2;  // a generator's digits count, as much as those of all its weights

// Relative to the first element: a column of equal numbers becomes exactly 0.
void centre(Vector& x) {
  const double first = x[0];
  long double sum = 0;  // of thousands of units the mean must be as good as one number
  for (double& value : x) sum += value -= first;
  const auto mean = static_cast<double>(sum / static_cast<long double>(x.size()));
  for (double& value : x) value -= mean;
}

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

// The span of the columns and the bias, less their means if `centred`. `off`: how far rounding may
// have put each of them from what is meant, the bias last; or empty.
NormSet spanned(const Vector& weight, const Vector& bias, std::int64_t inputs, double eps,
                bool centred, const Vector& off = {}) {
  const auto off_of = [&](std::int64_t j) {
    return off.empty() ? 0 : off[static_cast<std::size_t>(j)];
  };
  const auto width = static_cast<std::int64_t>(bias.size());
  NormSet every = every_normed(width, centred);
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

  NormSet set;
  set.width = width;
  set.rank = static_cast<std::int64_t>(columns.size());
  set.centred = centred;
  set.whole = false;
  // The bias has the weight +1 in every z: its own direction is never left, nor turned round.
  set.half = by_bias == Added::direction;
  if (set.half) {
    const double deviation = basis.distance / std::sqrt(static_cast<double>(width));
    if (deviation > 0) set.inner = (1 - 1e-9) / std::sqrt(1 + eps / deviation / deviation);
  }
  set.turned = *std::ranges::max_element(basis.errors);
  set.basis.resize(static_cast<std::size_t>(width * set.rank));
  for (std::size_t j = 0; j < columns.size(); ++j)
    for (std::size_t i = 0; i < columns[j].size(); ++i)
      set.basis[i * columns.size() + j] = columns[j][i];
  return set;
}

// u of a vector of `width` numbers, but for its length.
Vector coordinates(const NormSet& set, const Vector& h) {
  if (set.whole) return h;
  const auto rank = static_cast<std::size_t>(set.rank);
  Vector result(rank);
  for (std::size_t i = 0; i < h.size(); ++i)
    for (std::size_t k = 0; k < rank; ++k) result[k] += set.basis[i * rank + k] * h[i];
  return result;
}

// W a + b = W (a - least) + (b + least W 1), of which the first has no weight below 0 and the last
// the weight 1: u is a sum of the columns and of the last, with weights >= 0; all centred if h is.
void set_cone(NormSet& set, const Vector& weight, const Vector& bias, std::int64_t inputs,
              double least) {
  const auto cols = static_cast<std::size_t>(inputs);
  const auto centre_of_set = [&](Vector& x) {
    if (set.centred) centre(x);
  };
  Vector generators, last = bias, summed(bias.size());  // what `last` is a sum of, in size
  std::vector<long double> exact(bias.begin(), bias.end());
  const auto add = [&](Vector column) {
    const double given = length_of(column);
    centre_of_set(column);
    const Vector u = coordinates(set, column);
    generators.insert(generators.end(), u.begin(), u.end());
    const double left = length_of(column);
    return left == 0 || left > std::max(kClear * given, 1e-200);
  };
  for (std::size_t j = 0; j < cols; ++j) {
    Vector column;
    for (std::size_t i = 0; i < bias.size(); ++i) {
      column.push_back(weight[i * cols + j]);
      const long double part = static_cast<long double>(least) * column.back();
      exact[i] += part;
      summed[i] += static_cast<double>(std::abs(part));
    }
    if (!add(std::move(column))) return;
  }
  for (std::size_t i = 0; i < bias.size(); ++i) {
    last[i] = static_cast<double>(exact[i]);
    summed[i] += std::abs(bias[i]);
  }
  Vector middle = last;
  centre_of_set(middle);
  // Clear of what the sum has cancelled, too: with `least` = 0 there is none.
  const bool sound = least == 0 || length_of(middle) >= 1e-6 * length_of(summed);
  const bool clear = add(last) && sound;
  if (clear) set.cone = Cone(generators, set.rank);
  generators.resize(generators.size() - static_cast<std::size_t>(set.rank));
  if (add(bias)) set.generators = std::move(generators);
}

}  // namespace

NormSet every_normed(std::int64_t width, bool centred) {
  NormSet set;
  set.width = width;
  set.rank = width;
  set.centred = centred;
  return set;
}

NormSet every_of_units(std::int64_t width, LayerKind kind) {
  NormSet set;
  set.width = width;
  set.centred = set.whole = false;
  set.box = true;
  set.ends = {kind == LayerKind::tanh ? -1.0 : 0.0, 1.0};
  return set;
}

NormSet normed_after_dense(const Vector& weight, const Vector& bias, std::int64_t inputs,
                           double eps, std::optional<double> least, bool centred) {
  NormSet set = spanned(weight, bias, inputs, eps, centred);
  if (least) set_cone(set, weight, bias, inputs, *least);
  return set;
}

NormSet normed_after(const Affine& before, double lost, double eps, bool centred) {
  const auto cols = static_cast<std::size_t>(before.inputs);
  const Vector of_weights = weight_sizes(before);
  Vector off;
  for (std::size_t j = 0; j < cols; ++j) {
    Vector column;
    for (std::size_t i = j; i < of_weights.size(); i += cols) column.push_back(of_weights[i]);
    off.push_back(lost * length_of(column));
  }
  off.push_back(lost * length_of(bias_sizes(before)));
  return spanned(before.weight, before.bias, before.inputs, eps, centred, off);
}

}  // namespace keel
