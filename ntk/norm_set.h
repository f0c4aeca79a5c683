// The set that a Layer Norm or an RMSNorm maps every input into (docs/certificate.md, "The set").
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "../nn/spec.h"
#include "cone.h"
#include "interval.h"

namespace keel {

class NormImage;

/// How far a vector of a set's basis may be from the span that it stands for.
inline constexpr double kOfSpan = 1e-11;

/// By how much ends of what is known of a set are moved outward, relative to their size.
inline constexpr double kRounding = 1e-9;

/// Outputs of a Layer Norm of `width` units, before gain and bias; not `centred`, of an RMSNorm:
///   h = sqrt(width) B u,  inner <= |u| <= 1,  u[rank - 1] in `last` where `half`,  u in `cone`.
struct NormSet {
  std::int64_t width = 0, rank = 0;
  bool centred = true;
  /// Not of a norm: any h with each h_i in `ends`, which are the first units themselves; rank 0.
  bool box = false;
  Interval ends{};
  /// B is I - 1/width, [width, width], and not stored: every h of mean 0; not centred, I: every h.
  bool whole = true;
  std::vector<double> basis{};  ///< B [width, rank]: orthonormal columns, of mean 0 if centred
  double turned = 0;            ///< how far rounding may have turned any of them out of the span
  double inner = 0;
  bool half = false;
  Interval last{0, 1};
  /// A unit vector with side.u >= -beyond, or empty.
  std::vector<double> side{};
  double beyond = 0;
  /// [rank, rank], of length 1: u.(quadric u) >= 0; or empty.
  std::vector<double> quadric{};
  Cone cone{};  ///< empty: says nothing
  /// [inputs + 1, rank]: u is parallel to the sum of a's elements times these rows, and the last
  /// row, b's. Empty where rounding leaves one open.
  std::vector<double> generators{};
  std::shared_ptr<const NormImage> image{};  ///< may be none
};

/// Every h with |h|^2 <= width, and sum 0 if `centred`: what holds whatever stands before the norm.
NormSet every_normed(std::int64_t width, bool centred);

/// Every output of tanh, between -1 and 1, or of sigmoid, between 0 and 1.
NormSet every_of_units(std::int64_t width, LayerKind kind);

/// Of a norm right behind a dense layer z = W a + b, W [width, inputs]: h is parallel to W a + b,
/// less its mean if `centred`, which has at most inputs + 1 dimensions. Every h where that is no
/// restriction, or where rounding leaves the dimension open. `least`: what no element of a is
/// below, if anything; then h is in a cone, too.
NormSet normed_after_dense(const std::vector<double>& weight, const std::vector<double>& bias,
                           std::int64_t inputs, double eps, std::optional<double> least = {},
                           bool centred = true);

}  // namespace keel
