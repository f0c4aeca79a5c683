// The Lagrangian dual of the largest value behind a norm (docs/certificate.md, "The dual").
#pragma once

#include "input_maximum.h"
#include "multipliers.h"
#include "scalar_maximum.h"

namespace keel {

/// A bound of the largest f = constant + v . phi(z) of the first `depth` layers for any
/// multipliers, and a slope: a subgradient, as it is jointly convex in all but the couplings'.
class TailDual {
 public:
  /// `with_image`: uses the set's image, which it must have, in place of its cone.
  TailDual(const UnitRows& rows, const NormSet& set, const std::vector<Units>& layers,
           std::size_t depth, bool one_kappa, bool with_image = false);

  /// The same of units that have other intervals: another part of the set.
  TailDual(const TailDual& whole, const std::vector<Units>& layers);

  const Multipliers& multipliers() const { return at_; }
  struct Value {
    double bound = 0;
    double size = 0;  ///< of all that was added: what rounding is measured by
  };
  /// What one evaluation may leave for the next, or besides.
  struct Also {
    std::vector<Coupling>* couplings = nullptr;  ///< made anew only where their multipliers moved
    std::vector<double>* alpha = nullptr;   ///< the cone's weights: few sweeps go on from them,
                                            ///< where without there are many
    double* price = nullptr;                ///< of the image: NormImage has it
    std::vector<double>* values = nullptr;  ///< of the last layer's phi: the slope in v
    std::vector<double>* gaps = nullptr;    ///< of the last layer's units: what each one's maximum
                                          ///< is above what it has where the maximising u takes it
  };
  /// `tolerance`: of each unit's maximum, relative to |v| scale.
  Value operator()(const std::vector<double>& v, double constant, const std::vector<double>& x,
                   double tolerance, std::vector<double>& gradient, const Also& also) const;
  Value operator()(const std::vector<double>& v, double constant, const std::vector<double>& x,
                   double tolerance, std::vector<double>& gradient) const {
    return (*this)(v, constant, x, tolerance, gradient, {});
  }
  /// What the first units' multipliers take: g [rank] of g . u.
  std::vector<double> taken(const std::vector<double>& x) const;

 private:
  struct Pass;
  void units(std::size_t layer, const std::vector<double>& x, Pass& pass) const;
  void hand_back(std::size_t layer, const std::vector<double>& x, Pass& pass) const;
  bool quadratic_of_u(std::size_t layer, std::size_t unit) const;
  void follow(const std::vector<double>& y_of_u, Pass& pass) const;
  void slope(std::size_t layer, Pass& pass) const;
  std::vector<double> taken(const std::vector<double>& sigma, const std::vector<double>& x) const;
  std::vector<double> inputs(const std::vector<double>& x, const Also& also, Pass& pass) const;
  ScalarProblem problem(std::size_t layer, std::size_t unit, const std::vector<double>& x,
                        double w) const;
  std::vector<double> last_units(std::vector<double> y) const;

  const UnitRows& rows_;
  const NormSet& set_;
  const std::vector<Units>& layers_;
  std::size_t depth_;
  bool one_kappa_;
  const NormImage* image_;  // may be none
  Multipliers at_;
  InputMaximum over_inputs_;
};

}  // namespace keel
