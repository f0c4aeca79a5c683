#include "form_dual.h"

#include <algorithm>
#include <cmath>

#include "../kernels/eigen.h"
#include "dot.h"
#include "interval.h"
#include "matrices.h"
#include "parabola_bound.h"

namespace keel {
namespace {

using namespace matrix;
using Vector = std::vector<double>;

/// A symmetric matrix as V' diag(values) V.
struct Eigen {
  explicit Eigen(const Tensor& a) : vectors(a.clone()), n(static_cast<std::size_t>(a.size(0))) {
    values = symmetric_eigen(vectors).to_vector<double>();
  }
  const double* vector(std::size_t i) const { return vectors.data<double>() + i * n; }

  /// V' diag(f(values)) V.
  template <class F>
  Tensor mapped(F f) const {
    return inner_product(scaled(f), vectors);
  }
  /// V' diag(f(values)).
  template <class F>
  Tensor columns(F f) const {
    const Tensor rows = scaled(f), result = zeros(n, n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        result.data<double>()[j * n + i] = rows.data<double>()[i * n + j];
    return result;
  }

  Tensor vectors;
  std::size_t n;
  Vector values;

 private:
  template <class F>
  Tensor scaled(F f) const {
    Vector factors(n);
    for (std::size_t i = 0; i < n; ++i) factors[i] = f(values[i]);
    return scaled_rows(vectors, factors);
  }
};

bool all_finite(const Tensor& a) {
  const double* begin = a.data<double>();
  return std::all_of(begin, begin + a.elements(), [](double v) { return std::isfinite(v); });
}

}  // namespace

FormDual::FormDual(const FormRows& rows, const Direction& d, const Direction& of_units)
    : rows_(rows),
      d_(d),
      of_units_(of_units),
      always_(rows.last_middle.size()),
      maximum_(rows.paths, rows.each) {
  for (std::size_t i = 0; i < rows_.width; ++i) {
    const double bias = rows_.last.back.bias[i];
    fixed_ +=
        {d.w[i] * (rows_.state[i] + bias), d.size[i] * (rows_.state_size[i] + std::abs(bias))};
  }
  Vector of_above;
  for (std::size_t j = 0; j < rows_.last_middle.size(); ++j) {
    const auto [low, high] = rows_.last.units[j];
    const double factor = of_units.w[j], middle = rows_.last_middle[j];
    fixed_ += {0, of_units.size[j] * rows_.last_size[j]};
    if (high <= 0 || factor == 0) continue;
    if (low >= 0) {
      always_[j] = factor;
      fixed_.value += factor * middle;
    } else if (factor > 0) {
      above_.push_back(j);
      x_.push_back(std::log(first_touch(middle, rows_.last.units[j])));
      of_above.insert(of_above.end(), rows_.last.hidden.row(j),
                      rows_.last.hidden.row(j) + rows_.width);
    } else {
      below_.push_back(j);
    }
  }
  hidden_ = Tensor::from(of_above, {count(above_.size()), count(rows_.width)});
  x_.resize(above_.size() + below_.size());
  thetas_ = x_.size();
  theta_.resize(rows_.copies * units());
  eta_ = pulled_ = theta_;
  etas_ = thetas_ + kinks();
  x_.resize(etas_);
  x_.resize(etas_ + kinks(), -1);
  x_.push_back(0);
  gradient_ = Vector(x_.size());
  adam_ = Adam(x_.size());
}

// The last block's parabolas, v (z + tau)^2 / (4 tau) = v (z^2 / tau + 2 z + tau) / 4, and lines,
// as |L' delta|^2 and `of_state`, a linear function; delta is the state less that at the middle,
// whose own goes to `value`. False where a number leaves double.
bool FormDual::last_block(double& value, Vector& of_state) {
  Vector slope = always_, curvature;
  for (std::size_t i = 0; i < above_.size(); ++i) {
    const std::size_t j = above_[i];
    const double v = of_units_.w[j], z = rows_.last_middle[j];
    curvature.push_back(v / (4 * tau(i)));
    slope[j] = v / 2 + 2 * curvature[i] * z;
    value += curvature[i] * z * z + v * z / 2 + v * tau(i) / 4;
  }
  for (std::size_t i = 0; i < below_.size(); ++i) {
    const std::size_t j = below_[i];
    slope[j] = line(i) * of_units_.w[j];
    value += slope[j] * rows_.last_middle[j];
  }
  of_state = d_.w;
  for (std::size_t j = 0; j < slope.size(); ++j)
    for (std::size_t i = 0; i < rows_.width; ++i)
      of_state[i] += slope[j] * rows_.last.hidden.row(j)[i];
  const Tensor squares = inner_product(scaled_rows(hidden_, curvature), hidden_);
  if (!all_finite(squares)) return false;
  const Eigen form(squares);
  double trace = 0;
  for (double v : form.values) trace += std::max(v, 0.0);
  // Never less than the form: so much more than its rounding that L has an inverse.
  const double least = std::max(1e-9 * trace / static_cast<double>(rows_.width), 1e-290);
  const auto length = [&](double v) { return std::sqrt(std::max(v, least)); };
  root_ = form.columns(length);
  inverse_root_ = form.columns([&](double v) { return 1 / length(v); });
  of_rows_ = product(rows_.of_state, root_);
  return true;
}

// The most over all e, of which 1/4 r'r/theta and what the middle of each z makes go to `value`;
// what is left of a z^2 and of a z. False where a number leaves double.
bool FormDual::without_kinks(double& value, const Vector& of_state, Vector& of_square,
                             Vector& of_z) {
  const std::size_t width = rows_.width;
  Tensor pairs = zeros(width, width);
  if (kinks() > 0) {
    of_kinks_ = product(rows_.kinks, root_);
    Vector over(kinks());
    for (std::size_t k = 0; k < kinks(); ++k) over[k] = std::exp(-x_[thetas_ + k]);
    pairs = inner_product(scaled_rows(of_kinks_, over), of_kinks_);
  }
  if (!all_finite(pairs)) return false;
  const Eigen lost(pairs);
  const double raise = std::max(lost.values.back(), 1e-200) * (1 + slack());
  top_ = Vector(lost.vector(width - 1), lost.vector(width - 1) + width);
  resolvent_ = lost.mapped([&](double v) { return 1 / (1 - std::max(v, 0.0) / raise); });
  half_ = Vector(width);
  for (std::size_t k = 0; k < kinks(); ++k) {
    const std::size_t j = k % units();
    const double z = rows_.z_middle[j], tilt = rows_.tilt[j];
    theta_[k] = raise * std::exp(x_[thetas_ + k]);
    eta_[k] = share(x_[etas_ + k]);
    const double below = theta_[k] * eta_[k] / (4 * rows_.bowl[j]);
    pulled_[k] = dot(rows_.kinks.data<double>() + k * width, of_state.data(), width) + 2 * below;
    of_square[k] = theta_[k] / 4 * (1 - eta_[k]);
    of_z[k] = -below * tilt;
    value += pulled_[k] * pulled_[k] / (4 * theta_[k]) + (of_square[k] * z + of_z[k]) * z;
    for (std::size_t i = 0; i < width; ++i)
      half_[i] += of_kinks_.data<double>()[k * width + i] * pulled_[k] / (2 * theta_[k]);
  }
  return true;
}

Most FormDual::value() {
  Most total = fixed_;
  Vector of_state, of_square(kinks()), of_z(kinks());
  if (!last_block(total.value, of_state) || !without_kinks(total.value, of_state, of_square, of_z))
    return {kInfinity, 0};

  // (y + w/2)' (1 - K)^-1 (y + w/2), and what is left of each z: a form of what the paths bring.
  const std::size_t width = rows_.width, rows = rows_.paths * rows_.each,
                    of_copy = rows / std::max<std::size_t>(rows_.copies, 1);
  const Vector drawn = times(resolvent_, half_.data());
  total.value += dot(half_.data(), drawn.data(), width);
  const Tensor form = product(product(of_rows_, resolvent_), of_rows_, Transpose::yes);
  Vector linear(rows);
  for (std::size_t row = 0; row < rows; ++row)
    linear[row] = dot(rows_.of_state.data<double>() + row * width, of_state.data(), width) +
                  2 * dot(of_rows_.data<double>() + row * width, drawn.data(), width);
  for (std::size_t copy = 0; copy < rows_.copies && units() > 0; ++copy) {
    const Tensor scaled = rows_.of_z.clone();
    const double *of_one = &of_z[copy * units()], *of_two = &of_square[copy * units()];
    for (std::size_t row = 0; row < of_copy; ++row) {
      double* z = scaled.data<double>() + row * units();
      for (std::size_t j = 0; j < units(); ++j) {
        linear[copy * of_copy + row] += (of_one[j] + 2 * of_two[j] * rows_.z_middle[j]) * z[j];
        z[j] *= of_two[j];
      }
    }
    const Tensor block = product(scaled, rows_.of_z, Transpose::yes);
    for (std::size_t row = 0; row < of_copy; ++row)
      for (std::size_t other = 0; other < of_copy; ++other)
        form.data<double>()[(copy * of_copy + row) * rows + copy * of_copy + other] +=
            block.data<double>()[row * of_copy + other];
  }
  total.value += maximum_.most(linear, form);
  if (!std::isfinite(total.value)) return {kInfinity, 0};
  take_moments();
  total.size += slopes();
  return total;
}

void FormDual::step(double rate) {
  adam_.next();
  for (std::size_t i = 0; i < x_.size(); ++i) x_[i] -= rate * adam_.up(i, gradient_[i], 1e-300);
  maximum_.step(rate / 4);
}

}  // namespace keel
