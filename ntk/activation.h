// What the bounds know of an activation phi.
#pragma once

#include <optional>

#include "../nn/spec.h"
#include "interval.h"

namespace keel {

/// relu, leakyrelu, gelu, silu, tanh, sigmoid, softplus, elu or selu, in double.
struct Activation {
  LayerKind kind = LayerKind::relu;
  double slope = 0;  ///< of relu and leakyrelu below 0; 1: the identity
  double alpha = 0;  ///< of elu and selu, which is alpha (exp(z) - 1) below 0
  double above = 1;  ///< the slope above 0 of what are lines there; selu's is not 1

  Activation() = default;
  /// Throws keel::Error for another kind of layer.
  explicit(false) Activation(const LayerSpec& layer);
  explicit(false) Activation(LayerKind kind) : Activation(LayerSpec{.kind = kind}) {}

  static Activation identity();

  double operator()(double z) const;

  /// relu and leakyrelu: two lines, which meet at 0.
  bool kinked() const { return kind == LayerKind::relu || kind == LayerKind::leakyrelu; }

  bool is_elu() const { return kind == LayerKind::elu || kind == LayerKind::selu; }

  /// Of one that is not kinked, no less than sup |phi|, |phi'| and |phi''| over [a, b]; the last of
  /// elu and selu but for 0, where the slope may jump.
  double largest(double a, double b) const;
  double steepest(double a, double b) const;
  double curvature(double a, double b) const;

  /// How far apart values of phi may be where their z are `scale` apart, to a factor of 1.13.
  double spread(double scale) const;

  /// What phi stays in where z stays in [a, b].
  Interval range(double a, double b) const;

  /// What phi(z) is more than relu's, or leakyrelu's, of `above` z; nothing where no two numbers
  /// bound it.
  std::optional<Interval> beside_relu() const;

  /// What phi is never below; nothing where there is no such number.
  std::optional<double> least() const;
};

}  // namespace keel
