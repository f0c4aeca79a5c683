// NumPy's .npy files of up to four axes, versions 1 to 3.
#pragma once

#include <string>
#include <string_view>

#include "../core/tensor.h"
#include "../core/work_progress.h"

namespace keel {

/// A tensor on the CPU with the file's shape: of float32 or float64, in C or Fortran order, with
/// its dtype; of whole numbers and bools, float64. Throws DataError where the file is missing, cut
/// short or no .npy, or holds another dtype, more than four axes, a number that is not finite, or a
/// whole one beyond 2^53.
Tensor read_npy(const std::string& path);

/// The same from memory; `file` is what messages call it.
Tensor parse_npy(std::string_view bytes, const std::string& file);

/// Writes version 1.0, atomically. Throws keel::Error where it cannot.
void write_npy(const std::string& path, const Tensor& tensor, const WorkProgress& progress = {});

}  // namespace keel
