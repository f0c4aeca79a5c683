// What a norm can give where its dense layer stands behind an activation of few variables
// (docs/certificate.md, "The image").
#pragma once

#include "tail_dual.h"

namespace keel {

/// z = A x + b and, last, 1, as functions of q, (s x, s) = T q with s > 0: relu takes s out. Where
/// q is on the unit sphere, with its last coordinate >= 0, x may be any. T is such that sum_j
/// |g_j|^2 z_j^2 = |q|^2, g_j the rows of `generators`: no direction of q does much more than
/// another. Nothing where rounding leaves the rank of (A, b) open. phi, two lines that meet at 0,
/// follows.
std::optional<Tail> homogeneous(const Affine& map, const std::vector<double>& generators,
                                const LayerActivation& phi);

/// u = s sum_j a_j g_j, s > 0 and |u| <= 1, where a are the activations of one layer over a set.
/// Where a plane leaves all sums at least 1/reach behind, s <= reach, and
///   lambda . u <= reach max(0, S(lambda)),  S(lambda) = max of sum_j (g_j . lambda) a_j,
/// of which S has a dual of its own.
class NormImage {
 public:
  /// `before`: from its set to the activations a, one of them for each row of `generators`
  /// [count, rank], or for each but the last, of which a is 1. `cone`: gives the plane, and a
  /// lambda to start from. `beside`: each a but the last may be more by any of these, times the
  /// last.
  NormImage(Tail before, std::vector<double> generators, Cone cone, Interval beside);
  NormImage(const NormImage&) = delete;
  NormImage& operator=(const NormImage&) = delete;

  /// Whether a plane was found: without, there is no bound.
  bool bounded() const { return reach_ > 0; }
  double reach() const { return reach_; }
  std::size_t rank() const { return rank_; }

  /// lambda [rank] and the multipliers of S, in one vector.
  std::size_t multipliers() const { return rank_ + dual_->multipliers().size; }
  bool not_negative(std::size_t i) const {
    return i >= rank_ && dual_->multipliers().not_negative[i - rank_];
  }

  /// A bound of the largest lambda . u, and its subgradient in all multipliers x. `price` takes the
  /// place of reach in the subgradient, and is moved to where S is as often below 0 as above it:
  /// reach, which is proved, is often far more than what keeps S from being above.
  TailDual::Value operator()(const double* x, double tolerance, double* gradient,
                             double* price) const;

  /// A lambda to start from, of what g has outside the cone: lambda . u <= 0 if it holds.
  std::vector<double> outside(const std::vector<double>& g) const;

  /// The size of a step of the multipliers of S, near lambda.
  double step(const double* lambda) const;

 private:
  // g_j . lambda of each activation, and that of 1
  std::vector<double> weights(const double* lambda, double& constant) const;
  bool exact() const { return beside_.low == 0 && beside_.high == 0; }
  // What an a of this weight is more by where the sum is the largest.
  double beside(double weight) const { return weight < 0 ? beside_.low : beside_.high; }
  std::size_t rank_ = 0;
  double reach_ = 0;
  Interval beside_;
  std::vector<double> generators_;
  Cone cone_;
  Tail before_;
  std::unique_ptr<UnitRows> rows_;
  std::vector<Units> layers_;
  std::unique_ptr<TailDual> dual_;
};

}  // namespace keel
