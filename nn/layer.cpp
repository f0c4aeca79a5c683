#include "layer.h"

#include "activation_layer.h"
#include "dense_layer.h"
#include "norm_layers.h"

namespace keel {

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, const DenseInit& init) {
  switch (spec.kind) {
    case LayerKind::dense:
      return std::make_unique<DenseLayer>(spec.width, init);
    case LayerKind::layernorm:
      return std::make_unique<LayerNormLayer>(spec.affine, spec.eps);
    case LayerKind::rmsnorm:
      return std::make_unique<RmsNormLayer>(spec.affine, spec.eps);
    case LayerKind::batchnorm:
      return std::make_unique<BatchNormLayer>(spec.affine, spec.eps);
    case LayerKind::residual:
    case LayerKind::add:
      fail("layer", "got {}, wanted what computes: a net keeps values and adds them by itself",
           name_of(spec.kind));
    default:
      return std::make_unique<ActivationLayer>(spec);
  }
}

}  // namespace keel
