#include "parabola_bound.h"

#include <algorithm>
#include <utility>

#include "../kernels/gemm.h"
#include "arc.h"
#include "dot.h"
#include "interval.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

}  // namespace

/// Of each path the quadratic form in its own vectors: with the first, and with the others'.
struct ParabolaBound::Form {
  Vector a, b, c;  // a path each; a row each, of which a path's first is not used
};

// What the paths make together, each with each other one: twice the largest x'My of unit vectors x
// and y, of which M has the forms of one's vectors and the other's. Where there are too many places
// for that, no more than what both have of their own (Cauchy and Schwarz).
double ParabolaBound::crossed(const Form& form, const Vector& curvature) const {
  constexpr double kMost = 1 << 27;
  const std::size_t units = paths_.middle.size();
  const auto size = static_cast<double>(paths_.rows());
  double sum = 0;
  if (size * size * static_cast<double>(units) > kMost) {
    Vector own;
    for (std::size_t path = 0; path < paths_.paths; ++path) {
      double largest = 0;
      for (std::size_t k = 1; k < paths_.each; ++k) {
        const std::size_t row = path * paths_.each + k;
        const OnArc arc{0, 0, form.a[path], form.b[row], form.c[row]};
        largest = std::max(largest, arc.at_most());
      }
      for (double other : own) sum += 2 * std::sqrt(other * largest);
      own.push_back(largest);
    }
    return sum;
  }
  const Tensor scaled = Tensor::empty(paths_.of_units.shape(), DType::f64);
  for (std::size_t row = 0; row < paths_.rows(); ++row)
    for (std::size_t j = 0; j < units; ++j)
      scaled.data<double>()[row * units + j] = curvature[j] * paths_.units_of(row)[j];
  const std::int64_t n = paths_.of_units.size(0);
  const Tensor forms = Tensor::empty({n, n}, DType::f64);
  gemm(Transpose::no, Transpose::yes, 1, scaled, paths_.of_units, 0, forms);
  const double* all = forms.data<double>();
  for (std::size_t one = 0; one < paths_.paths; ++one)
    for (std::size_t other = one + 1; other < paths_.paths; ++other) {
      const std::size_t first = one * paths_.each, second = other * paths_.each;
      const double* along = all + first * paths_.rows() + second;
      double largest = 0;
      for (std::size_t t = 1; t < paths_.each; ++t) {
        const double* across = along + t * paths_.rows();
        for (std::size_t s = 1; s < paths_.each; ++s)
          largest =
              std::max(largest, OfTwoArcs{along[0], along[s], across[0], across[s]}.at_most());
      }
      sum += 2 * largest;
    }
  return sum;
}

Most ParabolaBound::most(const Direction& d, const Direction& of_units) const {
  constexpr int kSteps = 12;  // thirty make a bound 2% smaller, in twice the time
  const std::size_t width = d.w.size(), units = paths_.middle.size();
  Most fixed;
  for (std::size_t i = 0; i < width; ++i)
    fixed += {d.w[i] * (paths_.state[i] + block_.back.bias[i]),
              d.size[i] * (paths_.state_size[i] + std::abs(block_.back.bias[i]))};
  Vector curvature(units), slope(units);
  std::vector<std::size_t> below;  // units of which a line is wanted that no relu is under
  for (std::size_t j = 0; j < units; ++j) {
    const auto [low, high] = block_.units[j];
    const double factor = of_units.w[j], size = of_units.size[j], middle = paths_.middle[j];
    fixed += {0, size * paths_.unit_size[j]};
    if (high <= 0) continue;
    if (low >= 0) {
      slope[j] = factor;
      fixed.value += factor * middle;
    } else if (factor > 0) {
      const double touch = first_touch(middle, block_.units[j]), sum = middle + touch;
      curvature[j] = factor / (4 * touch);
      slope[j] = factor * sum / (2 * touch);
      const double largest = paths_.unit_size[j] + touch;
      fixed += {curvature[j] * sum * sum, size * largest * largest / (4 * touch)};
    } else if (factor < 0) {
      slope[j] = factor / 2;
      below.push_back(j);
    }
  }

  Form form{Vector(paths_.paths), Vector(paths_.rows()), Vector(paths_.rows())};
  Vector base(paths_.rows());
  for (std::size_t path = 0; path < paths_.paths; ++path) {
    Vector curved(units);
    const double* along = paths_.units_of(path * paths_.each);
    for (std::size_t j = 0; j < units; ++j) curved[j] = curvature[j] * along[j];
    form.a[path] = dot(curved.data(), along, units);
    for (std::size_t row = path * paths_.each; row < (path + 1) * paths_.each; ++row) {
      const double* across = paths_.units_of(row);
      base[row] = dot(&paths_.of_state[row * width], d.w.data(), width);
      form.b[row] = dot(curved.data(), across, units);
      for (std::size_t j = 0; j < units; ++j) form.c[row] += curvature[j] * across[j] * across[j];
    }
  }
  fixed.value += crossed(form, curvature);

  // The form is convex: largest where each path has a vector at the rim, of a single place. The
  // lines' slopes, each from 0 to the factor, go down by the subgradient there (Adam's way).
  double least = kInfinity;
  Vector first(units), second(units), away(units);
  for (int step = 0; step < kSteps; ++step) {
    double total = fixed.value;
    for (std::size_t j : below) {
      total += slope[j] * paths_.middle[j];
      away[j] = paths_.middle[j];
    }
    for (std::size_t path = 0; path < paths_.paths; ++path) {
      const std::size_t begin = path * paths_.each;
      const double p = base[begin] + dot(paths_.units_of(begin), slope.data(), units);
      double largest = -kInfinity;
      std::size_t best_row = begin + 1;
      Angle best{};
      for (std::size_t row = begin + 1; row < begin + paths_.each; ++row) {
        const OnArc arc{p, base[row] + dot(paths_.units_of(row), slope.data(), units), form.a[path],
                        form.b[row], form.c[row]};
        const double at_most = arc.at_most(), between = arc.between();
        if (!std::isfinite(at_most)) return {least, fixed.size};
        if (at_most <= largest) continue;
        for (const Angle& angle : angles())
          if (const double value = arc.at(angle) + between; value > largest) {
            largest = value;
            best_row = row;
            best = angle;
          }
      }
      total += largest;
      for (std::size_t j : below)
        away[j] += best.sin * paths_.units_of(begin)[j] + best.cos * paths_.units_of(best_row)[j];
    }
    least = std::min(least, total);
    const double rate = 0.25 * std::pow(0.05, static_cast<double>(step) / kSteps);
    for (std::size_t j : below) {
      const double factor = of_units.w[j], gradient = factor * away[j];
      first[j] = 0.8 * first[j] + 0.2 * gradient;
      second[j] = 0.95 * second[j] + 0.05 * gradient * gradient;
      const double share = slope[j] / factor - rate * first[j] / (std::sqrt(second[j]) + 1e-300);
      slope[j] = factor * std::clamp(share, 0.0, 1.0);
    }
  }
  return {least, fixed.size};
}

}  // namespace keel
