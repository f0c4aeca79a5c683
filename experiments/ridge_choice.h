// Which ridge predicts best: judged on training rows that were held out.
#pragma once

#include <memory>

#include "../ntk/regression.h"
#include "command.h"

namespace keel {

struct RidgeChoice {
  double relative = 0;  ///< the best, times the mean diagonal
  Json tried;           ///< [{ridge_relative, rmse}, ...]
};

/// x [n, d] and y [n, 1] in random order. Solves with the first two thirds of the rows, at most
/// `most_rows` of them, and judges on others, at most half as many. Tries 1e-4 to 1 in half
/// decades: the best does not depend on the number of rows, being noise against the kernel's
/// diagonal.
RidgeChoice choose_ridge(const std::shared_ptr<const Kernel>& kernel, const Tensor& x,
                         const Tensor& y, std::int64_t most_rows = 8000,
                         const WorkProgress& progress = {});

}  // namespace keel
