// Transformer: a decoder-only transformer of sequences of numbers, made of the ops in kernels/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layout.h"
#include "transformer_norms.h"

namespace keel {

struct TransformerOptions {
  std::int64_t length = 29;  ///< values that it sees at once, 1 to kLongestSequence
  std::int64_t width = 64, heads = 4, hidden = 256, blocks = 2;
  TransformerNorms norms{};                ///< one behind the embedding
  std::vector<std::uint64_t> seeds = {0};  ///< a member each
  DType dtype = DType::f32;
  Device device{};
};

/// Of a sequence x_1, x_2, ... it predicts, at each place, the next value from those up to there:
///   h_t = w x_t + b + p_t                          (embedding; w, b and the places p are trained)
///   h = norm(h)                                    (norms.embedding)
///   h = h + dense(attention(dense(h)))             } `blocks` times, each with weights of its own;
///   h = h + dense(relu(dense(h)))                  } norms.blocks: of norm(h), added to h itself
///   h = norm(h)                                    (norms.last)
///   prediction_t = dense(h_t)
/// Vaswani et al., Attention Is All You Need (2017), without its encoder, and its norms elsewhere.
/// GPT-2's norms are .blocks and .last; those of many later language models the same of RMSNorm.
///
/// Drawn as in He et al. (2015): weights N(0, g / fan_in), g = 2 where what comes in was a ReLU,
/// else 1; biases N(0, 0.01); places N(0, 1). Moving is cheap; copying is by clone(), since tensors
/// share their elements.
class Transformer {
 public:
  /// Throws ShapeError where a size is below 1, the length or a head (width / heads) is above
  /// kLongestSequence, or heads do not divide width; keel::Error where there are no seeds.
  explicit Transformer(TransformerOptions options);

  /// All parameters 0, for whoever fills them in. Throws as the constructor does.
  static Transformer zeros(TransformerOptions options);

  /// Where the parameters of such a transformer lie, without making one. Throws as the constructor.
  static ParameterLayout layout_of(const TransformerOptions& options);

  Transformer(Transformer&&) = default;
  Transformer& operator=(Transformer&&) = default;

  const TransformerOptions& options() const { return options_; }
  std::int64_t members() const { return layout_.members(); }
  const ParameterLayout& layout() const { return layout_; }
  const Tensor& flat() const { return flat_; }  ///< all parameters, as laid out

  /// Every parameter as a leaf of `tape`, in layout order: of the embedding weight [width, 1] and
  /// bias, the places [length width]; for each block weight and bias of the layers that make
  /// queries, keys and values [3 width, width], take up what attention mixed [width, width], make
  /// hidden units [hidden, width], take those up [width, hidden]; of the last layer [1, width]. A
  /// norm's gain and, of a Layer Norm, bias [width] stand ahead of the layer that it is ahead of.
  std::vector<Var> leaves(Tape& tape) const;

  /// x [n, length], or [S, n, length] for S > 1 members -> the same shape: at t a prediction of
  /// x_{t + 1}, of x up to there: shorter sequences may be filled up with anything. Throws
  /// ShapeError or DeviceError.
  Var forward(const Var& x, std::span<const Var> parameters) const;

  /// As forward, without a tape.
  Tensor predict(const Tensor& x) const;

  Transformer clone() const;
  Transformer member(std::int64_t s) const;  ///< a copy of that member alone. Throws keel::Error
  Transformer to(DType dtype) const;         ///< a copy, its parameters in that type

 private:
  struct Undrawn {};
  Transformer(Undrawn, TransformerOptions options);

  TransformerOptions options_;
  ParameterLayout layout_;
  Tensor flat_;
};

}  // namespace keel
