// GradientSink: contracts factors over samples, d_weight = scale * delta' input, as they come.
// It lives here rather than in core/, which knows no op, because contracting is a matrix product.
#pragma once

#include <vector>

#include "../core/tape.h"

namespace keel {

class GradientSink : public Sink {
 public:
  /// The derivative of `leaf` will be written to `into` (its shape), without allocating; zeros
  /// where no path leads from it to the output. Holds for later passes in which a leaf of that
  /// shape has the same slot; one of another shape makes them throw ShapeError.
  void bind(const Var& leaf, Tensor into);

  /// The derivative of `leaf` after a backward pass. Throws keel::Error where it is a constant, of
  /// another tape or recorded since that pass's was cleared, not a leaf, or has no path to the
  /// output.
  const Tensor& operator[](const Var& leaf) const;

  void begin(const Tape& tape) override;
  void end() override;
  bool per_sample() const override { return false; }
  void outer(Slot leaf, const Outer& factor) override;
  void rows(Slot leaf, const Rows& factor) override;
  void rows_pair(Slot a, const Rows& of_a, Slot b, const Rows& of_b) override;
  void total(Slot leaf, const Tensor& d_leaf) override;
  Tensor contract(const Outer& factor) override;
  Tensor contract(const Rows& factor) override;

 private:
  struct Entry {
    Tensor bound, result;
  };
  Entry& entry(Slot leaf);
  Tensor& place(Slot leaf, Shape shape, const Tensor& like, bool& fresh);

  const Tape* tape_ = nullptr;
  std::uint32_t generation_ = 0;  // of the tape in the last pass
  std::vector<Entry> entries_;    // by slot
};

}  // namespace keel
