// Nets whose every parameter is drawn, and their layers behind the last norm, naively: what a
// bound is judged by.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../../core/random.h"
#include "../../ntk/net_bound.h"
#include "../../ntk/norm_set.h"
#include "../../ntk/search.h"
#include "../../ntk/tail_sum.h"
#include "../oracle.h"

namespace keel {

using Vector = std::vector<double>;

inline double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline Vector draws(std::size_t count, std::uint64_t seed) {
  return normal({static_cast<std::int64_t>(count)}, {seed, 0}, 1, DType::f64).to_vector<double>();
}

// Every parameter drawn, gains and biases too: a trained net's are no ones and zeros.
inline Net random_net(const Spec& spec, std::int64_t inputs, std::uint64_t seed) {
  NetOptions options;
  options.seed = seed;
  options.dtype = DType::f64;
  options.sigma_b2 = 0.5;
  Net net(spec, inputs, options);
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
    if (net.layout().entries()[p].stddev == 0) {
      const Tensor home = net.layout().member_view(net.flat(), p, 0);
      copy(home, normal(home.shape(), {seed + 1000, p}, 1, DType::f64));
    }
  return net;
}

inline Net random_net(const std::string& spec, std::int64_t inputs, std::uint64_t seed) {
  return random_net(parse_spec(spec), inputs, seed);
}

// The layers of a net one by one, naively: what the bound is judged by.
struct Naive {
  explicit Naive(const Net& net) : spec(net.spec()) {
    for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
      parameters.push_back(net.layout().member_view(net.flat(), p, 0).to_vector<double>());
    std::size_t units = static_cast<std::size_t>(net.input_width());
    for (std::size_t i = 0; i < spec.size(); ++i) {
      if (spec[i].kind == LayerKind::dense) units = static_cast<std::size_t>(spec[i].width);
      if (!normalises_rows(spec[i].kind)) continue;
      norm = i;
      width = units;
      centred = spec[i].kind == LayerKind::layernorm;
    }
  }

  // From the output h of the last norm, before gain and bias, to the net's.
  Vector behind(Vector h) const {
    std::size_t p = 0;
    for (std::size_t i = 0; i < norm; ++i) p += count(i);
    for (std::size_t i = norm; i < spec.size(); p += count(i), ++i) h = layer(i, p, std::move(h));
    return h;
  }

  // The output h of the last norm, before gain and bias, of an input x.
  Vector ahead(Vector x) const {
    std::size_t p = 0;
    for (std::size_t i = 0; i < norm; p += count(i), ++i)
      x = layer(i, p, normalises_rows(spec[i].kind) ? standardised(x, spec[i]) : std::move(x));
    return standardised(x, spec[norm]);
  }

  static Vector standardised(Vector z, const LayerSpec& norm) {
    const auto n = static_cast<double>(z.size());
    const double eps = norm.eps;
    double mean = 0, variance = 0;
    for (double value : z)
      if (norm.kind == LayerKind::layernorm) mean += value / n;
    for (double value : z) variance += (value - mean) * (value - mean) / n;
    for (double& value : z) value = variance > 0 ? (value - mean) / std::sqrt(variance + eps) : 0;
    return z;
  }

 private:
  std::size_t count(std::size_t i) const {
    if (spec[i].kind == LayerKind::dense) return 2;
    if (spec[i].kind == LayerKind::prelu) return 1;
    if (!normalises_rows(spec[i].kind) || !spec[i].affine) return 0;
    return spec[i].kind == LayerKind::layernorm ? 2 : 1;
  }
  Vector layer(std::size_t i, std::size_t p, Vector h) const {
    if (spec[i].kind == LayerKind::dense) {
      Vector out = parameters[p + 1];
      for (std::size_t o = 0; o < out.size(); ++o)
        for (std::size_t j = 0; j < h.size(); ++j) out[o] += parameters[p][o * h.size() + j] * h[j];
      return out;
    }
    for (std::size_t j = 0; j < h.size(); ++j) {
      double& z = h[j];
      if (spec[i].kind == LayerKind::relu) z = std::max(z, 0.0);
      if (spec[i].kind == LayerKind::leakyrelu) z = std::max(z, spec[i].slope * z);
      if (spec[i].kind == LayerKind::prelu && z < 0) z *= parameters[p][spec[i].per_unit ? j : 0];
      if (spec[i].kind == LayerKind::tanh) z = std::tanh(z);
      if (spec[i].kind == LayerKind::sigmoid) z = 1 / (1 + std::exp(-z));
      if (spec[i].kind == LayerKind::elu) z = oracle::elu(z, spec[i].alpha);
      if (spec[i].kind == LayerKind::selu) z = oracle::selu(z);
      if (spec[i].kind == LayerKind::softplus) z = z > 30 ? z : std::log(1 + std::exp(z));
      if (spec[i].kind == LayerKind::gelu)
        z = spec[i].by_tanh ? oracle::gelu_by_tanh(z)
                            : z * 0.5 * (1 + std::erf(z / std::sqrt(2.0)));
      if (spec[i].kind == LayerKind::silu) z = oracle::silu(z, spec[i].beta);
      if (spec[i].kind == LayerKind::layernorm && spec[i].affine)
        z = parameters[p][j] * z + parameters[p + 1][j];
      if (spec[i].kind == LayerKind::rmsnorm && spec[i].affine) z *= parameters[p][j];
    }
    return h;
  }

  Spec spec;
  std::vector<Vector> parameters;

 public:
  std::size_t norm = 0, width = 0;  // of the last norm
  bool centred = true;              // it is a layernorm
};

// Of mean 0 if `centred`, and of length `part` of the longest there is.
inline Vector normed(Vector h, double part, bool centred) {
  double mean = 0;
  for (double value : h)
    if (centred) mean += value / static_cast<double>(h.size());
  for (double& value : h) value -= mean;
  const double length = std::sqrt(dot(h, h));
  for (double& value : h)
    value *= length > 0 ? part * std::sqrt(static_cast<double>(h.size())) / length : 0;
  return h;
}

// Of a net whose Layer Norm has two units, h = (s, -s): of every s.
inline Interval of_every_s(const Net& net) {
  const Naive naive(net);
  Interval found{1e300, -1e300};
  for (int i = -5000; i <= 5000; ++i) {
    const double value = naive.behind({i / 5000.0, -i / 5000.0})[0];
    found = {std::min(found.low, value), std::max(found.high, value)};
  }
  return found;
}

// Of the net itself, over its inputs.
inline Interval found_ahead(const Net& net, std::size_t output,
                            const SearchOptions& options = {.directions = 32, .steps = 20}) {
  Interval found;
  for (double side : {-1.0, 1.0}) {
    const RowFunction f = [&](const Tensor& x) {
      const Vector all = net.predict(x).to_vector<double>();
      Vector values;
      for (std::size_t i = output; i < all.size();
           i += static_cast<std::size_t>(net.output_width()))
        values.push_back(side * all[i]);
      return values;
    };
    const Tensor none = Tensor::empty({0, net.input_width()}, DType::f64);
    (side > 0 ? found.high : found.low) =
        side * search_largest(f, net.input_width(), none, options).value;
  }
  return found;
}

/// No output that a search finds is outside its interval, which is at most `loose` times as wide as
/// what was found.
inline void check_ends(const Net& net, const NetBound& bound, double loose) {
  for (std::size_t i = 0; i < bound.outputs.size(); ++i) {
    const Interval found = found_ahead(net, i), of = bound.outputs[i];
    CAPTURE(found.high);
    CAPTURE(found.low);
    CAPTURE(of.high);
    CAPTURE(of.low);
    CHECK(of.low <= found.low);
    CHECK(found.high <= of.high);
    CHECK(of.high - of.low < loose * (found.high - found.low));
  }
}

/// u = h / sqrt(width) in the coordinates of the set.
inline Vector coordinates(const NormSet& set, const Vector& h) {
  const double root = std::sqrt(static_cast<double>(set.width));
  Vector u(static_cast<std::size_t>(set.rank));
  for (std::size_t i = 0; i < h.size(); ++i)
    for (std::size_t k = 0; k < u.size(); ++k)
      u[k] += (set.whole ? static_cast<double>(i == k) : set.basis[i * u.size() + k]) * h[i] / root;
  return u;
}

}  // namespace keel
