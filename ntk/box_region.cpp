#include "box_region.h"

#include <algorithm>
#include <cmath>

#include "dot.h"
#include "length.h"
#include "net_bound.h"
#include "tail_sum.h"

namespace keel {
namespace {

// R from which on fewer boxes of (p, t) will do than of x: where t is halved |x| doubles, however
// far out.
constexpr double kByDirection = 30;

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
    const auto* divisor = std::get_if<BoxDivisor>(&step);
    if (const auto* norm = divisor ? &divisor->norm : std::get_if<BoxNorm>(&step)) {
      add(norm->gain);
      add(norm->bias);
    }
  }
  return digits <= kDigits;
}

// All of (p, t) that are 1 in their largest number, with t >= 1 / within: of the x = p / t none of
// |x| <= within is left out and, where that is infinite, none at all; t = 0 is infinitely far.
std::vector<Box> faces(std::size_t inputs, double within) {
  Box all{Vector(inputs, -1.0), Vector(inputs, 1.0)};
  all.low.back() = (1 - 1e-12) / within;
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
  for (std::size_t k = 0; k < features(); ++k)
    nearest.push_back(std::clamp(0.0, box.low[k], box.high[k]));
  return length_of(nearest) <= within * (net.homogeneous ? box.high.back() : 1);
}

Vector BoxRegion::point(const Box& box) const {
  constexpr double kNearest = 1e-12;  // of t: nearer to 0 z / t is rounding's
  Vector middle;
  for (std::size_t k = 0; k < features(); ++k) middle.push_back(box.middle(k));
  const double t = net.homogeneous ? std::max(box.middle(features()), kNearest) : 1;
  const double length = length_of(middle);
  if (length > within * t)
    for (double& x : middle) x *= within * t / length;
  if (net.homogeneous) middle.push_back(t);
  return middle;
}

Vector BoxRegion::input(Vector point) const {
  if (!net.homogeneous) return point;
  if (!net.change.empty()) {
    Vector changed;
    for (std::size_t i = 0; i < net.inputs; ++i)
      changed.push_back(dot(&net.change[i * net.inputs], point.data(), net.inputs));
    point = std::move(changed);
  }
  const double t = point.back();
  point.pop_back();
  for (double& x : point) x /= t;
  return point;
}

std::optional<BoxRegion> box_region(const Net& net, const NetBoundOptions& options) {
  const auto features = static_cast<std::size_t>(net.input_width());
  const bool bounded = bounding_layer(net.spec()) < net.spec().size();
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
  } else if (bounded && options.within >= kByDirection) {
    region.net = homogeneous_box_net(net, std::isinf(options.within));
    region.within = options.within;
    region.roots = faces(features + 1, options.within);
  } else if (std::isfinite(options.within)) {
    region.net = box_net(net);
    region.within = farthest = options.within;
    region.roots = {{Vector(features, -options.within), Vector(features, options.within)}};
  } else {
    return std::nullopt;
  }
  if (!products_fit(region.net, farthest)) return std::nullopt;
  return region;
}

}  // namespace keel
