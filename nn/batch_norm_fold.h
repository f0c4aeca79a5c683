// Batch Norm as it is in evaluation, folded into the layer before it or behind: what frozen() and
// load_weights() share.
#pragma once

#include <cstdint>
#include <vector>

#include "net.h"

namespace keel {

/// Where a batchnorm of a SPEC goes.
struct BatchNormFold {
  std::size_t layer;  ///< the batchnorm, of the SPEC
  std::size_t into;   ///< the layer that takes it in, of without_batch_norms(SPEC)
  bool behind;        ///< the batchnorm stands behind that layer, whose outputs it maps; else ahead
};

/// All of them, in an order in which each may be folded after those before. A batchnorm goes into
/// the dense layer, or the layernorm with gain and bias, before it, else into the dense layer
/// behind. Throws keel::Error where it has neither.
std::vector<BatchNormFold> batch_norm_folds(const Spec& spec);

/// What it does to each unit: gain (x - mean) + bias. More digits than a net's double has: of what
/// cancels in a sum, it is to be known how much is left.
struct UnitMap {
  std::vector<long double> gain, mean, bias;
};

/// torch.nn.BatchNorm1d's, in evaluation: gain / sqrt(variance + eps) (x - mean) + bias. Where
/// `gain` and `bias` are empty, 1 and 0. Variances must be at least -eps; where one is, and PyTorch
/// has a NaN, there is the bias alone, as in batch_norm().
UnitMap batch_norm_map(const std::vector<double>& mean, const std::vector<double>& variance,
                       double eps, const std::vector<double>& gain,
                       const std::vector<double>& bias);

/// Units that `fold` maps.
std::int64_t units_of(const Net& net, const BatchNormFold& fold);

/// Folds `map` into the parameters of `member` in `flat`, on the CPU, laid out as `net`'s. Throws
/// keel::Error where the bias there has no effect, as in some NTK parameterisation, and where a
/// number is not finite any more.
void fold_into(const Net& net, const Tensor& flat, std::int64_t member, const BatchNormFold& fold,
               const UnitMap& map);

}  // namespace keel
