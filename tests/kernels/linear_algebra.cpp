// gemm and adam against plain loops in double.
#include <doctest/doctest.h>

#include <cmath>

#include "../../core/threads.h"
#include "../op_cases.h"

using namespace keel;

namespace {

double at(const std::vector<double>& v, std::int64_t cols, bool transposed, std::int64_t i,
          std::int64_t j) {
  return transposed ? v[j * cols + i] : v[i * cols + j];
}

}  // namespace

TEST_CASE("gemm agrees with three loops, transposed or not, shared or per member") {
  const std::int64_t m = 5, n = 7, k = 33, members = 3;
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (bool shared_a : {false, true}) {
        CAPTURE(ta);
        CAPTURE(tb);
        CAPTURE(shared_a);
        const Shape one = ta ? Shape{k, m} : Shape{m, k};
        const Tensor a =
            normal(shared_a ? one : Shape{members, one[0], one[1]}, {1, 1}, 1, DType::f64);
        const Tensor b =
            normal(tb ? Shape{members, n, k} : Shape{members, k, n}, {1, 2}, 1, DType::f64);
        const Tensor c = normal({members, m, n}, {1, 3}, 1, DType::f64);
        const std::vector<double> before = c.to_vector<double>();
        gemm(ta ? Transpose::yes : Transpose::no, tb ? Transpose::yes : Transpose::no, 0.5, a, b, 2,
             c);
        const std::vector<double> after = c.to_vector<double>();
        for (std::int64_t s = 0; s < members; ++s) {
          const auto va = (shared_a ? a : a[s]).to_vector<double>(), vb = b[s].to_vector<double>();
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              double total = 0;
              for (std::int64_t l = 0; l < k; ++l)
                total += at(va, one[1], ta, i, l) * at(vb, tb ? k : n, tb, l, j);
              const std::int64_t cell = (s * m + i) * n + j;
              CHECK(after[cell] == doctest::Approx(0.5 * total + 2 * before[cell]).epsilon(1e-12));
            }
        }
      }
}

TEST_CASE("gemm of an empty sum is zero, of no rows nothing") {
  const Tensor c = Tensor::full({2, 3}, 7);
  gemm(Transpose::no, Transpose::no, 1, Tensor::zeros({2, 0}), Tensor::zeros({0, 3}), 0, c);
  for (double v : c.to_vector<double>()) CHECK(v == 0);
  gemm(Transpose::no, Transpose::no, 1, Tensor::zeros({0, 4}), Tensor::zeros({4, 3}), 0,
       Tensor::zeros({0, 3}));
}

TEST_CASE("gemm refuses what does not fit, by name and size") {
  CHECK_THROWS_WITH_AS(gemm(Transpose::no, Transpose::yes, 1, Tensor::zeros({2, 3}),
                            Tensor::zeros({4, 5}), 0, Tensor::zeros({2, 4})),
                       "gemm: got a [2, 3], b [4, 5]', c [2, 4]: they do not fit", ShapeError);
  CHECK_THROWS_WITH_AS(gemm(Transpose::no, Transpose::no, 1, Tensor::zeros({2, 3}),
                            Tensor::zeros({3, 4}), 0, Tensor::zeros({2, 5})),
                       "gemm: got a [2, 3], b [3, 4], c [2, 5]: they do not fit", ShapeError);
  CHECK_THROWS_WITH_AS(gemm(Transpose::no, Transpose::no, 1, Tensor::zeros({2, 3}),
                            Tensor::zeros({7, 3, 4}), 0, Tensor::zeros({2, 4})),
                       "gemm: got b [7, 3, 4], wanted [rows, cols] or [1, rows, cols]", ShapeError);
}

TEST_CASE("results of Programs do not depend on the number of threads") {
#if defined(KEEL_CPU_GROUP_HEADER) || defined(KEEL_EMULATED_CUDA)
  const std::int64_t rows =
      70;  // groups of many members share rows, not launches: chunks and a rest
#else
  const std::int64_t rows = 2000;  // more than threads share a launch by, and worth waking them
#endif
  const Tensor x = normal({rows, 130}, {3, 1}), gain = normal({130}, {3, 2});
  std::vector<std::vector<float>> results[2];
  for (int run = 0; run < 2; ++run) {
    const ThreadLimit limit(run == 0 ? 1 : 4);
    Tape tape;
    const Var vx = tape.leaf(x), vg = tape.leaf(gain);
    const Var loss = mse(layer_norm_relu(vx, vg, vg), Tensor::zeros({rows, 130}));
    GradientSink gradients;
    tape.backward(loss, gradients);
    for (const Tensor& t : {loss.value(), gradients[vx], gradients[vg]})
      results[run].push_back(t.to_vector<float>());
  }
  CHECK(results[0] == results[1]);
}

TEST_CASE("adam follows the paper's algorithm for five steps") {
  const AdamOptions options{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6};
  for (DType dtype : {DType::f32, DType::f64}) {
    const Tensor parameters = normal({1500}, {4, 1}, 1, dtype);
    AdamState state(parameters);
    std::vector<double> theta = parameters.to_vector<double>(), m(1500), v(1500);
    for (int step = 1; step <= 5; ++step) {
      const Tensor gradient = normal({1500}, {4, static_cast<std::uint64_t>(step + 1)}, 1, dtype);
      const std::vector<double> d = gradient.to_vector<double>();
      for (std::size_t i = 0; i < theta.size(); ++i) {
        m[i] = options.beta1 * m[i] + (1 - options.beta1) * d[i];
        v[i] = options.beta2 * v[i] + (1 - options.beta2) * d[i] * d[i];
        const double m_hat = m[i] / (1 - std::pow(options.beta1, step));
        const double v_hat = v[i] / (1 - std::pow(options.beta2, step));
        theta[i] -= options.lr * m_hat / (std::sqrt(v_hat) + options.eps);
      }
      adam(parameters, gradient, state, options);
    }
    const std::vector<double> got = parameters.to_vector<double>();
    const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-13;
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(std::abs(got[i] - theta[i]) <= tolerance * (1 + std::abs(theta[i])));
    CHECK(state.step.to_vector<double>()[0] == 5);
  }
}

TEST_CASE("adam: 1 less beta is rounded to float32 once, not made of a rounded beta") {
  const Tensor p = Tensor::zeros({3}), gradient = Tensor::full({3}, 1);
  AdamState state(p);
  adam(p, gradient, state, {.beta1 = 0.9, .beta2 = 0.999});
  CHECK(state.first.to_vector<float>() == std::vector<float>(3, 0.1f));
  CHECK(state.second.to_vector<float>() == std::vector<float>(3, 0.001f));
}

TEST_CASE("adam: moments of either sign that decay end at 0, not among the denormals") {
  const Tensor p = Tensor::zeros({2}), none = Tensor::zeros({2});
  AdamState state(p);
  const AdamOptions options{.beta1 = 0.5};
  adam(p, Tensor::from<float>({1, -1}, {2}), state, options);
  for (int step = 0; step < 140; ++step) adam(p, none, state, options);
  CHECK(state.first.to_vector<float>() == std::vector<float>{0, 0});
}

TEST_CASE("adam refuses mixed shapes and nonsense options") {
  const Tensor p = Tensor::zeros({4});
  AdamState state(p);
  CHECK_THROWS_WITH_AS(adam(p, Tensor::zeros({5}), state),
                       "adam: got parameters [4], gradients [5], state [4]: wanted one shape",
                       ShapeError);
  CHECK_THROWS_WITH_AS(adam(p, p, state, {.beta1 = 1}),
                       "adam: got lr 0.001, beta1 1, beta2 0.999, eps 1e-08, wanted lr, eps >= 0 "
                       "and betas in [0, 1)",
                       Error);
  for (const AdamOptions& options :
       {AdamOptions{.eps = -1}, {.beta1 = -0.1}, {.beta2 = 1}, {.beta2 = -0.1}})
    CHECK_THROWS_AS(adam(p, p, state, options), Error);
}
