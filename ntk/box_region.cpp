#include "box_region.h"

#include <algorithm>
#include <cmath>

#include "length.h"
#include "net_bound.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// Of all steps' products, in digits.
bool products_fit(const BoxNet& net, double farthest) {
  constexpr double kDigits = 200;
  double digits = 2 * std::abs(std::log10(std::max(farthest, 1.0)));
  const auto add = [&digits](const Vector& values) {
    double most = 0;
    for (double value : values)
      if (value != 0) most = std::max(most, std::abs(std::log10(std::abs(value))));
    digits += most;
  };
  for (const BoxStep& step : net.steps) {
    if (const auto* map = std::get_if<BoxMap>(&step)) {
      add(map->weight);
      add(map->bias);
    }
    if (const auto* norm = std::get_if<BoxNorm>(&step)) {
      add(norm->gain);
      add(norm->bias);
    }
  }
  return digits <= kDigits;
}

// All of (p, t) that are 1 in their largest number, t >= 0: x = p / t is anything, and infinitely
// far where t = 0.
std::vector<Box> faces(std::size_t inputs) {
  Box all{Vector(inputs, -1.0), Vector(inputs, 1.0)};
  all.low.back() = 0;
  std::vector<Box> result;
  for (std::size_t k = 0; k < inputs; ++k)
    for (const double side : {1.0, -1.0}) {
      if (k + 1 == inputs && side < 0) continue;
      result.push_back(all);
      result.back().low[k] = result.back().high[k] = side;
    }
  return result;
}

}  // namespace

bool BoxRegion::meets(const Box& box) const {
  Vector nearest;
  for (std::size_t k = 0; k < box.low.size(); ++k)
    nearest.push_back(std::clamp(0.0, box.low[k], box.high[k]));
  return length_of(nearest) <= within;
}

Vector BoxRegion::point(const Box& box) const {
  Vector middle;
  for (std::size_t k = 0; k < box.low.size(); ++k) middle.push_back(box.middle(k));
  const double length = length_of(middle);
  if (length > within)
    for (double& x : middle) x *= within / length;
  return middle;
}

Vector BoxRegion::input(Vector point) const {
  if (!net.homogeneous) return point;
  constexpr double kNearest = 1e-6;  // of t: |x| is 1e6 there
  const double t = std::max(point.back(), kNearest);
  point.pop_back();
  for (double& x : point) x /= t;
  return point;
}

std::optional<BoxRegion> box_region(const Net& net, const NetBoundOptions& options) {
  const auto features = static_cast<std::size_t>(net.input_width());
  BoxRegion region;
  double farthest = 1;
  if (!options.ranges.empty()) {
    region.net = box_net(net);
    region.roots.emplace_back();
    for (const Interval& range : options.ranges) {
      region.roots[0].low.push_back(range.low);
      region.roots[0].high.push_back(range.high);
      farthest = std::max({farthest, std::abs(range.low), std::abs(range.high)});
    }
  } else if (std::isfinite(options.within)) {
    region.net = box_net(net);
    region.within = farthest = options.within;
    region.roots = {{Vector(features, -options.within), Vector(features, options.within)}};
  } else if (may_be_homogeneous(net.spec())) {
    region.net = homogeneous_box_net(net);
    region.roots = faces(features + 1);
  } else {
    return std::nullopt;
  }
  if (!products_fit(region.net, farthest)) return std::nullopt;
  return region;
}

}  // namespace keel
