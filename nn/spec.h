// The SPEC text of a net: "dense(128) layernorm relu dense(128) relu dense(1)".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel {

/// residual(...) is two of them: where the words within it begin, and where what they make is added
/// to what they were given.
enum class LayerKind {
  dense,
  relu,
  leakyrelu,
  prelu,
  gelu,
  silu,
  tanh,
  sigmoid,
  softplus,
  elu,
  selu,
  layernorm,
  rmsnorm,
  batchnorm,
  residual,
  add
};

/// The word of a SPEC, without options: "layernorm".
const char* name_of(LayerKind kind);

/// residual or add: no layer, but where values are kept, and added again.
bool joins(LayerKind kind);

/// layernorm or rmsnorm: each sample's units over their deviation, or over their root mean square.
bool normalises_rows(LayerKind kind);

/// tanh or sigmoid: all of its values are between two numbers.
bool bounds_units(LayerKind kind);

/// A norm of rows, tanh or sigmoid: what is behind it is bounded, whatever stands before.
bool bounds_rows(LayerKind kind);

/// What a norm adds where its word does not say: what PyTorch's of float32 does.
double default_eps(LayerKind kind);

/// The slope below 0 of leakyrelu, or what a prelu's begins with, where the word does not say:
/// PyTorch's.
double default_slope(LayerKind kind);

/// One word of a SPEC. Fields that its kind does not have keep their defaults.
struct LayerSpec {
  LayerKind kind = LayerKind::relu;
  std::int64_t width = 0;       ///< dense: outputs
  bool affine = true;           ///< of a norm: with gain and bias; rmsnorm: with gain
  double eps = 1e-5;            ///< of a norm: added to variance, or mean square; see default_eps
  double slope = 0.01;          ///< leakyrelu, prelu: from 0 to 1; see default_slope
  bool per_unit = false;        ///< prelu: a slope of its own for each unit
  double alpha = 1;             ///< elu: what it goes on to below 0 is -alpha; from 0 to 100
  double beta = 1;              ///< silu: x / (1 + exp(-beta x)); from 0.01 to 100
  bool by_tanh = false;         ///< gelu: the form by tanh (kernels/gelu.h)
  std::int64_t identities = 0;  ///< words `identity` ahead of it; add: of the end
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

using Spec = std::vector<LayerSpec>;

bool has_residual(const Spec& spec);

/// Words dense(width), relu, leakyrelu or leakyrelu(slope=value), prelu or prelu(slope=value,
/// per_unit=0|1), gelu or gelu(tanh=0|1), silu or silu(beta=value), tanh, sigmoid, softplus, elu or
/// elu(alpha=value), selu, layernorm or layernorm(affine=0|1, eps=value), rmsnorm and batchnorm
/// with the same options, and residual(words), x + words(x), separated by blanks; the first, but
/// for batchnorms, and the last are dense. A prelu's slope is what training begins with. A word
/// `identity` does nothing, and only counts where layers are numbered: it stands for a Dropout or
/// Flatten of PyTorch's. Throws keel::Error that quotes the wrong word, and what check_residuals()
/// throws.
Spec parse_spec(std::string_view text);

/// As parse_spec(), of the end of a larger net: any word but a residual may be the first, and takes
/// as many units as the first dense layer.
Spec parse_tail(std::string_view text);

/// Throws keel::Error unless every residual stands behind a dense layer, has an end and none within
/// it, and gives as many units as it takes.
void check_residuals(const Spec& spec);

/// The place of a layer in the SPEC's text, counted from 1; an add's is that of the last word
/// before it.
std::int64_t word_of(const Spec& spec, std::size_t layer);

/// What a torch.nn.Sequential calls the layer: its place, from 0, or within a residual that of the
/// residual and its own there, "2.0".
std::string number_of(const Spec& spec, std::size_t layer);

/// With a word `identity` for every batchnorm: the net whose weights take them in
/// (batch_norm_fold.h).
Spec without_batch_norms(const Spec& spec);

/// The shortest text that parses to `spec`.
std::string spec_text(const Spec& spec);

}  // namespace keel
