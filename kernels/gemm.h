// Matrix products: cuBLAS in true float32 (or float64) on a GPU; on the CPU cpu_gemm.h for the
// sizes that nets are made of, OpenBLAS beyond.
#pragma once

#include "../core/tensor.h"

namespace keel {

enum class Transpose { no, yes };

/// c = alpha op(a) op(b) + beta c. op(a) [m, k], op(b) [k, n], c [m, n]; each may carry a leading
/// ensemble axis S, and an operand without one is shared by all members of a c with one.
/// On the CPU many small members get a thread each, rather than threads inside each small product.
/// Float32 is never computed as TF32. Throws ShapeError or DeviceError; keel::Error where k = 0 and
/// beta is neither 0 nor 1. ' in comments here and elsewhere is the transpose.
void gemm(Transpose transpose_a, Transpose transpose_b, double alpha, const Tensor& a,
          const Tensor& b, double beta, const Tensor& c);

}  // namespace keel
