// Sinks: where parameter derivatives go. A pullback does not decide what becomes of them: it hands
// over factors, and the sink contracts them (GradientSink, in kernels/) or keeps them
// (JacobianSink).
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "tensor.h"

namespace keel {

/// The place of a value on its tape; kNoSlot: a constant, which has none.
using Slot = std::int32_t;
constexpr Slot kNoSlot = -1;

/// Derivative of a weight [o, i]: sample k's block is scale * delta_k (x) input_k, a rank-one
/// matrix. delta [n, o] or [S, n, o]; input [n, i] or [S, n, i] (an input [n, i] is shared by all S
/// members). In a pass of C cotangents (Tape::backward) delta is [C n, o], cotangent by cotangent.
struct Outer {
  Tensor delta, input;
  double scale = 1;
};

/// Derivative of a vector parameter [p]: sample k's block is scale * g_k. g [n, p] or [S, n, p]; in
/// a pass of C cotangents [C n, p]. To a sink that does not keep samples apart: any number of rows
/// [m, p] that add up to the same.
struct Rows {
  Tensor g;
  double scale = 1;
};

class Tape;

class Sink {
 public:
  virtual ~Sink() = default;

  /// Called before and after a backward pass over `tape`.
  virtual void begin(const Tape& tape) = 0;
  virtual void end() {}

  /// Whether the derivative of each sample is wanted, or their sum is enough.
  virtual bool per_sample() const = 0;

  /// One factor of the derivative of leaf `leaf`.
  virtual void outer(Slot leaf, const Outer& factor) = 0;
  virtual void rows(Slot leaf, const Rows& factor) = 0;

  /// The same of two leaves: a sink may do with both what costs a launch each.
  virtual void rows_pair(Slot a, const Rows& of_a, Slot b, const Rows& of_b) {
    rows(a, of_a);
    rows(b, of_b);
  }

  /// A share of the derivative of `leaf`, summed over samples, in the leaf's own shape.
  virtual void total(Slot leaf, const Tensor& d_leaf) = 0;

  /// The contractions over samples, for weights that are themselves computed on the tape.
  virtual Tensor contract(const Outer& factor) = 0;
  virtual Tensor contract(const Rows& factor) = 0;
};

/// Keeps the factors: the per-sample Jacobian in n x width memory. A leaf used several times in a
/// sample has several factors. What cannot be split by sample throws keel::Error.
class JacobianSink : public Sink {
 public:
  struct Factor {
    Slot leaf;
    std::variant<Outer, Rows> block;
  };

  const std::vector<Factor>& factors() const { return factors_; }

  void begin(const Tape&) override { factors_.clear(); }
  bool per_sample() const override { return true; }
  void outer(Slot leaf, const Outer& factor) override { factors_.push_back({leaf, factor}); }
  void rows(Slot leaf, const Rows& factor) override { factors_.push_back({leaf, factor}); }
  void total(Slot leaf, const Tensor& d_leaf) override;
  Tensor contract(const Outer&) override;
  Tensor contract(const Rows&) override;

 private:
  std::vector<Factor> factors_;
};

}  // namespace keel
