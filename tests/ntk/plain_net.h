// Random nets, and a net as plain loops in double, forward and back: it shares no code with
// kernels/.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "../../nn/net.h"
#include "../oracle.h"
#include "activations.h"

namespace plain_net {

using namespace keel;  // NOLINT: a header of tests
using Vector = std::vector<double>;

struct Dice {
  std::mt19937_64 random;
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  }
  double normal() {  // of the generator's bits alone: the same everywhere
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += std::ldexp(static_cast<double>(random() >> 11), -53);
    return sum;
  }
};

inline LayerSpec random_activation(Dice& dice) {
  LayerSpec phi{.kind = kWords[dice.below(std::ssize(kWords))]};
  if (phi.kind == LayerKind::elu) phi.alpha = 0.4 * static_cast<double>(1 + dice.below(3));
  if (phi.kind == LayerKind::silu) phi.beta = 0.5 * static_cast<double>(1 + dice.below(3));
  if (phi.kind == LayerKind::gelu) phi.by_tanh = dice.below(2) == 0;
  if (phi.kind == LayerKind::prelu) phi.per_unit = dice.below(2) == 0;
  return phi;
}

// Behind the last dense layer: a norm, a dense layer of any width, an activation, all or some, and
// a dense layer of as many units as x has. Whether there is a norm.
template <class Norm>
bool residual(Dice& dice, Spec& spec, const Norm& norm) {
  std::int64_t width = 0;
  for (const LayerSpec& layer : spec)
    if (layer.kind == LayerKind::dense) width = layer.width;
  spec.push_back({.kind = LayerKind::residual});
  const bool normed = dice.below(3) == 0, phi = dice.below(4) > 0;
  if (normed) norm();
  if (dice.below(2) == 0) spec.push_back({.kind = LayerKind::dense, .width = 1 + dice.below(8)});
  if (phi) spec.push_back(random_activation(dice));
  spec.push_back({.kind = LayerKind::dense, .width = width});
  spec.push_back({.kind = LayerKind::add});
  return normed;
}

// `normed`: with a norm that no residual passes by, mostly behind all that are within one.
inline Spec random_spec(Dice& dice, std::int64_t widest, bool normed) {
  Spec spec;
  const auto dense = [&](std::int64_t width) {
    spec.push_back({.kind = LayerKind::dense, .width = width});
  };
  bool passed_by = false;  // the last norm
  const auto norm = [&] {
    passed_by = false;
    spec.push_back({.kind = dice.below(3) == 0 ? LayerKind::rmsnorm : LayerKind::layernorm,
                    .affine = dice.below(2) == 0,
                    .eps = std::vector<double>{0, 1e-5, 1}[dice.below(3)]});
  };
  const std::int64_t blocks = 1 + dice.below(3), sure = dice.below(blocks);
  for (std::int64_t i = 0; i < blocks; ++i) {
    dense(1 + dice.below(widest));
    if (dice.below(3) == 0 || (normed && i == sure)) norm();
    if (dice.below(4) > 0) spec.push_back(random_activation(dice));
    if (dice.below(5) == 0) norm();
    if (dice.below(4) == 0) passed_by = residual(dice, spec, norm) || passed_by;
  }
  if (normed && passed_by && dice.below(4) > 0) norm();
  dense(1 + dice.below(3));
  return spec;
}

// Every parameter drawn, at one of several sizes; sometimes rows of zeros or all rows the same.
inline Net random_net(Dice& dice, const Spec& spec, std::int64_t inputs, DType dtype) {
  Net net(spec, inputs, {.seed = dice.random(), .dtype = dtype});
  const double size = std::vector<double>{1e-3, 0.3, 1, 1, 30}[dice.below(5)];
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p) {
    const Tensor home = net.layout().member_view(net.flat(), p, 0);
    const bool repeated = dice.below(12) == 0, zero = dice.below(15) == 0;
    Vector values(static_cast<std::size_t>(home.elements()));
    const auto cols = static_cast<std::size_t>(home.size(-1));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = zero ? 0 : repeated && i >= cols ? values[i - cols] : size * dice.normal();
    copy(home, Tensor::from(values, home.shape()).to(dtype));
  }
  return net;
}

// The net by plain loops: one row forward, and back from one output.
class Plain {
 public:
  explicit Plain(const Net& net) : spec_(net.spec()) {
    for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
      parameters_.push_back(net.layout().member_view(net.flat(), p, 0).to_vector<double>());
  }

  Vector forward(Vector h) {
    inputs_.clear();
    std::size_t p = 0;
    Vector kept;
    for (const LayerSpec& layer : spec_) {
      inputs_.push_back(h);
      if (layer.kind == LayerKind::residual) kept = h;
      if (layer.kind == LayerKind::add)
        for (std::size_t j = 0; j < h.size(); ++j) h[j] += kept[j];
      if (!joins(layer.kind)) h = forward(layer, p, h);
      p += count(layer);
    }
    return h;
  }

  /// d f_output / d parameters, after forward().
  std::vector<Vector> backward(std::size_t outputs, std::size_t output) {
    std::vector<Vector> d_parameters(parameters_.size());
    Vector d(outputs), d_kept;
    d[output] = 1;
    std::size_t p = parameters_.size();
    for (std::size_t i = spec_.size(); i-- > 0;) {
      p -= count(spec_[i]);
      if (spec_[i].kind == LayerKind::add) d_kept = d;
      if (spec_[i].kind == LayerKind::residual)
        for (std::size_t j = 0; j < d.size(); ++j) d[j] += d_kept[j];
      if (!joins(spec_[i].kind)) d = backward(spec_[i], p, inputs_[i], d, d_parameters);
    }
    return d_parameters;
  }

 private:
  static std::size_t count(const LayerSpec& layer) {
    if (layer.kind == LayerKind::dense) return 2;
    if (layer.kind == LayerKind::prelu) return 1;
    if (!normalises_rows(layer.kind) || !layer.affine) return 0;
    return layer.kind == LayerKind::layernorm ? 2 : 1;
  }

  // 1 / sqrt(variance + eps), and the centred row in the place of x; a constant row gives 0. Of
  // rmsnorm 1 / sqrt(mean square + eps).
  static double centre(Vector& x, const LayerSpec& norm) {
    const double eps = norm.eps;
    const auto n = static_cast<double>(x.size());
    if (norm.kind == LayerKind::rmsnorm) {
      long double squares = 0;
      for (double value : x) squares += static_cast<long double>(value) * value;
      const long double inside = squares / n + eps;
      return inside > 0 ? static_cast<double>(1 / std::sqrt(inside)) : 0;
    }
    bool constant = true;
    long double mean = 0, variance = 0;
    for (double value : x) constant &= value == x[0];
    for (double value : x) mean += value;
    mean /= n;
    for (double& value : x) value = constant ? 0 : static_cast<double>(value - mean);
    for (double value : x) variance += static_cast<long double>(value) * value;
    const long double inside = variance / n + eps;  // in double the squares of 1e-200 vanish
    return inside > 0 ? static_cast<double>(1 / std::sqrt(inside)) : 0;
  }

  static double value_of(const LayerSpec& layer, double z) {
    const LayerKind kind = layer.kind;
    if (kind == LayerKind::relu) return std::max(z, 0.0);
    if (kind == LayerKind::leakyrelu) return z > 0 ? z : layer.slope * z;
    if (kind == LayerKind::tanh) return std::tanh(z);
    if (kind == LayerKind::sigmoid) return 1 / (1 + std::exp(-z));
    if (kind == LayerKind::softplus) return z > 30 ? z : std::log1p(std::exp(z));
    if (kind == LayerKind::elu) return oracle::elu(z, layer.alpha);
    if (kind == LayerKind::selu) return oracle::selu(z);
    if (layer.by_tanh) return oracle::gelu_by_tanh(z);
    if (kind == LayerKind::gelu) return 0.5 * z * std::erfc(-z / std::sqrt(2.0));
    return oracle::silu(z, layer.beta);
  }

  static double slope_of(const LayerSpec& layer, double z) {
    const LayerKind kind = layer.kind;
    if (kind == LayerKind::relu) return z > 0;
    if (kind == LayerKind::leakyrelu) return z > 0 ? 1 : layer.slope;
    if (kind == LayerKind::tanh) return 1 - std::tanh(z) * std::tanh(z);
    if (kind == LayerKind::elu) return z > 0 ? 1 : layer.alpha * std::exp(z);
    if (kind == LayerKind::selu)
      return oracle::kSeluScale * (z > 0 ? 1 : oracle::kSeluAlpha * std::exp(z));
    if (layer.by_tanh) {
      const double u = std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z), t = std::tanh(u);
      const double slope = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * z * z);
      return 0.5 * (1 + t) + (std::abs(t) == 1 ? 0 : 0.5 * z * slope * (1 - t * t));
    }
    if (kind == LayerKind::gelu)
      return 0.5 * std::erfc(-z / std::sqrt(2.0)) + z * std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
    const double steep = layer.beta * z, sigmoid = 1 / (1 + std::exp(-steep));
    if (kind == LayerKind::sigmoid) return sigmoid * (1 - sigmoid);
    if (kind == LayerKind::softplus) return sigmoid;
    return sigmoid + (z == 0 ? 0 : steep * sigmoid * (1 - sigmoid));
  }

  Vector forward(const LayerSpec& layer, std::size_t p, Vector h) const {
    if (layer.kind == LayerKind::dense) {
      Vector out = parameters_[p + 1];
      for (std::size_t o = 0; o < out.size(); ++o)
        for (std::size_t j = 0; j < h.size(); ++j)
          out[o] += parameters_[p][o * h.size() + j] * h[j];
      return out;
    }
    if (layer.kind == LayerKind::prelu) {
      for (std::size_t j = 0; j < h.size(); ++j)
        if (!(h[j] > 0)) h[j] *= parameters_[p][layer.per_unit ? j : 0];
      return h;
    }
    const double scale = normalises_rows(layer.kind) ? centre(h, layer) : 1;
    for (std::size_t j = 0; j < h.size(); ++j) {
      if (!normalises_rows(layer.kind))
        h[j] = value_of(layer, h[j]);
      else
        h[j] = (layer.affine ? parameters_[p][j] : 1) * h[j] * scale +
               (count(layer) == 2 ? parameters_[p + 1][j] : 0);
    }
    return h;
  }

  Vector backward(const LayerSpec& layer, std::size_t p, const Vector& x, const Vector& d,
                  std::vector<Vector>& d_parameters) const {
    Vector d_x(x.size());
    if (layer.kind == LayerKind::dense) {
      d_parameters[p].resize(d.size() * x.size());
      d_parameters[p + 1] = d;
      for (std::size_t o = 0; o < d.size(); ++o)
        for (std::size_t j = 0; j < x.size(); ++j) {
          d_parameters[p][o * x.size() + j] = d[o] * x[j];
          d_x[j] += parameters_[p][o * x.size() + j] * d[o];
        }
      return d_x;
    }
    if (layer.kind == LayerKind::prelu) {
      d_parameters[p].resize(parameters_[p].size());
      for (std::size_t j = 0; j < x.size(); ++j) {
        const std::size_t own = layer.per_unit ? j : 0;
        d_x[j] = x[j] > 0 ? d[j] : parameters_[p][own] * d[j];
        if (!(x[j] > 0)) d_parameters[p][own] += d[j] * x[j];
      }
      return d_x;
    }
    if (!normalises_rows(layer.kind)) {
      for (std::size_t j = 0; j < x.size(); ++j) d_x[j] = d[j] * slope_of(layer, x[j]);
      return d_x;
    }
    Vector h = x, d_h = d;  // h: standardised
    const double scale = centre(h, layer), n = static_cast<double>(x.size());
    for (double& value : h) value *= scale;
    if (layer.affine) {
      if (count(layer) == 2) d_parameters[p + 1] = d;
      for (std::size_t j = 0; j < x.size(); ++j) {
        d_parameters[p].push_back(d[j] * h[j]);
        d_h[j] = d[j] * parameters_[p][j];
      }
    }
    double mean = 0, along = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      if (layer.kind == LayerKind::layernorm) mean += d_h[j] / n;
      along += d_h[j] * h[j] / n;
    }
    for (std::size_t j = 0; j < x.size(); ++j) d_x[j] = scale * (d_h[j] - mean - h[j] * along);
    return d_x;
  }

  Spec spec_;
  std::vector<Vector> parameters_, inputs_;
};

}  // namespace plain_net
