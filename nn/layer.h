// Layer: what one word of a SPEC computes. Each kind has a file of its own, where its finite map
// and its infinite-width kernel map stand side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../core/tape.h"
#include "../kernels/kernel_map.h"
#include "spec.h"

namespace keel {

/// standard: z = W a + b, W ~ N(0, sigma_w2 / fan_in), b ~ N(0, sigma_b2).
/// ntk: z = sqrt(sigma_w2 / fan_in) W a + sqrt(sigma_b2) b, W and b ~ N(0, 1). Jacot, Gabriel and
/// Hongler, Neural Tangent Kernel (2018), section 3. Both give the same function at initialisation.
enum class Parameterisation { standard, ntk };

/// What weights are drawn from, either of mean 0 and of the variance that the parameterisation
/// says; biases are always normal. With sigma_w2 = 2: "Kaiming normal" and "Kaiming uniform".
enum class Distribution { normal, uniform };

/// How a dense layer is drawn and scaled. sigma_w2 = 2 is He et al. (2015), eq. 10.
struct DenseInit {
  Parameterisation parameterisation = Parameterisation::standard;
  double sigma_w2 = 2, sigma_b2 = 0.01;
  Distribution weights = Distribution::normal;
};

/// A trainable tensor of one member: `name` as in a PyTorch state_dict; drawn with this mean and
/// standard deviation, all equal where the latter is 0, and used times `scale`, which is 1 but for
/// the dense layers of the NTK parameterisation.
struct ParameterSpec {
  std::string name;
  Shape shape;
  double mean = 0, stddev = 0, scale = 1;
  Distribution distribution = Distribution::normal;
};

/// What a kernel map depends on: what the layers before it left.
struct KernelContext {
  std::int64_t word = 0;   ///< of the SPEC, counted from 1: for messages
  std::int64_t width = 0;  ///< units; the standard parameterisation's Theta depends on it
  bool gaussian = true;    ///< values are jointly normal with mean 0, as a dense layer's are
  /// Affine layer norms whose gain's share of Theta, u u' in the unit of value u, nobody has
  /// averaged over units yet.
  double gain = 0;
  /// Where a residual added values of such a gain its share is the average already: right for what
  /// averages next, no activation's.
  bool averaged = false;
  /// Values have a mean that does not vanish with their variance, as a sigmoid's or softplus's.
  bool offset = false;
};

class Layer {
 public:
  virtual ~Layer() = default;

  virtual std::int64_t output_width(std::int64_t input_width) const { return input_width; }
  virtual std::vector<ParameterSpec> parameters(std::int64_t) const { return {}; }

  /// x [n, d] or [S, n, d]; parameters in the order of parameters(d), with a leading axis S for an
  /// ensemble -> [n, output_width(d)] or [S, n, output_width(d)].
  virtual Var apply(const Var& x, std::span<const Var> parameters) const = 0;

  /// What the layer does to K and Theta where all hidden layers are infinitely wide; `context`
  /// becomes what the next layer finds. Throws keel::Error where there is no such map.
  virtual KernelMap kernel_map(KernelContext& context) const = 0;
};

/// `init` matters to dense layers only.
std::unique_ptr<Layer> make_layer(const LayerSpec& spec, const DenseInit& init);

}  // namespace keel
