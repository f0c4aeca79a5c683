// Figure 5: Figure 1 with GELU and SiLU, which are homogeneous only far away.
#include "toy_report.h"

namespace keel {

Reproduced reproduce_fig5(const Context& context, const ReproduceOptions& options,
                          const OutputFolder& folder) {
  return reproduce_toy("fig5",
                       {toy_net("standard", "gelu"), toy_net("ln_every", "gelu"),
                        toy_net("standard", "silu"), toy_net("ln_every", "silu")},
                       context, options, folder);
}

}  // namespace keel
