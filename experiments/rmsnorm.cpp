// Figure 1 with RMSNorm in place of Layer Norm: it takes no mean away, and bounds as much.
#include "toy_report.h"

namespace keel {

Reproduced reproduce_rmsnorm(const Context& context, const ReproduceOptions& options,
                             const OutputFolder& folder) {
  return reproduce_toy("rmsnorm",
                       {toy_net("standard", "relu"), toy_net("rms_first", "relu"),
                        toy_net("rms_second", "relu"), toy_net("rms_every", "relu")},
                       context, options, folder);
}

}  // namespace keel
