#include "reproduce.h"

namespace keel {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      {"fig1", "ReLU nets on three toy data sets, with and without Layer Norm", true, false, true,
       "fig1", reproduce_fig1},
      {"fig2", "kernels of the four nets at initialisation and at infinite width", true, false,
       false, "fig2", reproduce_fig2},
      {"fig5", "the same with GELU and SiLU", true, false, true, "fig5", reproduce_fig5},
      {"fig6", "the first with Batch Norm in place of Layer Norm", true, false, true, "fig6",
       reproduce_fig6},
      {"fig7", "a transformer with and without Layer Norm, on sequences", true, false, true, "fig7",
       reproduce_fig7},
      {"activations", "the first with leaky ReLU, tanh and SELU: beyond the paper", true, false,
       true, "activations", reproduce_activations},
      {"distance", "how far nets can go by how far x is, proved and found: beyond the paper", true,
       false, true, "distance", reproduce_distance},
      {"prenorm", "the transformer with norms within its blocks: beyond the paper", true, false,
       true, "prenorm", reproduce_prenorm},
      {"residual", "the first with residual connections: beyond the paper", true, false, true,
       "residual", reproduce_residual},
      {"rmsnorm", "the first with RMSNorm in place of Layer Norm: beyond the paper", true, false,
       true, "rmsnorm", reproduce_rmsnorm},
      {"table1", "the protein data: in and out of distribution (needs --data)", false, true, true,
       "fig3", reproduce_table1},
      {"theory", "the paper's statements, each checked with numbers", true, false, false, "theory",
       reproduce_theory},
      {"uci", "small regression sets: kernels, nets and trees (needs --data)", false, true, true,
       nullptr, reproduce_uci},
  };
  return all;
}

}  // namespace keel
