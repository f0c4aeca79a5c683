// Jacobian as a linear operator, weights that are used twice, and input that hurts.
#include <doctest/doctest.h>

#include <cmath>

#include "../../kernels/dense.h"
#include "../../kernels/relu.h"
#include "../../ntk/jacobian.h"
#include "../message_of.h"
#include "explicit_jacobian.h"
#include "jacobian_helpers.h"

using namespace jacobian_helpers;
using explicit_jacobian::Explicit;

TEST_CASE("jacobian: J v, J' u and J (J' v)") {
  for (const int64_t members : {1, 3})
    for (const char* spec : {kDeep, "dense(1)", "dense(4) layernorm silu dense(2)"}) {
      CAPTURE(spec);
      CAPTURE(members);
      const Net net(spec, 3, options(Parameterisation::ntk, members));
      const Tensor x = inputs(26, 3, 1);
      const Jacobian j(net, x);
      const int64_t o = net.output_width();
      const Tensor v = normal({net.layout().elements()}, {5, 1}, 1, DType::f64);
      const Tensor u =
          normal(members > 1 ? Shape{members, 26, o} : Shape{26, o}, {5, 2}, 1, DType::f64);
      const Tensor forward = j.apply(v), back = j.apply_transpose(u);
      CHECK(forward.shape() == u.shape());
      CHECK(back.shape() == v.shape());
      // <u, J v> = <J' u, v>; the gaps of the layout, where v is not zero, must not count.
      CHECK(dot(u, forward) == doctest::Approx(dot(back, v)).epsilon(1e-12));
      // The derivative of sum u f by every parameter, which GradientSink knows too.
      Tape tape;
      const auto leaves = net.leaves(tape);
      GradientSink gradients;
      tape.backward(net.forward(x, leaves), u, gradients);
      for (std::size_t p = 0; p < leaves.size(); ++p)
        CHECK(test::relative_difference(net.layout().view(back, p), gradients[leaves[p]]) < 1e-12);

      const Tensor w = normal({26, 2}, {5, 3}, 1, DType::f64);
      const Tensor product = j.product(w);
      const auto theta = j.gram(OutputMode::trace, true).to_vector<double>();
      const auto values = w.to_vector<double>();
      CHECK(error_of(product, [&](auto i, auto c) {
              double total = 0;
              for (int64_t k = 0; k < 26; ++k) total += theta[i * 26 + k] * values[k * 2 + c];
              return total;
            }) < 1e-12);
    }
}

TEST_CASE("jacobian: cross terms of a weight used twice, and of its bias") {
  for (const int64_t n : {1, 5, 40}) {
    const Tensor x = inputs(n, 4, 1), x2 = inputs(7, 4, 2);
    ParameterLayout layout(1);
    layout.push_back(0, {"weight", {4, 4}});
    layout.push_back(0, {"bias", {4}});
    const Tensor w = normal({4, 4}, {9, 1}, 1, DType::f64), b = normal({4}, {9, 2}, 1, DType::f64);
    const auto twice = [](const Var& input, const std::vector<Var>& p) {
      return dense(relu(dense(input, p[0], p[1], {0.7, 0.3})), p[0], p[1], {1.1, 0.2});
    };
    const auto factored = [&](const Tensor& input) {
      Tape tape;
      const std::vector<Var> leaves{tape.leaf(w), tape.leaf(b)};
      return Jacobian(tape, twice(input, leaves), leaves, layout);
    };
    const auto written_out = [&](const Tensor& input) {
      Explicit rows{input.size(0), 4, {{}, {}}};
      for (int64_t k = 0; k < input.size(0); ++k)
        for (int64_t c = 0; c < 4; ++c) {
          Tape tape;
          const std::vector<Var> leaves{tape.leaf(w), tape.leaf(b)};
          const Var out = twice(input.slice(k, k + 1), leaves);
          std::vector<double> unit(4);
          unit[c] = 1;
          GradientSink gradients;
          tape.backward(out, Tensor::from(unit, {1, 4}), gradients);
          for (int p = 0; p < 2; ++p)
            rows.rows[p].push_back(gradients[leaves[p]].to_vector<double>());
        }
      return rows;
    };
    const Jacobian j = factored(x), j2 = factored(x2);
    const Explicit a = written_out(x), a2 = written_out(x2);
    CHECK(error_of(j.gram(j2), [&](auto i, auto k) { return a.trace(a2, i, k); }) < 1e-12);
    CHECK(error_of(j.diag().reshape({1, n}), [&](auto, auto k) { return a.trace(a, k, k); }) <
          1e-12);
    for (const auto& [other, its] : {std::pair{&j, &a}, {&j2, &a2}}) {
      const auto full = j.gram(*other, OutputMode::full).to_vector<double>();
      for (int64_t pair = 0; pair < 16; ++pair) {
        std::vector<double> values;
        for (int64_t e = pair; e < static_cast<int64_t>(full.size()); e += 16)
          values.push_back(full[e]);
        const Explicit& right = *its;
        CHECK(error_of(Tensor::from(values, {n, right.n}), [&](auto i, auto k) {
                return a.dot(right, i, pair / 4, k, pair % 4);
              }) < 1e-12);
      }
    }
    for (int p = 0; p < 2; ++p)
      CHECK(error_of(j.blocks(j2)[p].gram, [&](auto i, auto k) { return a.trace(a2, i, k, p); }) <
            1e-12);
    const Tensor v = normal({n, 1}, {9, 3}, 1, DType::f64);
    const auto values = v.to_vector<double>();
    CHECK(error_of(j.product(v), [&](auto i, auto) {
            double total = 0;
            for (int64_t k = 0; k < n; ++k) total += a.trace(a, i, k) * values[k];
            return total;
          }) < 1e-12);
  }
}

TEST_CASE("jacobian: float32 agrees with float64 to 1e-5") {
  const Net net(kDeep, 3, options(Parameterisation::ntk));
  Net single(kDeep, 3, options(Parameterisation::ntk, 1, DType::f32));
  copy(single.flat(), net.flat());
  const Tensor x = inputs(60, 3, 1, DType::f32);
  const Jacobian j(single, x), exact(net, x.to(DType::f64));
  CHECK(test::relative_difference(j.gram(), exact.gram()) < 1e-5);
  CHECK(test::relative_difference(j.diag(), exact.diag()) < 1e-5);
  const Tensor v = normal({60, 1}, {4, 0}, 1, DType::f64);
  CHECK(test::relative_difference(j.product(v.to(DType::f32)), exact.product(v)) < 1e-5);
}

TEST_CASE("jacobian: an output that no parameter touches has a kernel of zeros") {
  Tape tape;
  const std::vector<Var> leaves{tape.leaf(Tensor::zeros({2, 3}, DType::f64))};
  ParameterLayout layout(1);
  layout.push_back(0, {"weight", {2, 3}});
  const Jacobian j(tape, relu(inputs(4, 3, 1)), leaves, layout);
  CHECK(j.outputs() == 3);
  for (const Tensor& t : {j.gram(), j.diag(), j.product(inputs(4, 2, 1))})
    for (double v : t.to_vector<double>()) CHECK(v == 0);
}

TEST_CASE("jacobian: repeated rows, huge and NaN inputs stay where they are") {
  const Net net("dense(8) relu dense(1)", 2, options(Parameterisation::ntk));
  const std::vector<double> values = {1, 2, 1, 2, 1e30, -1e30, std::nan(""), 0};
  const auto gram = Jacobian(net, Tensor::from(values, {4, 2})).gram().to_vector<double>();
  CHECK(gram[0] == gram[1]);
  CHECK(gram[0] == gram[5]);
  CHECK(std::isfinite(gram[2]));
  CHECK(gram[10] > 1e58);
  for (int k = 0; k < 4; ++k) CHECK(std::isnan(gram[12 + k]));
}

TEST_CASE("jacobian: what does not fit is refused in one line") {
  const Net net("dense(2)", 3, options(Parameterisation::ntk));
  const Net other("dense(4) dense(2)", 3, options(Parameterisation::ntk, 2)),
      single("dense(2)", 3, options(Parameterisation::ntk, 1, DType::f32));
  const Tensor x = inputs(4, 3, 1);
  const Jacobian j(net, x), j2(other, x), j32(single, x.to(DType::f32));
  CHECK(message_of([&] { (void)j.gram(j2); }) ==
        "jacobian: got the Jacobians of two different nets, wanted of one");
  CHECK(message_of([&] { (void)j.gram(j32); }) ==
        "jacobian: got a Jacobian of float64 and one of float32");
  CHECK(message_of([&] {
          j.gram_into(j, Tensor::zeros({4, 5}, DType::f64));
        }) == "jacobian: got into [4, 5], wanted [4, 4]");
  CHECK(message_of([&] {
          j.gram_lower_into(Tensor::zeros({5, 5}, DType::f64));
        }) == "jacobian: got into [5, 5], wanted [4, 4]");
  CHECK(message_of([&] { (void)j.apply(Tensor::zeros({7}, DType::f64)); }) ==
        "jacobian: got v [7], wanted [32]");
  CHECK(message_of([&] {
          (void)j.apply_transpose(Tensor::zeros({4, 1}, DType::f64));
        }) == "jacobian: got u [4, 1], wanted [4, 2]");
  CHECK(message_of([&] {
          (void)j.product(Tensor::zeros({3, 1}, DType::f64));
        }) == "jacobian: got v [3, 1], wanted [4, k]");
  CHECK(message_of([&] { (void)j2.gram(OutputMode::full); }) ==
        "jacobian: got mode full for 2 members, wanted their mean, or one member");
  Tape tape;
  const std::vector<Var> leaves{tape.leaf(x)};
  ParameterLayout layout(1);
  layout.push_back(0, {"weight", {4, 3}});
  CHECK(message_of([&] {
          Jacobian(tape, relu(leaves[0]), leaves, layout);
        }).starts_with("jacobian: the derivative of this value does not split by sample"));
}
