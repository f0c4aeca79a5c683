// Figure 7: a transformer that continues sequences, with and without Layer Norm behind its
// embedding.
#include "sequence_page.h"

namespace keel {

Reproduced reproduce_fig7(const Context& context, const ReproduceOptions& options,
                          const OutputFolder& folder) {
  return reproduce_sequences(
      "fig7", {{"standard", {.embedding = false}}, {"ln_embedding", {.embedding = true}}},
      "ln_embedding: Layer Norm behind the embedding, gain and bias, eps 1e-5; no other Layer Norm "
      "in either",
      context, options, folder);
}

}  // namespace keel
