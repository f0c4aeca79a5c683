// NumPy's .npy files: float32 and float64 arrays of up to four axes, C order, versions 1 to 3.
#pragma once

#include <string>
#include <string_view>

#include "../core/tensor.h"
#include "../core/work_progress.h"

namespace keel {

/// A tensor on the CPU with the file's shape and dtype. Throws DataError where the file is missing,
/// cut short or no .npy, or holds another dtype, Fortran order, more than four axes, or a number
/// that is not finite.
Tensor read_npy(const std::string& path);

/// The same from memory; `file` is what messages call it.
Tensor parse_npy(std::string_view bytes, const std::string& file);

/// Writes version 1.0, atomically. Throws keel::Error where it cannot.
void write_npy(const std::string& path, const Tensor& tensor, const WorkProgress& progress = {});

}  // namespace keel
