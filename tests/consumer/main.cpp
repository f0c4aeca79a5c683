// The README's examples, built by somebody else against the installed tree.
#include <keel/keel.h>

#include <cmath>
#include <cstdio>
#include <memory>

int main() {
  const keel::Tensor x = keel::normal({10, 1}, {.seed = 1, .stream = 1});
  const keel::Tensor y = keel::normal({10, 1}, {.seed = 1, .stream = 4});
  keel::Net net("dense(128) layernorm relu dense(1)", 1);
  keel::train(net, x, y, {.epochs = 50});
  const keel::Interval range = keel::bound_net(net).outputs[0];
  keel::save_weights(net, "w.safetensors");
  for (float f : net.predict(x).to_vector<float>())
    if (!(range.low <= f && f <= range.high)) return 1;
  std::printf("the trained net is in [%g, %g]\n", range.low, range.high);

  keel::Tape tape;
  keel::Var w = tape.leaf(keel::normal({128, 1}, {.seed = 1, .stream = 0}));
  keel::Var b = tape.leaf(keel::Tensor::zeros({128}));
  keel::Var h = keel::layer_norm_relu(keel::dense(x, w, b));
  keel::GradientSink gradients;
  tape.backward(keel::mean(h), gradients);
  std::printf("keel %s: d_w %s\n", keel::version(), gradients[w].shape().str().c_str());
  if (gradients[w].shape() != w.shape()) return 1;

  const keel::Tensor seen = keel::normal({8, 5}, {.seed = 2, .stream = 1});
  const keel::Tensor next = keel::normal({8, 5}, {.seed = 2, .stream = 2});
  keel::Transformer transformer({.length = 5, .width = 8, .hidden = 16, .seeds = {1}});
  keel::TransformerStep step(transformer, 8);
  for (int i = 0; i < 20; ++i) step.run(seen, next);
  keel::Interval all = keel::bound_transformer(transformer);
  keel::save_transformer(transformer, "t.safetensors");
  for (float f : transformer.predict(seen).to_vector<float>())
    if (!(all.low <= f && f <= all.high)) return 1;
  std::printf("the transformer is in [%g, %g]\n", all.low, all.high);

  const keel::Tensor inputs = keel::normal({10, 3}, {.seed = 1, .stream = 2}, 1, keel::DType::f64);
  const keel::Tensor targets = keel::normal({10, 1}, {.seed = 1, .stream = 3}, 1, keel::DType::f64);
  auto theta = std::make_shared<keel::InfiniteKernel>("dense(128) layernorm relu dense(1)", 3);
  keel::Regression fit(theta, inputs, targets, {.ridge = {.relative = 1e-2}});
  const double bound = keel::certify(fit, theta->supremum().value).bound;
  for (double f : fit.predict(inputs).to_vector<double>())
    if (!(std::abs(f) <= bound)) return 1;
  std::printf("|f| is at most %g\n", bound);
  return 0;
}
