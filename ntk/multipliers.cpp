#include "multipliers.h"

#include "norm_image.h"

namespace keel {

Multipliers::Multipliers(const std::vector<Units>& layers, std::size_t depth, bool one_kappa,
                         const NormSet& set, const NormImage* of_image) {
  for (std::size_t l = 0; l < depth; ++l) {
    sigma.push_back(size);
    CouplingPlace place{.kappa = size += layers[l].size()};
    if (l == 0) {
      kappas = one_kappa ? 1 : layers[0].size();
      half = size += kappas;
      side = ++size;
      sided = !set.side.empty();
      quadric = size += sided;
      curved = !one_kappa && !set.quadric.empty();
      size += curved;
    } else {
      const std::size_t before = layers[l - 1].size();
      place.crosses = l == 1 && !one_kappa;
      place.theta = size += layers[l].size();
      place.shift = size += before;
      place.cross = size += before;
      place.slack = size += place.crosses ? before : 0;
      ++size;
    }
    coupling.push_back(place);
  }
  image = size;
  if (of_image) size += of_image->multipliers();
  not_negative.assign(size, false);
  for (std::size_t i = image; i < size; ++i) not_negative[i] = of_image->not_negative(i - image);
  not_negative[half] = set.last.high == 1;  // else u's last number has two ends
  if (sided) not_negative[side] = true;
  if (curved) not_negative[quadric] = true;
  coupled.assign(size, false);
  for (std::size_t l = 1; l < depth; ++l)
    for (std::size_t i = coupling[l].kappa; i <= coupling[l].slack; ++i) coupled[i] = true;
}

}  // namespace keel
