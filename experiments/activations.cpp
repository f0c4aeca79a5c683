// Figure 1 with leaky ReLU, which is as homogeneous as ReLU, with tanh, which is bounded by itself,
// and with SELU, which keeps values of ordinary inputs ordinary.
#include "toy_report.h"

namespace keel {

Reproduced reproduce_activations(const Context& context, const ReproduceOptions& options,
                                 const OutputFolder& folder) {
  return reproduce_toy("activations",
                       {toy_net("standard", "leakyrelu"), toy_net("ln_every", "leakyrelu"),
                        toy_net("standard", "tanh"), toy_net("ln_every", "tanh"),
                        toy_net("standard", "selu"), toy_net("ln_every", "selu")},
                       context, options, folder);
}

}  // namespace keel
