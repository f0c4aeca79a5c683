// Figure 1 with residual connections: a norm within them bounds nothing, one that nothing passes by
// does.
#include "toy_report.h"

namespace keel {

Reproduced reproduce_residual(const Context& context, const ReproduceOptions& options,
                              const OutputFolder& folder) {
  const std::string plain = "residual(relu dense(128)) ",
                    within = "residual(layernorm relu dense(128)) ";
  const auto net = [](const char* name, const std::string& between) {
    return ToyNet{name, "relu", "dense(128) " + between + "dense(1)"};
  };
  return reproduce_toy(
      "residual",
      {net("standard", plain + plain), net("ln_within", within + within),
       net("ln_first", "layernorm " + plain + plain), net("ln_last", plain + plain + "layernorm ")},
      context, options, folder);
}

}  // namespace keel
