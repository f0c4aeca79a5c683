// Every arrangement of a transformer's norms that tests go through, and gains and biases of theirs
// as no net is drawn with.
#pragma once

#include <cstdint>
#include <vector>

#include "../core/random.h"
#include "../nn/transformer.h"

namespace keel::test {

inline std::vector<TransformerNorms> all_norms() {
  std::vector<TransformerNorms> all;
  for (const bool embedding : {false, true})
    for (const bool blocks : {false, true})
      for (const bool last : {false, true})
        for (const bool centred : {true, false})
          if (centred || embedding || blocks || last)
            all.push_back({embedding, blocks, last, centred});
  return all;
}

/// Of either sign, N(0, 1).
inline void shake_norms(const Transformer& net, std::uint64_t seed) {
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p) {
    if (net.layout().entries()[p].stddev != 0) continue;
    const Tensor view = net.layout().view(net.flat(), p);
    copy(view, normal(view.shape(), {seed, 1000 + p}, 1, view.dtype()));
  }
}

}  // namespace keel::test
