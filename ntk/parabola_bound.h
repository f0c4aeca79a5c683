// ParabolaBound: what stands behind a transformer's first block, its relus bounded all at once.
#pragma once

#include <cmath>
#include <vector>

#include "block_paths.h"
#include "direction.h"
#include "interval.h"

namespace keel {

/// Where a parabola above relu touches it at first: of how far z goes from its middle. Any t > 0 is
/// right.
inline double first_touch(double middle, const Interval& z) {
  constexpr double kReach = 0.45;
  return std::hypot(middle, kReach * (z.high - z.low) / 2);
}

/// A line above each relu asks of every unit what its interval allows by itself; that all of a
/// layer are at the ends of theirs together, nothing can bring about. relu(z) <= (z + t)^2 / (4 t)
/// for any t > 0 makes of those with a positive factor one quadratic form in what the Layer Norm
/// gave: of the place itself and, by each head, of others (docs/transformer.md).
class ParabolaBound {
 public:
  /// `block`, of those paths, must know the intervals of its units. Both must outlive this.
  ParabolaBound(const BlockPaths& paths, const BlockMaps& block) : paths_(paths), block_(block) {}

  /// Of w . (s + back(relu(hidden(s)))), s what stands behind the block's attention, whatever the
  /// sequence. `of_units` [units]: d pulled back through `back`.
  Most most(const Direction& d, const Direction& of_units) const;

 private:
  struct Form;
  double crossed(const Form& form, const std::vector<double>& curvature) const;

  const BlockPaths& paths_;
  const BlockMaps& block_;
};

}  // namespace keel
