#include "gradcheck.h"

#include <algorithm>
#include <cmath>

#include "../core/random.h"
#include "gradient_sink.h"

namespace keel {
namespace {

// <cotangent, f(inputs)> on the host, without a tape.
double objective(const std::function<Var(std::span<const Var>)>& f,
                 const std::vector<Tensor>& inputs, const std::vector<double>& cotangent) {
  std::vector<Var> constants(inputs.begin(), inputs.end());
  const std::vector<double> out = f(constants).value().to_vector<double>();
  double total = 0;
  for (std::size_t i = 0; i < out.size(); ++i) total += cotangent[i] * out[i];
  return total;
}

}  // namespace

Gradcheck gradcheck(const std::function<Var(std::span<const Var>)>& f,
                    const std::vector<Tensor>& inputs) {
  Tape tape;
  std::vector<Var> leaves;
  for (const Tensor& input : inputs) {
    check<ShapeError>(input.dtype() == DType::f64, "gradcheck", "got a {} input, wanted float64",
                      name_of(input.dtype()));
    leaves.push_back(tape.leaf(input.clone()));
  }
  const Var out = f(leaves);
  const Tensor d_out =
      normal(out.shape(), {.seed = 7, .stream = 0}, 1, DType::f64, out.value().device());
  GradientSink gradients;
  tape.backward(out, d_out, gradients);

  std::vector<std::vector<double>> analytic;
  double largest = 0;
  for (const Var& leaf : leaves) {
    analytic.push_back(gradients[leaf].to_vector<double>());
    for (double d : analytic.back()) largest = std::max(largest, std::abs(d));
  }

  const std::vector<double> cotangent = d_out.to_vector<double>();
  const double floor = std::max(1e-3 * largest, 1e-300);
  std::vector<Tensor> moved = inputs;
  Gradcheck worst;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const std::vector<double> values = inputs[k].to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = [&](double step) {
        std::vector<double> shifted = values;
        shifted[i] += step;
        moved[k] = Tensor::from(shifted, inputs[k].shape(), inputs[k].device());
        return objective(f, moved, cotangent);
      };
      double best = std::numeric_limits<double>::infinity(), nearest = 0;
      for (double relative : {1e-3, 1e-4, 1e-5}) {
        const double h = relative * std::max(1.0, std::abs(values[i]));
        const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
        const double error = std::abs(analytic[k][i] - numeric) /
                             std::max({std::abs(analytic[k][i]), std::abs(numeric), floor});
        if (error < best || std::isnan(error)) {
          best = error;
          nearest = numeric;
        }
        if (best < 1e-9) break;
      }
      // A NaN is the worst there is, and the first one is told of.
      if (!std::isnan(worst.max_relative_error) && !(best <= worst.max_relative_error)) {
        worst.max_relative_error = best;
        worst.where = fmt::format("input {}, element {}: analytic {}, numeric {}", k, i,
                                  analytic[k][i], nearest);
      }
    }
    moved[k] = inputs[k];
  }
  return worst;
}

}  // namespace keel
