#include "activation.h"

#include <algorithm>
#include <cmath>

#include "../core/error.h"
#include "../kernels/elu.h"
#include "../kernels/gelu.h"
#include "../kernels/silu.h"
#include "interval_ends.h"

namespace keel {
namespace {

// All that falls with |z| is 0 from 1e3 on, in double, where a square would leave its range.
double nearest_to_zero(double a, double b, double beta = 1) {
  return std::min(beta * least_of({a, b}), 1e3);
}

// |phi''| of gelu's form by tanh beyond n >= 2.5, at most. phi = z s(g(z)), s the logistic function
// and g its argument, has phi'' = s' (2 g' + z g'' - z g'^2 tanh(g / 2)), which is even; s' is at
// most exp(-|g|). What multiplies that here grows by a factor e^1.6 a unit at 2.5, and slower
// further out, where g grows faster: the bound falls.
double far_curvature_by_tanh(double n) {
  const double square = n * n, first = kGeluLinear + 3 * kGeluCubic * square;
  const double g = n * (kGeluLinear + kGeluCubic * square), second = 6 * kGeluCubic * n;
  return (n * first * first - 2 * first - n * second) * std::exp(-g);
}

}  // namespace

Activation::Activation(const LayerSpec& layer)
    : kind(layer.kind),
      slope(layer.kind == LayerKind::leakyrelu ? layer.slope : 0),
      beta(layer.kind == LayerKind::silu ? layer.beta : 1),
      by_tanh(layer.kind == LayerKind::gelu && layer.by_tanh) {
  if (kind == LayerKind::elu) alpha = layer.alpha;
  if (kind == LayerKind::selu) {
    alpha = kSeluScale * kSeluAlpha;
    above = kSeluScale;
  }
  const bool known = kinked() || bounds_units(kind) || is_elu() || kind == LayerKind::gelu ||
                     kind == LayerKind::silu || kind == LayerKind::softplus;
  check(known && slope >= 0 && slope <= 1 && alpha >= 0 && alpha <= 100 && beta >= kLeastSiluBeta &&
            beta <= kMostSiluBeta,
        "activation",
        "got {}, wanted relu, leakyrelu of a slope from 0 to 1, gelu, silu of a beta from {} to "
        "{}, tanh, sigmoid, softplus, elu of an alpha from 0 to 100 or selu",
        spec_text({layer}), kLeastSiluBeta, kMostSiluBeta);
}

Activation Activation::of_slope(double slope) {
  Activation phi;
  phi.kind = LayerKind::leakyrelu;
  phi.slope = slope;
  return phi;
}

double Activation::operator()(double z) const {
  switch (kind) {
    case LayerKind::gelu:
      if (by_tanh) return z / (1 + std::exp(-z * (kGeluLinear + kGeluCubic * (z * z))));
      return 0.5 * z * std::erfc(-0.70710678118654752440 * z);
    case LayerKind::silu:
      return z / (1 + std::exp(-beta * z));
    case LayerKind::tanh:
      return std::tanh(z);
    case LayerKind::sigmoid:
      return 1 / (1 + std::exp(-z));
    case LayerKind::softplus:
      return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)));
    case LayerKind::elu:
    case LayerKind::selu:
      return z > 0 ? above * z : alpha * std::expm1(z);
    default:
      return z > 0 ? z : slope * z;
  }
}

// |phi(z)| <= |z| for gelu, silu and tanh, and |exp(z) - 1| for z < 0, which is never above 1.
double Activation::largest(double a, double b) const {
  if (kind == LayerKind::sigmoid || kind == LayerKind::softplus) return (*this)(b);  // they rise
  if (is_elu()) return std::max(above * b, alpha * std::min(-a, 1.0));
  const double farthest = std::max(std::abs(a), std::abs(b));
  return kind == LayerKind::tanh ? std::min(farthest, 1.0) : farthest;
}

// |gelu'| is at most 1.1290 in either form, |silu'| 1.0999 of any beta; tanh' = 1 - t^2, t =
// tanh|z|, at most 4 exp(-2 |z|); sigmoid' = s (1 - s), at most exp(-|z|); softplus' = s, which
// rises, and so does elu' below 0, alpha exp(z).
double Activation::steepest(double a, double b) const {
  switch (kind) {
    case LayerKind::tanh:
      return std::min(1.0, 4 * std::exp(-2 * nearest_to_zero(a, b)));
    case LayerKind::sigmoid:
      return std::min(0.25, std::exp(-nearest_to_zero(a, b)));
    case LayerKind::softplus:
      return std::min(1.0, std::exp(std::min(b, 0.0)));
    case LayerKind::elu:
    case LayerKind::selu:
      if (b > 0) return a > 0 ? above : std::max(above, alpha);
      return alpha * std::exp(b);
    default:
      return 1.13;
  }
}

// gelu'' = (2 - z^2) pdf(z) falls from 0.798 and, past |z| = 2, in size; that of the form by tanh
// begins as high, and is 0.108 in size where it is lowest, at |z| = 2.01. silu'' =
// s (1 - s) (2 - z tanh(z/2)) is at most 1/2, and past 2 at most |z| exp(-|z|), which falls; of
// silu(beta z) / beta it is beta times that at beta z.
// |tanh''| = 2 t (1 - t^2) is at most 0.7699. |sigmoid''| = s (1 - s) |1 - 2 s| is at most 0.0963.
// elu'' is alpha exp(z) below 0 and 0 above; that it jumps there is no matter, as elu' does not
// where alpha is 1. Of another alpha, elu' does: what bounds by elu'' begins and ends its intervals
// at 0.
double Activation::curvature(double a, double b) const {
  const double nearest = nearest_to_zero(a, b, beta);
  switch (kind) {
    case LayerKind::silu:
      return beta * (nearest < 3 ? 0.5 : nearest * std::exp(-nearest));
    case LayerKind::tanh:
      return std::min(0.77, 8 * std::exp(-2 * nearest));
    case LayerKind::sigmoid:
      return std::min(0.0963, std::exp(-nearest));
    case LayerKind::softplus:
      return std::min(0.25, std::exp(-nearest));
    case LayerKind::elu:
    case LayerKind::selu:
      return a > 0 ? 0 : alpha * std::exp(std::min(b, 0.0));
    default:
      break;
  }
  if (nearest < 2.5) return 0.7979;
  if (by_tanh) return far_curvature_by_tanh(nearest);
  return (nearest * nearest - 2) * 0.39895 * std::exp(-0.5 * nearest * nearest);
}

double Activation::spread(double scale) const {
  if (kind == LayerKind::sigmoid) return std::min(0.25 * scale, 1.0);
  if (is_elu()) return std::max(above, alpha) * scale;
  if (kinked()) return std::max(1.0, std::abs(slope)) * scale;
  return kind == LayerKind::tanh ? std::min(scale, 2.0) : scale;
}

// Numbers on both sides of the z below 0 where gelu, in either form, or silu is lowest: it falls up
// to the first, and rises from the second.
Interval Activation::about_lowest() const {
  return kind == LayerKind::silu ? Interval{-1.3 / beta, -1.25 / beta} : Interval{-0.8, -0.7};
}

// All rise but for gelu and silu below 0, which fall before, and lines of a slope below 0: the
// larger end is the largest.
Interval Activation::range(double a, double b) const {
  const double at_a = (*this)(a), at_b = (*this)(b), most = std::max(at_a, at_b);
  if (kind == LayerKind::gelu || kind == LayerKind::silu) {
    const Interval lowest = about_lowest();
    if (b <= lowest.low) return {at_b, at_a};
    return {a >= lowest.high ? at_a : *least(), most};
  }
  if (kinked() && slope < 0) return {a < 0 && b > 0 ? 0 : std::min(at_a, at_b), most};
  return {at_a, most};
}

// softplus is above by ln(1 + exp(-|z|)), gelu and silu, of which |z| Phi(-|z|) and so on is
// missing, below, and so is elu.
std::optional<Interval> Activation::beside_relu() const {
  if (kinked()) return Interval{};
  if (bounds_units(kind)) return std::nullopt;
  if (kind == LayerKind::softplus) return Interval{0, 0.693148};
  return Interval{*least(), 0};
}

// Of elu it is 0 above 0, and rises to that below. Of the others it is even, and phi(-|z|):
// softplus' falls with |z|, the others' falls to least() and rises from there.
Interval Activation::beside_relu(double a, double b) const {
  const auto at = [this](double size) { return std::isinf(size) ? 0 : (*this)(-size); };
  if (kinked()) return {};
  if (is_elu()) return {a < 0 ? (*this)(a) : 0, b < 0 ? (*this)(b) : 0};
  const double nearest = least_of({a, b}), farthest = most_of({a, b});
  const double at_nearest = at(nearest), at_farthest = at(farthest);
  if (kind == LayerKind::softplus) return {at_farthest, at_nearest};
  const Interval about = about_lowest();
  const double lowest = farthest <= -about.high ? at_farthest
                        : nearest >= -about.low ? at_nearest
                                                : *least();
  return {lowest, std::max(at_nearest, at_farthest)};
}

std::optional<double> Activation::least() const {
  switch (kind) {
    case LayerKind::relu:
    case LayerKind::leakyrelu:
      return slope > 0 ? std::nullopt : std::optional(0.0);
    case LayerKind::sigmoid:
    case LayerKind::softplus:
      return 0;
    case LayerKind::gelu:  // at -0.752, in either form
      return by_tanh ? -0.17005 : -0.16998;
    case LayerKind::silu:  // at -1.278, over beta
      return -0.27847 / beta;
    case LayerKind::tanh:
      return -1;
    case LayerKind::elu:
    case LayerKind::selu:
      return -alpha;
    default:
      return std::nullopt;
  }
}

LayerActivation::LayerActivation(std::vector<double> slopes) {
  check(!slopes.empty(), "activation", "got no slopes, wanted one for each unit");
  all_ = Activation::of_slope(slopes[0]);
  const bool same =
      std::all_of(slopes.begin(), slopes.end(), [&](double slope) { return slope == slopes[0]; });
  if (!same) slopes_ = std::move(slopes);
}

std::optional<double> LayerActivation::least() const {
  const auto rises = [](double slope) { return slope > 0; };
  if (std::any_of(slopes_.begin(), slopes_.end(), rises)) return std::nullopt;
  return all_.least();
}

LayerActivation LayerActivation::and_one_more() const {
  LayerActivation more = *this;
  if (!more.slopes_.empty()) more.slopes_.push_back(1);
  return more;
}

}  // namespace keel
