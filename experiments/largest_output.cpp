#include "largest_output.h"

#include <algorithm>

#include "../core/each_in_parallel.h"
#include "../core/max_or_nan.h"
#include "../kernels/gradient_sink.h"
#include "../ntk/precise_net.h"
#include "certify_search.h"

namespace keel {
namespace {

// The largest over a row's outputs.
double largest_of(const double* outputs, std::size_t count, const OutputSize& size) {
  double largest = 0;
  for (std::size_t j = 0; j < count; ++j) largest = max_or_nan(largest, size(outputs[j], j));
  return largest;
}

}  // namespace

OutputSize size_of_outputs(const Net& net) {
  const auto outputs = static_cast<std::size_t>(net.output_width());
  return {std::vector<double>(outputs, 0.0), std::vector<double>(outputs, 1.0)};
}

// Of an interval next to nothing wide, a millionth of what is in it counts as half.
OutputSize share_of_intervals(const NetBound& bound) {
  OutputSize share;
  for (const Interval& of : bound.outputs) {
    const double middle = of.low + (of.high - of.low) / 2;
    share.middle.push_back(middle);
    share.unit.push_back(std::max({(of.high - of.low) / 2, 1e-6 * std::abs(middle), 1e-300}));
  }
  return share;
}

// Far out, double may round away the biases of rows that are equal, which is all that a Layer Norm
// sees of them, and with them leave an interval that the net keeps: twice the digits tell. In
// blocks of rows: a language model has 50,000 outputs.
RowFunction largest_output(const Net& net, const OutputSize& size, double most) {
  return [&net, &size, most](const Tensor& x) {
    constexpr std::int64_t kElements = std::int64_t{1} << 24;
    const auto outputs = static_cast<std::size_t>(net.output_width());
    const std::int64_t rows = x.size(0),
                       block = std::max<std::int64_t>(1, kElements / net.output_width());
    std::vector<double> largest;
    for (std::int64_t begin = 0; begin < rows; begin += block) {
      const Tensor some = x.slice(begin, std::min(rows, begin + block));
      const std::vector<double> all =
          net.predict(some.to(net.options().device)).to_vector<double>();
      for (std::size_t i = 0; i < all.size(); i += outputs)
        largest.push_back(largest_of(&all[i], outputs, size));
    }
    each_in_parallel(largest.size(), [&](std::size_t i) {
      if (!(largest[i] > kKept * most)) return;
      const auto row = static_cast<std::int64_t>(i);
      const std::vector<double> again =
          evaluate_precisely(net, x.slice(row, row + 1).to_vector<double>());
      largest[i] = largest_of(again.data(), outputs, size);
    });
    return largest;
  };
}

RowGradient gradient_of_largest(const Net& net, const OutputSize& size) {
  return [&net, &size](const Tensor& x) {
    Tape tape;
    const Var input = tape.leaf(x.to(net.options().device));
    std::vector<Var> constants;
    for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
      constants.emplace_back(net.layout().view(net.flat(), p));
    const Var output = net.forward(input, constants);
    const std::vector<double> all = output.value().to_vector<double>();
    const auto outputs = static_cast<std::size_t>(net.output_width());
    std::vector<double> d_output(all.size(), 0.0);
    for (std::size_t i = 0; i < all.size(); i += outputs) {
      std::size_t largest = 0;
      for (std::size_t j = 1; j < outputs; ++j)
        if (size(all[i + j], j) > size(all[i + largest], largest)) largest = j;
      d_output[i + largest] =
          (all[i + largest] < size.middle[largest] ? -1 : 1) / size.unit[largest];
    }
    GradientSink gradients;
    tape.backward(output, Tensor::from(d_output, output.shape(), net.options().device), gradients);
    return gradients[input].to(Device::cpu());
  };
}

}  // namespace keel
