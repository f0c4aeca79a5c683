#include "tape.h"

#include <algorithm>
#include <atomic>
#include <limits>

namespace keel {

void* detail::Arena::take(std::size_t bytes) {
  constexpr std::size_t kAlign = alignof(std::max_align_t);
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].size) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    const std::size_t size = std::max(bytes, kChunk);
    chunks_.push_back({std::make_unique<std::byte[]>(size), size});
  }
  void* place = chunks_[chunk_].bytes.get() + used_;
  used_ += bytes;
  return place;
}

Var Tape::append(Tensor value, detail::Pullback* pullback) {
  check(pullbacks_.size() < std::numeric_limits<Slot>::max(), "tape", "more than 2^31 nodes");
  pullbacks_.push_back(pullback);
  return Var(std::move(value), this, static_cast<Slot>(pullbacks_.size() - 1), generation_);
}

Var Tape::leaf(Tensor value) {
  check(value.defined(), "leaf", "got an empty tensor");
  return append(std::move(value), nullptr);
}

void Tape::clear() {
  for (detail::Pullback* pullback : pullbacks_)
    if (pullback) pullback->~Pullback();
  pullbacks_.clear();
  arena_.clear();
  generation_ = next_generation();
}

// Of the whole process: a tape may be where another one was.
std::uint32_t Tape::next_generation() {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

void Tape::check_mine(const char* tag, const Var& var) const {
  check(var.tape_ != nullptr, tag, "got a constant, wanted a value on the tape");
  check(var.tape_ == this, tag, "got a value of another tape");
  check(var.generation_ == generation_, tag, "got a value from before its tape was cleared");
}

Tape* common_tape(const char* op, std::initializer_list<const Var*> inputs) {
  Tape* tape = nullptr;
  for (const Var* input : inputs) {
    if (!input->tape()) continue;
    if (!tape) tape = input->tape();
    check(tape == input->tape(), op, "inputs are on two tapes, wanted one");
    tape->check_mine(op, *input);
  }
  return tape;
}

void Tape::backward(const Var& loss, Sink& sink) {
  check<ShapeError>(loss.value().rank() <= 1, "backward",
                    "got an output {} without its cotangent, wanted a loss [] or [members]",
                    loss.shape());
  backward(loss, Tensor::full(loss.shape(), 1, loss.value().dtype(), loss.value().device()), sink);
}

bool Tape::takes_stacks() const {
  return std::all_of(pullbacks_.begin(), pullbacks_.end(), [](const detail::Pullback* pullback) {
    return !pullback || pullback->takes == Takes::stacks;
  });
}

void Tape::check_stack(const Shape& output, const Shape& d_output, const Sink& sink) const {
  const bool stack = output.rank() == 2 && d_output.rank() == 2 && output[0] > 0 &&
                     d_output[0] % output[0] == 0 && d_output[1] == output[1];
  check<ShapeError>(stack && takes_stacks() && sink.per_sample(), "backward",
                    "got d_output {}, wanted {}", d_output, output);
}

void Tape::backward(const Var& output, const Tensor& d_output, Sink& sink) {
  check_mine("backward", output);
  check_same_kind("backward", "output", output.value(), "d_output", d_output);
  if (d_output.shape() != output.shape()) check_stack(output.shape(), d_output.shape(), sink);

  sink.begin(*this);
  cotangents_.resize(nodes());
  // A pullback that throws must not leave half a pass behind for the next one.
  struct Clean {
    std::vector<Tensor>& cotangents;
    ~Clean() { std::fill(cotangents.begin(), cotangents.end(), Tensor()); }
  } clean{cotangents_};

  Backward context(*this, sink);
  cotangents_[output.slot()] = d_output;
  for (Slot slot = output.slot(); slot >= 0; --slot) {
    const Tensor d_out = std::move(cotangents_[slot]);  // freed at the end of this iteration
    if (!d_out.defined()) continue;                     // no path from here to the output
    if (pullbacks_[slot])
      (*pullbacks_[slot])(d_out, context);
    else
      sink.total(slot, d_out);
  }
  sink.end();
}

void Backward::add(Slot x, Tensor d_x) {
  if (!wants(x)) return;
  Tensor& d = tape_.cotangents_[x];
  if (!d.defined()) {
    d = std::move(d_x);
    return;
  }
  // An op may hand the same tensor to two inputs; what others hold too is not ours to change.
  if (!d.sole_owner()) d = d.clone();
  accumulate(d, d_x);
}

void Backward::outer(Slot weight, const Outer& factor) {
  if (!wants(weight)) return;
  if (tape_.pullbacks_[weight])
    add(weight, sink_.contract(factor));
  else
    sink_.outer(weight, factor);
}

void Backward::rows_pair(Slot a, const Rows& of_a, Slot b, const Rows& of_b) {
  if (tape_.is_leaf(a) && tape_.is_leaf(b)) return sink_.rows_pair(a, of_a, b, of_b);
  rows(a, of_a);
  rows(b, of_b);
}

void Backward::rows(Slot parameter, const Rows& factor) {
  if (!wants(parameter)) return;
  if (tape_.pullbacks_[parameter])
    add(parameter, sink_.contract(factor));
  else
    sink_.rows(parameter, factor);
}

namespace {
constexpr const char* kPerSample =
    "the derivative of this value does not split by sample, wanted a parameter that dense, "
    "add_bias, prelu, layer_norm or rms_norm uses directly";
}

void JacobianSink::total(Slot, const Tensor&) { fail("jacobian", kPerSample); }
Tensor JacobianSink::contract(const Outer&) { fail("jacobian", kPerSample); }
Tensor JacobianSink::contract(const Rows&) { fail("jacobian", kPerSample); }

}  // namespace keel
