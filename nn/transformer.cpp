#include "transformer.h"

#include <cmath>

#include "../kernels/add_bias.h"
#include "../kernels/arithmetic.h"
#include "../kernels/attention.h"
#include "../kernels/dense.h"
#include "../kernels/layer_norm.h"
#include "../kernels/relu.h"
#include "../kernels/reshape.h"

namespace keel {
namespace {

void check_options(const TransformerOptions& options) {
  const auto at_least_1 = [](const char* name, std::int64_t size) {
    check<ShapeError>(size >= 1, "transformer", "got {} {}, wanted at least 1", name, size);
  };
  at_least_1("length", options.length);
  at_least_1("width", options.width);
  at_least_1("heads", options.heads);
  at_least_1("hidden", options.hidden);
  at_least_1("blocks", options.blocks);
  check<ShapeError>(options.length <= kLongestSequence, "transformer",
                    "got length {}, wanted at most {}", options.length, kLongestSequence);
  check<ShapeError>(options.width % options.heads == 0, "transformer",
                    "got width {} and {} heads, wanted a multiple of the heads", options.width,
                    options.heads);
  check<ShapeError>(options.width / options.heads <= kLongestSequence, "transformer",
                    "got width {} and {} heads, wanted heads at most {} wide", options.width,
                    options.heads, kLongestSequence);
  check(!options.seeds.empty(), "transformer", "got no seeds, wanted one a member");
}

/// Hands out parameters in layout order.
class Reader {
 public:
  Reader(std::span<const Var> parameters, const TransformerNorms& norms)
      : parameters_(parameters), norms_(norms) {}
  const Var& next() { return parameters_[at_++]; }
  Var dense(const Var& x) {
    const Var &weight = next(), &bias = next();
    return keel::dense(x, weight, bias);
  }
  // x itself where there is no such norm.
  Var norm(bool there, const Var& x) {
    if (!there) return x;
    const Var& gain = next();
    return norms_.centred ? layer_norm(x, gain, next()) : rms_norm(x, gain);
  }

 private:
  std::span<const Var> parameters_;
  const TransformerNorms& norms_;
  std::size_t at_ = 0;
};

}  // namespace

ParameterLayout Transformer::layout_of(const TransformerOptions& options) {
  check_options(options);
  ParameterLayout layout(static_cast<std::int64_t>(options.seeds.size()));
  const std::int64_t width = options.width, hidden = options.hidden;
  std::int64_t layer = 0;
  const auto add = [&](const char* name, Shape shape, double mean, double stddev) {
    layout.push_back(layer, {name, shape, mean, stddev});
  };
  const auto add_dense = [&](std::int64_t in, std::int64_t out, double gain = 1) {
    add("weight", {out, in}, 0, std::sqrt(gain / static_cast<double>(in)));
    add("bias", {out}, 0, 0.1);
    ++layer;
  };
  add_dense(1, width);
  // As large as what the embedding makes of a value of size 1.
  add("places", {options.length * width}, 0, 1);
  ++layer;
  const auto add_norm = [&](bool there) {
    if (!there) return;
    add("weight", {width}, 1, 0);
    if (options.norms.centred) add("bias", {width}, 0, 0);
    ++layer;
  };
  add_norm(options.norms.embedding);
  for (std::int64_t block = 0; block < options.blocks; ++block) {
    add_norm(options.norms.blocks);
    add_dense(width, 3 * width);  // queries, keys and values
    add_dense(width, width);
    add_norm(options.norms.blocks);
    add_dense(width, hidden);
    add_dense(hidden, width, 2);
  }
  add_norm(options.norms.last);
  add_dense(width, 1);
  return layout;
}

Transformer::Transformer(Undrawn, TransformerOptions options)
    : options_(std::move(options)),
      layout_(layout_of(options_)),
      flat_(Tensor::zeros({layout_.elements()}, options_.dtype, options_.device)) {}

Transformer::Transformer(TransformerOptions options) : Transformer(Undrawn(), std::move(options)) {
  copy(flat_, initial_values(layout_, options_.seeds, flat_.dtype()));
}

Transformer Transformer::zeros(TransformerOptions options) {
  return Transformer(Undrawn(), std::move(options));
}

std::vector<Var> Transformer::leaves(Tape& tape) const {
  std::vector<Var> leaves;
  for (std::size_t p = 0; p < layout_.entries().size(); ++p)
    leaves.push_back(tape.leaf(layout_.view(flat_, p)));
  return leaves;
}

Var Transformer::forward(const Var& x, std::span<const Var> parameters) const {
  const Tensor& value = x.value();
  const std::int64_t length = options_.length, width = options_.width;
  check_same_kind("transformer", "x", value, "the transformer", flat_);
  const int rank = members() > 1 ? 3 : 2;
  check<ShapeError>(
      value.rank() == rank && value.size(-1) == length && (rank == 2 || value.size(0) == members()),
      "transformer", "got x {}, wanted {}[n, {}]", value.shape(),
      rank == 2 ? "" : fmt::format("{} members of ", members()), length);
  check<ShapeError>(parameters.size() == layout_.entries().size(), "transformer",
                    "got {} parameters, wanted {}", parameters.size(), layout_.entries().size());
  const std::int64_t n = value.size(-2);
  const auto shaped = [&](std::int64_t rows, std::int64_t cols) {
    return rank == 3 ? Shape{members(), rows, cols} : Shape{rows, cols};
  };

  const TransformerNorms& norms = options_.norms;
  Reader reader(parameters, norms);
  // A row of the net is a place of a sequence; of what is added to the places, a sequence.
  Var h = reader.dense(reshape(x, shaped(n * length, 1)));
  h = add_bias(reshape(h, shaped(n, length * width)), reader.next());
  h = reader.norm(norms.embedding, reshape(h, shaped(n * length, width)));
  for (std::int64_t block = 0; block < options_.blocks; ++block) {
    const Var seen = reader.dense(reader.norm(norms.blocks, h));
    h = add(h, reader.dense(attention(seen, length, options_.heads)));
    const Var hidden = reader.dense(reader.norm(norms.blocks, h));
    h = add(h, reader.dense(relu(hidden)));
  }
  return reshape(reader.dense(reader.norm(norms.last, h)), value.shape());
}

Tensor Transformer::predict(const Tensor& x) const {
  std::vector<Var> constants;
  for (std::size_t p = 0; p < layout_.entries().size(); ++p)
    constants.push_back(layout_.view(flat_, p));
  return forward(x, constants).value();
}

Transformer Transformer::clone() const { return to(options_.dtype); }

Transformer Transformer::member(std::int64_t s) const {
  check<ShapeError>(s >= 0 && s < members(), "transformer",
                    "got member {}, wanted one from 0 to {}", s, members() - 1);
  TransformerOptions options = options_;
  options.seeds = {options_.seeds[static_cast<std::size_t>(s)]};
  Transformer alone(Undrawn(), options);
  copy_member(alone.layout_, alone.flat_, 0, layout_, flat_, s);
  return alone;
}

Transformer Transformer::to(DType dtype) const {
  TransformerOptions options = options_;
  options.dtype = dtype;
  Transformer copied(Undrawn(), options);
  copy(copied.flat_, flat_);
  return copied;
}

}  // namespace keel
