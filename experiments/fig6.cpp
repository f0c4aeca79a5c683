// Figure 6: Figure 1 with Batch Norm in place of Layer Norm, which bounds nothing.
#include "toy_report.h"

namespace keel {

Reproduced reproduce_fig6(const Context& context, const ReproduceOptions& options,
                          const OutputFolder& folder) {
  return reproduce_toy("fig6",
                       {toy_net("standard", "relu"), toy_net("bn_first", "relu"),
                        toy_net("bn_second", "relu"), toy_net("bn_every", "relu")},
                       context, options, folder);
}

}  // namespace keel
