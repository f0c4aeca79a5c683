#include "jacobian.h"

#include <algorithm>

#include "../kernels/factor_rows.h"
#include "../kernels/gemm.h"
#include "../kernels/sum.h"

namespace keel {
namespace {

using std::int64_t;

constexpr int64_t kStackedRows = int64_t{1} << 14;  // of all cotangents of a backward pass

const void* address(const Tensor& x) {
  return dispatch(x.dtype(), [&](auto t) -> const void* { return x.data<decltype(t)>(); });
}

bool same_elements(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && address(a) == address(b);
}

/// d_output that picks columns [begin, end) of an output, one below the other.
Tensor units(const Tensor& output, int64_t begin, int64_t end) {
  return dispatch(output.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto size = static_cast<std::size_t>(output.elements());
    const auto width = static_cast<std::size_t>(output.size(-1));
    std::vector<T> values(static_cast<std::size_t>(end - begin) * size);
    for (int64_t c = begin; c < end; ++c) {
      const auto first = static_cast<std::size_t>(c - begin) * size;
      for (std::size_t i = static_cast<std::size_t>(c); i < size; i += width) values[first + i] = 1;
    }
    if (end - begin == 1) return Tensor::from(values, output.shape(), output.device());
    return Tensor::from(values, {(end - begin) * output.size(0), output.size(1)}, output.device());
  });
}

}  // namespace

Jacobian::Jacobian(const Net& net, const Tensor& x)
    : layout_(net.layout()), dtype_(net.flat().dtype()), device_(net.flat().device()) {
  check<ShapeError>(x.rank() >= 2, "jacobian", "got x {}, wanted [n, {}]", x.shape(),
                    net.input_width());
  net.check_rows_apart("jacobian");
  Tape tape;
  const std::vector<Var> leaves = net.leaves(tape);
  const Var output = net.forward(x, leaves);
  collect(tape, output, leaves);
}

Jacobian::Jacobian(Tape& tape, const Var& output, std::span<const Var> leaves,
                   const ParameterLayout& layout)
    : layout_(layout), dtype_(output.value().dtype()), device_(output.value().device()) {
  check<ShapeError>(leaves.size() == layout_.entries().size(), "jacobian",
                    "got {} leaves for {} parameters", leaves.size(), layout_.entries().size());
  collect(tape, output, leaves);
}

void Jacobian::collect(Tape& tape, const Var& output, std::span<const Var> leaves) {
  const Tensor& value = output.value();
  const bool constant = output.tape() == nullptr;  // nothing it is made of is a parameter
  const bool own = members() > 1 && value.rank() == 3 && value.size(0) == members();
  check<ShapeError>(own || (value.rank() == 2 && (members() == 1 || constant)), "jacobian",
                    "got output {} of {} members, wanted [n, o] or [S, n, o]", value.shape(),
                    members());
  rows_ = value.size(-2);
  outputs_ = value.size(-1);
  parameters_.resize(leaves.size());
  if (constant) return;
  // Many rows fill products by themselves, and all their cotangents would only take memory.
  const bool stacks = value.rank() == 2 && rows_ > 0 && tape.takes_stacks();
  const int64_t together = stacks ? std::max<int64_t>(1, kStackedRows / rows_) : 1;
  for (int64_t c = 0; c < outputs_; c += together) {
    const int64_t end = std::min(c + together, outputs_);
    JacobianSink sink;
    tape.backward(output, units(value, c, end), sink);
    add_pass(sink, leaves, end - c);
  }
  pair_biases();
}

// Pullbacks hand over the same factors in the same order for every output.
void Jacobian::add_pass(const JacobianSink& sink, std::span<const Var> leaves, int64_t cotangents) {
  std::vector<std::size_t> seen(leaves.size());
  for (const JacobianSink::Factor& factor : sink.factors()) {
    const auto at = std::find_if(leaves.begin(), leaves.end(),
                                 [&](const Var& leaf) { return leaf.slot() == factor.leaf; });
    if (at == leaves.end()) continue;
    const auto p = static_cast<std::size_t>(at - leaves.begin());
    const auto* outer = std::get_if<Outer>(&factor.block);
    const auto* rows = std::get_if<Rows>(&factor.block);
    const Tensor& u = outer ? outer->delta : rows->g;
    const Shape wanted =
        members() > 1 ? Shape{members(), rows_, u.size(-1)} : Shape{cotangents * rows_, u.size(-1)};
    check<ShapeError>(u.shape() == wanted, "jacobian", "{} has a factor {}, wanted {}",
                      layout_.entries()[p].name, u.shape(), wanted);
    std::vector<Use>& uses = parameters_[p].uses;
    if (seen[p] == uses.size())
      uses.push_back({{}, outer ? outer->input : Tensor(), outer ? outer->scale : rows->scale});
    Use& use = uses[seen[p]++];
    check(use.v.defined() == (outer != nullptr) && (!outer || same_elements(use.v, outer->input)),
          "jacobian", "{} has factors of several kinds or inputs, wanted the same for each output",
          layout_.entries()[p].name);
    if (cotangents == 1) use.u.push_back(u);
    for (int64_t c = 0; cotangents > 1 && c < cotangents; ++c)
      use.u.push_back(u.slice(c * rows_, (c + 1) * rows_));
  }
}

// A dense layer's bias has the weight's delta as its rows: (delta . delta')(s_w^2 a . a' + s_b^2).
void Jacobian::pair_biases() {
  const auto pairs = [](const Parameter& weight, const Parameter& bias) {
    if (weight.uses.size() != 1 || bias.uses.size() != 1 || bias.is_bias) return false;
    const Use &w = weight.uses[0], &b = bias.uses[0];
    return w.v.defined() && !b.v.defined() &&
           std::equal(w.u.begin(), w.u.end(), b.u.begin(), b.u.end(), same_elements);
  };
  for (Parameter& weight : parameters_)
    for (std::size_t q = 0; q < parameters_.size() && weight.bias == kNone; ++q)
      if (pairs(weight, parameters_[q])) {
        weight.bias = q;
        parameters_[q].is_bias = true;
      }
}

int64_t Jacobian::parameters() const {
  int64_t total = 0;
  for (const auto& entry : layout_.entries()) total += entry.member.elements();
  return total;
}

Tensor Jacobian::diag(bool mean) const {
  const int64_t s = members();
  const Tensor all = Tensor::zeros({s, rows_}, dtype_, device_);
  const double share = 1.0 / static_cast<double>(std::max<int64_t>(1, outputs_));
  for (const Parameter& parameter : parameters_) {
    if (parameter.is_bias) continue;
    double offset = 0;
    if (parameter.bias != kNone) {
      const double scale = parameters_[parameter.bias].uses[0].scale;
      offset = share * scale * scale;
    }
    for (const Use& a : parameter.uses)
      for (const Use& b : parameter.uses)
        for (std::size_t c = 0; c < a.u.size(); ++c)
          add_gram_diagonal(a.u[c], b.u[c], a.v, b.v, share * a.scale * b.scale, offset, all);
  }
  if (s == 1) return all.reshape({rows_});
  if (!mean) return all;
  const Tensor averaged = Tensor::empty({rows_}, dtype_, device_);
  sum_rows(all, 1.0 / static_cast<double>(s), false, averaged);
  return averaged;
}

// a V^T of an Outer factor: what row dots with delta turn into J v. Not scaled.
Tensor Jacobian::against_inputs(const Use& use, const Tensor& weight) const {
  const int64_t o = weight.size(-2);
  const Tensor z =
      Tensor::empty(members() > 1 ? Shape{members(), rows_, o} : Shape{rows_, o}, dtype_, device_);
  gemm(Transpose::no, Transpose::yes, 1, use.v, weight, 0, z);
  return z;
}

Tensor Jacobian::apply(const Tensor& v) const {
  check<ShapeError>(v.shape() == Shape{layout_.elements()}, "jacobian", "got v {}, wanted [{}]",
                    v.shape(), layout_.elements());
  const Tensor out = Tensor::zeros(
      members() > 1 ? Shape{members(), rows_, outputs_} : Shape{rows_, outputs_}, dtype_, device_);
  check_same_kind("jacobian", "v", v, "the Jacobian", out);
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    for (const Use& use : parameters_[p].uses) {
      const Tensor own = layout_.view(v, p);
      const Tensor z = use.v.defined() ? against_inputs(use, own) : own;
      for (std::size_t c = 0; c < use.u.size(); ++c)
        add_row_dots(use.scale, use.u[c], z, out, static_cast<int64_t>(c));
    }
  return out;
}

Shape Jacobian::parameter_shape(std::size_t p) const {
  const Shape& member = layout_.entries()[p].member;
  Shape shape;
  if (members() > 1) shape.push_back(members());
  for (int axis = 0; axis < member.rank(); ++axis) shape.push_back(member[axis]);
  return shape;
}

// into += J_p^T of columns (of u, output) of u: the derivative of sum u_kc f_kc.
void Jacobian::add_transpose(const Parameter& parameter, const Tensor& u,
                             std::span<const std::pair<int64_t, int64_t>> columns,
                             const Tensor& into) const {
  for (const Use& use : parameter.uses) {
    Tensor scaled;
    for (const auto& [column, output] : columns) {
      const Tensor next = scale_rows(use.u[static_cast<std::size_t>(output)], u, column);
      if (scaled.defined())
        accumulate(scaled, next);
      else
        scaled = next;
    }
    if (!scaled.defined()) continue;
    if (use.v.defined())
      gemm(Transpose::yes, Transpose::no, use.scale, scaled, use.v, 1, into);
    else
      sum_rows(scaled, use.scale, true, into);
  }
}

Tensor Jacobian::apply_transpose(const Tensor& u) const {
  const Shape wanted = members() > 1 ? Shape{members(), rows_, outputs_} : Shape{rows_, outputs_};
  check<ShapeError>(u.shape() == wanted, "jacobian", "got u {}, wanted {}", u.shape(), wanted);
  const Tensor flat = Tensor::zeros({layout_.elements()}, dtype_, device_);
  check_same_kind("jacobian", "u", u, "the Jacobian", flat);
  std::vector<std::pair<int64_t, int64_t>> columns;
  for (int64_t c = 0; c < outputs_; ++c) columns.emplace_back(c, c);
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    add_transpose(parameters_[p], u, columns, layout_.view(flat, p));
  return flat;
}

Tensor Jacobian::product(const Tensor& v) const {
  check<ShapeError>(v.rank() == 2 && v.size(0) == rows_, "jacobian", "got v {}, wanted [{}, k]",
                    v.shape(), rows_);
  const int64_t k = v.size(1);
  const Tensor all = Tensor::zeros({members(), rows_, k}, dtype_, device_);
  check_same_kind("jacobian", "v", v, "the Jacobian", all);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (parameters_[p].uses.empty()) continue;
    // One parameter's derivative at a time: J^T v as a whole is not needed.
    const Tensor own = Tensor::empty(parameter_shape(p), dtype_, device_);
    for (int64_t column = 0; column < k; ++column)
      for (int64_t c = 0; c < outputs_; ++c) {
        const std::pair<int64_t, int64_t> pair{column, c};
        fill(own, 0);
        add_transpose(parameters_[p], v, {&pair, 1}, own);
        for (const Use& use : parameters_[p].uses)
          add_row_dots(use.scale, use.u[static_cast<std::size_t>(c)],
                       use.v.defined() ? against_inputs(use, own) : own, all, column);
      }
  }
  const Tensor out = Tensor::empty({rows_, k}, dtype_, device_);
  const double share = static_cast<double>(members() * std::max<int64_t>(1, outputs_));
  sum_rows(all.reshape({members(), rows_ * k}), 1 / share, false, out.reshape({rows_ * k}));
  return out;
}

}  // namespace keel
