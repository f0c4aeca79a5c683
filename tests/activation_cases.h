// Activations' rows of the table of op cases.
#pragma once

#include "op_case.h"

namespace keel::test {

inline std::vector<OpCase> activation_cases() {
  using S = std::vector<Shape>;
  using V = std::span<const Var>;
  using A = oracle::Arrays;
  using I = std::int64_t;
  const auto one = [](I n, I d) { return S{{n, d}}; };
  return {
      {.name = "relu",
       .inputs = one,
       .op = [](V v) { return relu(v[0]); },
       .expected = [](const A& a) { return oracle::relu(a[0]); },
       .tolerance = 0,
       .bad_call = [] { relu(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "leaky_relu",
       .inputs = one,
       .op = [](V v) { return leaky_relu(v[0], 0.3); },
       .expected = [](const A& a) { return oracle::leaky_relu(a[0], 0.3); },
       .tolerance = 1e-7,
       .bad_call =
           [] {
             leaky_relu(zeros({2, 3}), -1);
           },
       .complaint = "leaky_relu: got slope -1, wanted 0 to 1"},
      {.name = "tanh",
       .inputs = one,
       .op = [](V v) { return tanh(v[0]); },
       .expected = [](const A& a) { return oracle::tanh(a[0]); },
       .tolerance = 5e-7,
       .bad_call = [] { tanh(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "sigmoid",
       .inputs = one,
       .op = [](V v) { return sigmoid(v[0]); },
       .expected = [](const A& a) { return oracle::sigmoid(a[0]); },
       .tolerance = 5e-7,
       .bad_call = [] { sigmoid(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "softplus",
       .inputs = one,
       .op = [](V v) { return softplus(v[0]); },
       .expected = [](const A& a) { return oracle::softplus(a[0]); },
       .tolerance = 5e-7,
       .bad_call = [] { softplus(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "elu",
       .inputs = one,
       .op = [](V v) { return elu(v[0]); },
       .expected = [](const A& a) { return oracle::elu(a[0], 1); },
       .tolerance = 5e-7,
       .bad_call = [] { elu(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "elu, alpha",
       .inputs = one,
       .op = [](V v) { return elu(v[0], 0.3); },
       .expected = [](const A& a) { return oracle::elu(a[0], 0.3); },
       .tolerance = 5e-7,
       .bad_call =
           [] {
             elu(zeros({2, 3}), -1);
           },
       .complaint = "elu: got alpha -1, wanted 0 to 100"},
      {.name = "selu",
       .inputs = one,
       .op = [](V v) { return selu(v[0]); },
       .expected = [](const A& a) { return oracle::selu(a[0]); },
       .tolerance = 5e-7,
       .bad_call = [] { selu(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "gelu",
       .inputs = one,
       .op = [](V v) { return gelu(v[0]); },
       .expected = [](const A& a) { return oracle::gelu(a[0]); },
       .tolerance = 5e-7,
       .bad_call = [] { gelu(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "gelu, by tanh",
       .inputs = one,
       .op = [](V v) { return gelu_by_tanh(v[0]); },
       .expected = [](const A& a) { return oracle::gelu_by_tanh(a[0]); },
       .tolerance = 5e-7,
       .bad_call = [] { gelu_by_tanh(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "silu",
       .inputs = one,
       .op = [](V v) { return silu(v[0]); },
       .expected = [](const A& a) { return oracle::silu(a[0]); },
       .tolerance = 5e-7,
       .bad_call = [] { silu(Tensor()); },
       .complaint = "tensor: used after it was moved from, or before it was filled"},
      {.name = "silu, beta",
       .inputs = one,
       .op = [](V v) { return silu(v[0], 1.702); },
       .expected = [](const A& a) { return oracle::silu(a[0], 1.702); },
       .tolerance = 5e-7,
       .bad_call =
           [] {
             silu(zeros({2, 3}), 0);
           },
       .complaint = "silu: got beta 0, wanted 0.01 to 100"},
      {.name = "prelu",
       .inputs =
           [](I n, I d) {
             return S{{n, d}, {1}};
           },
       .op = [](V v) { return prelu(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::prelu(a[0], a[1]); },
       .tolerance = 1e-7,
       .bad_call =
           [] {
             prelu(zeros({2, 3}), zeros({2}));
           },
       .complaint = "prelu: got slope [2], x [2, 3] needs [1] or [3]"},
      {.name = "prelu, a slope a unit",
       .inputs =
           [](I n, I d) {
             return S{{n, d}, {d}};
           },
       .op = [](V v) { return prelu(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::prelu(a[0], a[1]); },
       .tolerance = 1e-7,
       .bad_call = [] { prelu(zeros({3}), zeros({3})); },
       .complaint = "prelu: got x [3], wanted [n, d] or [S, n, d]"},
      {.name = "prelu, members",
       .inputs =
           [](I n, I d) {
             return S{{3, n, d}, {3, 1}};
           },
       .op = [](V v) { return prelu(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::prelu(a[0], a[1]); },
       .tolerance = 1e-7,
       .bad_call =
           [] {
             prelu(zeros({2, 3}), Tensor::zeros({3}, DType::f64));
           },
       .complaint = "prelu: x is float32, slope is float64: wanted one dtype"},
      {.name = "prelu, members, a slope a unit",
       .inputs =
           [](I n, I d) {
             return S{{3, n, d}, {3, d}};
           },
       .op = [](V v) { return prelu(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::prelu(a[0], a[1]); },
       .tolerance = 1e-7,
       .bad_call =
           [] {
             prelu(zeros({2, 4, 3}), zeros({3, 3}));
           },
       .complaint = "prelu: got slope [3, 3], x [2, 4, 3] needs [1] or [3]"},
      {.name = "prelu, members sharing slopes",
       .inputs =
           [](I n, I d) {
             return S{{3, n, d}, {d}};
           },
       .op = [](V v) { return prelu(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::prelu(a[0], a[1]); },
       .tolerance = 1e-7,
       .bad_call =
           [] {
             prelu(zeros({2, 3}), zeros({2, 3}));
           },
       .complaint = "prelu: got slope [2, 3], x [2, 3] needs [1] or [3]"},
  };
}

}  // namespace keel::test
