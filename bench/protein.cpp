// One full-batch epoch of the protein experiment: 40,132 rows of 9 features, LN every, 2 x 128; in
// blocks of rows that stay in cache, op by op over all rows, and in PyTorch.
#include <cmath>

#include "../core/max_or_nan.h"
#include "../core/random.h"
#include "../keel.h"
#include "bench.h"
#include "epochs.h"
#include "peer.h"
#include "sizes.h"

namespace keel::bench {
namespace {

constexpr const char* kSpec = "dense(128) layernorm relu dense(128) layernorm relu dense(1)";

// sin x0 + x1 / 2, as bench/peers/protein_epoch.py has it.
Tensor protein_targets(const Tensor& x) {
  const std::vector<float> values = x.to_vector<float>();
  std::vector<float> y;
  for (std::int64_t i = 0; i < x.size(0); ++i)
    y.push_back(std::sin(values[i * kFeatures]) + values[i * kFeatures + 1] / 2);
  return Tensor::from(y, {x.size(0), 1});
}

// The gradient of the mean squared error, each op over all rows.
void differentiate(const Net& net, const Tensor& x, const Tensor& y, const Tensor& gradients) {
  Tape tape;
  GradientSink sink;
  const std::vector<Var> leaves = net.leaves(tape);
  for (std::size_t p = 0; p < leaves.size(); ++p)
    sink.bind(leaves[p], net.layout().view(gradients, p));
  tape.backward(mse(net.forward(x, leaves), y), sink);
}

// How far b is from a, by their largest elements.
double difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> u = a.to_vector<double>(), v = b.to_vector<double>();
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    largest = std::max(largest, std::abs(u[i]));
    apart = max_or_nan(apart, std::abs(u[i] - v[i]));
  }
  return apart / largest;
}

}  // namespace

void bench_protein(Report& report, Device device, const Options& options) {
  const std::int64_t rows = options.size(40132, 300);
  const Tensor host = normal({rows, kFeatures}, {1, 0});
  const Tensor x = host.to(device), y = protein_targets(host).to(device);
  const double weights = kFeatures * kWidth + kWidth * kWidth + kWidth;
  const double flop =  // no d_x of the first layer
      2.0 * static_cast<double>(rows) * (3 * weights - kFeatures * kWidth);
  if (device.is_cpu()) {
    Net net(kSpec, kFeatures);
    const Tensor whole = Tensor::zeros(net.flat().shape()), blocks = whole.clone();
    differentiate(net, x, y, whole);
    BlockedGradient(net, blocks).run(x, y);
    const double apart = difference(whole, blocks);
    check(apart < 1e-4, "bench", "gradients in blocks differ by {}, wanted less than 1e-4", apart);
    AdamState state(net.flat());
    const Timing timing = measure(device, [&] {
      differentiate(net, x, y, whole);
      adam(net.flat(), whole, state);
    });
    report.add({"protein epoch, LN every, op by op", timing, 0, flop});
  }
  const char* row = "protein epoch, LN every, as trained";
  report.add({row,
              measure_epochs(kSpec, x, y, options.size(device.is_cuda() ? 500 : 10, 2),
                             options.size(5, 1)),
              0, flop});
  report.later([&report, device, row] {
    add_training_peer(report, row, "PyTorch", device, "protein_epoch.py", "");
  });
}

}  // namespace keel::bench
