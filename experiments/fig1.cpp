// Figure 1: ReLU nets extrapolate linearly; one Layer Norm anywhere makes them saturate.
#include "toy_report.h"

namespace keel {

Reproduced reproduce_fig1(const Context& context, const ReproduceOptions& options,
                          const OutputFolder& folder) {
  return reproduce_toy("fig1",
                       {toy_net("standard", "relu"), toy_net("ln_first", "relu"),
                        toy_net("ln_second", "relu"), toy_net("ln_every", "relu")},
                       context, options, folder);
}

}  // namespace keel
