// gradcheck: a derivative against central differences, for any function of tensors.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "../core/tape.h"

namespace keel {

struct Gradcheck {
  double max_relative_error = 0;  ///< |analytic - numeric| / max(|analytic|, |numeric|, floor)
  std::string where;              ///< "input 1, element 17: analytic 0.25, numeric 0.5"
};

/// Differentiates <cotangent, f(inputs)> by f's tape and by central differences of fourth order,
/// element by element of every input; float64 inputs on any device. The cotangent is random, fixed.
/// Each numeric derivative is taken at three step sizes and the nearest counts, so that a kink
/// close by (relu) does not. `floor` is 1e-3 of the largest derivative: below it, errors are
/// relative to the floor.
Gradcheck gradcheck(const std::function<Var(std::span<const Var>)>& f,
                    const std::vector<Tensor>& inputs);

}  // namespace keel
