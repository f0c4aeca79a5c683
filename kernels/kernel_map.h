// KernelMap: what one layer of infinite width does to the pair state (K, Theta) of two inputs, and
// to the two diagonals. docs/kernels.md derives every line.
#pragma once

#include <cmath>

#include "gaussian_moments.h"
#include "gaussian_sum.h"

namespace keel {

struct KernelMap {
  enum class Kind { dense, relu, mixture, gaussians, layer_norm, keep, add };
  Kind kind = Kind::dense;
  Form form = Form::product;  // mixture: what phi(u) is

  // dense: K <- weight K + bias, Theta <- weight Theta + from_k K + constant, K that from before.
  double weight = 1, bias = 0, from_k = 0;
  double constant = 0;  // layer_norm: added to Theta, too

  // keep: K and Theta are kept. add: K <- K + K kept, Theta <- Theta + from_k K + Theta kept + gain
  // K kept, K that from before: of what a residual made, and what it was given.

  // relu, mixture, gaussians: Theta <- Theta E[phi' phi'] + gain E[u phi' u' phi']. layer_norm: of
  // gain u u', which stays with its unit, what the mean that is taken away leaves: gain m m' is the
  // same in all units.
  double gain = 0;
  double leak = 0;              // relu: phi(u) = leak u below 0,
  double own_leak = 0;          // 1: and a parameter of each unit, Theta <- ... + E[u u' both < 0]
  Mixture mixture{};            // F
  double slope = 1, shift = 0;  // of a distribution: phi(u) = slope (2 F(u) - 1) + shift

  GaussianSum gaussians{};  // phi

  double eps = 0, centred = 1;  // layer_norm; centred 0: RMSNorm, which takes no mean away

  /// Rows of a table that keep what the map needs of each input: q for relu and gaussians; q and 1
  /// / (q + s^2) of each term for mixture; the mean and 1 / standard deviation for layer_norm.
  KEEL_HD int rows() const {
    switch (kind) {
      case Kind::relu:
      case Kind::gaussians:
        return 1;
      case Kind::mixture:
        return 1 + mixture.terms;
      case Kind::layer_norm:
        return 2;
      default:
        return 0;
    }
  }

  /// relu: whether anything of u is left below 0.
  KEEL_HD bool leaks() const { return leak != 0 || own_leak != 0; }

  /// Whether phi has a mean that does not vanish with u: sigmoid and softplus.
  bool offset() const { return kind == Kind::mixture && (form == Form::integral || shift != 0); }
};

struct PairState {
  double k, theta;
};

KEEL_HD inline PairState through_dense(const KernelMap& map, PairState s) {
  return {map.weight * s.k + map.bias, map.weight * s.theta + map.from_k * s.k + map.constant};
}

/// leaky: whether the map leaks. Of u u' where both are below 0 relu's value is the mean.
KEEL_HD KEEL_INLINE PairState through_relu(bool leaky, const KernelMap& map, PairState s, double q1,
                                           double q2) {
  const Moments relu = relu_moments(q1, q2, s.k);
  if (!leaky) return {relu.value, s.theta * relu.slope + map.gain * relu.cross};
  const Moments m = leaky_moments(relu, map.leak, q1, q2, s.k);
  return {m.value, s.theta * m.slope + map.gain * m.cross + map.own_leak * relu.value};
}

/// What terms t of one input and u of the other add to the state behind a mixture.
template <bool kCross>
KEEL_HD KEEL_INLINE PairState mixture_share(Form form, const KernelMap& map, PairState s, double q1,
                                            double over1, int t, double q2, double over2, int u) {
  const Moments m = mixture_moments<kCross>(form, q1, {map.mixture.scale2[t], over1}, q2,
                                            {map.mixture.scale2[u], over2}, s.k);
  const double weight = map.mixture.weight[t] * map.mixture.weight[u];
  double theta = s.theta * m.slope;
  if constexpr (kCross) theta += map.gain * m.cross;
  if (form == Form::distribution) {
    const double square = map.slope * map.slope;
    return {weight * (square * m.value + map.shift * map.shift), weight * square * theta};
  }
  return {weight * m.value, weight * theta};
}

/// What two terms of a sum of Gaussians add to the state behind it.
template <bool kCross>
KEEL_HD KEEL_INLINE PairState gaussian_share(GaussianSum::Term one, GaussianSum::Term other,
                                             double at_zero, double gain, PairState s,
                                             const GaussianPair& pair,
                                             const GaussianWeight& weight) {
  const Moments m = gaussian_moments<kCross>(one, other, at_zero, pair, weight);
  double theta = s.theta * m.slope;
  if constexpr (kCross) theta += gain * m.cross;
  return {m.value, theta};
}

/// All terms of one pair.
template <bool kCross>
KEEL_HD KEEL_INLINE PairState through_gaussians(const KernelMap& map, PairState s, double qa,
                                                double qb) {
  const GaussianSum& f = map.gaussians;
  const GaussianPair pair = gaussian_pair(qa, qb, s.k);
  PairState sum{0, 0};
  for (int j = 0; j < f.terms; ++j) {
    const GaussianWeight weight = gaussian_weight(pair, f.term[j].p);
    for (int i = 0; i < f.terms; ++i) {
      const PairState share =
          gaussian_share<kCross>(f.term[i], f.term[j], f.at_zero, map.gain, s, pair, weight);
      sum = {sum.k + share.k, sum.theta + share.theta};
    }
  }
  return sum;
}

KEEL_HD inline PairState through_add(const KernelMap& map, PairState s, PairState kept) {
  return {s.k + kept.k, s.theta + map.from_k * s.k + kept.theta + map.gain * kept.k};
}

/// kShare: there is a gain's share whose mean is taken away, which is rare.
template <bool kShare>
KEEL_HD inline PairState through_layer_norm(const KernelMap& map, PairState s, double means,
                                            double scales) {
  double theta = s.theta;
  if constexpr (kShare) theta += map.gain * means;
  return {(s.k - means) * scales, theta * scales + map.constant};
}

/// One input by itself: K and Theta at (x, x), and the mean of what the layer put out; all of what
/// is kept.
struct Diagonal {
  double k, theta, mean;
  double kept_k = 0, kept_theta = 0, kept_mean = 0;
};

/// Takes a diagonal through one map. emit(row, value) gets the map's table rows of this input.
/// The same formulas as for pairs, so that a pair of one input with itself has the same bits.
template <class Emit>
KEEL_HD void follow(const KernelMap& map, Diagonal& d, Emit emit) {
  PairState s{d.k, d.theta};
  const double q = d.k;
  double mean = 0;
  switch (map.kind) {
    case KernelMap::Kind::dense:
      s = through_dense(map, s);
      break;
    case KernelMap::Kind::relu:
      emit(0, q);
      s = through_relu(map.leaks(), map, s, q, q);
      mean = (1 - map.leak) * std::sqrt(q) * detail::kOverRootTwoPi;
      break;
    case KernelMap::Kind::mixture: {
      emit(0, q);
      const Form form = map.form;
      mean = map.shift;
      PairState sum{0, 0};
      for (int t = 0; t < map.mixture.terms; ++t) {
        const double over = 1 / (q + map.mixture.scale2[t]);
        emit(1 + t, over);
        mean += map.mixture.weight[t] * mixture_mean(form, q, {map.mixture.scale2[t], over});
        for (int u = 0; u < map.mixture.terms; ++u) {
          const double over_u = 1 / (q + map.mixture.scale2[u]);
          const PairState share =
              map.gain != 0 ? mixture_share<true>(form, map, s, q, over, t, q, over_u, u)
                            : mixture_share<false>(form, map, s, q, over, t, q, over_u, u);
          sum = {sum.k + share.k, sum.theta + share.theta};
        }
      }
      s = sum;
      break;
    }
    case KernelMap::Kind::gaussians:
      emit(0, q);
      s = map.gain != 0 ? through_gaussians<true>(map, s, q, q)
                        : through_gaussians<false>(map, s, q, q);
      mean = gaussian_mean(map.gaussians, q);
      break;
    case KernelMap::Kind::layer_norm: {
      const double taken = map.centred * d.mean, variance = q - taken * taken + map.eps;
      const double scale = variance > 0 ? 1 / std::sqrt(variance) : 0;
      mean = (d.mean - taken) * scale;
      emit(0, taken);
      emit(1, scale);
      s = through_layer_norm<true>(map, s, taken * taken, scale * scale);
      break;
    }
    case KernelMap::Kind::keep:
      d.kept_k = d.k;
      d.kept_theta = d.theta;
      d.kept_mean = mean = d.mean;
      break;
    case KernelMap::Kind::add:
      s = through_add(map, s, {d.kept_k, d.kept_theta});
      mean = d.mean + d.kept_mean;
      break;
  }
  d.k = s.k;
  d.theta = s.theta;
  d.mean = mean;
}

}  // namespace keel
