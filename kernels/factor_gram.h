// factor_gram: the Gram matrix of a factored Jacobian (core/sink.h) in one pass. Each tile runs
// both small products of every term, multiplies and adds them on chip, and every entry is written
// once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../core/tensor.h"

namespace keel {

/// What one side of a GramTerm knows of its n samples: u [n, o], cut into pieces [n, o1], [n, o2],
/// ... that stand side by side, and v [n, i], which may be missing.
struct GramSide {
  std::vector<Tensor> u;
  Tensor v;
};

/// Adds (u_i . u'_j) (scale v_i . v'_j + offset) to entry (i, j), or scale u_i . u'_j without v.
struct GramTerm {
  GramSide left, right;
  double scale = 1, offset = 0;
};

/// A matrix of rows x cols entries, each factor times the sum of `terms`. Entry (i, j) lies in
/// `into` at offset + i row_stride + j col_stride.
struct GramMatrix {
  std::int64_t rows, cols;
  std::vector<GramTerm> terms;
  double factor = 1;
  bool lower = false;  ///< entries i >= j alone: the others are left as they are
  Tensor into;
  std::int64_t offset, row_stride, col_stride;

  /// All of `into` [rows, cols].
  static GramMatrix over(const Tensor& into);
};

/// What a GPU multiplies float32 by: its multiply-adds, or 3xTF32 on tensor cores, as accurate
/// (kernels/factor_gram_tensor.h).
enum class GramProduct { fma, tensor };

/// The choice for compute capability `major`.`minor`: tensor cores where TF32 is far more than
/// three times as fast as float32. By NVIDIA's data sheets, dense TFLOP/s: 8.0 156 / 19.5, 9.0 494
/// / 67; 8.6 35.6 / 35.6 and 8.9 82.6 / 82.6, where three products would lose. Others, untried, do
/// not.
constexpr GramProduct gram_product(int major, int minor) {
  return minor == 0 && (major == 8 || major == 9) ? GramProduct::tensor : GramProduct::fma;
}

/// The choice for `device`; fma for the CPU. float64 is never multiplied otherwise.
GramProduct gram_product(Device device);

/// Writes every matrix. Each entry is summed in the order of terms and columns: it has the same
/// bits whichever rows and columns it is computed along with, and for any number of threads.
/// Throws ShapeError or DeviceError where tensors do not fit.
void factor_gram(std::span<const GramMatrix> matrices);

}  // namespace keel
