#include "search_rays.h"

#include <algorithm>
#include <cmath>

#include "../core/random.h"
#include "../nn/streams.h"
#include "length.h"

namespace keel {

using Vector = std::vector<double>;

Vector inside(Vector x, const SearchOptions& options) {
  const double size = length_of(x);
  if (size > options.farthest)
    for (double& value : x) value *= options.farthest / size;
  for (std::size_t i = 0; i < options.ranges.size(); ++i)
    x[i] = std::clamp(x[i], options.ranges[i].low, options.ranges[i].high);
  return x;
}

SearchRays::SearchRays(std::int64_t width, const Tensor& starts, const SearchOptions& options)
    : width_(static_cast<std::size_t>(width)), options_(options) {
  for (std::size_t i = 0; i < width_; ++i) {
    Vector axis(width_);
    axis[i] = 1;
    add(axis.data());
  }
  for (const Tensor& from :
       {starts, normal({options.directions, width}, {options.seed, streams::directions()}, 1,
                       DType::f64)}) {
    const Vector rows = from.to_vector<double>();
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

Vector SearchRays::at(std::size_t i) const {
  Vector x(width_);
  if (i-- == 0) return inside(std::move(x), options_);
  const double* direction = &directions_[i / (2 * radii_.size()) * width_];
  const double side = i / radii_.size() % 2 == 0 ? 1 : -1;
  for (std::size_t j = 0; j < width_; ++j) x[j] = side * direction[j] * radii_[i % radii_.size()];
  return inside(std::move(x), options_);
}

void SearchRays::add(const double* x) {
  const double length = length_of(x, width_);
  for (std::size_t j = 0; j < width_ && length > 0; ++j) directions_.push_back(x[j] / length);
}

}  // namespace keel
