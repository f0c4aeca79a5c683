#include "parabola_bound.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>
#include <utility>

#include "../kernels/gemm.h"
#include "dot.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

constexpr int kAngles = 96;  // parts of the half circle
constexpr double kStep = std::numbers::pi / kAngles;

struct Angle {
  double sin, cos;
};
const std::array<Angle, kAngles + 1>& angles() {
  static const auto all = [] {
    std::array<Angle, kAngles + 1> all;
    for (int i = 0; i <= kAngles; ++i) {
      const double angle = kStep * i - std::numbers::pi / 2;
      all[static_cast<std::size_t>(i)] = {std::sin(angle), std::cos(angle)};
    }
    return all;
  }();
  return all;
}

/// Along the arc of a place: p sin + r cos + a sin^2 + 2 b sin cos + c cos^2.
struct OnArc {
  double p, r, a, b, c;

  double at(const Angle& angle) const {
    return (p + a * angle.sin + 2 * b * angle.cos) * angle.sin + (r + c * angle.cos) * angle.cos;
  }
  double turning() const { return std::hypot((a - c) / 2, b); }  // of the double angle
  double at_most() const { return std::hypot(p, r) + (a + c) / 2 + turning(); }
  // Between two angles it is above the larger by no more than this: |f''| step^2 / 8.
  double between() const { return (std::hypot(p, r) + 4 * turning()) * kStep * kStep / 8; }
};

/// Largest x'My of unit vectors: the larger singular value of [[a, b], [c, d]], of which this way
/// of writing it cancels nothing.
double largest_singular_value(double a, double b, double c, double d) {
  constexpr double kSquares = 1e-280;  // below, they lose digits
  const auto length = [](double x, double y) {
    const double squares = x * x + y * y;
    return squares > kSquares ? std::sqrt(squares) : std::hypot(x, y);  // the latter is slow
  };
  return (length(a + d, b - c) + length(a - d, b + c)) / 2;
}

/// What a head, or nobody (path 0), makes of v. With `sizes` all numbers are replaced by theirs.
Vector through_path(const BlockMaps& block, std::size_t heads, std::size_t path, const Vector& v,
                    bool sizes) {
  const auto number = [sizes](double value) { return sizes ? std::abs(value) : value; };
  const std::size_t width = v.size(), head_width = width / heads;
  Vector result(width);
  if (path == 0) {
    for (std::size_t i = 0; i < width; ++i) result[i] = number(v[i]);
    return result;
  }
  for (std::size_t c = (path - 1) * head_width; c < path * head_width; ++c) {
    double value = 0;
    for (std::size_t i = 0; i < width; ++i)
      value += number(block.attended.row(2 * width + c)[i]) * number(v[i]);
    for (std::size_t i = 0; i < width; ++i) result[i] += number(block.taken.row(i)[c]) * value;
  }
  return result;
}

void add(Vector& to, const Vector& what) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += what[i];
}

}  // namespace

ParabolaBound::ParabolaBound(const EmbeddingImage& image, const BlockMaps& block, std::size_t heads)
    : block_(block), paths_(heads + 1), each_(1 + image.places()) {
  const std::size_t width = image.shift().size(), units = block.hidden.bias.size();
  state_ = state_size_ = Vector(width);
  const auto constants = [&](Vector& into, bool sizes) {
    const auto number = [sizes](double value) { return sizes ? std::abs(value) : value; };
    for (std::size_t i = 0; i < width; ++i) {
      into[i] += number(block.taken.bias[i]);
      for (std::size_t c = 0; c < width; ++c)
        into[i] += number(block.taken.row(i)[c]) * number(block.attended.bias[2 * width + c]);
    }
  };
  constants(state_, false);
  constants(state_size_, true);
  for (std::size_t path = 0; path < paths_; ++path) {
    add(state_, through_path(block, heads, path, image.shift(), false));
    add(state_size_, through_path(block, heads, path, image.shift(), true));
    Vector largest(width);
    for (std::size_t k = 0; k < each_; ++k) {
      const Vector& v = k == 0 ? image.along_x() : image.across(k - 1);
      const Vector made = through_path(block, heads, path, v, false);
      of_state_.insert(of_state_.end(), made.begin(), made.end());
      const Vector size = through_path(block, heads, path, v, true);
      if (k == 0)
        add(state_size_, size);
      else
        for (std::size_t i = 0; i < width; ++i) largest[i] = std::max(largest[i], size[i]);
    }
    add(state_size_, largest);
  }
  const auto count = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  of_units_ = Tensor::empty({count(rows()), count(units)}, DType::f64);
  for (std::size_t row = 0; row < rows(); ++row)
    for (std::size_t j = 0; j < units; ++j)
      of_units_.data<double>()[row * units + j] =
          dot(&of_state_[row * width], block.hidden.row(j), width);
  for (std::size_t j = 0; j < units; ++j) {
    middle_.push_back(dot(state_.data(), block.hidden.row(j), width) + block.hidden.bias[j]);
    double size = std::abs(block.hidden.bias[j]);
    for (std::size_t i = 0; i < width; ++i)
      size += std::abs(block.hidden.row(j)[i]) * state_size_[i] + kNothing;
    unit_size_.push_back(size);
  }
}

/// Of each path the quadratic form in its own vectors: with the first, and with the others'.
struct ParabolaBound::Form {
  Vector a, b, c;  // a path each; a row each, of which a path's first is not used
};

// What the paths make together, each with each other one: twice the largest x'My of unit vectors x
// and y, of which M has the forms of one's vectors and the other's. Where there are too many places
// for that, no more than what both have of their own (Cauchy and Schwarz).
double ParabolaBound::crossed(const Form& form, const Vector& curvature) const {
  constexpr double kMost = 1 << 27;
  const std::size_t units = middle_.size();
  const auto size = static_cast<double>(rows());
  double sum = 0;
  if (size * size * static_cast<double>(units) > kMost) {
    Vector own;
    for (std::size_t path = 0; path < paths_; ++path) {
      double largest = 0;
      for (std::size_t k = 1; k < each_; ++k) {
        const std::size_t row = path * each_ + k;
        const OnArc arc{0, 0, form.a[path], form.b[row], form.c[row]};
        largest = std::max(largest, arc.at_most());
      }
      for (double other : own) sum += 2 * std::sqrt(other * largest);
      own.push_back(largest);
    }
    return sum;
  }
  const Tensor scaled = Tensor::empty(of_units_.shape(), DType::f64);
  for (std::size_t row = 0; row < rows(); ++row)
    for (std::size_t j = 0; j < units; ++j)
      scaled.data<double>()[row * units + j] = curvature[j] * units_of(row)[j];
  const std::int64_t n = of_units_.size(0);
  const Tensor forms = Tensor::empty({n, n}, DType::f64);
  gemm(Transpose::no, Transpose::yes, 1, scaled, of_units_, 0, forms);
  const double* all = forms.data<double>();
  for (std::size_t one = 0; one < paths_; ++one)
    for (std::size_t other = one + 1; other < paths_; ++other) {
      const std::size_t first = one * each_, second = other * each_;
      const double* along = all + first * rows() + second;
      double largest = 0;
      for (std::size_t t = 1; t < each_; ++t) {
        const double* across = along + t * rows();
        for (std::size_t s = 1; s < each_; ++s)
          largest =
              std::max(largest, largest_singular_value(along[0], along[s], across[0], across[s]));
      }
      sum += 2 * largest;
    }
  return sum;
}

Most ParabolaBound::most(const Direction& d, const Direction& of_units) const {
  // Of how far a unit goes from its middle, where its parabola touches relu; any is right.
  constexpr double kReach = 0.45;
  constexpr int kSteps = 12;  // thirty make a bound 2% smaller, in twice the time
  const std::size_t width = d.w.size(), units = middle_.size();
  Most fixed;
  for (std::size_t i = 0; i < width; ++i)
    fixed += {d.w[i] * (state_[i] + block_.back.bias[i]),
              d.size[i] * (state_size_[i] + std::abs(block_.back.bias[i]))};
  Vector curvature(units), slope(units);
  std::vector<std::size_t> below;  // units of which a line is wanted that no relu is under
  for (std::size_t j = 0; j < units; ++j) {
    const auto [low, high] = block_.units[j];
    const double factor = of_units.w[j], size = of_units.size[j], middle = middle_[j];
    fixed += {0, size * unit_size_[j]};
    if (high <= 0) continue;
    if (low >= 0) {
      slope[j] = factor;
      fixed.value += factor * middle;
    } else if (factor > 0) {
      const double touch = std::hypot(middle, kReach * (high - low) / 2), sum = middle + touch;
      curvature[j] = factor / (4 * touch);
      slope[j] = factor * sum / (2 * touch);
      const double largest = unit_size_[j] + touch;
      fixed += {curvature[j] * sum * sum, size * largest * largest / (4 * touch)};
    } else if (factor < 0) {
      slope[j] = factor / 2;
      below.push_back(j);
    }
  }

  Form form{Vector(paths_), Vector(rows()), Vector(rows())};
  Vector base(rows());
  for (std::size_t path = 0; path < paths_; ++path) {
    Vector curved(units);
    const double* along = units_of(path * each_);
    for (std::size_t j = 0; j < units; ++j) curved[j] = curvature[j] * along[j];
    form.a[path] = dot(curved.data(), along, units);
    for (std::size_t row = path * each_; row < (path + 1) * each_; ++row) {
      const double* across = units_of(row);
      base[row] = dot(&of_state_[row * width], d.w.data(), width);
      form.b[row] = dot(curved.data(), across, units);
      for (std::size_t j = 0; j < units; ++j) form.c[row] += curvature[j] * across[j] * across[j];
    }
  }
  fixed.value += crossed(form, curvature);

  // The form is convex: largest where each path has a vector at the rim, of a single place. The
  // lines' slopes, each from 0 to the factor, go down by the subgradient there (Adam's way).
  double least = std::numeric_limits<double>::infinity();
  Vector first(units), second(units), away(units);
  for (int step = 0; step < kSteps; ++step) {
    double total = fixed.value;
    for (std::size_t j : below) {
      total += slope[j] * middle_[j];
      away[j] = middle_[j];
    }
    for (std::size_t path = 0; path < paths_; ++path) {
      const std::size_t begin = path * each_;
      const double p = base[begin] + dot(units_of(begin), slope.data(), units);
      double largest = -std::numeric_limits<double>::infinity();
      std::size_t best_row = begin + 1;
      Angle best{};
      for (std::size_t row = begin + 1; row < begin + each_; ++row) {
        const OnArc arc{p, base[row] + dot(units_of(row), slope.data(), units), form.a[path],
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
        away[j] += best.sin * units_of(begin)[j] + best.cos * units_of(best_row)[j];
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
