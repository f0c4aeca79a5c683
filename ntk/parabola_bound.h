// ParabolaBound: what stands behind a transformer's first block, its relus bounded all at once.
#pragma once

#include "../core/tensor.h"
#include "direction.h"
#include "embedding_image.h"

namespace keel {

/// A line above each relu asks of every unit what its interval allows by itself; that all of a
/// layer are at the ends of theirs together, nothing can bring about. relu(z) <= (z + t)^2 / (4 t)
/// for any t > 0 makes of those with a positive factor one quadratic form in what the Layer Norm
/// gave: of the place itself and, by each head, of others (docs/transformer.md).
class ParabolaBound {
 public:
  /// `image` must be in planes, and `block` know the intervals of its units.
  ParabolaBound(const EmbeddingImage& image, const BlockMaps& block, std::size_t heads);

  /// Of w . (s + back(relu(hidden(s)))), s what stands behind the block's attention, whatever the
  /// sequence. `of_units` [units]: d pulled back through `back`.
  Most most(const Direction& d, const Direction& of_units) const;

 private:
  struct Form;
  double crossed(const Form& form, const std::vector<double>& curvature) const;
  std::size_t rows() const { return paths_ * each_; }
  const double* units_of(std::size_t row) const {
    return of_units_.data<double>() + row * middle_.size();
  }

  const BlockMaps& block_;
  std::size_t paths_, each_;  // the place and the heads; the vectors that a path's half plane has
  // What a path makes of each vector, path by path: in the state [rows, width], and in the hidden
  // units [rows, units].
  std::vector<double> of_state_;
  Tensor of_units_;
  // State and hidden units where every path has the middle of the image; the sizes of all that
  // makes them, the paths' vectors included.
  std::vector<double> state_, middle_, state_size_, unit_size_;
};

}  // namespace keel
