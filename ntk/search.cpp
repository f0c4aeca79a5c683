#include "search.h"

#include <algorithm>
#include <cmath>

#include "../core/random.h"
#include "../nn/streams.h"
#include "length.h"

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
  std::vector<Point> gradients(const std::vector<Climber>& climbers) {
    constexpr double kStep = 1e-5;  // of |x|: half the digits of a central difference
    std::vector<Point> neighbours;
    for (const auto& [x, height] : climbers)
      for (std::size_t i = 0; i < x.size(); ++i)
        for (double side : {1.0, -1.0}) {
          neighbours.push_back(x);
          neighbours.back()[i] += side * kStep * std::max(length_of(x), options_.nearest);
        }
    const std::vector<double> at = probe(neighbours);
    std::vector<Point> result;
    for (std::size_t c = 0; c < climbers.size(); ++c) {
      Point gradient(climbers[c].x.size());
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

// Points along every direction and its opposite, at every radius, and the origin, one after the
// other: of a million directions there are too many to keep.
class Rays {
 public:
  Rays(std::int64_t width, const Tensor& starts, const SearchOptions& options)
      : width_(static_cast<std::size_t>(width)) {
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

  Point at(std::size_t i) const {
    Point x(width_);
    if (i-- == 0) return x;
    const double* direction = &directions_[i / (2 * radii_.size()) * width_];
    const double side = i / radii_.size() % 2 == 0 ? 1 : -1;
    for (std::size_t j = 0; j < width_; ++j) x[j] = side * direction[j] * radii_[i % radii_.size()];
    return x;
  }

 private:
  void add(const double* x) {
    const double length = length_of(x, width_);
    for (std::size_t j = 0; j < width_ && length > 0; ++j) directions_.push_back(x[j] / length);
  }

  std::size_t width_;
  std::vector<double> directions_{}, radii_{};  // [.., width], of length 1
};

// The best points of all rays.
std::vector<Climber> climbers_of(Searcher& searcher, const Rays& rays, std::int64_t count) {
  constexpr std::size_t kAtOnce = 1 << 16;
  std::vector<Climber> best;
  for (std::size_t begin = 0; begin < rays.size(); begin += kAtOnce) {
    std::vector<Point> points;
    for (std::size_t i = begin; i < std::min(begin + kAtOnce, rays.size()); ++i)
      points.push_back(rays.at(i));
    const std::vector<double> heights = searcher.values(points);
    for (std::size_t i = 0; i < points.size(); ++i)
      best.push_back({std::move(points[i]), heights[i]});
    std::stable_sort(best.begin(), best.end(),
                     [](const Climber& a, const Climber& b) { return a.height > b.height; });
    best.resize(std::min(best.size(), static_cast<std::size_t>(count)));
  }
  return best;
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
  std::vector<Climber> climbers =
      climbers_of(searcher, Rays(width, starts, options), options.climbers);
  const std::vector<double> lengths = {1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001};
  for (std::int64_t step = 0; step < options.steps && !climbers.empty(); ++step) {
    const std::vector<Point> gradients = searcher.gradients(climbers);
    std::vector<Point> candidates;
    for (std::size_t c = 0; c < climbers.size(); ++c)
      for (double length : lengths)
        candidates.push_back(
            searcher.moved(climbers[c].x, gradients[c],
                           length * std::max(length_of(climbers[c].x), options.nearest)));
    const std::vector<double> reached = searcher.values(candidates);
    std::vector<Climber> still;  // a climber that cannot rise any more has arrived
    for (std::size_t c = 0; c < climbers.size(); ++c) {
      const auto first = reached.begin() + static_cast<std::ptrdiff_t>(c * lengths.size());
      const auto best =
          std::max_element(first, first + static_cast<std::ptrdiff_t>(lengths.size()));
      if (*best > climbers[c].height)
        still.push_back({candidates[static_cast<std::size_t>(best - reached.begin())], *best});
    }
    climbers = std::move(still);
  }
  return searcher.best();
}

}  // namespace keel
