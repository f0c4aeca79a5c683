// Affine maps, and what rounding of them is measured by.
#pragma once

#include <cstdint>
#include <vector>

#include "interval.h"

namespace keel {

/// Of what is summed, if it is not 0: a margin of it is more than what may underflow of it.
inline constexpr double kLeastSize = 1e-280;

/// weight x + bias; weight [outputs, inputs].
struct Affine {
  std::int64_t outputs = 0, inputs = 0;
  std::vector<double> weight{}, bias{};
  /// What rounding of each of these is measured by, where that is more than its size: the sizes of
  /// what was summed to make it. Empty: it was given.
  std::vector<double> weight_sizes{}, bias_sizes{};
};

std::vector<double> weight_sizes(const Affine& affine);  ///< never empty
std::vector<double> bias_sizes(const Affine& affine);

/// What rounding of each output is measured by, for |x| <= 1.
std::vector<double> output_sizes(const Affine& affine);

/// Of each output where every input is in an interval, by itself as if no others were; widened by
/// `margin` of what rounding is measured by.
std::vector<Interval> outputs_within(const Affine& affine, const std::vector<Interval>& inputs,
                                     double margin);

std::vector<double> affine_at(const Affine& affine, const std::vector<double>& x);

/// The same map without its bias.
Affine linear_part(Affine map);

/// factor (weight x + bias), factor > 0.
Affine scaled(Affine map, double factor);

Affine identity_map(std::int64_t width);

/// `rows` by `cols` identities: two above each other give x twice, two side by side a sum.
Affine identities(std::int64_t rows, std::int64_t cols, std::int64_t width);

/// Of `map`'s inputs and `width` more, which come out behind its outputs as they are.
Affine beside_identity(const Affine& map, std::int64_t width);

/// `second` after `first`.
Affine composed(const Affine& second, const Affine& first);

/// Whether rows of `map` are 0, or so large that a margin of their sizes is more than what
/// underflows where they are multiplied.
bool large_enough(const Affine& map);

/// The same of the map `made` of `first` and then `second`, whose rows may have become 0 that way.
bool large_enough(const Affine& made, const Affine& second, const Affine& first);

/// Whether rows have lost digits, where they were multiplied out, that their lengths no longer tell
/// of.
bool cancels(const Affine& map);

}  // namespace keel
