#include "norm_set.h"

#include <cmath>

#include "length.h"
#include "norm_span.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

constexpr double kClear = 1e-2;  // a generator's digits count, as much as those of all its weights

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
  NormSet set = norm_span(weight, bias, inputs, eps, centred).set;
  if (least) set_cone(set, weight, bias, inputs, *least);
  return set;
}

}  // namespace keel
