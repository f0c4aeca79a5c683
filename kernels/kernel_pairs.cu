#include "kernel_pairs.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernel_pairs_program.h"
#include "launch.cuh"

namespace keel {
namespace {

struct MeanSquares {
  using Scalar = double;
  int64_t cols;
  const double* x;
  double* r;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const auto v = g.load(cols, x + row * cols);
    const double sum = g.sum(cols, [&](auto i) { return v[i] * v[i]; });
    g.once([&] { r[row] = sum / static_cast<double>(cols); });
  }
};

struct Table {
  using Scalar = double;
  static constexpr int kWidest = 1;
  int64_t n;
  int steps;
  const KernelMap* maps;
  const double* r;
  double* table;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t input) const {
    g.once([&] {
      double* at = table + input;
      Diagonal d{r[input], 0, 0};
      *at = d.k;
      at += n;
      for (int step = 0; step < steps; ++step) {
        follow(maps[step], d, [&](int row, double value) { at[row * n] = value; });
        at += maps[step].rows() * n;
      }
      at[0] = d.k;
      at[n] = d.theta;
    });
  }
};

void check_table(const KernelMaps& maps, const Tensor& table, int64_t begin, int64_t rows) {
  check<ShapeError>(table.rank() == 2 && table.size(0) == maps.table_rows() && begin >= 0 &&
                        begin + rows <= table.size(1),
                    "kernel_pairs", "got table {}, wanted [{}, {} or more]", table.shape(),
                    maps.table_rows(), begin + rows);
}

}  // namespace

KernelMaps::KernelMaps(std::vector<KernelMap> maps, Device device) : maps_(std::move(maps)) {
  const auto has = [&](KernelMap::Kind kind) {
    return std::any_of(maps_.begin(), maps_.end(),
                       [&](const KernelMap& map) { return map.kind == kind; });
  };
  has_sums_ = has(KernelMap::Kind::gaussians);
  work_tiles_ = (device.is_cpu() ? kCpuPairTiles : 0) + (has(KernelMap::Kind::keep) ? 2 : 0);
  static_assert(std::is_trivially_copyable_v<KernelMap> && sizeof(KernelMap) % sizeof(double) == 0);
  table_rows_ = 3;
  for (const KernelMap& map : maps_) {
    const int terms = map.mixture.terms;
    check(map.kind != KernelMap::Kind::mixture || (terms >= 0 && terms <= Mixture::kMost),
          "kernel_maps", "got a mixture of {} terms, wanted 0 to {}", terms, int{Mixture::kMost});
    const int of_sum = map.gaussians.terms;
    check(map.kind != KernelMap::Kind::gaussians || (of_sum >= 0 && of_sum <= GaussianSum::kMost),
          "kernel_maps", "got a sum of {} Gaussians, wanted 0 to {}", of_sum,
          int{GaussianSum::kMost});
    table_rows_ += map.rows();
  }
  std::vector<double> bytes(maps_.size() * sizeof(KernelMap) / sizeof(double));
  if (!maps_.empty()) std::memcpy(bytes.data(), maps_.data(), maps_.size() * sizeof(KernelMap));
  bytes_ = Tensor::from(bytes, {static_cast<int64_t>(bytes.size())}, device);
}

const KernelMap* KernelMaps::data() const {
  return reinterpret_cast<const KernelMap*>(bytes_.data<double>());
}

Tensor mean_squares(const Tensor& x) {
  Tensor r = Tensor::empty({x.size(0)}, DType::f64, x.device());
  launch_rows(x.device(), x.size(0), x.size(1),
              MeanSquares{x.size(1), x.data<double>(), r.data<double>()});
  return r;
}

Tensor kernel_table(const KernelMaps& maps, const Tensor& r) {
  check<DeviceError>(r.device() == maps.device(), "kernel_table", "got r on {}, maps on {}",
                     r.device(), maps.device());
  check<ShapeError>(r.rank() == 1 && r.dtype() == DType::f64, "kernel_table",
                    "got r {} of {}, wanted [n] of float64", r.shape(), name_of(r.dtype()));
  const int64_t n = r.elements();
  Tensor table = Tensor::empty({maps.table_rows(), n}, DType::f64, r.device());
  launch_rows(r.device(), n, 1,
              Table{n, maps.steps(), maps.data(), r.data<double>(), table.data<double>()});
  return table;
}

void kernel_pairs(const KernelMaps& maps, const KernelTile& tile, const Tensor& into,
                  int64_t into_row, int64_t into_col) {
  const int64_t rows = tile.inner.size(0), cols = tile.inner.size(1);
  check_table(maps, tile.table_a, tile.row, rows);
  check_table(maps, tile.table_b, tile.col, cols);
  check<ShapeError>(into.rank() == 2 && into_row >= 0 && into_row + rows <= into.size(0) &&
                        into_col >= 0 && into_col + cols <= into.size(1),
                    "kernel_pairs", "got into {}, wanted room for {} x {} at ({}, {})",
                    into.shape(), rows, cols, into_row, into_col);
  for (const Tensor* tensor : {&tile.table_a, &tile.table_b, &tile.inner, &tile.work, &into})
    check<DeviceError>(tensor->device() == maps.device() || tensor->elements() == 0, "kernel_pairs",
                       "got tables, inner, work or into on {}, maps on {}", tensor->device(),
                       maps.device());
  check<ShapeError>(tile.work.elements() >= maps.work_tiles() * rows * cols, "kernel_pairs",
                    "got no work space for {} x {} pairs", rows, cols);
  double* const work = maps.work_tiles() > 0 ? tile.work.data<double>() : nullptr;
  const auto launch = [&](auto zero, auto sums) {
    using T = decltype(zero);
    const Pairs<T, sums> pairs{maps.data(),
                               maps.steps(),
                               tile.table_a.data<double>(),
                               tile.table_b.data<double>(),
                               tile.table_a.size(1),
                               tile.table_b.size(1),
                               tile.row,
                               tile.col,
                               cols,
                               tile.inner.data<double>(),
                               work,
                               maps.device().is_cpu() ? work + kCpuPairTiles * rows * cols : work,
                               rows * cols,
                               tile.rounding,
                               tile.lower,
                               tile.theta,
                               into.data<T>() + into_row * into.size(1) + into_col,
                               into.size(1)};
    launch_pairs(maps.device(), rows, cols, pairs);
  };
  dispatch(into.dtype(), [&](auto zero) {
    maps.has_sums() ? launch(zero, std::true_type()) : launch(zero, std::false_type());
  });
}

}  // namespace keel
