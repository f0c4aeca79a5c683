// The table of op cases. A row says how to call an op, what its oracle is, and how it complains;
// tests/kernels/ops.cpp drives every row through every check. Adding an op is adding a row.
#pragma once

#include "activation_cases.h"
#include "norm_cases.h"
#include "op_case.h"
#include "sequence_cases.h"

namespace keel::test {

inline std::vector<OpCase> every_op_case() {
  using S = std::vector<Shape>;
  using V = std::span<const Var>;
  using A = oracle::Arrays;
  using I = std::int64_t;
  const auto one = [](I n, I d) { return S{{n, d}}; };
  const auto two = [](I n, I d) { return S{{n, d}, {n, d}}; };
  const auto members = [](I n, I d) { return S{{3, n, d}}; };
  std::vector<OpCase> table = {
      {.name = "add",
       .inputs = two,
       .op = [](V v) { return add(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::add(a[0], a[1]); },
       .tolerance = 1e-7,
       .bad_call =
           [] {
             add(zeros({2, 3}), zeros({3, 2}));
           },
       .complaint = "add: got a [2, 3] and b [3, 2], wanted equal shapes"},
      {.name = "mul",
       .inputs = two,
       .op = [](V v) { return mul(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::mul(a[0], a[1]); },
       .tolerance = 1e-7,
       .bad_call = [] { mul(zeros({2}), Tensor::zeros({2}, DType::f64)); },
       .complaint = "mul: a is float32, b is float64: wanted one dtype"},
      {.name = "scale",
       .inputs = one,
       .op = [](V v) { return scale(v[0], -2.5); },
       .expected = [](const A& a) { return oracle::map(a[0], [](double x) { return -2.5 * x; }); },
       .tolerance = 1e-7,
       .bad_call = [] { scale(Tensor(), 1); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "sum",
       .inputs = one,
       .op = [](V v) { return sum(v[0]); },
       .expected = [](const A& a) { return oracle::sum(a[0]); },
       .tolerance = 3e-4,
       .bad_call = [] { sum(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "sum, members",
       .inputs = members,
       .op = [](V v) { return sum(v[0]); },
       .expected = [](const A& a) { return oracle::sum(a[0]); },
       .tolerance = 3e-4,
       .bad_call = [] { sum(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "mean, members",
       .inputs = members,
       .op = [](V v) { return mean(v[0]); },
       .expected = [](const A& a) { return oracle::mean(a[0]); },
       .tolerance = 1e-6,
       .empty_allowed = false,
       .bad_call =
           [] {
             mean(zeros({0, 7}));
           },
       .complaint = "mean: got x [0, 7], wanted at least one element a member"},
      {.name = "mse",
       .inputs = one,
       .op =
           [](V v) {
             return mse(v[0], Tensor::full(v[0].shape(), 0.25, v[0].value().dtype(),
                                           v[0].value().device()));
           },
       .expected =
           [](const A& a) {
             return oracle::mse(a[0], oracle::map(a[0], [](double) { return 0.25; }));
           },
       .tolerance = 1e-6,
       .empty_allowed = false,
       .bad_call =
           [] {
             mse(zeros({4, 2}), zeros({4, 1}));
           },
       .complaint = "mse: got prediction [4, 2] and target [4, 1]: they do not fit"},
      {.name = "mse, members with one target",
       .inputs = members,
       .op =
           [](V v) {
             const Shape s = v[0].shape();
             return mse(v[0], normal({s[1], s[2]}, {5, 5}, 1, DType::f64)
                                  .to(v[0].value().dtype())
                                  .to(v[0].value().device()));
           },
       .expected =
           [](const A& a) {
             const Shape s = a[0].shape;
             return oracle::mse(a[0], oracle::Array(normal({s[1], s[2]}, {5, 5}, 1, DType::f64)));
           },
       .tolerance = 1e-6,
       .empty_allowed = false,
       .bad_call =
           [] {
             mse(zeros({0, 1}), zeros({0, 1}));
           },
       .complaint = "mse: got prediction [0, 1], wanted at least one element a member"},
      {.name = "dense",
       .inputs =
           [](I n, I d) {
             return S{{n, d}, {5, d}, {5}};
           },
       .op = [](V v) { return dense(v[0], v[1], v[2]); },
       .expected = [](const A& a) { return oracle::dense(a[0], a[1], a[2]); },
       .tolerance = 1e-5,
       .programs_only = false,
       .bad_call =
           [] {
             dense(zeros({4, 3}), zeros({8, 2}), zeros({8}));
           },
       .complaint = "dense: x [4, 3] has 3 columns, weight [8, 2] needs 2"},
      {.name = "dense, NTK scale, width 1",
       .inputs =
           [](I n, I d) {
             return S{{n, d}, {1, d}, {1}};
           },
       .op =
           [](V v) {
             return dense(v[0], v[1], v[2], {0.3, 0.1});
           },
       .expected = [](const A& a) { return oracle::dense(a[0], a[1], a[2], 0.3, 0.1); },
       .tolerance = 1e-5,
       .programs_only = false,
       .bad_call =
           [] {
             dense(zeros({4, 3}), zeros({8, 3}), zeros({1}));
           },
       .complaint = "dense: got bias [1], weight [8, 3] needs [8]"},
      {.name = "dense, as many outputs as columns",
       .inputs =
           [](I n, I d) {
             return S{{n, 2}, {d, 2}, {d}};
           },
       .op = [](V v) { return dense(v[0], v[1], v[2]); },
       .expected = [](const A& a) { return oracle::dense(a[0], a[1], a[2]); },
       .tolerance = 1e-5,
       .programs_only = false,
       .bad_call =
           [] {
             dense(zeros({4, 3}), zeros({8, 3}), Tensor::zeros({8}, DType::f64));
           },
       .complaint = "dense: x is float32, bias is float64: wanted one dtype"},
      {.name = "dense, members",
       .inputs =
           [](I n, I d) {
             return S{{3, n, d}, {3, 4, d}, {3, 4}};
           },
       .op = [](V v) { return dense(v[0], v[1], v[2]); },
       .expected = [](const A& a) { return oracle::dense(a[0], a[1], a[2]); },
       .tolerance = 1e-5,
       .programs_only = false,
       .bad_call =
           [] {
             dense(zeros({2, 4, 3}), zeros({5, 8, 3}), zeros({5, 8}));
           },
       .complaint = "dense: x [2, 4, 3] has 2 members, weight [5, 8, 3] has 5"},
      {.name = "dense, members sharing x",
       .inputs =
           [](I n, I d) {
             return S{{n, d}, {3, 4, d}, {3, 4}};
           },
       .op = [](V v) { return dense(v[0], v[1], v[2]); },
       .expected = [](const A& a) { return oracle::dense(a[0], a[1], a[2]); },
       .tolerance = 1e-5,
       .programs_only = false,
       .bad_call =
           [] {
             dense(zeros({4, 3}), zeros({8}), zeros({8}));
           },
       .complaint = "dense: got x [4, 3] and weight [8], wanted [n, i] and [o, i], or [S, n, i] "
                    "and [S, o, i]"},
      {.name = "dense, members sharing weights",
       .inputs =
           [](I n, I d) {
             return S{{3, n, d}, {4, d}, {4}};
           },
       .op = [](V v) { return dense(v[0], v[1], v[2]); },
       .expected = [](const A& a) { return oracle::dense(a[0], a[1], a[2]); },
       .tolerance = 1e-5,
       .programs_only = false,
       .bad_call =
           [] {
             dense(Tensor(), zeros({8, 3}), zeros({8}));
           },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
  };
  for (const auto& more : {activation_cases(), norm_cases(), sequence_cases()})
    table.insert(table.end(), more.begin(), more.end());
  return table;
}

inline const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> table = every_op_case();
  return table;
}

}  // namespace keel::test
