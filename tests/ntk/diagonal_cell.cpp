// What a range of |x|^2 / n0 encloses of a kernel's diagonal, map by map: a supremum is proved by
// nothing else, and one that is found anyway does not show that an enclosure is too narrow.
#include "../../ntk/diagonal_cell.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../../core/random.h"
#include "../../ntk/interval.h"
#include "../../ntk/kernel_maps.h"
#include "../sanitized.h"

namespace keel {
namespace {

const std::string kEnclosedNets[] = {
    "dense(8) relu dense(8) leakyrelu(slope=0.2) dense(1)",
    "dense(8) layernorm relu dense(8) layernorm(eps=0.5) leakyrelu dense(1)",
    "dense(8) relu layernorm dense(8) relu rmsnorm layernorm(affine=0) dense(1)",
    "dense(8) prelu(per_unit=1) layernorm dense(8) prelu(slope=0, per_unit=1) dense(1)",
    "dense(8) layernorm prelu(per_unit=1) dense(8) prelu(slope=1, per_unit=1) layernorm dense(1)",
    "dense(8) gelu dense(8) layernorm gelu layernorm dense(1)",
    "dense(8) layernorm silu rmsnorm dense(8) silu layernorm dense(1)",
    "dense(8) silu(beta=0.3) dense(8) layernorm silu(beta=20) layernorm dense(1)",
    "dense(8) tanh dense(8) layernorm tanh rmsnorm dense(8) tanh layernorm dense(1)",
    "dense(8) sigmoid layernorm dense(8) layernorm sigmoid dense(1)",
    "dense(8) softplus layernorm dense(8) layernorm softplus rmsnorm dense(1)",
    "dense(8) residual(relu dense(8)) residual(layernorm gelu dense(8)) layernorm dense(1)",
    "dense(8) softplus residual(dense(8) softplus dense(8)) layernorm dense(1)",
    "dense(8) elu dense(8) layernorm elu(alpha=0.5) layernorm dense(1)",
    "dense(8) layernorm elu(alpha=30) rmsnorm dense(8) elu(alpha=0) layernorm dense(1)",
    "dense(8) elu(alpha=20) layernorm(affine=0) dense(8) elu(alpha=100) layernorm(eps=90) dense(1)",
    "dense(8) selu layernorm dense(8) layernorm selu dense(1)",
    "dense(8) gelu(tanh=1) dense(8) layernorm gelu(tanh=1) layernorm dense(1)",
    "dense(8) relu residual(dense(8) layernorm) rmsnorm layernorm dense(1)",
    "dense(8) rmsnorm(eps=1) residual(dense(8) layernorm(eps=1e15)) rmsnorm dense(1)",
    "dense(8) layernorm residual(dense(8) prelu(per_unit=1) dense(8)) layernorm dense(1)",
};

// But for rounding, which is not enclosed; beside `unit`, where terms that size cancel.
bool holds(const Enclosure& of, double value, double unit = 0) {
  constexpr double kRounded = 1e-9;
  return of.lo * (1 - kRounded) - kRounded * unit <= value &&
         value <= of.hi * (1 + kRounded) + kRounded * unit;
}

void check_cell(const std::vector<KernelMap>& maps, double lo, double hi) {
  constexpr int kPoints = 9;
  // E[phi] of a sum of Gaussians may be 0 at some variance, as selu's is at 1.
  const bool cancels = std::any_of(maps.begin(), maps.end(), [](const KernelMap& map) {
    return map.kind == KernelMap::Kind::gaussians;
  });
  for (int i = 0; i < kPoints; ++i) {
    const double r = std::min(hi, lo * std::pow(hi / lo, i / (kPoints - 1.0)));
    DiagonalCell cell, kept;
    cell.k = {lo, hi};
    Diagonal at{r, 0, 0};
    for (std::size_t step = 0; step < maps.size(); ++step) {
      CAPTURE(r);
      CAPTURE(step);
      through(maps[step], cell, kept);
      follow(maps[step], at, [](int, double) {});
      CHECK(holds(cell.k, at.k));
      CHECK(holds(cell.theta, at.theta));
      if (at.k > 0) CHECK(holds(cell.ratio, at.theta / at.k));
      if (at.k > 0) CHECK(holds(cell.mean, at.mean * at.mean / at.k, cancels ? 1 : 0));
    }
  }
}

TEST_CASE("diagonal_cell: whatever lies in a cell is in what it encloses, behind every map") {
  std::uint64_t seed = 0;
  for (const std::string& net : kEnclosedNets)
    for (double b : {0.0, 0.01, 1.0})
      for (auto parameterisation : {Parameterisation::ntk, Parameterisation::standard}) {
        CAPTURE(net);
        CAPTURE(b);
        CAPTURE(static_cast<int>(parameterisation));
        InfiniteKernelOptions options;
        options.sigma_b2 = b;
        options.parameterisation = parameterisation;
        const std::vector<KernelMap> maps = kernel_maps(parse_spec(net), 4, options);
        // Of less, rounding leaves no more than digits of what varies beside a sigmoid's mean.
        const bool offset = std::any_of(maps.begin(), maps.end(),
                                        [](const KernelMap& map) { return map.offset(); });
        const double least = offset && b == 0 ? -5 : -20;
        const std::vector<double> draws =
            uniform({test::kSanitized ? 20 : 200, 2}, {++seed, 0}, DType::f64).to_vector<double>();
        for (std::size_t i = 0; i < draws.size(); i += 2) {
          const double lo = std::exp(least + (20 - least) * draws[i]);
          const double width = std::pow(10, 8 * draws[i + 1] - 7);  // of log r: 1e-7 to 10
          CAPTURE(lo);
          CAPTURE(width);
          check_cell(maps, lo, lo * std::exp(width));
        }
      }
}

}  // namespace
}  // namespace keel
