// All layers of infinite width of a row of pairs, as a Program: the same text runs on every device.
#pragma once

#include <type_traits>

#include "group.h"
#include "kernel_map.h"
#include "tiling.h"

namespace keel {

/// Of work space on a CPU: the state, and what an activation makes of it.
inline constexpr int kCpuPairTiles = 4;

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

}  // namespace keel
