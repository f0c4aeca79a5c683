#include "search.h"

#include <algorithm>
#include <cmath>

#include "length.h"
#include "search_rays.h"

namespace keel {
namespace {

using Point = std::vector<double>;

struct Climber {
  Point x;
  double height = 0;
};

// Points waiting to be evaluated together, and the best seen so far.
class Searcher {
 public:
  Searcher(const RowFunction& f, std::int64_t width, const SearchOptions& options,
           const RowGradient& gradient)
      : f_(f), width_(width), options_(options), gradient_(gradient) {}

  std::vector<double> values(const std::vector<Point>& points) {
    if (points.empty()) return {};
    const std::vector<double> found = f_(rows_of(points));
    check<ShapeError>(found.size() == points.size(), "search", "got {} values for {} points",
                      found.size(), points.size());
    best_.evaluations += std::ssize(points);
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
  bool stopped() const { return raised(options_.stop); }

  /// x moved by `length` along `direction`, and brought back to the ball and the ranges where it
  /// left them.
  Point moved(const Point& x, const Point& direction, double length) const {
    Point to = x;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += length * direction[i];
    return inside(std::move(to), options_);
  }

  // The gradient at each climber, times a share of |x|.
  std::vector<Point> slopes(const std::vector<Climber>& climbers) {
    if (!gradient_) return differences(climbers);
    std::vector<Point> points;
    for (const Climber& climber : climbers) points.push_back(climber.x);
    const Tensor gradients = gradient_(rows_of(points));
    check<ShapeError>(gradients.shape() == Shape({std::ssize(points), width_}), "search",
                      "got gradients {} at {} points of {} coordinates", gradients.shape(),
                      points.size(), width_);
    best_.evaluations += std::ssize(points);
    const std::vector<double> flat = gradients.to_vector<double>();
    auto next = flat.begin();
    for (Point& point : points) {
      const double size = size_of(point);
      for (double& value : point) {
        value = *next++ * size;
        if (!std::isfinite(value)) value = 0;  // beyond double: it goes another way
      }
    }
    return points;
  }

  // What steps from x are measured by.
  double size_of(const Point& x) const { return std::max(length_of(x), options_.nearest); }

 private:
  Tensor rows_of(const std::vector<Point>& points) const {
    std::vector<double> flat;
    flat.reserve(points.size() * static_cast<std::size_t>(width_));
    for (const Point& point : points) flat.insert(flat.end(), point.begin(), point.end());
    return Tensor::from(flat, {std::ssize(points), width_});
  }

  // What f changes by, of each climber, along each coordinate, from one evaluation of every
  // neighbour.
  std::vector<Point> differences(const std::vector<Climber>& climbers) {
    constexpr double kStep = 1e-5;  // half the digits of a central difference
    std::vector<Point> neighbours;
    for (const Climber& climber : climbers)
      for (std::size_t i = 0; i < climber.x.size(); ++i)
        for (double side : {1.0, -1.0}) {
          neighbours.push_back(climber.x);
          neighbours.back()[i] += side * kStep * size_of(climber.x);
        }
    const std::vector<double> at = probe(neighbours);
    std::vector<Point> result;
    for (std::size_t pair = 0; pair < at.size();) {
      Point difference(static_cast<std::size_t>(width_));
      for (double& value : difference) {
        value = at[pair] - at[pair + 1];
        pair += 2;
      }
      result.push_back(std::move(difference));
    }
    return result;
  }

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
  const RowGradient& gradient_;  // none: differences
  Found best_;
};

// The best point of each of the best rays.
std::vector<Climber> climbers_of(Searcher& searcher, const SearchRays& rays, std::int64_t count) {
  constexpr std::size_t kAtOnce = 1 << 16;
  struct Top {
    Climber climber;
    std::size_t ray;
  };
  std::vector<Top> best;
  const auto keep_highest = [&best, count] {
    std::stable_sort(best.begin(), best.end(), [](const Top& a, const Top& b) {
      return a.climber.height > b.climber.height;
    });
    best.resize(std::min(best.size(), static_cast<std::size_t>(count)));
  };
  for (std::size_t begin = 0; begin < rays.size() && !(begin > 0 && searcher.stopped());
       begin += kAtOnce) {
    std::vector<Point> points;
    for (std::size_t i = begin; i < std::min(begin + kAtOnce, rays.size()); ++i)
      points.push_back(rays.at(i));
    const std::vector<double> heights = searcher.values(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::size_t ray = rays.ray_of(begin + i);
      if (best.empty() || best.back().ray != ray)
        best.push_back({{std::move(points[i]), heights[i]}, ray});
      else if (heights[i] > best.back().climber.height)
        best.back().climber = {std::move(points[i]), heights[i]};
    }
    // All of a million rays are too many to keep. The next block may go on with the last one.
    Top last = std::move(best.back());
    best.pop_back();
    keep_highest();
    best.push_back(std::move(last));
  }
  keep_highest();
  std::vector<Climber> result;
  for (Top& top : best) result.push_back(std::move(top.climber));
  return result;
}

// Adam's steps (Kingma and Ba 2015) up, ever shorter, each a share of |x|: gradients alone end on
// the first ridge of a relu. All coordinates have one second moment, so that where the ball ends a
// climber stops where the gradient points outward.
void climb(Searcher& searcher, std::vector<Climber> climbers, std::int64_t steps, double first) {
  constexpr double kLast = 1e-4, kMean = 0.9, kSquare = 0.99;
  struct Moments {
    Point mean;
    double square = 0, unit = 0;  // in units of the first: squares must not leave double
  };
  std::vector<Moments> moments(climbers.size());
  double fade = 1, square_fade = 1;
  for (std::int64_t step = 0; step < steps && !climbers.empty() && !searcher.stopped(); ++step) {
    const double part = static_cast<double>(step) / static_cast<double>(steps),
                 share = first * std::pow(kLast / first, part);
    fade *= kMean;
    square_fade *= kSquare;
    const std::vector<Point> slopes = searcher.slopes(climbers);
    std::vector<Point> to;
    for (std::size_t c = 0; c < climbers.size(); ++c) {
      Moments& of = moments[c];
      const double length = length_of(slopes[c]);
      if (of.unit == 0) of.unit = length;
      const double in_units = of.unit > 0 ? length / of.unit : 0;
      of.square = kSquare * of.square + (1 - kSquare) * in_units * in_units;
      of.mean.resize(slopes[c].size());
      for (std::size_t i = 0; i < of.mean.size(); ++i)
        of.mean[i] = kMean * of.mean[i] + (of.unit > 0 ? (1 - kMean) * slopes[c][i] / of.unit : 0);
      const double root = std::sqrt(of.square / (1 - square_fade)) * (1 - fade);
      const double size = share * searcher.size_of(climbers[c].x);
      to.push_back(searcher.moved(climbers[c].x, of.mean, root > 0 ? size / root : 0));
    }
    const std::vector<double> heights = searcher.values(to);
    for (std::size_t c = 0; c < climbers.size(); ++c) climbers[c] = {std::move(to[c]), heights[c]};
  }
}

// Without a gradient each takes two evaluations a coordinate and step.
std::int64_t climbers_at(std::int64_t width, const SearchOptions& options, bool gradient) {
  constexpr std::int64_t kFewest = 4, kCoordinates = kManyCoordinates * SearchOptions{}.climbers;
  return gradient ? options.climbers
                  : std::min(options.climbers, std::max(kFewest, kCoordinates / width));
}

void check_options(std::int64_t width, const Tensor& starts, const SearchOptions& options) {
  check<ShapeError>(width >= 1, "search", "got {} coordinates, wanted at least 1", width);
  check<ShapeError>(starts.rank() == 2 && starts.size(1) == width, "search",
                    "got starts {}, wanted [s, {}]", starts.shape(), width);
  check(options.nearest > 0 && options.farthest >= options.nearest &&
            std::isfinite(options.farthest / options.nearest),
        "search", "got |x| from {} to {}, wanted 0 < nearest <= farthest, less than 1e308 times it",
        options.nearest, options.farthest);
  check<ShapeError>(options.ranges.empty() || std::ssize(options.ranges) == width, "search",
                    "got {} ranges for {} coordinates, wanted as many", options.ranges.size(),
                    width);
  for (const Point& point : options.points)
    check<ShapeError>(std::ssize(point) == width, "search",
                      "got a point of {} coordinates, wanted {}", point.size(), width);
  check(
      options.directions >= 0 && options.radii >= 1 && options.climbers >= 0 && options.steps >= 0,
      "search", "got {} directions, {} radii, {} climbers and {} steps, wanted none below 0",
      options.directions, options.radii, options.climbers, options.steps);
}

}  // namespace

double Found::distance() const { return length_of(x); }

Found search_largest(const RowFunction& f, std::int64_t width, const Tensor& starts,
                     const SearchOptions& options, const RowGradient& gradient) {
  check(f != nullptr, "search", "got no function, wanted one to search");
  check_options(width, starts, options);
  const RowGradient none, &own = width >= kManyCoordinates ? gradient : none;
  Searcher searcher(f, width, options, own);
  std::vector<Climber> climbers = climbers_of(searcher, SearchRays(width, starts, options),
                                              climbers_at(width, options, own != nullptr));
  std::vector<Point> points;
  for (const Point& point : options.points) points.push_back(inside(point, options));
  const std::vector<double> heights = searcher.values(points);
  for (std::size_t i = 0; i < points.size(); ++i)
    climbers.push_back({std::move(points[i]), heights[i]});
  climb(searcher, std::move(climbers), options.steps, 0.3);
  // Long steps may leave the best point for good.
  const Found& best = searcher.best();
  if (options.climbers > 0) climb(searcher, {{best.x, best.value}}, options.steps, 0.01);
  return searcher.best();
}

}  // namespace keel
