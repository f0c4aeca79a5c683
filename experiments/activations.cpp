// Figure 1 with leaky ReLU, which is as homogeneous as ReLU, and tanh, which is bounded by itself.
#include "toy_report.h"

namespace keel {

Reproduced reproduce_activations(const Context& context, const ReproduceOptions& options,
                                 const OutputFolder& folder) {
  return reproduce_toy("activations",
                       {toy_net("standard", "leakyrelu"), toy_net("ln_every", "leakyrelu"),
                        toy_net("standard", "tanh"), toy_net("ln_every", "tanh")},
                       context, options, folder);
}

}  // namespace keel
