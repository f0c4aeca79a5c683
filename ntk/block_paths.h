// BlockPaths: what a transformer's first block makes of the vectors that a Layer Norm gives.
#pragma once

#include <cstddef>
#include <vector>

#include "../core/tensor.h"
#include "direction.h"
#include "embedding_image.h"

namespace keel {

/// What a head of a block, or nobody (path 0), makes of v. With `sizes` all numbers are replaced by
/// theirs.
std::vector<double> through_path(const BlockMaps& block, std::size_t heads, std::size_t path,
                                 const std::vector<double>& v, bool sizes);

/// What attention adds whatever it is given: of the biases. With `sizes` as above.
std::vector<double> attention_bias(const BlockMaps& block, bool sizes);

/// What a dense layer makes of `inputs`; and the sizes of all that makes it.
std::vector<double> outputs_of(const DenseMap& map, const std::vector<double>& inputs);
std::vector<double> output_sizes(const DenseMap& map, const std::vector<double>& input_sizes);

/// Behind attention the state is `state` + a sum over paths, the place itself and each head, of
/// sin(a) times a path's first row + cos(a) times the row of a place, |a| <= pi / 2, or of means of
/// such (docs/transformer.md).
struct BlockPaths {
  /// `image` must be in planes.
  BlockPaths(const EmbeddingImage& image, const BlockMaps& block, std::size_t heads);

  std::size_t paths, each;       ///< rows that a path has
  std::vector<double> of_state;  ///< [paths each, width], path by path
  Tensor of_units;               ///< the same in the block's hidden units, [paths each, units]
  /// State and hidden units where every path has the middle of the image; the sizes of all that
  /// makes them, the paths' vectors included.
  std::vector<double> state, middle, state_size, unit_size;

  std::size_t rows() const { return paths * each; }
  const double* units_of(std::size_t row) const {
    return of_units.data<double>() + row * middle.size();
  }
};

}  // namespace keel
