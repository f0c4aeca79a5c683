// Jacobian: the per-sample derivatives of a net's outputs with respect to its parameters, kept as
// factors (core/sink.h) and used as a linear operator. No [n, parameters] array exists anywhere.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/work_progress.h"
#include "../kernels/factor_gram.h"
#include "../nn/net.h"

namespace keel {

/// What a Gram matrix of nets with o outputs keeps of the o x o block of each pair.
/// trace: its trace / o -> [n, m]. diag: [o, n, m]. full: [n, m, o, o'].
enum class OutputMode { trace, diag, full };

/// A net of S members has S Jacobians. A Gram matrix then has a leading axis S, or is their mean.
/// Tensors are of the net's dtype, on its device. Keeps what it needs of the net: it may change, or
/// go, afterwards.
class Jacobian {
 public:
  /// One forward pass, and one backward pass of all outputs' cotangents at once; of an ensemble's,
  /// or where rows are many, one after another. x [n, input_width], or [S, n, input_width] where
  /// members have inputs of their own.
  Jacobian(const Net& net, const Tensor& x);

  /// Of any graph: `output` [n, o], or [S, n, o], by `leaves`, one for each entry of `layout`. Only
  /// ops whose derivatives split by sample may use the leaves (JacobianSink); they may use one
  /// several times.
  Jacobian(Tape& tape, const Var& output, std::span<const Var> leaves,
           const ParameterLayout& layout);

  std::int64_t rows() const { return rows_; }
  std::int64_t outputs() const { return outputs_; }
  std::int64_t members() const { return layout_.members(); }
  std::int64_t parameters() const;  ///< of a member
  const ParameterLayout& layout() const { return layout_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }

  /// J J'^T over the samples of both. Members' full matrices have more axes than a Tensor: `mean`
  /// is needed there. Only a mean of traces on a CPU tells of progress.
  Tensor gram(const Jacobian& other, OutputMode mode = OutputMode::trace, bool mean = false,
              const WorkProgress& progress = {}) const;
  Tensor gram(OutputMode mode = OutputMode::trace, bool mean = false) const {
    return gram(*this, mode, mean);
  }

  /// trace, mean -> into [n, m].
  void gram_into(const Jacobian& other, const Tensor& into,
                 const WorkProgress& progress = {}) const;

  /// Entries i >= j of trace, mean J J^T -> into [n, n]; the rest is left alone.
  void gram_lower_into(const Tensor& into, const WorkProgress& progress = {}) const;

  /// The same with zeros above the diagonal -> [n, n], or [S, n, n].
  Tensor gram_lower(bool mean = false) const;

  /// Diagonal of the trace-mode Gram matrix -> [n], or [S, n].
  Tensor diag(bool mean = false) const;

  /// J v: v flat as Net::flat() -> [n, o], or [S, n, o].
  Tensor apply(const Tensor& v) const;

  /// J^T u: u [n, o], or [S, n, o] -> flat as Net::flat(), zeros in the gaps.
  Tensor apply_transpose(const Tensor& u) const;

  /// The trace, mean J J^T times v [n, k] -> [n, k], as J (J^T v): its cost grows with n x
  /// parameters, not n x n.
  Tensor product(const Tensor& v) const;

  struct Block {
    std::string name;  ///< "0.weight", "0.bias", ...
    Tensor gram;
  };

  /// Gram matrix of each parameter's own block of J, in layout order. They add up to gram().
  std::vector<Block> blocks(const Jacobian& other, OutputMode mode = OutputMode::trace,
                            bool mean = false) const;

 private:
  // What one use of a parameter contributes: u of each output; v is undefined for a Rows factor.
  struct Use {
    std::vector<Tensor> u;
    Tensor v;
    double scale;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Parameter {
    std::vector<Use> uses;
    std::size_t bias = kNone;  // the parameter whose factors are this one's u,
    bool is_bias = false;      // and whether this is one: the product with u then counts for both
  };

  void collect(Tape& tape, const Var& output, std::span<const Var> leaves);
  void add_pass(const JacobianSink& sink, std::span<const Var> leaves, std::int64_t cotangents);
  void pair_biases();
  void check_alike(const Jacobian& other) const;
  Shape gram_shape(const Jacobian& other, OutputMode mode, bool mean) const;
  void add_terms(const Jacobian& other, std::int64_t member, std::span<const std::int64_t> left,
                 std::span<const std::int64_t> right, std::size_t only,
                 std::vector<GramTerm>& terms) const;
  void fill_gram(const Jacobian& other, OutputMode mode, bool mean, bool lower, std::size_t only,
                 const Tensor& into) const;
  void fill_few(const Jacobian& other, std::size_t only, const Tensor& into) const;
  void fill_in_strips(const Jacobian& other, bool lower, const Tensor& into,
                      const WorkProgress& progress) const;
  void add_transpose(const Parameter& parameter, const Tensor& u,
                     std::span<const std::pair<std::int64_t, std::int64_t>> columns,
                     const Tensor& into) const;
  Shape parameter_shape(std::size_t p) const;
  Tensor against_inputs(const Use& use, const Tensor& weight) const;

  ParameterLayout layout_;
  std::int64_t rows_ = 0, outputs_ = 0;
  DType dtype_;
  Device device_;
  std::vector<Parameter> parameters_;  // in layout order
};

}  // namespace keel
