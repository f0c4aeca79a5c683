// The README's example, built by somebody else against the installed tree.
#include <keel/keel.h>

#include <cstdio>

int main() {
  const keel::Tensor x = keel::normal({10, 1}, {.seed = 1, .stream = 1});
  keel::Tape tape;
  keel::Var w = tape.leaf(keel::normal({128, 1}, {.seed = 1, .stream = 0}));
  keel::Var b = tape.leaf(keel::Tensor::zeros({128}));
  keel::Var h = keel::layer_norm_relu(keel::dense(x, w, b));
  keel::GradientSink gradients;
  tape.backward(keel::mean(h), gradients);
  std::printf("keel %s: d_w %s\n", keel::version(), gradients[w].shape().str().c_str());
  return gradients[w].shape() == w.shape() ? 0 : 1;
}
