// Half a symmetric matrix: what its lower triangle alone is good for. All throw ShapeError unless a
// is square.
#pragma once

#include "../core/tensor.h"

namespace keel {

/// The diagonal of a [n, n] -> [n], of a's dtype.
Tensor diagonal(const Tensor& a);

/// Exchanges the diagonal of a [n, n] with d [n], of a's dtype. Throws ShapeError or DeviceError
/// where d is another.
void swap_diagonal(const Tensor& a, const Tensor& d);

/// into[i, j] = a[i, j] scale[i] scale[j] below the diagonal, of either dtype, rounded once; the
/// diagonal becomes `value`; what is above stays. scale [n] float64. into may be a.
/// Throws ShapeError where shapes do not fit or scale is not float64, DeviceError where devices
/// differ.
void scale_lower(const Tensor& a, const Tensor& scale, double value, const Tensor& into);

/// a[j, i] = a[i, j] for i > j.
void mirror_lower(const Tensor& a);

/// a[i, j] and a[j, i] change places: a becomes its transpose.
void swap_triangles(const Tensor& a);

}  // namespace keel
