#include "tail.h"

namespace keel {

using Vector = std::vector<double>;

Vector tail_at(const Tail& tail, const Vector& u) {
  Vector value = tail.set.box ? u : affine_at(tail.affine[0], u);
  for (std::size_t l = 0; l < tail.activations.size(); ++l) {
    for (std::size_t j = 0; j + tail.kept[l] < value.size(); ++j)
      value[j] = tail.activations[l].of(j)(value[j]);
    value = affine_at(tail.affine[l + 1], value);
  }
  return value;
}

}  // namespace keel
