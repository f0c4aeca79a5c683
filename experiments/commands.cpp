#include "command.h"

namespace keel {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"info", "show devices, memory, versions and backends", declare_info},
      {"reproduce", "reproduce a figure or table of the paper", declare_reproduce},
      {"train", "train a net, or an ensemble, on a table", declare_train},
      {"predict", "what saved weights say of a table, or of arrays", declare_predict},
      {"forecast", "continue a series by transformers, and bound every prediction",
       declare_forecast},
      {"ntk", "write the neural tangent kernel of a net at given inputs", declare_ntk},
      {"regress", "kernel regression: what infinitely wide nets converge to", declare_regress},
      {"certify",
       "bound every prediction of a kernel regression, or of a trained net, and try to break the "
       "bound",
       declare_certify},
  };
  return all;
}

}  // namespace keel
