// Where the inputs of a net are looked at, in boxes.
#pragma once

#include <cmath>
#include <optional>

#include "box_forms.h"
#include "box_net.h"

namespace keel {

struct NetBoundOptions;

/// Boxes that hold every input, and the net that takes them.
struct BoxRegion {
  BoxNet net{};
  std::vector<Box> roots{};
  double within = kInfinity;       ///< of |x|, of what is in the boxes
  std::vector<Interval> ranges{};  ///< of each feature, [features], likewise
  std::size_t features() const { return net.inputs - net.homogeneous; }
  bool everywhere() const { return std::isinf(within) && std::isinf(ranges[0].high); }
  /// Of the length of what the net takes, which of (p, t) is not |x|.
  double within_boxes() const { return net.homogeneous ? kInfinity : within; }

  /// Whether any of the box is in it; takes off the box what is not, as far as is seen.
  bool narrow(Box& box) const;
  /// A point of the region: that given, if it is in it.
  std::vector<double> nearby(std::vector<double> point) const;
  /// x of such a point: p / t of a homogeneous net's.
  std::vector<double> input(std::vector<double> point) const;

 private:
  Interval narrowed(std::size_t feature, Box& box) const;
};

/// Of the options' ranges or |x| <= within or, with neither, of all x, if bounding_layer() says
/// that the net has a bound there: else nothing, and where its numbers are so large or small that
/// products of them may leave double. Where its first layer's values are far apart, for how near to
/// 0 they come, a net that has a bound is cut as a homogeneous one.
std::optional<BoxRegion> box_region(const Net& net, const NetBoundOptions& options);

}  // namespace keel
