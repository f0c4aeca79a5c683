#include "optimiser.h"

namespace keel {

std::string optimiser_text(const OptimiserOptions& options) {
  if (const auto* adam = std::get_if<AdamOptions>(&options))
    return fmt::format("adam(lr={}, beta1={}, beta2={}, eps={})", adam->lr, adam->beta1,
                       adam->beta2, adam->eps);
  const auto& sgd = std::get<SgdOptions>(options);
  return fmt::format("sgd(lr={}, momentum={})", sgd.lr, sgd.momentum);
}

Optimiser::Optimiser(const OptimiserOptions& options, Tensor parameters)
    : parameters_(std::move(parameters)), method_(SgdOptions()) {
  if (const auto* adam = std::get_if<AdamOptions>(&options)) {
    AdamState state(parameters_);
    moments_ = {state.first, state.second};
    method_ = std::pair(*adam, std::move(state));
  } else {
    method_ = std::get<SgdOptions>(options);
    moments_ = {Tensor::zeros(parameters_.shape(), parameters_.dtype(), parameters_.device())};
  }
}

void Optimiser::step(const Tensor& gradients) {
  if (auto* method = std::get_if<0>(&method_))
    adam(parameters_, gradients, method->second, method->first);
  else
    sgd(parameters_, gradients, moments_[0], std::get<1>(method_));
}

void Optimiser::set_steps(std::int64_t steps) {
  check(steps >= 0, "optimiser", "got {} steps, wanted at least 0", steps);
  if (auto* method = std::get_if<0>(&method_))
    fill(method->second.step, static_cast<double>(steps));  // the other two are made anew each step
}

}  // namespace keel
