// FormRows: what the vectors that a Layer Norm gives make of the state behind a second block's
// attention, or a first one's.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "../core/tensor.h"
#include "block_paths.h"
#include "direction.h"

namespace keel {

/// Before the last block's hidden layer the state is `state` + a sum over paths of what their rows
/// bring, as in BlockPaths, and, of two blocks, over copies of the first of what its relus are
/// besides: relu(z) = z/2 + e, e = |z|/2. A copy is what the place itself sees of that block, or a
/// head of the last; z of a copy is z_middle and what the copy's paths bring of `of_z`. Of relus
/// that are always on or off there is no e.
struct FormRows {
  /// `blocks`: the first, of `paths`, or the first two, which must know the intervals of their
  /// units, and outlive this.
  FormRows(const BlockPaths& paths, std::span<const BlockMaps> blocks, std::size_t heads);

  /// Whether there are few enough rows for a matrix of [rows, rows].
  static bool fits(const BlockPaths& paths, std::size_t blocks);

  const BlockMaps& last;
  std::size_t width, paths, each, copies = 0;
  std::vector<double> state, state_size;       // at the middle; sizes, rows included
  Tensor of_state;                             // [paths each, width]
  std::vector<double> last_middle, last_size;  // the same of the last block's hidden units

  Tensor kinks;  // what e of a unit adds to the state, [copies units, width]
  Tensor of_z;   // [paths each, units] of one copy
  std::vector<double> z_middle, z_size;
  std::vector<double> bowl, tilt;  // of the parabola e >= (bowl z^2 + tilt z) / 2

 private:
  void add_second(const BlockPaths& paths, const BlockMaps& first, std::size_t heads);
};

}  // namespace keel
