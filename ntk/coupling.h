// What a later layer's quadratic multipliers take from the layer before: a semidefinite relaxation
// (docs/certificate.md, "The coupling").
#pragma once

#include "units.h"

namespace keel {

/// Where a later layer's quadratic multipliers lie in the vector of all: kappa [units], then, one
/// for each value before, theta, shift and, where `crosses`, cross; and slack, one number.
struct CouplingPlace {
  std::size_t kappa = 0, theta = 0, shift = 0, cross = 0, slack = 0;
  bool crosses = false;
};

/// With d the values before a layer less their centres, and z' = W d its inputs less their origins,
///   sum kappa_j z'_j^2 = d.(theta d) - shift.d - cross.(y d) + rest,
///   rest = -d.P d + r.d <= r.P^-1 r / 4,   P = theta - W^T kappa W,   r = shift + cross y,
/// wherever P is positive definite: theta is the multiplier's, raised by P's least eigenvalue and
/// by exp(slack). y are the first units', so that the rest is a quadratic of u.
class Coupling {
 public:
  /// At these multipliers; nothing to do where it is there already. Throws what symmetric_eigen
  /// does.
  void move_to(const Units& units, const UnitRows& rows, const CouplingPlace& place,
               const std::vector<double>& x);

  bool finite() const { return finite_; }
  const std::vector<double>& theta() const { return theta_; }
  double constant() const { return constant_; }  ///< of the rest's bound, with what it rounds
  const std::vector<double>& linear() const { return linear_; }        ///< [rank], or empty
  const std::vector<double>& quadratic() const { return quadratic_; }  ///< [rank, rank], or empty
  double size() const { return size_; }

  /// Where everything is largest.
  struct Maximum {
    const std::vector<double>& y;           ///< of this layer's units
    const std::vector<double>& deviations;  ///< d of the units before, each by itself
    const std::vector<double>& made;    ///< the same, but for units that pass, of what makes them
    const std::vector<double>& before;  ///< their y, each by itself
    const std::vector<double>& u;
    const std::vector<double>& y_of_u;  ///< the first units' at u
  };
  /// Adds the slope in kappa, theta, shift, cross and slack to `gradient`: what the units and the
  /// rest disagree by.
  void slope(const Units& units, const CouplingPlace& place, const Maximum& at,
             std::vector<double>& gradient) const;

 private:
  void maximise(const Units& units, const std::vector<std::vector<double>>& r,
                const std::vector<double>& values, const std::vector<double>& vectors);

  std::vector<double> made_of_{};  // the multipliers
  bool finite_ = false;
  std::vector<double> theta_{}, top_{};  // and the eigenvector that theta has to be raised for
  double slack_ = 0, constant_ = 0, size_ = 0;
  std::vector<double> linear_{}, quadratic_{};
  std::vector<std::vector<double>> at_{};  // d of the rest's maximum: of 1, and of each of u
};

}  // namespace keel
