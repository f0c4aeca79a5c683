#include "coupling.h"

#include <algorithm>
#include <cmath>

#include "../kernels/eigen.h"
#include "../kernels/one_blas_thread.h"
#include "dot.h"
#include "length.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// W x and W^T x, W [outputs, inputs].
Vector product(const Vector& weight, const Vector& x, std::size_t outputs) {
  Vector result(outputs);
  for (std::size_t j = 0; j < outputs; ++j)
    result[j] = dot(&weight[j * x.size()], x.data(), x.size());
  return result;
}

Vector transposed_product(const Vector& weight, const Vector& x, std::size_t inputs) {
  Vector result(inputs);
  for (std::size_t j = 0; j < x.size(); ++j)
    for (std::size_t i = 0; i < inputs; ++i) result[i] += x[j] * weight[j * inputs + i];
  return result;
}

// The lower triangle of W^T diag(kappa) W - diag(theta).
Vector lower_difference(const Units& units, const double* kappa, const double* theta,
                        std::size_t n) {
  Vector matrix(n * n);
  for (std::size_t j = 0; j < units.size(); ++j) {
    const double* row = &units.from.weight[j * n];
    for (std::size_t a = 0; a < n; ++a) {
      const double weight = kappa[j] * row[a];
      for (std::size_t b = 0; b <= a; ++b) matrix[a * n + b] += weight * row[b];
    }
  }
  for (std::size_t a = 0; a < n; ++a) matrix[a * n + a] -= theta[a];
  return matrix;
}

}  // namespace

void Coupling::move_to(const Units& units, const UnitRows& rows, const CouplingPlace& place,
                       const Vector& x) {
  const auto n = static_cast<std::size_t>(units.from.inputs),
             rank = place.crosses ? static_cast<std::size_t>(rows.rank()) : 0;
  const auto at = [&x](std::size_t i) { return x.begin() + static_cast<std::ptrdiff_t>(i); };
  const Vector multipliers(at(place.kappa), at(place.slack) + 1);
  if (multipliers == made_of_) return;
  made_of_ = multipliers;
  const double *kappa = &x[place.kappa], *theta = &x[place.theta];

  Vector vectors = lower_difference(units, kappa, theta, n);
  finite_ = std::all_of(vectors.begin(), vectors.end(), [](double v) { return std::isfinite(v); });
  if (!finite_) return;
  const auto size = static_cast<std::int64_t>(n);
  const OneBlasThread one;  // where a descent ends depends on the last digit
  const Tensor matrix = Tensor::from(vectors, {size, size});
  Vector values = symmetric_eigen(matrix).to_vector<double>();
  vectors = matrix.to_vector<double>();
  top_.assign(vectors.end() - static_cast<std::ptrdiff_t>(n), vectors.end());

  double sum = 0, largest = 0;  // what the matrix's rounding is measured by
  for (std::size_t j = 0; j < units.size(); ++j) {
    const double length = length_of(&units.from_sizes[j * n], n);
    sum += std::abs(kappa[j]) * length * length;
  }
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(theta[i]));
  slack_ = std::exp(x[place.slack]);
  const double raise = values.back() + kMargin * (sum + largest) + slack_;
  finite_ = std::isfinite(raise);
  if (!finite_) return;
  theta_.assign(theta, theta + n);
  for (double& value : theta_) value += raise;
  for (double& value : values) value = raise - value;  // now P's own

  std::vector<Vector> r = {Vector(at(place.shift), at(place.shift + n))};
  for (std::size_t a = 0; a < rank; ++a) {
    r.emplace_back(n);
    for (std::size_t i = 0; i < n; ++i) r.back()[i] = x[place.cross + i] * rows.row(i)[a];
  }
  maximise(units, r, values, vectors);
}

// r^T P^-1 r / 4 = -d^T P d + r^T d + e^T P^-1 e / 4 for any d, e = r - 2 P d: so d may have been
// found by whatever rounds, and P has no eigenvalue below exp(slack).
void Coupling::maximise(const Units& units, const std::vector<Vector>& r, const Vector& values,
                        const Vector& vectors) {
  const std::size_t n = values.size(), count = r.size();
  at_.assign(count, Vector(n));
  std::vector<Vector> p(count);  // P d
  Vector d_sizes(n), r_sizes(n);
  double wrong = 0;
  for (std::size_t c = 0; c < count; ++c) {
    Vector& d = at_[c];
    for (std::size_t j = 0; j < n; ++j) {
      const double along = dot(&vectors[j * n], r[c].data(), n);
      if (along == 0 || !(values[j] > 0)) continue;
      for (std::size_t i = 0; i < n; ++i) d[i] += along / (2 * values[j]) * vectors[j * n + i];
    }
    Vector z = product(units.from.weight, d, units.size());
    for (std::size_t j = 0; j < z.size(); ++j) z[j] *= made_of_[j];
    p[c] = transposed_product(units.from.weight, z, n);
    for (std::size_t i = 0; i < n; ++i) {
      p[c][i] = theta_[i] * d[i] - p[c][i];
      const double e = r[c][i] - 2 * p[c][i];
      wrong += e * e;
      d_sizes[i] += std::abs(d[i]);
      r_sizes[i] += std::abs(r[c][i]);
    }
  }
  Vector whole(count * count);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b)
      whole[a * count + b] =
          dot(r[a].data(), at_[b].data(), n) / 2 + dot(r[b].data(), at_[a].data(), n) / 2 -
          dot(at_[a].data(), p[b].data(), n) / 2 - dot(at_[b].data(), p[a].data(), n) / 2;
  // |(1, u)|^2 is at most 2
  constant_ = whole[0] + (wrong > 0 ? wrong * (count > 1 ? 2 : 1) / (4 * slack_) : 0);
  size_ = 0;
  for (std::size_t i = 0; i < n; ++i)
    size_ += d_sizes[i] * (2 * r_sizes[i] + std::abs(theta_[i]) * d_sizes[i]);
  const Vector z_sizes = product(units.from_sizes, d_sizes, units.size());
  for (std::size_t j = 0; j < z_sizes.size(); ++j)
    size_ += std::abs(made_of_[j]) * z_sizes[j] * z_sizes[j];
  linear_.clear();
  quadratic_.clear();
  for (std::size_t a = 1; a < count; ++a) {
    linear_.push_back(2 * whole[a]);
    quadratic_.insert(quadratic_.end(), &whole[a * count + 1], &whole[a * count] + count);
  }
}

void Coupling::slope(const Units& units, const CouplingPlace& place, const Maximum& at,
                     Vector& gradient) const {
  const std::size_t n = at.deviations.size();
  Vector d = at_[0];
  for (std::size_t a = 1; a < at_.size(); ++a)
    for (std::size_t i = 0; i < n; ++i) d[i] += at.u[a - 1] * at_[a][i];
  double raised = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double own = at.deviations[i], apart = own * own - d[i] * d[i];
    gradient[place.theta + i] += apart;
    raised += apart;
    gradient[place.shift + i] += d[i] - at.made[i];
    if (place.crosses) gradient[place.cross + i] += at.y_of_u[i] * d[i] - at.before[i] * own;
  }
  for (std::size_t i = 0; i < n; ++i) gradient[place.theta + i] -= raised * top_[i] * top_[i];
  const Vector z = product(units.from.weight, d, units.size()),
               of_top = product(units.from.weight, top_, units.size());
  for (std::size_t j = 0; j < z.size(); ++j) {
    const double own = units.scale[j] * at.y[j];
    gradient[place.kappa + j] += z[j] * z[j] - own * own + raised * of_top[j] * of_top[j];
  }
  gradient[place.slack] += raised * slack_;
}

}  // namespace keel
