// Every arrangement of a transformer's norms that tests go through.
#pragma once

#include <vector>

#include "../nn/transformer_norms.h"

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

}  // namespace keel::test
