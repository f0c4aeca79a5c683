// A box of a net's inputs, taken through the net: how far f goes there (docs/certificate.md,
// "Cutting x").
#pragma once

#include <memory>

#include "box_divisor.h"
#include "box_norm.h"
#include "box_product.h"
#include "perspective.h"

namespace keel {

class BoxPass {
 public:
  /// `net` must outlive it. Of its inputs those in the box with |x| <= within alone.
  BoxPass(const BoxNet& net, const Box& box, double within);

  /// No smaller than the largest of weights . f, by the better of two kinds of lines; `lost`
  /// [inputs] gets what of it each input's side of the box costs, about.
  double bound(const std::vector<double>& weights, std::vector<double>& lost) const;

 private:
  /// What a step's way back needs of its way forward.
  struct Step {
    Forms given{};                     // of units, norms and products
    Interval last{};                   // of the last value that goes on, or of the last input
    bool of_input = true;              // of the last input
    std::vector<double> rounded{};     // of a map: what rounding of each output is measured by
    std::vector<UnitPlanes> planes{};  // of units
    std::unique_ptr<NormLines> norm{};
    std::unique_ptr<ProductForms> product{};
    std::unique_ptr<DivisorLines> divisor{};
  };
  enum class Kind { parallel, fitted };
  // `weights` of f become such of the inputs.
  double bound_by(Kind kind, std::vector<double>& weights, std::vector<double>* lost) const;
  // Of a net that divides last, and whether what it divides by may be 0 here.
  bool open() const { return net_.divides() && !(divisor_.low > 0); }
  double bound_of_ratio(const std::vector<double>& weights, std::vector<double>& lost) const;
  double bound_of_quotient(const std::vector<double>& weights, std::vector<double>& lost) const;
  void back(Kind kind, const BoxUnits& units, const Step& made, std::vector<double>& weights,
            double& value, double& size, std::vector<double>* lost) const;
  double of_inputs(const std::vector<double>& weights, double& size) const;

  const BoxNet& net_;
  const Box box_;
  const double within_;
  const Interval last_;  // of the last input
  Interval divisor_{};   // of a net that divides last, and forms of what it gives
  Forms given_{};
  std::vector<Step> steps_{};
};

/// The largest weights . x of the box and |x| <= within, or a little more.
double largest_in_ball(const std::vector<double>& weights, const Box& box, double within);

}  // namespace keel
