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

// As mean_of_members() has it.
std::vector<double> mean_precisely(const Net& net, const std::vector<double>& x) {
  if (net.members() == 1) return evaluate_precisely(net, x);
  std::vector<double> mean(static_cast<std::size_t>(net.output_width()), 0.0);
  for (std::int64_t s = 0; s < net.members(); ++s) {
    const std::vector<double> one = evaluate_precisely(net.member(s), x);
    for (std::size_t j = 0; j < mean.size(); ++j)
      mean[j] += one[j] / static_cast<double>(net.members());
  }
  return mean;
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

std::vector<double> mean_of_members(const Tensor& said, std::int64_t members) {
  const std::vector<double> all = said.to_vector<double>();
  if (members == 1) return all;
  std::vector<double> mean(all.size() / static_cast<std::size_t>(members), 0.0);
  for (std::size_t i = 0; i < all.size(); ++i)
    mean[i % mean.size()] += all[i] / static_cast<double>(members);
  return mean;
}

// Far out, double may round away the biases of rows that are equal, which is all that a Layer Norm
// sees of them, and with them leave an interval that the net keeps: twice the digits tell. In
// blocks of rows: a language model has 50,000 outputs.
RowFunction largest_output(const Net& net, const OutputSize& size, double most) {
  return [&net, &size, most](const Tensor& x) {
    constexpr std::int64_t kElements = std::int64_t{1} << 24;
    const auto outputs = static_cast<std::size_t>(net.output_width());
    const std::int64_t rows = x.size(0), block = std::max<std::int64_t>(
                                             1, kElements / (net.members() * net.output_width()));
    std::vector<double> largest;
    for (std::int64_t begin = 0; begin < rows; begin += block) {
      const Tensor some = x.slice(begin, std::min(rows, begin + block));
      const std::vector<double> all =
          mean_of_members(net.predict(some.to(net.options().device)), net.members());
      for (std::size_t i = 0; i < all.size(); i += outputs)
        largest.push_back(largest_of(&all[i], outputs, size));
    }
    each_in_parallel(largest.size(), [&](std::size_t i) {
      if (!(largest[i] > kKept * most)) return;
      const auto row = static_cast<std::int64_t>(i);
      const std::vector<double> again =
          mean_precisely(net, x.slice(row, row + 1).to_vector<double>());
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
    const std::vector<double> mean = mean_of_members(output.value(), net.members());
    const auto outputs = static_cast<std::size_t>(net.output_width());
    const auto members = static_cast<std::size_t>(net.members());
    std::vector<double> d_output(members * mean.size(), 0.0);
    for (std::size_t i = 0; i < mean.size(); i += outputs) {
      std::size_t largest = 0;
      for (std::size_t j = 1; j < outputs; ++j)
        if (size(mean[i + j], j) > size(mean[i + largest], largest)) largest = j;
      const double d_mean =
          (mean[i + largest] < size.middle[largest] ? -1 : 1) / size.unit[largest];
      for (std::size_t s = 0; s < members; ++s)
        d_output[s * mean.size() + i + largest] = d_mean / static_cast<double>(members);
    }
    GradientSink gradients;
    tape.backward(output, Tensor::from(d_output, output.shape(), net.options().device), gradients);
    return gradients[input].to(Device::cpu());
  };
}

}  // namespace keel
