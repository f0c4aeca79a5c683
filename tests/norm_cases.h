// Normalisations' rows of the table of op cases.
#pragma once

#include "op_case.h"

namespace keel::test {

inline std::vector<OpCase> norm_cases() {
  using S = std::vector<Shape>;
  using V = std::span<const Var>;
  using A = oracle::Arrays;
  using I = std::int64_t;
  const auto one = [](I n, I d) { return S{{n, d}}; };
  const auto members = [](I n, I d) { return S{{3, n, d}}; };
  const auto norm = [](I n, I d) { return S{{n, d}, {d}, {d}}; };
  const auto scaled = [](I n, I d) { return S{{n, d}, {d}}; };
  const auto scaled_members = [](I n, I d) { return S{{3, n, d}, {3, d}}; };
  const auto norm_members = [](I n, I d) { return S{{3, n, d}, {3, d}, {3, d}}; };
  return {
      {.name = "layer_norm",
       .inputs = norm,
       .op = [](V v) { return layer_norm(v[0], v[1], v[2]); },
       .expected = [](const A& a) { return oracle::layer_norm(a[0], &a[1], &a[2], 1e-5); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             layer_norm(zeros({4096, 768}), zeros({512}), zeros({512}));
           },
       .complaint = "layer_norm: gain [512] has 512 elements, x [4096, 768] needs 768"},
      {.name = "layer_norm, members",
       .inputs = norm_members,
       .op = [](V v) { return layer_norm(v[0], v[1], v[2], 1e-3); },
       .expected = [](const A& a) { return oracle::layer_norm(a[0], &a[1], &a[2], 1e-3); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             layer_norm(zeros({2, 3}), -1);
           },
       .complaint = "layer_norm: got eps -1, wanted eps >= 0"},
      {.name = "layer_norm, members sharing gain and bias",
       .inputs =
           [](I n, I d) {
             return S{{3, n, d}, {d}, {d}};
           },
       .op = [](V v) { return layer_norm(v[0], v[1], v[2]); },
       .expected = [](const A& a) { return oracle::layer_norm(a[0], &a[1], &a[2], 1e-5); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             layer_norm(zeros({2, 0}));
           },
       .complaint = "layer_norm: got x [2, 0], wanted at least one column"},
      {.name = "layer_norm, plain, eps 0",
       .inputs = one,
       .op = [](V v) { return layer_norm(v[0], 0); },
       .expected = [](const A& a) { return oracle::layer_norm(a[0], nullptr, nullptr, 0); },
       .tolerance = 3e-6,
       .bad_call = [] { layer_norm(zeros({3})); },
       .complaint = "layer_norm: got x [3], wanted [n, d] or [S, n, d]"},
      {.name = "layer_norm_relu",
       .inputs = norm,
       .op = [](V v) { return layer_norm_relu(v[0], v[1], v[2]); },
       .expected =
           [](const A& a) { return oracle::relu(oracle::layer_norm(a[0], &a[1], &a[2], 1e-5)); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             layer_norm_relu(zeros({2, 3}), zeros({3}), Tensor::zeros({3}, DType::f64));
           },
       .complaint = "layer_norm_relu: x is float32, bias is float64: wanted one dtype"},
      {.name = "layer_norm_relu, members",
       .inputs = norm_members,
       .op = [](V v) { return layer_norm_relu(v[0], v[1], v[2]); },
       .expected =
           [](const A& a) { return oracle::relu(oracle::layer_norm(a[0], &a[1], &a[2], 1e-5)); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             layer_norm_relu(zeros({2, 4, 3}), zeros({2, 3}), zeros({3}));
           },
       .complaint = "layer_norm_relu: got gain [2, 3] and bias [3], wanted one shape"},
      {.name = "layer_norm_relu, plain",
       .inputs = one,
       .op = [](V v) { return layer_norm_relu(v[0]); },
       .expected =
           [](const A& a) {
             return oracle::relu(oracle::layer_norm(a[0], nullptr, nullptr, 1e-5));
           },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             layer_norm_relu(zeros({2, 3}), zeros({3}), Tensor());
           },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "rms_norm",
       .inputs = scaled,
       .op = [](V v) { return rms_norm(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::rms_norm(a[0], &a[1], kRmsEps); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             rms_norm(zeros({4096, 768}), zeros({512}));
           },
       .complaint = "rms_norm: gain [512] has 512 elements, x [4096, 768] needs 768"},
      {.name = "rms_norm, members",
       .inputs = scaled_members,
       .op = [](V v) { return rms_norm(v[0], v[1], 1e-3); },
       .expected = [](const A& a) { return oracle::rms_norm(a[0], &a[1], 1e-3); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             rms_norm(zeros({2, 3}), -1);
           },
       .complaint = "rms_norm: got eps -1, wanted eps >= 0"},
      {.name = "rms_norm, members sharing a gain",
       .inputs =
           [](I n, I d) {
             return S{{3, n, d}, {d}};
           },
       .op = [](V v) { return rms_norm(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::rms_norm(a[0], &a[1], kRmsEps); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             rms_norm(zeros({2, 0}));
           },
       .complaint = "rms_norm: got x [2, 0], wanted at least one column"},
      {.name = "rms_norm, plain, eps 0",
       .inputs = one,
       .op = [](V v) { return rms_norm(v[0], 0); },
       .expected = [](const A& a) { return oracle::rms_norm(a[0], nullptr, 0); },
       .tolerance = 3e-6,
       .bad_call = [] { rms_norm(zeros({3})); },
       .complaint = "rms_norm: got x [3], wanted [n, d] or [S, n, d]"},
      {.name = "rms_norm_relu",
       .inputs = scaled,
       .op = [](V v) { return rms_norm_relu(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::relu(oracle::rms_norm(a[0], &a[1], kRmsEps)); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             rms_norm_relu(zeros({2, 3}), Tensor::zeros({3}, DType::f64));
           },
       .complaint = "rms_norm_relu: x is float32, gain is float64: wanted one dtype"},
      {.name = "rms_norm_relu, members",
       .inputs = scaled_members,
       .op = [](V v) { return rms_norm_relu(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::relu(oracle::rms_norm(a[0], &a[1], kRmsEps)); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             rms_norm_relu(zeros({2, 4, 3}), zeros({3, 3}));
           },
       .complaint = "rms_norm_relu: gain [3, 3] has 9 elements, x [2, 4, 3] needs 3"},
      {.name = "rms_norm_relu, plain",
       .inputs = one,
       .op = [](V v) { return rms_norm_relu(v[0], 1e-5); },
       .expected = [](const A& a) { return oracle::relu(oracle::rms_norm(a[0], nullptr, 1e-5)); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             rms_norm_relu(zeros({2, 3}), Tensor());
           },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "batch_norm",
       .inputs = norm,
       .op = [](V v) { return batch_norm(v[0], v[1], v[2]); },
       .expected = [](const A& a) { return oracle::batch_norm(a[0], &a[1], &a[2], 1e-5); },
       .tolerance = 3e-6,
       .empty_allowed = false,
       .bad_call =
           [] {
             batch_norm(zeros({4096, 768}), zeros({512}), zeros({512}));
           },
       .complaint = "batch_norm: gain [512] has 512 elements, x [4096, 768] needs 768"},
      {.name = "batch_norm, rows of every width that a group has",
       .inputs =
           [](I n, I d) {
             return S{{d, n}, {n}, {n}};
           },
       .op = [](V v) { return batch_norm(v[0], v[1], v[2], 1e-3); },
       .expected = [](const A& a) { return oracle::batch_norm(a[0], &a[1], &a[2], 1e-3); },
       .tolerance = 3e-6,
       .empty_allowed = false,
       .bad_call =
           [] {
             batch_norm(zeros({0, 7}), zeros({7}), zeros({7}));
           },
       .complaint = "batch_norm: got x [0, 7], wanted at least one row and one column"},
      {.name = "batch_norm, members",
       .inputs = norm_members,
       .op = [](V v) { return batch_norm(v[0], v[1], v[2]); },
       .expected = [](const A& a) { return oracle::batch_norm(a[0], &a[1], &a[2], 1e-5); },
       .tolerance = 3e-6,
       .empty_allowed = false,
       .bad_call =
           [] {
             batch_norm(zeros({2, 4, 3}), zeros({2, 3}), zeros({3}));
           },
       .complaint = "batch_norm: got gain [2, 3] and bias [3], wanted one shape"},
      {.name = "batch_norm, members sharing gain and bias",
       .inputs =
           [](I n, I d) {
             return S{{3, n, d}, {d}, {d}};
           },
       .op = [](V v) { return batch_norm(v[0], v[1], v[2]); },
       .expected = [](const A& a) { return oracle::batch_norm(a[0], &a[1], &a[2], 1e-5); },
       .tolerance = 3e-6,
       .empty_allowed = false,
       .bad_call =
           [] {
             batch_norm(zeros({2, 3}), -1);
           },
       .complaint = "batch_norm: got eps -1, wanted eps >= 0"},
      {.name = "batch_norm, members sharing x",
       .inputs =
           [](I n, I d) {
             return S{{n, d}, {3, d}, {3, d}};
           },
       .op = [](V v) { return batch_norm(v[0], v[1], v[2]); },
       .expected =
           [](const A& a) {
             const Shape x = a[0].shape;
             oracle::Array three(Shape{3, x[0], x[1]});
             for (std::size_t i = 0; i < three.v.size(); ++i)
               three.v[i] = a[0].v[i % a[0].v.size()];
             return oracle::batch_norm(three, &a[1], &a[2], 1e-5);
           },
       .tolerance = 3e-6,
       .empty_allowed = false,
       .bad_call =
           [] {
             batch_norm(zeros({4, 3}), zeros({2, 4}), zeros({2, 4}));
           },
       .complaint = "batch_norm: gain [2, 4] has 8 elements, x [4, 3] needs 3"},
      {.name = "batch_norm, plain, eps 0",
       .inputs =
           [](I n, I d) {
             // Of two rows, the derivative would be 0 but for rounding.
             return S{{3, n + 3, d}};
           },
       .op = [](V v) { return batch_norm(v[0], 0); },
       .expected = [](const A& a) { return oracle::batch_norm(a[0], nullptr, nullptr, 0); },
       .tolerance = 3e-6,
       .empty_allowed = false,
       .bad_call = [] { batch_norm(zeros({3})); },
       .complaint = "batch_norm: got x [3], wanted [n, d] or [S, n, d]"},
      {.name = "transpose",
       .inputs = one,
       .op = [](V v) { return transpose(v[0]); },
       .expected = [](const A& a) { return oracle::transpose(a[0]); },
       .tolerance = 0,
       .bad_call = [] { transpose(zeros({3})); },
       .complaint = "transpose: got x [3], wanted [n, d] or [S, n, d]"},
      {.name = "transpose, members",
       .inputs = members,
       .op = [](V v) { return transpose(v[0]); },
       .expected = [](const A& a) { return oracle::transpose(a[0]); },
       .tolerance = 0,
       .bad_call = [] { transpose(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
  };
}

}  // namespace keel::test
