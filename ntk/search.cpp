#include "search.h"

#include <algorithm>
#include <cmath>

#include "../core/random.h"
#include "../nn/streams.h"
#include "length.h"

namespace keel {
namespace {

using Point = std::vector<double>;

// As near to x as may be looked at.
Point inside(Point x, const SearchOptions& options) {
  const double size = length_of(x);
  if (size > options.farthest)
    for (double& value : x) value *= options.farthest / size;
  for (std::size_t i = 0; i < options.ranges.size(); ++i)
    x[i] = std::clamp(x[i], options.ranges[i].low, options.ranges[i].high);
  return x;
}

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

// Points along every direction and its opposite, at every radius, and the origin, one after the
// other: of a million directions there are too many to keep.
class Rays {
 public:
  Rays(std::int64_t width, const Tensor& starts, const SearchOptions& options)
      : width_(static_cast<std::size_t>(width)), options_(options) {
    for (std::size_t i = 0; i < width_; ++i) {
      Point axis(width_);
      axis[i] = 1;
      add(axis.data());
    }
    for (const Tensor& from :
         {starts, normal({options.directions, width}, {options.seed, streams::directions()}, 1,
                         DType::f64)}) {
      const std::vector<double> rows = from.to_vector<double>();
      for (std::size_t at = 0; at < rows.size(); at += width_) add(&rows[at]);
    }
    const double ratio = std::log(options.farthest / options.nearest);
    for (std::int64_t k = 0; k < options.radii; ++k) {
      const double part =
          options.radii > 1 ? static_cast<double>(k) / static_cast<double>(options.radii - 1) : 1.0;
      // exp(log) may round past the ball's edge
      radii_.push_back(std::min(options.nearest * std::exp(part * ratio), options.farthest));
    }
  }

  std::size_t size() const { return 1 + directions_.size() / width_ * 2 * radii_.size(); }
  std::size_t ray_of(std::size_t i) const { return i == 0 ? 0 : 1 + (i - 1) / radii_.size(); }

  Point at(std::size_t i) const {
    Point x(width_);
    if (i-- == 0) return inside(std::move(x), options_);
    const double* direction = &directions_[i / (2 * radii_.size()) * width_];
    const double side = i / radii_.size() % 2 == 0 ? 1 : -1;
    for (std::size_t j = 0; j < width_; ++j) x[j] = side * direction[j] * radii_[i % radii_.size()];
    return inside(std::move(x), options_);
  }

 private:
  void add(const double* x) {
    const double length = length_of(x, width_);
    for (std::size_t j = 0; j < width_ && length > 0; ++j) directions_.push_back(x[j] / length);
  }

  std::size_t width_;
  const SearchOptions& options_;
  std::vector<double> directions_{}, radii_{};  // [.., width], of length 1
};

// The best point of each of the best rays.
std::vector<Climber> climbers_of(Searcher& searcher, const Rays& rays, std::int64_t count) {
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
  for (std::size_t begin = 0; begin < rays.size(); begin += kAtOnce) {
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
  for (std::int64_t step = 0; step < steps && !climbers.empty(); ++step) {
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
  std::vector<Climber> climbers = climbers_of(searcher, Rays(width, starts, options),
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
