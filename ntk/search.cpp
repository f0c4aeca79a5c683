#include "search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../core/random.h"
#include "length.h"

namespace keel {
namespace {

using Point = std::vector<double>;

// Points waiting to be evaluated together, and the best seen so far.
class Searcher {
 public:
  Searcher(const RowFunction& f, std::int64_t width, const SearchOptions& options)
      : f_(f), width_(width), options_(options) {}

  std::vector<double> values(const std::vector<Point>& points) {
    if (points.empty()) return {};
    std::vector<double> flat;
    flat.reserve(points.size() * static_cast<std::size_t>(width_));
    for (const Point& point : points) flat.insert(flat.end(), point.begin(), point.end());
    const auto rows = static_cast<std::int64_t>(points.size());
    const std::vector<double> found = f_(Tensor::from(flat, {rows, width_}));
    check<ShapeError>(found.size() == points.size(), "search", "got {} values for {} points",
                      found.size(), points.size());
    best_.evaluations += rows;
    for (std::size_t i = 0; i < found.size(); ++i) {
      check(!std::isnan(found[i]), "search", "the function is not a number at |x| = {}",
            length_of(points[i]));
      if (best_.x.empty() || found[i] > best_.value) {
        best_.value = found[i];
        best_.x = points[i];
      }
    }
    return found;
  }

  const Found& best() const { return best_; }

  /// x moved by `length` along `direction`, and brought back to the ball where it left it.
  Point moved(const Point& x, const Point& direction, double length) const {
    Point to = x;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += length * direction[i];
    const double size = length_of(to);
    if (size > options_.farthest)
      for (double& value : to) value *= options_.farthest / size;
    return to;
  }

  // Unit gradients of all climbers, from one evaluation of every neighbour.
  std::vector<Point> gradients(const std::vector<Point>& climbers) {
    constexpr double kStep = 1e-5;  // of |x|: half the digits of a central difference
    std::vector<Point> neighbours;
    for (const Point& x : climbers)
      for (std::size_t i = 0; i < x.size(); ++i)
        for (double side : {1.0, -1.0}) {
          neighbours.push_back(x);
          neighbours.back()[i] += side * kStep * std::max(length_of(x), options_.nearest);
        }
    const std::vector<double> at = probe(neighbours);
    std::vector<Point> result;
    for (std::size_t c = 0; c < climbers.size(); ++c) {
      Point gradient(climbers[c].size());
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        const std::size_t pair = 2 * (c * gradient.size() + i);
        gradient[i] = at[pair] - at[pair + 1];
      }
      const double size = length_of(gradient);
      for (double& value : gradient) value = size > 0 ? value / size : 0;
      result.push_back(std::move(gradient));
    }
    return result;
  }

 private:
  // Neighbours a hair outside the ball serve the gradient, but are no find.
  std::vector<double> probe(const std::vector<Point>& points) {
    const Found before = best_;
    std::vector<double> found = values(points);
    const std::int64_t evaluations = best_.evaluations;
    best_ = before;
    best_.evaluations = evaluations;
    return found;
  }

  const RowFunction& f_;
  std::int64_t width_;
  const SearchOptions& options_;
  Found best_;
};

std::vector<Point> unit_directions(std::int64_t width, const Tensor& starts,
                                   const SearchOptions& options) {
  const auto d = static_cast<std::size_t>(width);
  std::vector<Point> all;
  const auto add = [&](Point direction) {
    const double size = length_of(direction);
    if (!(size > 0)) return;
    for (double& value : direction) value /= size;
    all.push_back(direction);
    for (double& value : direction) value = -value;
    all.push_back(std::move(direction));
  };
  for (std::size_t i = 0; i < d; ++i) {
    Point axis(d);
    axis[i] = 1;
    add(axis);
  }
  for (const Tensor& from :
       {starts, normal({options.directions, width}, {options.seed, 0}, 1, DType::f64)}) {
    const std::vector<double> rows = from.to_vector<double>();
    for (std::size_t at = 0; at < rows.size(); at += d)
      add(Point(rows.begin() + static_cast<std::ptrdiff_t>(at),
                rows.begin() + static_cast<std::ptrdiff_t>(at + d)));
  }
  return all;
}

// Along every direction, every radius; the origin once.
std::vector<Point> rays(std::int64_t width, const Tensor& starts, const SearchOptions& options) {
  std::vector<Point> points = {Point(static_cast<std::size_t>(width))};
  const double ratio = std::log(options.farthest / options.nearest);
  for (const Point& direction : unit_directions(width, starts, options))
    for (std::int64_t k = 0; k < options.radii; ++k) {
      const double part =
          options.radii > 1 ? static_cast<double>(k) / static_cast<double>(options.radii - 1) : 1.0;
      // exp(log) may round past the ball's edge
      const double radius = std::min(options.nearest * std::exp(part * ratio), options.farthest);
      Point x = direction;
      for (double& value : x) value *= radius;
      points.push_back(std::move(x));
    }
  return points;
}

void check_options(std::int64_t width, const Tensor& starts, const SearchOptions& options) {
  check<ShapeError>(starts.rank() == 2 && starts.size(1) == width, "search",
                    "got starts {}, wanted [s, {}]", starts.shape(), width);
  check(
      options.nearest > 0 && options.farthest >= options.nearest && std::isfinite(options.farthest),
      "search", "got |x| from {} to {}, wanted 0 < nearest <= farthest", options.nearest,
      options.farthest);
  check(
      options.directions >= 0 && options.radii >= 1 && options.climbers >= 0 && options.steps >= 0,
      "search", "got {} directions, {} radii, {} climbers and {} steps, wanted none below 0",
      options.directions, options.radii, options.climbers, options.steps);
}

}  // namespace

double Found::distance() const { return length_of(x); }

Found search_largest(const RowFunction& f, std::int64_t width, const Tensor& starts,
                     const SearchOptions& options) {
  check_options(width, starts, options);
  Searcher searcher(f, width, options);
  std::vector<Point> points = rays(width, starts, options);
  const std::vector<double> found = searcher.values(points);

  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return found[a] > found[b]; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(options.climbers)));
  std::vector<Point> climbers;
  std::vector<double> heights;
  for (std::size_t i : order) {
    climbers.push_back(points[i]);
    heights.push_back(found[i]);
  }

  const std::vector<double> lengths = {1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001};
  for (std::int64_t step = 0; step < options.steps && !climbers.empty(); ++step) {
    const std::vector<Point> gradients = searcher.gradients(climbers);
    std::vector<Point> candidates;
    for (std::size_t c = 0; c < climbers.size(); ++c)
      for (double length : lengths)
        candidates.push_back(searcher.moved(
            climbers[c], gradients[c], length * std::max(length_of(climbers[c]), options.nearest)));
    const std::vector<double> reached = searcher.values(candidates);
    std::vector<Point> still;  // a climber that cannot rise any more has arrived
    std::vector<double> still_heights;
    for (std::size_t c = 0; c < climbers.size(); ++c) {
      const auto first = reached.begin() + static_cast<std::ptrdiff_t>(c * lengths.size());
      const auto best =
          std::max_element(first, first + static_cast<std::ptrdiff_t>(lengths.size()));
      if (!(*best > heights[c])) continue;
      still.push_back(candidates[static_cast<std::size_t>(best - reached.begin())]);
      still_heights.push_back(*best);
    }
    climbers = std::move(still);
    heights = std::move(still_heights);
  }
  return searcher.best();
}

}  // namespace keel
