// What the bounds know of an activation phi.
#pragma once

#include <optional>
#include <vector>

#include "../nn/spec.h"
#include "interval.h"

namespace keel {

/// relu, leakyrelu, gelu in either form, silu, tanh, sigmoid, softplus, elu or selu, in double.
struct Activation {
  LayerKind kind = LayerKind::relu;
  double slope = 0;      ///< of relu and leakyrelu below 0, any number; 1: the identity
  double alpha = 0;      ///< of elu and selu, which is alpha (exp(z) - 1) below 0
  double above = 1;      ///< the slope above 0 of what are lines there; selu's is not 1
  double beta = 1;       ///< of silu, which is z / (1 + exp(-beta z))
  bool by_tanh = false;  ///< of gelu: the form by tanh

  Activation() = default;
  /// Throws keel::Error for another kind of layer.
  explicit(false) Activation(const LayerSpec& layer);
  explicit(false) Activation(LayerKind kind) : Activation(LayerSpec{.kind = kind}) {}

  /// Two lines of these slopes below and above 0: this one and 1. Any number, as a prelu's may be.
  static Activation of_slope(double slope);
  static Activation identity() { return of_slope(1); }

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

  /// The same of z in [a, b], whose ends may be infinite.
  Interval beside_relu(double a, double b) const;

  /// What phi is never below; nothing where there is no such number.
  std::optional<double> least() const;

 private:
  Interval about_lowest() const;
};

/// The activations of one layer: one of all its units, or of each a leaky relu of its own slope.
class LayerActivation {
 public:
  explicit(false) LayerActivation(const Activation& all) : all_(all) {}
  explicit(false) LayerActivation(LayerKind kind) : all_(kind) {}
  /// Throws keel::Error where there are none.
  explicit LayerActivation(std::vector<double> slopes);

  Activation of(std::size_t unit) const {
    return slopes_.empty() ? all_ : Activation::of_slope(slopes_[unit]);
  }

  bool kinked() const { return all_.kinked(); }

  /// As Activation's, of each unit.
  std::optional<double> least() const;

  /// With another unit behind the last, of which a value above 0 is what it was.
  LayerActivation and_one_more() const;

 private:
  Activation all_;
  std::vector<double> slopes_{};
};

}  // namespace keel
