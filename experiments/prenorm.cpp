// Figure 7 with the norms of today's language models: within the blocks, and ahead of the last
// layer.
#include "sequence_page.h"

namespace keel {

Reproduced reproduce_prenorm(const Context& context, const ReproduceOptions& options,
                             const OutputFolder& folder) {
  const TransformerNorms within{.embedding = false, .blocks = true};
  TransformerNorms with_last = within, of_rms = within;
  with_last.last = of_rms.last = true;
  of_rms.centred = false;
  return reproduce_sequences(
      "prenorm",
      {{"ln_blocks", within}, {"ln_blocks_last", with_last}, {"rms_blocks_last", of_rms}},
      "ln_blocks: in each block a Layer Norm ahead of attention and one ahead of the ReLU layer, "
      "gain and bias, eps 1e-5; ln_blocks_last: and one ahead of the last layer; rms_blocks_last: "
      "RMSNorms there, gain, eps 2^-23",
      context, options, folder);
}

}  // namespace keel
