// What regression and training dynamics share: inputs checked, and predictions made block by block.
#pragma once

#include <memory>

#include "kernel.h"

namespace keel {

/// Throws unless x is float64 [n, input_width] and y float64 [n, k], n and k >= 1, both on the
/// kernel's device and finite, y at most 1e150 in size, and one at least 1e-100 or all 0. Rows are
/// named from 0.
void check_training_data(const char* tag, const Kernel& kernel, const Tensor& x, const Tensor& y);

/// Theta(x, points) weights for x [m, d], weights [n, k] -> [m, k] float64. Theta is made in blocks
/// of rows of x.
Tensor kernel_times(const Kernel& kernel, const Tensor& x, const Kernel::Points& points,
                    const Tensor& weights, const WorkProgress& progress = {});

/// Rows of x [m, d] whose kernel with n points fits a block of moderate size, 1 or more.
std::int64_t block_rows(std::int64_t points);

/// Lee et al. 2019 (arXiv 1902.06720), eq. 16: the covariance at x [m, d] of nets whose covariance
/// at initialisation is `nngp`, and whose training on x_train [n, d] adds weights' (y - f0) with
/// weights [n, m] -> [m, m] float64, symmetric, no diagonal entry below 0.
Tensor trained_covariance(const Kernel& nngp, const Tensor& x_train, const Tensor& x,
                          const Tensor& weights);

}  // namespace keel
