// The umbrella header, included first and alone, must bring all it needs.
#include "../../keel.h"

#include <doctest/doctest.h>

TEST_CASE("keel.h alone is enough to train a parameter") {
  const keel::Tensor target = keel::Tensor::full({4, 1}, 3);
  const keel::Tensor weight = keel::Tensor::full({1, 1}, 0);
  const keel::Tensor x = keel::Tensor::full({4, 1}, 1), bias = keel::Tensor::zeros({1});
  keel::AdamState state(weight);
  keel::Tape tape;
  keel::GradientSink gradients;
  for (int step = 0; step < 300; ++step) {
    tape.clear();
    const keel::Var w = tape.leaf(weight);
    tape.backward(keel::mse(keel::dense(x, w, bias), target), gradients);
    keel::adam(weight, gradients[w], state, {.lr = 0.1});
  }
  CHECK(weight.item() == doctest::Approx(3).epsilon(1e-3));
}
