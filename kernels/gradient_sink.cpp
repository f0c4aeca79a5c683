#include "gradient_sink.h"

#include "gemm.h"
#include "sum.h"

namespace keel {
namespace {

Shape shape_of(const Outer& f) {
  const std::int64_t o = f.delta.size(-1), i = f.input.size(-1);
  return f.delta.rank() == 3 ? Shape{f.delta.size(0), o, i} : Shape{o, i};
}

Shape shape_of(const Rows& f) {
  return f.g.rank() == 3 ? Shape{f.g.size(0), f.g.size(2)} : Shape{f.g.size(-1)};
}

void contract_into(const Outer& f, bool fresh, const Tensor& into) {
  gemm(Transpose::yes, Transpose::no, f.scale, f.delta, f.input, fresh ? 0 : 1, into);
}

void contract_into(const Rows& f, bool fresh, const Tensor& into) {
  sum_rows(f.g, f.scale, !fresh, into);
}

template <class Factor>
Tensor contracted(const Factor& f, const Tensor& like) {
  Tensor result = Tensor::empty(shape_of(f), like.dtype(), like.device());
  contract_into(f, true, result);
  return result;
}

// A slot that was bound may hold another leaf by now.
void check_bound(const Tensor& bound, const Shape& derivative) {
  if (!bound.defined()) return;
  check<ShapeError>(bound.shape() == derivative, "gradient",
                    "got a derivative {} for a leaf that was bound as {}, wanted the same leaf in "
                    "this pass",
                    derivative, bound.shape());
}

}  // namespace

GradientSink::Entry& GradientSink::entry(Slot leaf) {
  if (entries_.size() <= static_cast<std::size_t>(leaf)) entries_.resize(leaf + 1);
  return entries_[leaf];
}

void GradientSink::bind(const Var& leaf, Tensor into) {
  check(leaf.tape() != nullptr, "gradient", "got a constant, wanted a leaf of a tape");
  leaf.tape()->check_mine("gradient", leaf);
  check(leaf.tape()->is_leaf(leaf.slot()), "gradient",
        "got the result of an op, wanted a leaf of a tape");
  check_same_kind("gradient", "leaf", leaf.value(), "into", into);
  check<ShapeError>(into.shape() == leaf.shape(), "gradient", "got {} for the derivative of {}",
                    into.shape(), leaf.shape());
  entry(leaf.slot()).bound = std::move(into);
}

void GradientSink::begin(const Tape& tape) {
  tape_ = &tape;
  generation_ = tape.generation();
  for (Entry& e : entries_) e.result = Tensor();
  // What ends up in another leaf's slot would be zeros, not its derivative.
  for (std::size_t slot = 0; slot < entries_.size(); ++slot)
    check(!entries_[slot].bound.defined() || tape.is_leaf(static_cast<Slot>(slot)), "gradient",
          "slot {} was bound as a leaf, wanted one there in this pass too", slot);
}

void GradientSink::end() {
  for (Entry& e : entries_) {
    if (!e.bound.defined() || e.result.defined()) continue;
    fill(e.bound, 0);
    e.result = e.bound;
  }
}

const Tensor& GradientSink::operator[](const Var& leaf) const {
  check(tape_ != nullptr, "gradient", "asked for before any backward pass");
  tape_->check_mine("gradient", leaf);
  check(tape_->generation() == generation_, "gradient",
        "got a value from after the last backward pass's tape was cleared, wanted a pass since");
  const auto slot = static_cast<std::size_t>(leaf.slot());
  check(slot < entries_.size() && entries_[slot].result.defined(), "gradient",
        "no derivative for the value {} in slot {}: wanted a leaf with a path to the output",
        leaf.shape(), slot);
  return entries_[slot].result;
}

Tensor& GradientSink::place(Slot leaf, Shape shape, const Tensor& like, bool& fresh) {
  Entry& e = entry(leaf);
  check_bound(e.bound, shape);
  fresh = !e.result.defined();
  if (fresh)
    e.result = e.bound.defined() ? e.bound : Tensor::empty(shape, like.dtype(), like.device());
  return e.result;
}

void GradientSink::outer(Slot leaf, const Outer& factor) {
  bool fresh;
  const Tensor& into = place(leaf, shape_of(factor), factor.delta, fresh);
  contract_into(factor, fresh, into);
}

void GradientSink::rows(Slot leaf, const Rows& factor) {
  bool fresh;
  const Tensor& into = place(leaf, shape_of(factor), factor.g, fresh);
  contract_into(factor, fresh, into);
}

void GradientSink::rows_pair(Slot a, const Rows& of_a, Slot b, const Rows& of_b) {
  bool fresh_a, fresh_b;
  const Tensor into_a = place(a, shape_of(of_a), of_a.g, fresh_a);
  const Tensor into_b = place(b, shape_of(of_b), of_b.g, fresh_b);
  if (fresh_a && fresh_b && of_a.scale == of_b.scale && of_a.g.shape() == of_b.g.shape())
    return sum_rows(of_a.g, of_b.g, of_a.scale, into_a, into_b);
  contract_into(of_a, fresh_a, into_a);
  contract_into(of_b, fresh_b, into_b);
}

void GradientSink::total(Slot leaf, const Tensor& d_leaf) {
  Entry& e = entry(leaf);
  check_bound(e.bound, d_leaf.shape());
  if (e.result.defined()) {
    accumulate(e.result, d_leaf);
  } else if (e.bound.defined()) {
    copy(e.bound, d_leaf);
    e.result = e.bound;
  } else {
    // A cotangent may be shared with the caller's tensors; a result that grows must be ours alone.
    e.result = d_leaf.clone();
  }
}

Tensor GradientSink::contract(const Outer& factor) { return contracted(factor, factor.delta); }
Tensor GradientSink::contract(const Rows& factor) { return contracted(factor, factor.g); }

}  // namespace keel
