// The infinite-width recursion as two Programs: once for every input (its diagonals, into a table),
// and fused for every pair of inputs. Always in double: an angle between inputs loses half of its
// digits where they are near each other, and float32 would keep three. How the result is stored is
// the caller's choice.
#pragma once

#include <vector>

#include "../core/tensor.h"
#include "kernel_map.h"

namespace keel {

/// The maps of a net, first to last, in a device's memory.
class KernelMaps {
 public:
  explicit KernelMaps(std::vector<KernelMap> maps, Device device = {});

  const std::vector<KernelMap>& host() const { return maps_; }
  const KernelMap* data() const;  ///< on device()
  int steps() const { return static_cast<int>(maps_.size()); }
  Device device() const { return bytes_.device(); }

  /// Of a table: r = |x|^2 / n0; what each map keeps; K and Theta at (x, x) behind the last map.
  std::int64_t table_rows() const { return table_rows_; }

  bool has_sums() const { return has_sums_; }  ///< whether any is a sum of Gaussians

  /// Of a tile's work space: on a GPU none, unless a residual's K and Theta are to be kept.
  std::int64_t work_tiles() const { return work_tiles_; }

 private:
  std::vector<KernelMap> maps_;
  std::int64_t table_rows_;
  std::int64_t work_tiles_;
  bool has_sums_;
  Tensor bytes_;
};

/// |x|^2 / n0 of each row of x [n, n0] float64 -> [n].
Tensor mean_squares(const Tensor& x);

/// r [n] float64, each >= 0 -> [table_rows(), n].
Tensor kernel_table(const KernelMaps& maps, const Tensor& r);

/// A tile of pairs: inputs row, row + 1, ... of table_a with col, col + 1, ... of table_b.
struct KernelTile {
  Tensor table_a, table_b;
  std::int64_t row = 0, col = 0;
  Tensor inner;  ///< x.x' / n0 of the tile, float64 [rows, cols]
  Tensor work;   ///< float64 [work_tiles(), rows, cols]

  /// Pairs whose r are equal and whose inner product differs from r by less than this, relatively,
  /// are one input: it is what rounding of inner products comes to.
  double rounding = 0;
  bool lower = false;  ///< leaves entries alone whose second input is later than the first
  bool theta = true;   ///< false: K
};

/// Theta, or K, of a tile -> into [.., ..], float32 or float64, from (into_row, into_col) on.
void kernel_pairs(const KernelMaps& maps, const KernelTile& tile, const Tensor& into,
                  std::int64_t into_row, std::int64_t into_col);

}  // namespace keel
