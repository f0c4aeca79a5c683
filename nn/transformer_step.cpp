#include "transformer_step.h"

#include "../kernels/mse.h"

namespace keel {
namespace {

Tensor values_like(const Transformer& net, Shape shape) {
  return Tensor::zeros(shape, net.flat().dtype(), net.flat().device());
}

Tensor sequences_for(const Transformer& net, std::int64_t sequences) {
  check(sequences >= 1, "transformer", "got steps of {} sequences, wanted at least 1", sequences);
  const std::int64_t length = net.options().length;
  return values_like(
      net, net.members() > 1 ? Shape{net.members(), sequences, length} : Shape{sequences, length});
}

}  // namespace

TransformerStep::TransformerStep(Transformer& net, std::int64_t sequences,
                                 const OptimiserOptions& optimiser)
    : net_(net),
      x_(sequences_for(net, sequences)),
      y_(sequences_for(net, sequences)),
      gradients_(values_like(net, net.flat().shape())),
      loss_(values_like(net, net.members() > 1 ? Shape{net.members()} : Shape{})),
      optimiser_(optimiser, net.flat()),
      step_(net.flat().device(), [this] { differentiate_and_update(); }) {
  const std::vector<Var> leaves = net.leaves(tape_);
  for (std::size_t p = 0; p < leaves.size(); ++p)
    sink_.bind(leaves[p], net.layout().view(gradients_, p));
}

void TransformerStep::run(const Tensor& x, const Tensor& y) {
  const auto take = [&](const char* name, const Tensor& from, const Tensor& into) {
    check<ShapeError>(from.shape() == into.shape(), "transformer", "got {} {}, wanted {}", name,
                      from.shape(), into.shape());
    copy(into, from);
  };
  take("x", x, x_);
  take("y", y, y_);
  step_.run();
}

void TransformerStep::differentiate_and_update() {
  tape_.clear();
  const Var loss = mse(net_.forward(x_, net_.leaves(tape_)), y_);
  tape_.backward(loss, sink_);
  optimiser_.step(gradients_);
  copy(loss_, loss.value());
}

}  // namespace keel
