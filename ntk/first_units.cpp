#include "first_units.h"

#include <algorithm>
#include <cmath>

#include "length.h"

namespace keel {

using Vector = std::vector<double>;

std::vector<Interval> linear_intervals(const Affine& map, const NormSet& set) {
  if (set.box) return std::vector<Interval>(map.bias.size(), set.ends);
  std::vector<Interval> result;
  const Vector summed = output_sizes(map);
  const auto k = static_cast<std::size_t>(map.inputs);
  for (std::size_t i = 0; i < map.bias.size(); ++i) {
    Vector up, down;  // the last coordinate only in its own sense
    for (std::size_t j = 0; j < k; ++j) {
      const double a = map.weight[i * k + j];
      const bool one_way = set.half && j + 1 == k;
      up.push_back(one_way ? std::max(a, 0.0) : a);
      down.push_back(one_way ? std::min(a, 0.0) : a);
    }
    const double margin = kMargin * summed[i];
    result.push_back(
        {map.bias[i] - length_of(down) - margin, map.bias[i] + length_of(up) + margin});
  }
  return result;
}

Vector centres(const Units& units, double spread) {
  Vector result;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const double step = spread * units.scale[i];
    const Activation& phi = units.phi(i);
    result.push_back(0.5 * (phi(units.origin[i] + step) + phi(units.origin[i] - step)));
  }
  return result;
}

void set_ends(Units& units, const std::vector<Interval>& intervals) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    const double scale = units.scale[i], origin = units.origin[i];
    units.low.push_back(scale > 0 ? (intervals[i].low - origin) / scale : 0);
    units.high.push_back(scale > 0 ? (intervals[i].high - origin) / scale : 0);
  }
}

Units first_units(const Tail& tail, const UnitRows& rows, const std::vector<Interval>& intervals) {
  Units units;
  units.activation = tail.activations[0];
  units.kept = tail.kept[0];
  units.origin = tail.affine[0].bias;
  const Interval& ends = tail.set.ends;
  units.scale =
      tail.set.box ? Vector(rows.lengths().size(), 0.5 * (ends.high - ends.low)) : rows.lengths();
  units.summed = output_sizes(tail.affine[0]);
  set_ends(units, intervals);
  if (rows.signs_alone())  // constant units have y all the same
    for (std::size_t i = 0; i < units.size(); ++i)
      if (!(units.scale[i] > 0)) {
        units.low[i] = -1;
        units.high[i] = 1;
      }
  units.centre = centres(units, 1 / std::sqrt(std::max(1.0, static_cast<double>(rows.rank()))));
  return units;
}

}  // namespace keel
