// Cholesky factors, in place, on the lower triangle alone.
#pragma once

#include <optional>

#include "../core/tensor.h"
#include "../core/work_progress.h"

namespace keel {

/// a [n, n] = L L': its lower triangle becomes L, entries above the diagonal stay what they were.
/// Returns the first row, from 0, whose pivot is not positive and finite; on the CPU the rows above
/// it are then those of L, and all else is undefined. LAPACK's potrf on panels of columns, which
/// rounds differently with another number of threads, or cuSOLVER's, all at once. `progress` counts
/// multiplications on the CPU; a GPU says nothing before the end. Throws ShapeError unless a is
/// square, of fewer than 2^31 rows, and what `progress` throws.
[[nodiscard]] std::optional<std::int64_t> cholesky(const Tensor& a,
                                                   const WorkProgress& progress = {});

}  // namespace keel
