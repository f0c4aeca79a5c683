#include "command.h"

namespace keel {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"info", "show devices, memory, versions and backends", declare_info},
      {"reproduce", "reproduce a figure or table of the paper", declare_reproduce},
      {"train", "train a net, or an ensemble, on a table", declare_train},
  };
  return all;
}

}  // namespace keel
