// RMSNorm on inputs that hurt: 1e30, zeros, width 1, NaN; and what it is beside a Layer Norm.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../op_cases.h"
#include "norm_rows.h"

using namespace keel;
using namespace keel::test;

namespace {

std::vector<double> normalised(const Tensor& x, double eps) {
  return rms_norm(x, eps).value().to_vector<double>();
}

}  // namespace

TEST_CASE("rms_norm: a row's mean square is 1, and its mean stays") {
  const Tensor x = add(Tensor::full({64, 768}, 3), normal({64, 768}, {1, 1})).value();
  const std::vector<double> got = normalised(x, 0), given = x.to_vector<double>();
  for (std::size_t r = 0; r < 64; ++r) {
    double square = 0, ratio_of_first = got[r * 768] / given[r * 768];
    for (std::size_t i = r * 768; i < (r + 1) * 768; ++i) {
      square += got[i] * got[i] / 768;
      CHECK(got[i] == doctest::Approx(given[i] * ratio_of_first).epsilon(1e-6));
    }
    CHECK(square == doctest::Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("rms_norm: of rows of mean 0 it is a Layer Norm without gain and bias") {
  // Sums of pairs (a, -a) are 0 in any order that takes both.
  std::vector<float> values = normal({16, 100}, {1, 1}).to_vector<float>();
  for (std::size_t i = 0; i < values.size(); i += 2) values[i + 1] = -values[i];
  const Tensor x = Tensor::from(values, {16, 100});
  for (double eps : {0.0, 1e-5, 1.0})
    check_near(normalised(x, eps), layer_norm(x, eps).value().to_vector<double>(), 1e-5);
}

TEST_CASE("rms_norm: entries of 1e30 neither overflow nor become NaN, tiny ones keep their shape") {
  for (double eps : {0.0, 1e-5}) {
    check_near(normalised(row<float>({1e30f, -1e30f, 1e30f, 1e30f}), eps), {1, -1, 1, 1}, 1e-6);
    check_near(normalised(row<float>({1e30f, 0, 0, 0}), eps), {2, 0, 0, 0}, 1e-6);
    Tape tape;
    const Var leaf = tape.leaf(row<float>({1e30f, -1e30f, 5e29f, 0}));
    GradientSink gradients;
    tape.backward(rms_norm(leaf, eps), row<float>({1, 2, 3, 4}), gradients);
    for (double d : gradients[leaf].to_vector<double>()) CHECK(std::isfinite(d));
  }
  check_near(normalised(row<double>({1e300, -1e300}), 1e-5), {1, -1}, 1e-14);
  check_near(normalised(row<float>({1e-30f, -1e-30f}), 0), {1, -1}, 1e-6);
  check_near(normalised(row<float>({1e-30f, 1e-30f}), 1e-5),
             {1e-30 / std::sqrt(1e-5), 1e-30 / std::sqrt(1e-5)}, 1e-3);
}

TEST_CASE("rms_norm: a row of zeros gives zeros, also for eps 0, and passes no derivative there") {
  for (std::size_t cols : {1, 7, 100, 1000})
    for (const Tensor& x : {row(std::vector<float>(cols, 0)), row(std::vector<double>(cols, 0))}) {
      CAPTURE(cols);
      Tape tape;
      const Var leaf = tape.leaf(x), gain = tape.leaf(Tensor::full({x.size(1)}, 2, x.dtype()));
      const Var out = rms_norm(leaf, gain, 0);
      for (double value : out.value().to_vector<double>()) CHECK(value == 0);
      GradientSink gradients;
      tape.backward(out, Tensor::full(x.shape(), 1, x.dtype()), gradients);
      for (double d : gradients[leaf].to_vector<double>()) CHECK(d == 0);
      for (double d : gradients[gain].to_vector<double>()) CHECK(d == 0);
    }
}

TEST_CASE("rms_norm: a unit alone is its sign, and d_x is zero but for eps") {
  const Tensor x = Tensor::from(std::vector<float>{3, -4, 1e30f, 0.5f}, {4, 1});
  Tape tape;
  const Var leaf = tape.leaf(x), gain = tape.leaf(Tensor::full({1}, 2));
  const Var out = rms_norm(leaf, gain, 0);
  check_near(out.value().to_vector<double>(), {2, -2, 2, 2}, 1e-6);
  GradientSink gradients;
  tape.backward(out, Tensor::full({4, 1}, 1), gradients);
  for (double d : gradients[leaf].to_vector<double>()) CHECK(std::abs(d) < 1e-6);
  CHECK(gradients[gain].to_vector<double>()[0] == doctest::Approx(2));  // 1 - 1 + 1 + 1
}

TEST_CASE("rms_norm: a NaN or an infinity makes its own row NaN and no other") {
  check_nans_keep_to_their_rows([](const Var& x, double eps) { return rms_norm(x, eps); });
  check_nans_keep_to_their_rows([](const Var& x, double eps) { return rms_norm_relu(x, eps); });
}
