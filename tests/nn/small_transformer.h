// A small transformer, its derivatives, and how far apart results are.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../../core/max_or_nan.h"
#include "../../core/random.h"
#include "../../kernels/gradient_sink.h"
#include "../../kernels/mse.h"
#include "../../nn/transformer.h"

namespace keel::test {

inline TransformerOptions small(const TransformerNorms& norms = {}, DType dtype = DType::f64) {
  TransformerOptions options;
  options.length = 4;
  options.width = 6;
  options.heads = 3;
  options.hidden = 5;
  options.norms = norms;
  options.dtype = dtype;
  return options;
}

inline double difference(const std::vector<double>& got, const std::vector<double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = max_or_nan(worst, std::abs(got[i] - wanted[i]) / std::max(1.0, std::abs(wanted[i])));
  return worst;
}

// The loss and all derivatives.
inline std::vector<Tensor> gradients_of(const Transformer& net, const Tensor& x, const Tensor& y) {
  Tape tape;
  const std::vector<Var> leaves = net.leaves(tape);
  const Var loss = mse(net.forward(x, leaves), y);
  GradientSink sink;
  tape.backward(loss, sink);
  std::vector<Tensor> results = {loss.value()};
  for (const Var& leaf : leaves) results.push_back(sink[leaf]);
  return results;
}

}  // namespace keel::test
