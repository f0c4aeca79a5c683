#include "reproduce.h"

namespace keel {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      {"fig1", "ReLU nets on three toy data sets, with and without Layer Norm", true, true,
       reproduce_fig1},
      {"fig5", "the same with GELU and SiLU", true, true, reproduce_fig5},
  };
  return all;
}

}  // namespace keel
