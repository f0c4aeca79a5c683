// Where a search begins: points along rays from the origin, in what it may look at.
#pragma once

#include "search.h"

namespace keel {

/// As near to x as the options let a search look.
std::vector<double> inside(std::vector<double> x, const SearchOptions& options);

/// Points along every direction and its opposite, at every radius, and the origin, one after the
/// other: of a million directions there are too many to keep.
class SearchRays {
 public:
  /// Directions: the axes, `starts` [s, width], and random ones. The options must outlive it.
  SearchRays(std::int64_t width, const Tensor& starts, const SearchOptions& options);

  std::size_t size() const { return 1 + directions_.size() / width_ * 2 * radii_.size(); }
  std::size_t ray_of(std::size_t i) const { return i == 0 ? 0 : 1 + (i - 1) / radii_.size(); }
  std::vector<double> at(std::size_t i) const;

 private:
  void add(const double* x);

  std::size_t width_;
  const SearchOptions& options_;
  std::vector<double> directions_{}, radii_{};  // [.., width], of length 1
};

}  // namespace keel
