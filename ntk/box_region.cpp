#include "box_region.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "box_maps.h"
#include "dot.h"
#include "interval_ends.h"
#include "length.h"
#include "margin.h"
#include "net_bound.h"
#include "tail_start.h"
#include "tail_sum.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

constexpr double kSlack = 1e-12;  // of numbers up to 1

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

// x = change u, of an upper triangle or, where that is empty, of the identity; and u.
Vector changed(const Vector& change, const Vector& u) {
  const std::size_t n = u.size();
  if (change.empty()) return u;
  Vector x;
  for (std::size_t i = 0; i < n; ++i) x.push_back(dot(&change[i * n], u.data(), n));
  return x;
}

Vector solved(const Vector& change, Vector x) {
  const std::size_t n = x.size();
  if (change.empty()) return x;
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) x[i] -= change[i * n + k] * x[k];
    x[i] /= change[i * n + i];
  }
  return x;
}

// Where each number of u is, of (p, 1) = change u, |p| <= within and every p_k in its range.
std::vector<Interval> variables_of(const Vector& change, double within,
                                   const std::vector<Interval>& ranges) {
  const std::size_t n = ranges.size() + 1;
  std::vector<Interval> result(n);
  Vector of_last, squares(n);
  for (std::size_t k = 0; k < n; ++k) {
    Vector u(n);
    u[k] = 1;
    u = solved(change, std::move(u));
    const Interval range = k + 1 < n ? ranges[k] : Interval{1, 1};
    for (std::size_t i = 0; i < n; ++i) {
      result[i].low += u[i] * (u[i] > 0 ? range.low : range.high);
      result[i].high += u[i] * (u[i] > 0 ? range.high : range.low);
      if (k + 1 < n) squares[i] += u[i] * u[i];
    }
    of_last = std::move(u);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double reach = squares[i] > 0 ? within * std::sqrt(squares[i]) : 0;
    result[i].low = std::max(result[i].low, of_last[i] - reach);
    result[i].high = std::min(result[i].high, of_last[i] + reach);
  }
  return result;
}

// How far apart the first dense layer's values are over the region, for how near to 0 they come,
// or x with 1 behind it where another layer is the first.
double spread(const Net& net, double within, const std::vector<Interval>& ranges) {
  Vector change, nearest;
  if (net.spec()[0].kind == LayerKind::dense)
    change = spherical_change(with_bias_of_last(dense_affine(net, 0), false), false).weight;
  double widest = 0;
  for (const Interval& of : variables_of(change, within, ranges)) {
    nearest.push_back(least_of(of));
    widest = std::max(widest, half_of(of));
  }
  return widest / length_of(nearest);
}

// Whether fewer boxes of (p, t) will do than of x, as measured (docs/certificate.md).
bool by_direction(const Net& net, const BoxNet& homogeneous, double within,
                  const std::vector<Interval>& ranges) {
  constexpr double kWithin = 30, kSpread = 10, kSpreadOfSphere = 4;
  // Else |x| alone tells; of ranges there is no such number.
  if (!homogeneous.divides()) return within >= kWithin && std::isfinite(within);
  return spread(net, within, ranges) >= (homogeneous.change.empty() ? kSpread : kSpreadOfSphere);
}

// Of the net's variables those that are 1 in their largest number, with t >= 0: none of the
// region's p / t is left out; t = 0 is infinitely far.
std::vector<Box> faces(const BoxRegion& region) {
  const std::size_t inputs = region.net.inputs;
  std::vector<Interval> variables(inputs, {-kInfinity, kInfinity});
  variables.back() = {1, 1};
  if (!region.everywhere())
    variables = variables_of(region.net.change, region.within, region.ranges);
  std::vector<Box> result;
  for (std::size_t k = 0; k < inputs; ++k)
    for (const double side : {1.0, -1.0}) {
      const double most = side > 0 ? variables[k].high : -variables[k].low;  // where t is 1
      if (most < 1 - kMargin) continue;
      Box face{Vector(inputs, -1.0), Vector(inputs, 1.0)};
      face.low.back() = std::min((1 - kMargin) / most, 1.0);
      face.low[k] = face.high[k] = side;
      if (region.narrow(face)) result.push_back(std::move(face));
    }
  return result;
}

}  // namespace

bool BoxRegion::narrow(Box& box) const {
  if (everywhere()) return true;
  Vector nearest;
  for (std::size_t k = 0; k < features(); ++k) {
    Interval of{box.low[k], box.high[k]};
    if (net.homogeneous) {
      of = narrowed(k, box);
      if (!(of.low <= of.high)) return false;
    }
    nearest.push_back(least_of(of));
  }
  return length_of(nearest) <= within * (net.homogeneous ? box.high.back() : 1);
}

// Of feature k, high t - p and p - low t are not below 0: by how much the most of one in the box is
// above, each number of the box may take away from it. Gives what p is then, or a little more; no
// interval where none of the box is in the range.
Interval BoxRegion::narrowed(std::size_t k, Box& box) const {
  const std::size_t n = net.inputs;
  Vector weights(n);
  weights[k] = 1;
  if (!net.change.empty()) std::copy_n(&net.change[k * n], n, weights.begin());
  for (const double side : {1.0, -1.0}) {
    Vector room = weights;
    room.back() -= side > 0 ? ranges[k].high : ranges[k].low;
    double most = 0;
    for (std::size_t j = 0; j < n; ++j) {
      room[j] *= -side;
      most += std::max(room[j] * box.low[j], room[j] * box.high[j]) + kSlack * std::abs(room[j]);
    }
    if (most < 0) return {1, -1};
    for (std::size_t j = 0; j < n; ++j)
      if (room[j] > 0)
        box.low[j] = std::max(box.low[j], box.high[j] - most / room[j]);
      else if (room[j] < 0)
        box.high[j] = std::min(box.high[j], box.low[j] - most / room[j]);
  }
  Interval of{0, 0};
  for (std::size_t j = 0; j < n; ++j) {
    const double a = weights[j] * box.low[j], b = weights[j] * box.high[j];
    of.low += std::min(a, b) - kSlack * std::abs(weights[j]);
    of.high += std::max(a, b) + kSlack * std::abs(weights[j]);
  }
  return of;
}

Vector BoxRegion::nearby(Vector point) const {
  constexpr double kNearest = 1e-12;  // of t: nearer to 0 z / t is rounding's
  const double t = net.homogeneous ? point.back() = std::max(point.back(), kNearest) : 1;
  if (everywhere()) return point;
  Vector p = changed(net.change, point);
  bool outside = false;
  for (std::size_t k = 0; k < features(); ++k) {
    const double given =
        std::exchange(p[k], std::clamp(p[k], ranges[k].low * t, ranges[k].high * t));
    outside = outside || given != p[k];
  }
  const double length = length_of(p.data(), features());
  if (length > within * t)
    for (std::size_t k = 0; k < features(); ++k) p[k] *= within * t / length;
  return outside || length > within * t ? solved(net.change, std::move(p)) : point;
}

Vector BoxRegion::input(Vector point) const {
  if (!net.homogeneous) return point;
  point = changed(net.change, point);
  const double t = point.back();
  point.pop_back();
  for (std::size_t k = 0; k < point.size(); ++k)  // in their ranges, but for rounding
    point[k] = std::clamp(point[k] / t, ranges[k].low, ranges[k].high);
  return point;
}

std::optional<BoxRegion> box_region(const Net& net, const NetBoundOptions& options) {
  const auto features = static_cast<std::size_t>(net.input_width());
  const bool bounded = bounding_layer(net.spec()) < net.spec().size();
  const bool of_all = options.ranges.empty() && std::isinf(options.within);
  if (of_all && !bounded) return std::nullopt;
  BoxRegion region;
  region.within = options.within;
  region.ranges = options.ranges;
  if (region.ranges.empty()) region.ranges.assign(features, {-options.within, options.within});
  if (bounded) region.net = homogeneous_box_net(net, true);
  double farthest = 1;
  if (of_all || (bounded && by_direction(net, region.net, options.within, region.ranges))) {
    region.roots = faces(region);
  } else {
    region.net = box_net(net);
    region.roots.emplace_back();
    for (const Interval& range : region.ranges) {
      region.roots[0].low.push_back(range.low);
      region.roots[0].high.push_back(range.high);
      farthest = std::max(farthest, most_of(range));
    }
  }
  if (!products_fit(region.net, farthest)) return std::nullopt;
  return region;
}

}  // namespace keel
