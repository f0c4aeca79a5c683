// Products with a symmetric matrix, of which a triangle is there.
#pragma once

#include "../core/tensor.h"

namespace keel {

enum class Triangle { lower, upper };

/// into = A v for v [n, k] float64, A [n, n] float64 symmetric, of which one triangle with the
/// diagonal is read, once where k is small. On the CPU the same bits for any number of threads.
/// Throws ShapeError where shapes do not fit, n is 2^31 or more or a dtype is not float64,
/// DeviceError where devices differ.
void symmetric_product(const Tensor& a, Triangle triangle, const Tensor& v, const Tensor& into);

}  // namespace keel
