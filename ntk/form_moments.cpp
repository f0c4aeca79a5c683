// Where a form's bound is taken, and so its slope.
#include <algorithm>
#include <cmath>
#include <utility>

#include "dot.h"
#include "form_dual.h"
#include "matrices.h"

namespace keel {
namespace {

using namespace matrix;
using Vector = std::vector<double>;

// One row of `rows` times a sine and another times a cosine, of rows from `past` on.
Vector brought(const Tensor& rows, const FormMaximum::Turn& turn, std::size_t past = 0) {
  const auto columns = static_cast<std::size_t>(rows.size(1));
  const double* first = rows.data<double>() + (turn.first - past) * columns;
  const double* second = rows.data<double>() + (turn.row - past) * columns;
  Vector v(columns);
  for (std::size_t i = 0; i < columns; ++i)
    v[i] = turn.angle.sin * first[i] + turn.angle.cos * second[i];
  return v;
}

// Adds `one` `other`' to a matrix.
void add_product(const Tensor& to, const Vector& one, const Vector& other) {
  for (std::size_t i = 0; i < one.size(); ++i)
    for (std::size_t j = 0; j < other.size(); ++j)
      to.data<double>()[i * other.size() + j] += one[i] * other[j];
}

}  // namespace

void FormDual::take_moments() {
  const std::size_t width = rows_.width, n = units();
  const std::size_t of_copy = rows_.copies > 0 ? rows_.paths / rows_.copies : 1;
  // The rows of a copy's z are the same for all of them.
  const auto of_z = [&](const FormMaximum::Turn& turn, std::size_t copy) {
    return brought(rows_.of_z, turn, copy * of_copy * rows_.each);
  };

  // a = R (half + y): of half + y first.
  Vector mean = half_;
  const Tensor square = zeros(width, width), crossed = zeros(width, width);
  z_mean_ = z_square_ = Vector(kinks());  // less their middles, so far
  for (std::size_t path = 0; path < rows_.paths; ++path) {
    const FormMaximum::Turn& turn = maximum_.own()[path];
    const Vector y = brought(of_rows_, turn);
    add(mean, y);
    add_product(square, y, y);
    if (n == 0) continue;
    const std::size_t copy = path / of_copy;
    const Vector of = of_z(turn, copy);
    for (std::size_t j = 0; j < n; ++j) {
      z_mean_[copy * n + j] += of[j];
      z_square_[copy * n + j] += of[j] * of[j];
    }
  }
  Vector of_rows = mean;
  for (std::size_t i = 0; i < width; ++i) of_rows[i] -= half_[i];
  add_product(square, mean, half_);
  add_product(square, half_, of_rows);
  for (const FormMaximum::Pair& pair : maximum_.pairs()) {
    add_product(crossed, brought(of_rows_, pair.one), brought(of_rows_, pair.other));
    const std::size_t copy = pair.one_path / of_copy;
    if (n == 0 || copy != pair.other_path / of_copy) continue;
    const Vector of_one = of_z(pair.one, copy), of_other = of_z(pair.other, copy);
    for (std::size_t j = 0; j < n; ++j) z_square_[copy * n + j] += 2 * of_one[j] * of_other[j];
  }
  for (std::size_t i = 0; i < width; ++i)
    for (std::size_t j = 0; j < width; ++j)
      square.data<double>()[i * width + j] +=
          crossed.data<double>()[i * width + j] + crossed.data<double>()[j * width + i];
  state_mean_ = times(resolvent_, mean.data());
  state_square_ = product(product(resolvent_, square), resolvent_);
  for (std::size_t k = 0; k < kinks(); ++k) {
    const double middle = rows_.z_middle[k % n];
    z_square_[k] = std::max(0.0, z_square_[k] + 2 * middle * z_mean_[k] + middle * middle);
    z_mean_[k] += middle;
  }
}

// Of a maximum over such means the slope is the mean of the slope (Danskin). Returns sizes: what an
// error of the last block's z, or of a kink's, of a part of its size does to the value, and of the
// value's own terms.
double FormDual::slopes() {
  // More than the square of any part that rounding is, over that part.
  constexpr double kSquare = 1e-9;
  const std::size_t width = rows_.width;
  double sizes = 0, of_slack = 0;
  const auto moments = [&](const double* row) {
    const Vector with = times(state_square_, row);
    return std::pair(dot(row, state_mean_.data(), width), dot(row, with.data(), width));
  };
  const Tensor of_last = product(hidden_, inverse_root_);
  const Vector state = times(inverse_root_, state_mean_.data());
  for (std::size_t i = 0; i < above_.size(); ++i) {
    const std::size_t j = above_[i];
    const double v = of_units_.w[j], middle = rows_.last_middle[j], size = rows_.last_size[j];
    const auto [mean, square] = moments(of_last.data<double>() + i * width);
    const double z_square = std::max(0.0, square + 2 * middle * mean + middle * middle);
    const double curvature = v / (4 * tau(i));
    gradient_[i] = -curvature * z_square + v * tau(i) / 4;
    sizes +=
        curvature * (z_square + (2 * std::sqrt(z_square) + kSquare * size) * size) + v * tau(i) / 4;
  }
  for (std::size_t i = 0; i < below_.size(); ++i) {
    const std::size_t j = below_[i], at = above_.size() + i;
    const double* row = rows_.last.hidden.row(j);
    gradient_[at] = of_units_.w[j] * (rows_.last_middle[j] + dot(row, state.data(), width)) *
                    line(i) * (1 - line(i));
  }
  for (std::size_t k = 0; k < kinks(); ++k) {
    const std::size_t j = k % units();
    const double bowl = rows_.bowl[j], tilt = rows_.tilt[j], theta = theta_[k],
                 size = rows_.z_size[j];
    const auto [drawn, drawn_square] = moments(of_kinks_.data<double>() + k * width);
    const double own = pulled_[k] / (2 * theta), mean = own + drawn / theta;
    const double square =
        std::max(0.0, own * own + (2 * own * drawn + drawn_square / theta) / theta);
    const double z = z_mean_[k], z_square = z_square_[k];
    const double above_bowl = (2 * mean - bowl * z_square - tilt * z) / (4 * bowl);
    gradient_[thetas_ + k] = theta * (z_square / 4 - square + eta_[k] * above_bowl);
    gradient_[etas_ + k] = theta * above_bowl * eta_[k] * (1 - eta_[k]);
    of_slack += gradient_[thetas_ + k];
    sizes += theta * (square + z_square +
                      (std::sqrt(z_square) + std::abs(tilt / bowl) + kSquare * size) * size);
  }
  gradient_.back() = of_slack * slack() / (1 + slack());
  // What theta is raised by moves with tau and theta, as K's largest eigenvalue stays the same.
  for (std::size_t i = 0; i < above_.size(); ++i) {
    const double along = dot(of_last.data<double>() + i * width, top_.data(), width);
    gradient_[i] -= of_slack * of_units_.w[above_[i]] / (4 * tau(i)) * along * along;
  }
  for (std::size_t k = 0; k < kinks(); ++k) {
    const double along = dot(of_kinks_.data<double>() + k * width, top_.data(), width);
    gradient_[thetas_ + k] -= of_slack * along * along / theta_[k] * (1 + slack());
  }
  return sizes * (1 + slack()) / slack();
}

}  // namespace keel
