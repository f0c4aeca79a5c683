// What an error of an inner product does to a kernel of infinite width, beside what is said of it.
#include "../../ntk/kernel_rounding.h"

#include <doctest/doctest.h>

#include "../../kernels/kernel_pairs.h"
#include "../../ntk/kernel_maps.h"

namespace keel {
namespace {

// Theta of two inputs of the same r, whose cosine is 1 - off.
double theta_at(const KernelMaps& maps, const Tensor& table, double r, double off) {
  const Tensor into = Tensor::zeros({1, 1}, DType::f64);
  KernelTile tile;
  tile.table_a = tile.table_b = table;
  tile.inner = Tensor::full({1, 1}, r * (1 - off), DType::f64);
  tile.work = Tensor::empty({maps.work_tiles(), 1, 1}, DType::f64);
  kernel_pairs(maps, tile, into, 0, 0);
  return into.item();
}

TEST_CASE("kernel_rounding: a cosine that is off moves Theta by no more than it says") {
  for (const char* spec :
       {"dense(8) relu dense(8) relu dense(1)",
        "dense(8) prelu(slope=0, per_unit=1) dense(8) prelu(per_unit=1) layernorm dense(1)",
        "dense(8) silu layernorm dense(8) gelu dense(1)",
        "dense(8) silu(beta=0.3) dense(8) layernorm silu(beta=20) dense(1)",
        "dense(8) elu dense(8) elu dense(1)", "dense(8) elu(alpha=100) layernorm dense(1)",
        "dense(8) elu(alpha=0.3) layernorm dense(8) layernorm elu(alpha=5) dense(1)",
        "dense(8) selu dense(8) layernorm selu layernorm dense(1)",
        "dense(8) gelu(tanh=1) layernorm dense(8) layernorm gelu(tanh=1) dense(1)",
        "dense(8) tanh dense(8) layernorm tanh dense(1)", "dense(8) sigmoid dense(1)",
        "dense(8) softplus dense(1)", "dense(8) softplus dense(8) softplus dense(1)",
        "dense(8) sigmoid layernorm dense(8) sigmoid layernorm dense(1)",
        "dense(8) softplus layernorm dense(8) softplus layernorm dense(1)",
        "dense(8) layernorm softplus rmsnorm dense(8) layernorm sigmoid dense(1)",
        "dense(8) softplus residual(dense(8) layernorm) layernorm dense(8) softplus dense(1)"})
    for (double b : {0.0, 0.01})
      for (double r : {1e-8, 1e-3, 1.0, 30.0, 1e6})
        for (double off : {1e-5, 1e-8, 1e-12}) {
          CAPTURE(spec);
          CAPTURE(b);
          CAPTURE(r);
          CAPTURE(off);
          InfiniteKernelOptions options;
          options.sigma_b2 = b;
          const std::vector<KernelMap> list = kernel_maps(parse_spec(spec), 4, options);
          const KernelMaps maps(list);
          const Tensor table = kernel_table(maps, Tensor::full({1}, r, DType::f64));
          const double same = theta_at(maps, table, r, 0), moved = theta_at(maps, table, r, off);
          const double said = kernel_rounding(list, table, off);
          CHECK(std::abs(same - moved) <= said * same);
        }
}

}  // namespace
}  // namespace keel
