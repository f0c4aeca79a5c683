#include "kernel_pairs.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "launch.cuh"

namespace keel {
namespace {

constexpr int kCpuTiles = 4;  // of work: the state, and what an activation makes of it

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

/// A row of pairs: one input with `count` others, step by step. The loop over pairs is the inner
/// one, so that a CPU runs eight of them at a time. kSums: of maps with sums of Gaussians, which
/// take a GPU's registers for themselves.
template <class T, bool kSums>
struct Pairs {
  using Scalar = double;
  static constexpr int kWarpBlocks = kSums ? 2 : 0;
  static constexpr bool kApart = true;
  const KernelMap* maps;
  int steps;
  const double *table_a, *table_b;
  int64_t n_a, n_b, row, col, cols;
  const double* inner;
  double *work, *kept;  // kept: in memory on a GPU too, whose registers are all taken
  int64_t work_stride;
  double rounding;
  bool lower, theta;
  T* into;
  int64_t into_cols;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t i, int64_t first, int64_t count) const {
    if (lower) {
      const int64_t last = row + i - (col + first) + 1;
      count = last < count ? last : count;
      if (count <= 0) return;
    }
    const int64_t at = i * cols + first;
    const double *a = table_a + row + i, *b = table_b + col + first;
    const auto product = g.load(count, inner + at);
    auto k = g.zeros(count, home(0, at));
    auto t = g.zeros(count, home(1, at));
    const double r = *a, *rs = b;
    g.each(count, [&](auto j) { k[j] = product[j]; });
    a += n_a;
    b += n_b;
    for (int step = 0; step < steps; ++step) {
      const KernelMap& map = maps[step];
      switch (map.kind) {
        case KernelMap::Kind::dense:
          g.each(count, [&](auto j) { set(k, t, j, through_dense(map, {k[j], t[j]})); });
          break;
        case KernelMap::Kind::relu:
          either(g, map.leaks(), [&](auto leaky) {
            const double q = *a;
            g.each(count, [&](auto j) {
              set(k, t, j, through_relu(leaky, map, {k[j], t[j]}, q, b[j]));
            });
          });
          break;
        case KernelMap::Kind::mixture:
          of_form(g, map.form, [&](auto form) {
            map.gain != 0 ? mixture<true>(g, form, map, at, count, a, b, k, t)
                          : mixture<false>(g, form, map, at, count, a, b, k, t);
          });
          break;
        case KernelMap::Kind::gaussians:
          if constexpr (kSums)
            map.gain != 0 ? gaussians<true>(g, map, at, count, a, b, k, t)
                          : gaussians<false>(g, map, at, count, a, b, k, t);
          break;
        case KernelMap::Kind::layer_norm:
          map.gain != 0 ? layer_norm<true>(g, map, count, a, b, k, t)
                        : layer_norm<false>(g, map, count, a, b, k, t);
          break;
        case KernelMap::Kind::keep:
          keep(g, at, count, k, t);
          break;
        case KernelMap::Kind::add:
          add(g, map, at, count, k, t);
          break;
      }
      a += map.rows() * n_a;
      b += map.rows() * n_b;
    }
    // What is left of the table are the diagonals: an input with itself has no angle to round.
    const double diagonal = theta ? a[n_a] : a[0];
    const auto entry = [&](auto j, double value) {
      const double c = product[j], away = c < r ? r - c : c - r;
      const bool same = (rs[j] == r) & (away <= rounding * r);
      return static_cast<T>(same ? diagonal : value);
    };
    T* out = into + i * into_cols + first;
    if (theta)
      g.store(count, out, [&](auto j) { return entry(j, t[j]); });
    else
      g.store(count, out, [&](auto j) { return entry(j, k[j]); });
  }

 private:
  // f(flag): on a CPU of a type that is the flag, so that the loop in f is made twice, and runs
  // eight pairs at a time; on a GPU, whose kernel is to have few angles, once.
  template <class Group, class F>
  KEEL_HD static void either(Group, bool flag, F f) {
    if constexpr (Group::kMembers > 1)
      f(flag);
    else if (flag)
      f(std::true_type());
    else
      f(std::false_type());
  }

  // The same, of three.
  template <class Group, class F>
  KEEL_HD static void of_form(Group g, Form form, F f) {
    if constexpr (Group::kMembers > 1)
      f(form);
    else if (form == Form::integral)
      f(std::integral_constant<Form, Form::integral>());
    else
      either(g, form == Form::distribution, [&](auto odd) {
        constexpr Form kOf = odd ? Form::distribution : Form::product;
        f(std::integral_constant<Form, kOf>());
      });
  }

  KEEL_HD double* home(int which, int64_t at) const { return work + which * work_stride + at; }

  template <class Group, class Row>
  KEEL_HD void keep(Group g, int64_t at, int64_t count, const Row& k, const Row& t) const {
    double *kept_k = kept + at, *kept_t = kept_k + work_stride;
    g.each(count, [&](auto j) {
      kept_k[j] = k[j];
      kept_t[j] = t[j];
    });
  }

  template <class Group, class Row>
  KEEL_HD void add(Group g, const KernelMap& map, int64_t at, int64_t count, Row& k, Row& t) const {
    const double *kept_k = kept + at, *kept_t = kept_k + work_stride;
    g.each(count, [&](auto j) {
      set(k, t, j, through_add(map, {k[j], t[j]}, {kept_k[j], kept_t[j]}));
    });
  }

  template <class Row, class Index>
  KEEL_HD static void set(Row& k, Row& t, Index j, PairState s) {
    k[j] = s.k;
    t[j] = s.theta;
  }

  template <bool kShare, class Group, class Row>
  KEEL_HD void layer_norm(Group g, const KernelMap& map, int64_t count, const double* a,
                          const double* b, Row& k, Row& t) const {
    const double mean = a[0], scale = a[n_a];
    const double *means = b, *scales = b + n_b;
    g.each(count, [&](auto j) {
      set(k, t, j,
          through_layer_norm<kShare>(map, {k[j], t[j]}, mean * means[j], scale * scales[j]));
    });
  }

  // OfForm: a Form, or a type that is one.
  template <bool kCross, class Group, class OfForm, class Row>
  KEEL_HD void mixture(Group g, OfForm form, const KernelMap& map, int64_t at, int64_t count,
                       const double* a, const double* b, Row& k, Row& t) const {
    auto next_k = g.zeros(count, home(2, at));
    auto next_t = g.zeros(count, home(3, at));
    const double q = *a;
    for (int m = 0; m < map.mixture.terms; ++m)
      for (int u = 0; u < map.mixture.terms; ++u) {
        const double over = a[(1 + m) * n_a];
        const double* overs = b + (1 + u) * n_b;
        g.each(count, [&](auto j) {
          const PairState share =
              mixture_share<kCross>(form, map, {k[j], t[j]}, q, over, m, b[j], overs[j], u);
          next_k[j] += share.k;
          next_t[j] += share.theta;
        });
      }
    g.each(count, [&](auto j) { set(k, t, j, {next_k[j], next_t[j]}); });
  }

  // A GPU's thread takes its pairs one by one, as it has no registers for what all of them keep. A
  // CPU's loop stands here, not in `each`: what is so long is not inlined there, and a call makes
  // no vectors.
  template <bool kCross, class Group, class Row>
  KEEL_HD void gaussians(Group g, const KernelMap& map, int64_t at, int64_t count, const double* a,
                         const double* b, Row& k, Row& t) const {
    const double q = *a;
    if constexpr (Group::kMembers > 1) {
      g.each(count, [&](auto p) {
        set(k, t, p, through_gaussians<kCross>(map, {k[p], t[p]}, q, b[p]));
      });
    } else {
      double *next_k = g.zeros(count, home(2, at)), *next_t = g.zeros(count, home(3, at));
      const double *now_k = k, *now_t = t;
      const int terms = map.gaussians.terms;
      const double at_zero = map.gaussians.at_zero, gain = map.gain;
      double pairs[6][kCpuPairs], weights[6][kCpuPairs];
#pragma omp simd
      for (int64_t p = 0; p < count; ++p) {
        const GaussianPair pair = gaussian_pair(q, b[p], now_k[p]);
        pairs[0][p] = pair.q1;
        pairs[1][p] = pair.q2;
        pairs[2][p] = pair.det;
        pairs[3][p] = pair.root_q1;
        pairs[4][p] = pair.root_q2;
        pairs[5][p] = pair.root_det;
      }
      const auto pair_at = [&](int64_t p) __attribute__((always_inline)) {
        return GaussianPair{pairs[0][p], pairs[1][p], now_k[p],   pairs[2][p],
                            pairs[3][p], pairs[4][p], pairs[5][p]};
      };
      for (int j = 0; j < terms; ++j) {
        const GaussianSum::Term other = map.gaussians.term[j];
#pragma omp simd
        for (int64_t p = 0; p < count; ++p) {
          const GaussianWeight weight = gaussian_weight(pair_at(p), other.p);
          weights[0][p] = weight.root_d0;
          weights[1][p] = weight.over_d0;
          weights[2][p] = weight.root_x;
          weights[3][p] = weight.over_x;
          weights[4][p] = weight.over_xq;
          weights[5][p] = weight.angle;
        }
        for (int i = 0; i < terms; ++i) {
          const GaussianSum::Term one = map.gaussians.term[i];
#pragma omp simd
          for (int64_t p = 0; p < count; ++p) {
            const GaussianWeight weight{weights[0][p], weights[1][p], weights[2][p],
                                        weights[3][p], weights[4][p], weights[5][p]};
            const PairState share = gaussian_share<kCross>(
                one, other, at_zero, gain, {now_k[p], now_t[p]}, pair_at(p), weight);
            next_k[p] += share.k;
            next_t[p] += share.theta;
          }
        }
      }
      g.each(count, [&](auto p) { set(k, t, p, {next_k[p], next_t[p]}); });
    }
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
  const bool keeps = std::any_of(maps_.begin(), maps_.end(), [](const KernelMap& map) {
    return map.kind == KernelMap::Kind::keep;
  });
  work_tiles_ = (device.is_cpu() ? kCpuTiles : 0) + (keeps ? 2 : 0);
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
  has_sums_ = std::any_of(maps_.begin(), maps_.end(), [](const KernelMap& map) {
    return map.kind == KernelMap::Kind::gaussians;
  });
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
                               maps.device().is_cpu() ? work + kCpuTiles * rows * cols : work,
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
