// What a launch is cut into, and what a Program says of itself (launch.cuh).
#pragma once

#include <limits>

#include "group.h"

namespace keel {

/// Pairs of a row that a CPU's thread has at once, at most.
inline constexpr int64_t kCpuPairs = 256;

namespace detail {

/// `rows` rows of `cols` columns, each cut into tiles of at most `width`.
struct Tiling {
  int64_t rows, cols, width;
  int64_t work = rows * cols;  // elements touched: what decides whether threads are worth waking
  int64_t per_row = width > 0 ? (cols + width - 1) / width : 0;
  KEEL_HD int64_t tiles() const { return rows * per_row; }
  KEEL_HD int64_t columns_from(int64_t first) const {
    return cols - first < width ? cols - first : width;
  }
};

template <class Program>
inline constexpr bool kLongRuns = requires {
  requires Program::kLongRuns;
};

template <class Program>
inline constexpr bool kRereads = requires {
  requires Program::kRereads;
};

template <class Program>
constexpr bool is_apart() {
  if constexpr (requires { Program::kApart; })
    return Program::kApart;
  else
    return false;
}
template <class Program>
constexpr int warp_blocks() {  // 0: as the compiler likes it
  if constexpr (requires { Program::kWarpBlocks; })
    return Program::kWarpBlocks;
  else
    return 0;
}
template <class Program>
constexpr int narrowest() {
  if constexpr (requires { Program::kNarrowest; })
    return Program::kNarrowest;
  else
    return 1;
}
template <class Program>
constexpr int widest() {
  if constexpr (requires { Program::kWidest; })
    return Program::kWidest;
  else
    return (1 << 30) - 1;
}

/// For whole rows.
template <class Program>
struct RowProgram {
  using Scalar = typename Program::Scalar;
  static constexpr bool kLongRuns = detail::kLongRuns<Program>;
  static constexpr bool kRereads = detail::kRereads<Program>, kApart = detail::is_apart<Program>();
  static constexpr int kWarpBlocks = detail::warp_blocks<Program>();
  static constexpr int kWidest = detail::widest<Program>();
  Runs runs() const requires requires(const Program& p) { p.runs(); }
  { return program.runs(); }
  Program program;
};

/// For runs of one row.
template <class Program>
struct ElementProgram {
  using Scalar = typename Program::Scalar;
  Program program;
};

// Which row and columns tile number `tile` is. Only where it must be is a number of 64 bits
// divided: a GPU takes as many instructions for that as for a short row.
template <class Program, class Group>
KEEL_HD void run_tile(const Program& program, Group group, const Tiling& tiling, int64_t tile) {
  const int64_t row = tile / tiling.per_row;
  const int64_t first = (tile - row * tiling.per_row) * tiling.width;
  program(group, row, first, tiling.columns_from(first));
}
template <class Program, class Group>
KEEL_HD void run_tile(const RowProgram<Program>& rows, Group group, const Tiling&, int64_t tile) {
  rows.program(group, tile);
}
template <class Program, class Group>
KEEL_HD void run_tile(const ElementProgram<Program>& elements, Group group, const Tiling& tiling,
                      int64_t tile) {
  const int64_t first = tile * tiling.width;
  elements.program(group, first, tiling.columns_from(first));
}

template <class Program, class Group>
void run_tiles(const Program& program, Group group, const Tiling& tiling, int64_t begin,
               int64_t end) {
  for (int64_t tile = begin; tile < end; ++tile) run_tile(program, group, tiling, tile);
}

// The widest rows that a GPU's group holds. Longer ones that are read once need not be held:
// streaming, the same members read the same elements.
template <class Program>
inline constexpr int kWidestHeld = kRereads<Program> ? 16384 / sizeof(typename Program::Scalar)
                                                     : 1024;

// Whether a GPU has groups of 512 and of 2048 elements, too: where rows are reread, and may be
// long.
template <class Program>
constexpr bool has_steps() {
  return kRereads<Program> && widest<Program>() > 1024;
}

// Elements of a row that the GPU's group for this width holds; a streaming group holds any number.
template <class Program>
constexpr int64_t held_elements(int64_t width) {
  if (kRereads<Program> && width <= 64) return 64;
  if (width <= 128) return 128;
  if (kRereads<Program> && width <= 256) return 256;
  constexpr bool kSteps = has_steps<Program>();
  constexpr int64_t kHeld = kWidestHeld<Program>;
  if (kSteps && width <= 512) return 512;
  if (width <= 1024) return 1024;
  if (kSteps && kHeld > 2048 && width <= 2048) return 2048;
  return width <= kHeld ? kHeld : std::numeric_limits<int64_t>::max();
}

}  // namespace detail
}  // namespace keel
