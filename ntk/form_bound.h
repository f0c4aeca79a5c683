// FormBound: what stands behind one or two blocks of a transformer, all of their relus at once.
#pragma once

#include <cstddef>
#include <span>

#include "block_paths.h"
#include "direction.h"
#include "form_rows.h"

namespace keel {

/// With parabolas above the last block's relus, as in ParabolaBound, what is wanted is at most a
/// convex quadratic form of the state before them: behind one block one of what the Layer Norm gave
/// at a place and, by each head, at others; behind two, of what these and the first block's relus
/// gave. The latter are z/2 + e, with e^2 = z^2/4 and e above a parabola: multipliers for both, a
/// relu and a copy of the block each, leave a convex form of what the Layer Norm gave
/// (docs/transformer.md).
class FormBound {
 public:
  /// As FormRows.
  FormBound(const BlockPaths& paths, std::span<const BlockMaps> blocks, std::size_t heads)
      : rows_(paths, blocks, heads) {}

  /// Of w . what stands behind the last block, whatever the sequence: the least of `steps` of
  /// descent on the multipliers. `of_units` [units]: d pulled back through that block's `back`.
  /// Infinity where no relu of the last block has a parabola, or a number leaves double. Takes one
  /// thread.
  Most most(const Direction& d, const Direction& of_units, int steps) const;

 private:
  FormRows rows_;
};

}  // namespace keel
