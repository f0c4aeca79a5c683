#include "norm_image.h"

#include <algorithm>
#include <cmath>

#include "../kernels/one_blas_thread.h"
#include "descent.h"
#include "first_units.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

constexpr std::int64_t kEachKappa = 24;  // dimensions; beyond, one kappa for all

}  // namespace

// T is L^-T of Cholesky's L of the quadratic form: q's last coordinate has the sign of s.
std::optional<Tail> homogeneous(const Affine& map, const Vector& generators,
                                const LayerActivation& phi) {
  const auto rows = static_cast<std::size_t>(map.outputs),
             cols = static_cast<std::size_t>(map.inputs), k = cols + 1;
  Vector squares(rows + 1);
  for (std::size_t i = 0; i < generators.size(); ++i)
    squares[i / (generators.size() / squares.size())] += generators[i] * generators[i];
  Vector all((rows + 1) * k), factor(k * k);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) all[i * k + j] = map.weight[i * cols + j];
    all[i * k + cols] = map.bias[i];
  }
  all[rows * k + cols] = 1;
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (std::size_t r = 0; r <= rows; ++r) sum += squares[r] * all[r * k + i] * all[r * k + j];
      const double whole = sum;
      for (std::size_t l = 0; l < j; ++l) sum -= factor[i * k + l] * factor[j * k + l];
      if (i == j && !(sum > 1e-10 * whole)) return std::nullopt;
      factor[i * k + j] = i == j ? std::sqrt(sum) : sum / factor[j * k + j];
    }
  // Each row becomes row T: L (row T)^T = row^T. Where L is nearly singular much of it cancels, and
  // rounding is measured by what it would be if nothing did.
  Vector sizes = all;
  for (double& size : sizes) size = std::abs(size);
  for (std::size_t r = 0; r <= rows; ++r)
    for (std::size_t i = 0; i < k; ++i) {
      double &value = all[r * k + i], &size = sizes[r * k + i];
      for (std::size_t l = 0; l < i; ++l) {
        value -= factor[i * k + l] * all[r * k + l];
        size += std::abs(factor[i * k + l]) * sizes[r * k + l];
      }
      value /= factor[i * k + i];
      size /= factor[i * k + i];
    }
  Tail tail;
  tail.set.width = tail.set.rank = map.inputs + 1;
  tail.set.whole = false;
  tail.set.inner = 1;
  tail.set.half = true;
  tail.affine.push_back({map.outputs + 1, map.inputs + 1, std::move(all), Vector(rows + 1),
                         std::move(sizes), Vector(rows + 1)});
  tail.push_back(phi.and_one_more());
  return tail;
}

NormImage::NormImage(Tail before, Vector generators, Cone cone, Interval beside)
    : rank_(cone.inward().size()),
      beside_(beside),
      generators_(std::move(generators)),
      cone_(std::move(cone)),
      before_(std::move(before)) {
  constexpr std::int64_t kSteps = 500;
  const OneBlasThread one;
  rows_ = std::make_unique<UnitRows>(before_);
  layers_.push_back(first_units(before_, *rows_, linear_intervals(before_.affine[0], before_.set)));
  dual_ = std::make_unique<TailDual>(*rows_, before_.set, layers_, 1,
                                     rows_->signs_alone() || rows_->rank() > kEachKappa);
  Vector away = cone_.inward();
  for (double& part : away) part = -part;
  double constant = 0;
  const Vector v = weights(away.data(), constant);
  const TailDual::Value least =
      descend(*dual_, layers_, v, constant, rows_->rank(), {kSteps}).least;
  const double distance = -(least.bound + kMargin * least.size);  // of the plane inward . z = this
  if (distance > 0) reach_ = 1 / distance;
}

Vector NormImage::weights(const double* lambda, double& constant) const {
  Vector result(generators_.size() / rank_);
  for (std::size_t j = 0; j < result.size(); ++j)
    for (std::size_t i = 0; i < rank_; ++i) result[j] += generators_[j * rank_ + i] * lambda[i];
  for (std::size_t j = 0; j + 1 < result.size() && !exact(); ++j)
    result.back() += result[j] * beside(result[j]);
  constant = 0;
  if (result.size() > layers_[0].size()) {
    constant = result.back();
    result.pop_back();
  }
  return result;
}

Vector NormImage::outside(const Vector& g) const {
  constexpr std::int64_t kSweeps = 1000;
  Vector alpha, result = cone_.project(g, alpha, kSweeps);
  for (std::size_t i = 0; i < rank_; ++i) result[i] = g[i] - result[i];
  return result;
}

double NormImage::step(const double* lambda) const {
  double constant = 0;
  const Vector v = weights(lambda, constant);
  double sum = 0;
  for (std::size_t j = 0; j < v.size(); ++j) sum += std::abs(v[j]) * layers_[0].scale[j];
  return sum / static_cast<double>(v.size());
}

TailDual::Value NormImage::operator()(const double* x, double tolerance, double* gradient,
                                      double* price) const {
  const Vector inner(x + rank_, x + multipliers());
  constexpr double kPace = 1.03;
  Vector slope, activations;
  double constant = 0;
  const Vector v = weights(x, constant);
  const TailDual::Value found =
      (*dual_)(v, constant, inner, tolerance, slope, {.values = &activations});
  activations.push_back(1);  // the constant's, where there is one
  for (std::size_t j = 0; j + 1 < generators_.size() / rank_ && !exact(); ++j)
    activations[j] += beside(v[j]) * activations[v.size() - 1];
  const double guide = price ? std::min(reach_, *price) : reach_;
  if (price) *price = found.bound > 0 ? std::min(reach_, guide * kPace) : guide / kPace;
  std::fill(gradient, gradient + multipliers(), 0.0);
  if (found.bound > 0) {
    for (std::size_t j = 0; j < generators_.size() / rank_; ++j)
      for (std::size_t i = 0; i < rank_; ++i)
        gradient[i] += guide * activations[j] * generators_[j * rank_ + i];
    for (std::size_t i = 0; i < slope.size(); ++i) gradient[rank_ + i] = guide * slope[i];
  }
  return {std::max(reach_ * found.bound, 0.0), reach_ * found.size};
}

}  // namespace keel
