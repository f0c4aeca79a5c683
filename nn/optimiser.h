// Optimiser: Adam, or SGD with momentum, over the flat parameters of a net.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../kernels/adam.h"
#include "../kernels/sgd.h"

namespace keel {

using OptimiserOptions = std::variant<AdamOptions, SgdOptions>;

/// "adam(lr=0.001, beta1=0.9, beta2=0.999, eps=1e-08)": for messages and checkpoints.
std::string optimiser_text(const OptimiserOptions& options);

class Optimiser {
 public:
  /// Will change `parameters` in place.
  Optimiser(const OptimiserOptions& options, Tensor parameters);

  /// One update by `gradients`, shaped as the parameters. Throws what adam() or sgd() throws.
  void step(const Tensor& gradients);

  /// Adam's state and options, for a kernel that steps by itself; null for another method.
  const std::pair<AdamOptions, AdamState>* adam_state() const { return std::get_if<0>(&method_); }

  /// What it remembers of every parameter, each shaped as the parameters: Adam's first and second
  /// moments, SGD's velocity. Handles: writing to them restores a state.
  const std::vector<Tensor>& moments() const { return moments_; }

  /// Pretends to have taken `steps` steps, which Adam's bias correction depends on. Throws
  /// keel::Error where they are below 0.
  void set_steps(std::int64_t steps);

 private:
  Tensor parameters_;
  std::variant<std::pair<AdamOptions, AdamState>, SgdOptions> method_;
  std::vector<Tensor> moments_;
};

}  // namespace keel
