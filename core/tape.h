// Tape: an append-only list of pullbacks. Creation order is topological, so backward is one loop
// from the last node to the first. Start reading at Tape::backward in tape.cpp.
#pragma once

#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "sink.h"
#include "tensor.h"

namespace keel {

class Tape;

/// A tensor, and where its derivative is computed. Without a tape it is a constant.
/// A tape must outlive its Vars. It keeps no values: a Var does, and pullbacks keep what they will
/// need.
class Var {
 public:
  Var(Tensor value) : value_(std::move(value)) {}  // NOLINT: a Tensor is a constant Var

  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  Slot slot() const { return slot_; }
  Tape* tape() const { return tape_; }  ///< null for a constant

 private:
  friend class Tape;
  Var(Tensor value, Tape* tape, Slot slot, std::uint32_t generation)
      : value_(std::move(value)), tape_(tape), slot_(slot), generation_(generation) {}

  Tensor value_;
  Tape* tape_ = nullptr;
  Slot slot_ = kNoSlot;
  std::uint32_t generation_ = 0;  // of the tape: a Var from before Tape::clear is refused
};

/// What a pullback sees: the cotangents it may add to, and the sink behind the leaves.
class Backward {
 public:
  /// Whether a derivative with respect to `slot` is needed at all.
  bool wants(Slot slot) const { return slot != kNoSlot; }

  /// Adds d_x to the cotangent of x.
  void add(Slot x, Tensor d_x);

  /// A factor of a weight's or vector parameter's derivative.
  void outer(Slot weight, const Outer& factor);
  void rows(Slot parameter, const Rows& factor);

  /// rows() of two parameters of one op: where both are leaves, the sink has them at once.
  void rows_pair(Slot a, const Rows& of_a, Slot b, const Rows& of_b);

  /// Whether factors must keep samples apart; if not, a row of Rows may be a sum over several
  /// samples (of a Layer Norm's chunk of rows).
  bool per_sample() const { return sink_.per_sample(); }

 private:
  friend class Tape;
  Backward(Tape& tape, Sink& sink) : tape_(tape), sink_(sink) {}
  Tape& tape_;
  Sink& sink_;
};

/// What a pullback takes as d_out: a cotangent, in the shape of the op's output; or also a stack of
/// any number, one below the other, where that output is [n, cols]: d_out [C n, cols].
enum class Takes { one, stacks };

namespace detail {

struct Pullback {
  explicit Pullback(Takes takes) : takes(takes) {}
  virtual ~Pullback() = default;
  virtual void operator()(const Tensor& d_out, Backward& backward) const = 0;
  const Takes takes;
};

template <class F>
struct PullbackOf final : Pullback {
  PullbackOf(F f, Takes takes) : Pullback(takes), function(std::move(f)) {}
  void operator()(const Tensor& d_out, Backward& backward) const override {
    function(d_out, backward);
  }
  F function;
};

// Pullbacks lie one after another in chunks that clear() keeps: recording costs no allocation
// once a tape has seen its longest graph.
class Arena {
 public:
  void* take(std::size_t bytes);
  void clear() { chunk_ = used_ = 0; }

 private:
  static constexpr std::size_t kChunk = 1 << 16;
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size;
  };
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0, used_ = 0;
};

}  // namespace detail

class Tape {
 public:
  Tape() = default;
  ~Tape() { clear(); }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// A value whose derivative is wanted: a parameter, or an input. Throws keel::Error where the
  /// tensor was moved from or never filled.
  Var leaf(Tensor value);

  /// Forgets every node but keeps the memory; Vars from before are refused from now on.
  void clear();

  std::size_t nodes() const { return pullbacks_.size(); }

  /// What its nodes belong to: changes with clear(), and no two tapes ever have one.
  std::uint32_t generation() const { return generation_; }

  /// Whether `slot` holds a leaf, rather than the result of an op or nothing.
  bool is_leaf(Slot slot) const {
    return slot >= 0 && static_cast<std::size_t>(slot) < nodes() && !pullbacks_[slot];
  }

  /// Propagates d_output (shape, dtype and device of output) from `output` to the leaves, whose
  /// derivatives go to `sink`. Cotangents are freed as they are consumed. May be called again.
  /// Where takes_stacks() and the sink keeps samples apart, d_output may be C cotangents at once,
  /// one below the other: [C n, o] for an output [n, o]. Factors then have C n rows, their inputs
  /// n. Throws keel::Error where output is not this tape's as it is now, ShapeError or DeviceError
  /// where d_output does not fit it, and what an op or the sink refuses.
  void backward(const Var& output, const Tensor& d_output, Sink& sink);

  /// Whether every op so far takes stacks of cotangents.
  bool takes_stacks() const;

  /// d_output = 1: for a loss, or one loss per ensemble member. Throws ShapeError for an output of
  /// rank > 1, and as above.
  void backward(const Var& loss, Sink& sink);

  /// Throws keel::Error unless `var` is a value of this tape as it is now.
  void check_mine(const char* tag, const Var& var) const;

 private:
  friend class Backward;
  template <class F>
  friend Var record(const char* op, Tensor out, std::initializer_list<const Var*> inputs,
                    F pullback, Takes takes);

  static std::uint32_t next_generation();
  Var append(Tensor value, detail::Pullback* pullback);
  void check_stack(const Shape& output, const Shape& d_output, const Sink& sink) const;

  std::vector<detail::Pullback*> pullbacks_;  // null: a leaf
  std::vector<Tensor> cotangents_;            // by slot; all empty between backward passes
  detail::Arena arena_;
  std::uint32_t generation_ = next_generation();
};

/// The tape all non-constant `inputs` are on; null where all are constants. Throws keel::Error on
/// two tapes, and on a Var from before its tape was cleared.
Tape* common_tape(const char* op, std::initializer_list<const Var*> inputs);

/// What every op ends with: `out`, and, where some input is on a tape, how to pull d_out back:
/// pullback(const Tensor& d_out, Backward& backward). It is dropped unseen where all are constants.
/// Throws as common_tape(), and so does every op.
template <class F>
Var record(const char* op, Tensor out, std::initializer_list<const Var*> inputs, F pullback,
           Takes takes) {
  Tape* tape = common_tape(op, inputs);
  if (!tape) return Var(std::move(out));
  using Node = detail::PullbackOf<F>;
  static_assert(alignof(Node) <= alignof(std::max_align_t));
  return tape->append(std::move(out),
                      new (tape->arena_.take(sizeof(Node))) Node(std::move(pullback), takes));
}

template <class F>
Var record(const char* op, Tensor out, std::initializer_list<const Var*> inputs, F pullback) {
  return record(op, std::move(out), inputs, std::move(pullback), Takes::one);
}

}  // namespace keel
