// Gram matrices of Jacobians: which products of factors add up to them.
#include <algorithm>
#include <numeric>

#include "../kernels/factor_gram_outputs.h"
#include "../kernels/gemm.h"
#include "../kernels/triangle.h"
#include "jacobian.h"

namespace keel {
namespace {

using std::int64_t;

// In full mode, entries up to which products are made of all outputs at once, in as much memory.
constexpr int64_t kFewEntries = int64_t{1} << 20;

Tensor of_member(const Tensor& x, int64_t member) { return x.rank() == 3 ? x[member] : x; }

std::vector<int64_t> first(int64_t count) {
  std::vector<int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// o pieces [n, w] -> [o n, w].
Tensor below_one_another(std::span<const Tensor> pieces) {
  if (pieces.size() == 1) return pieces[0];
  const int64_t n = pieces[0].size(0);
  const Tensor all = Tensor::empty({static_cast<int64_t>(pieces.size()) * n, pieces[0].size(1)},
                                   pieces[0].dtype(), pieces[0].device());
  int64_t row = 0;
  for (const Tensor& piece : pieces) {
    copy(all.slice(row, row + n), piece);
    row += n;
  }
  return all;
}

GramSide rows_of(const GramSide& side, int64_t begin, int64_t end) {
  GramSide rows;
  for (const Tensor& piece : side.u) rows.u.push_back(piece.slice(begin, end));
  if (side.v.defined()) rows.v = side.v.slice(begin, end);
  return rows;
}

/// left right' -> [n, m].
Tensor product_of(const Tensor& left, const Tensor& right) {
  const Tensor into = Tensor::empty({left.size(0), right.size(0)}, left.dtype(), left.device());
  gemm(Transpose::no, Transpose::yes, 1, left, right, 0, into);
  return into;
}

}  // namespace

void Jacobian::check_alike(const Jacobian& other) const {
  bool alike = members() == other.members() && outputs_ == other.outputs_ &&
               parameters_.size() == other.parameters_.size();
  for (std::size_t p = 0; alike && p < parameters_.size(); ++p) {
    const auto &mine = layout_.entries()[p], &its = other.layout_.entries()[p];
    alike = mine.name == its.name && mine.member == its.member;
  }
  check<ShapeError>(alike, "jacobian", "got the Jacobians of two different nets, wanted of one");
  check<ShapeError>(dtype_ == other.dtype_, "jacobian", "got a Jacobian of {} and one of {}",
                    name_of(dtype_), name_of(other.dtype_));
  check<DeviceError>(device_ == other.device_, "jacobian", "got a Jacobian on {} and one on {}",
                     device_, other.device_);
}

Shape Jacobian::gram_shape(const Jacobian& other, OutputMode mode, bool mean) const {
  const bool axis = members() > 1 && !mean;
  check<ShapeError>(!axis || mode != OutputMode::full, "jacobian",
                    "got mode full for {} members, wanted their mean, or one member", members());
  Shape shape;
  if (axis) shape.push_back(members());
  if (mode == OutputMode::diag) shape.push_back(outputs_);
  shape.push_back(rows_);
  shape.push_back(other.rows_);
  if (mode == OutputMode::full) {
    shape.push_back(outputs_);
    shape.push_back(outputs_);
  }
  return shape;
}

// Terms of one member's matrix that keeps outputs `left` against outputs `right`, summed pairwise.
void Jacobian::add_terms(const Jacobian& other, int64_t member, std::span<const int64_t> left,
                         std::span<const int64_t> right, std::size_t only,
                         std::vector<GramTerm>& terms) const {
  const auto side = [member](const Use& use, std::span<const int64_t> outputs) {
    GramSide side;
    for (int64_t c : outputs)
      side.u.push_back(of_member(use.u[static_cast<std::size_t>(c)], member));
    if (use.v.defined()) side.v = of_member(use.v, member);
    return side;
  };
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const Parameter &mine = parameters_[p], &its = other.parameters_[p];
    check<ShapeError>(mine.uses.size() == its.uses.size() && mine.bias == its.bias, "jacobian",
                      "{} is used differently on the two sides", layout_.entries()[p].name);
    if (only != kNone ? only != p : mine.is_bias) continue;
    double offset = 0;
    if (only == kNone && mine.bias != kNone)
      offset = parameters_[mine.bias].uses[0].scale * other.parameters_[its.bias].uses[0].scale;
    for (const Use& a : mine.uses)
      for (const Use& b : its.uses)
        terms.push_back({side(a, left), side(b, right), a.scale * b.scale, offset});
  }
}

// Mode full, the mean over members, where a product for each pair of outputs would be small: one
// product of all outputs at once instead, and v . v', which they share, once.
void Jacobian::fill_few(const Jacobian& other, std::size_t only, const Tensor& into) const {
  if (outputs_ == 0) return;
  const std::vector<int64_t> all = first(outputs_);
  const bool symmetric = &other == this;
  const double share = 1.0 / static_cast<double>(members());
  fill(into, 0);
  std::vector<GramTerm> terms;
  for (int64_t s = 0; s < members(); ++s) add_terms(other, s, all, all, only, terms);
  for (const GramTerm& term : terms) {
    const GramSide &left = term.left, &right = term.right;
    add_output_pairs(product_of(below_one_another(left.u), below_one_another(right.u)),
                     left.v.defined() ? product_of(left.v, right.v) : Tensor(), share * term.scale,
                     share * term.offset, symmetric, into);
  }
}

void Jacobian::fill_gram(const Jacobian& other, OutputMode mode, bool mean, bool lower,
                         std::size_t only, const Tensor& into) const {
  check_alike(other);
  const int64_t n = rows_, m = other.rows_, o = outputs_;
  if (n == 0 || m == 0) return;
  const int64_t matrices = mean ? 1 : members(), averaged = members() / matrices;
  const int64_t block = n * m *
                        (mode == OutputMode::trace  ? 1
                         : mode == OutputMode::diag ? o
                                                    : o * o);
  if (mode == OutputMode::full && n * m * o * o <= kFewEntries) return fill_few(other, only, into);
  const std::vector<int64_t> all = first(o);
  std::vector<GramMatrix> grams;
  const auto add = [&](int64_t matrix, std::span<const int64_t> left,
                       std::span<const int64_t> right, double factor, int64_t offset,
                       int64_t stride) {
    GramMatrix gram{n, m, {}, factor, lower, into, matrix * block + offset, m * stride, stride};
    for (int64_t s = matrix; s < matrix + averaged; ++s)
      add_terms(other, s, left, right, only, gram.terms);
    grams.push_back(std::move(gram));
  };
  const double share = 1.0 / static_cast<double>(averaged);
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    if (mode == OutputMode::trace) {
      add(matrix, all, all, share / static_cast<double>(std::max<int64_t>(1, o)), 0, 1);
      continue;
    }
    for (const int64_t& c : all) {
      if (mode == OutputMode::diag) add(matrix, {&c, 1}, {&c, 1}, share, c * n * m, 1);
      for (const int64_t& d : all)
        if (mode == OutputMode::full) add(matrix, {&c, 1}, {&d, 1}, share, c * o + d, o * o);
    }
  }
  factor_gram(grams);
}

Tensor Jacobian::gram(const Jacobian& other, OutputMode mode, bool mean,
                      const WorkProgress& progress) const {
  const Tensor into = Tensor::empty(gram_shape(other, mode, mean), dtype_, device_);
  const bool symmetric = &other == this && into.rank() == 2;
  if (mode == OutputMode::trace && into.rank() == 2 && (mean || members() == 1))
    fill_in_strips(other, symmetric, into, progress);
  else
    fill_gram(other, mode, mean, symmetric, kNone, into);
  if (symmetric) mirror_lower(into);
  return into;
}

// The trace, mean matrix, a strip of rows after the other. An entry has the same bits in a strip as
// in the whole (factor_gram.h).
void Jacobian::fill_in_strips(const Jacobian& other, bool lower, const Tensor& into,
                              const WorkProgress& progress) const {
  constexpr int64_t kEntries = int64_t{1} << 22, kLeast = 512;
  const int64_t n = rows_, m = other.rows_;
  const int64_t strip = std::max(kLeast, kEntries / std::max<int64_t>(m, 1));
  if (!progress || n <= strip || device_.is_cuda())
    return fill_gram(other, OutputMode::trace, true, lower, kNone, into);
  check_alike(other);
  const std::vector<int64_t> all = first(outputs_);
  std::vector<GramTerm> terms;
  for (int64_t s = 0; s < members(); ++s) add_terms(other, s, all, all, kNone, terms);
  const double factor = 1.0 / static_cast<double>(members() * std::max<int64_t>(1, outputs_));
  for (int64_t begin = 0; begin < n; begin += strip) {
    const int64_t end = std::min(n, begin + strip);
    const auto add = [&](std::vector<GramMatrix>& parts, int64_t col_begin, int64_t col_end,
                         bool triangle) {
      if (col_begin == col_end) return;
      GramMatrix part{end - begin, col_end - col_begin,   {}, factor, triangle,
                      into,        begin * m + col_begin, m,  1};
      for (const GramTerm& term : terms)
        part.terms.push_back({rows_of(term.left, begin, end),
                              rows_of(term.right, col_begin, col_end), term.scale, term.offset});
      parts.push_back(std::move(part));
    };
    std::vector<GramMatrix> parts;
    add(parts, 0, lower ? begin : m, false);
    if (lower) add(parts, begin, end, true);
    factor_gram(parts);
    const double share = static_cast<double>(end) / static_cast<double>(n);
    progress(lower ? share * share : share);
  }
}

void Jacobian::gram_into(const Jacobian& other, const Tensor& into,
                         const WorkProgress& progress) const {
  check<ShapeError>(into.shape() == Shape{rows_, other.rows_}, "jacobian",
                    "got into {}, wanted [{}, {}]", into.shape(), rows_, other.rows_);
  fill_in_strips(other, false, into, progress);
}

void Jacobian::gram_lower_into(const Tensor& into, const WorkProgress& progress) const {
  check<ShapeError>(into.shape() == Shape{rows_, rows_}, "jacobian", "got into {}, wanted [{}, {}]",
                    into.shape(), rows_, rows_);
  fill_in_strips(*this, true, into, progress);
}

Tensor Jacobian::gram_lower(bool mean) const {
  const Tensor into = Tensor::zeros(gram_shape(*this, OutputMode::trace, mean), dtype_, device_);
  fill_gram(*this, OutputMode::trace, mean, true, kNone, into);
  return into;
}

std::vector<Jacobian::Block> Jacobian::blocks(const Jacobian& other, OutputMode mode,
                                              bool mean) const {
  std::vector<Block> blocks;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    blocks.push_back(
        {layout_.entries()[p].name, Tensor::empty(gram_shape(other, mode, mean), dtype_, device_)});
    fill_gram(other, mode, mean, false, p, blocks.back().gram);
  }
  return blocks;
}

}  // namespace keel
