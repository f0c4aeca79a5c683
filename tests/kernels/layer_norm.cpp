// LayerNorm on inputs that hurt: large means, 1e30, constant rows, width 1, NaN.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../core/max_or_nan.h"
#include "../difference.h"
#include "../op_cases.h"
#include "norm_rows.h"

using namespace keel;
using namespace keel::test;

namespace {

std::vector<double> normalised(const Tensor& x, double eps) {
  return layer_norm(x, eps).value().to_vector<double>();
}

// d_x for d_out = 1, 2, 3, ...
std::vector<double> pulled_back(const Tensor& x, double eps) {
  Tape tape;
  const Var leaf = tape.leaf(x);
  const Var out = layer_norm(leaf, eps);
  std::vector<double> d(static_cast<std::size_t>(x.elements()));
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = static_cast<double>(i + 1);
  GradientSink gradients;
  tape.backward(out, Tensor::from(d, x.shape()).to(x.dtype()), gradients);
  return gradients[leaf].to_vector<double>();
}

bool all_zero(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
}

}  // namespace

TEST_CASE("a mean of 1000 with unit variance costs no digits") {
  const Tensor offset = Tensor::full({64, 768}, 1e3);
  const Tensor x = add(offset, normal({64, 768}, {1, 1})).value();
  const oracle::Array expected = oracle::layer_norm(oracle::Array(x), nullptr, nullptr, 1e-5);
  const std::vector<double> got = normalised(x, 1e-5);
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = max_or_nan(worst, std::abs(got[i] - expected.v[i]));
  CHECK(worst < 5e-6);  // mean of squares minus square of mean errs by 0.1 here
}

TEST_CASE("entries of 1e30 neither overflow nor become NaN") {
  for (double eps : {0.0, 1e-5}) {
    check_near(normalised(row<float>({1e30f, -1e30f, 1e30f, -1e30f}), eps), {1, -1, 1, -1}, 1e-6);
    check_near(normalised(row<float>({1e30f, 0, 0, 0}), eps),
               {std::sqrt(3.0), -1 / std::sqrt(3.0), -1 / std::sqrt(3.0), -1 / std::sqrt(3.0)},
               1e-6);
    for (double d : pulled_back(row<float>({1e30f, -1e30f, 5e29f, 0}), eps))
      CHECK(std::isfinite(d));
  }
  check_near(normalised(row<double>({1e300, -1e300}), 1e-5), {1, -1}, 1e-14);
}

TEST_CASE("tiny entries keep their shape with eps 0 and vanish beside a positive eps") {
  check_near(normalised(row<float>({1e-30f, -1e-30f}), 0), {1, -1}, 1e-6);
  check_near(normalised(row<float>({1e-30f, -1e-30f}), 1e-5),
             {1e-30 / std::sqrt(1e-5), -1e-30 / std::sqrt(1e-5)}, 1e-3);
}

TEST_CASE("a constant row standardises to zero, also for eps 0, and passes no derivative there") {
  // 0.1 is not exact in binary: a mean that is off by one rounding would give +-1 for eps 0. On a
  // GPU a product that is fused with a difference is not rounded, as the product alone is.
  for (std::size_t cols : {100, 101, 500, 1000})
    for (double value : {0., 0.1, 1.1, -7.3, 1e30, 1e-30})
      for (const Tensor& x : {row(std::vector<float>(cols, static_cast<float>(value))),
                              row(std::vector<double>(cols, value))}) {
        CAPTURE(cols);
        CAPTURE(value);
        CAPTURE(x.dtype());
        CHECK(all_zero(normalised(x, 0)));
        CHECK(all_zero(normalised(x, 1e-5)));
        CHECK(all_zero(pulled_back(x, 0)));
      }
}

TEST_CASE("one entry an ulp larger than all others stands out, far from where squares end") {
  for (float value : {1.1e30f, 1.1f, 1.1e-30f})
    for (std::size_t cols : {100, 1000}) {
      CAPTURE(value);
      CAPTURE(cols);
      std::vector<float> entries(cols, value);
      entries[cols / 2] = std::nextafter(value, 1e38f);
      const double others = -1 / std::sqrt(static_cast<double>(cols - 1));
      std::vector<double> wanted(cols, others);
      wanted[cols / 2] = -1 / others;
      check_near(normalised(row(entries), 0), wanted, 1e-5);
    }
}

TEST_CASE("width 1: out is the bias, d_x is zero") {
  const Tensor x = Tensor::from(std::vector<float>{3, -4, 1e30f}, {3, 1});
  const Tensor gain = Tensor::full({1}, 2), bias = Tensor::full({1}, 0.5);
  for (double eps : {0.0, 1e-5}) {
    Tape tape;
    const Var leaf = tape.leaf(x);
    const Var out = layer_norm(leaf, gain, bias, eps);
    for (double o : out.value().to_vector<double>()) CHECK(o == 0.5);
    GradientSink gradients;
    tape.backward(out, Tensor::full({3, 1}, 1), gradients);
    for (double d : gradients[leaf].to_vector<double>()) CHECK(d == 0);
  }
}

TEST_CASE("a NaN or an infinity makes its own row NaN and no other") {
  check_nans_keep_to_their_rows([](const Var& x, double eps) { return layer_norm(x, eps); });
  check_nans_keep_to_their_rows([](const Var& x, double eps) { return layer_norm_relu(x, eps); });
}

TEST_CASE("rows side by side keep to themselves, whichever ways of the arithmetic they take") {
  // A GPU's warp has several short rows: plain, out of the plain range, constant, not a number.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t cols : {4, 64, 100, 128, 129, 256, 257}) {
    constexpr std::int64_t kRows = 13;
    const auto width = static_cast<std::size_t>(cols);
    std::vector<float> entries = normal({kRows, cols}, {1, 1}).to_vector<float>();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::size_t row = i / width;
      if (row % 4 == 1) entries[i] *= row % 8 == 1 ? 1e30f : 1e-30f;
      if (row % 4 == 2) entries[i] = 0.1f;
      if (row == 3 && i % width == 2) entries[i] = nan;
    }
    CAPTURE(cols);
    const std::vector<double> all = normalised(Tensor::from(entries, {kRows, cols}), 0);
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto first = entries.begin() + static_cast<std::ptrdiff_t>(r * width);
      const std::vector<float> mine(first, first + static_cast<std::ptrdiff_t>(cols));
      const std::vector<double> alone = normalised(row(mine), 0);
      for (std::size_t i = 0; i < width; ++i) {
        CHECK(std::isnan(alone[i]) == (r == 3));
        CHECK((alone[i] == all[r * width + i] || r == 3));
      }
    }
  }
}

TEST_CASE("a row is the same whether or not it begins where wide accesses can") {
  for (std::int64_t cols : {64, 128, 256, 768, 2052}) {
    CAPTURE(cols);
    constexpr std::int64_t kRows = 5;
    const Tensor x = normal({kRows * cols}, {1, 1}), gain = normal({cols}, {1, 2});
    const auto moved = [](const Tensor& t) {
      std::vector<float> entries = t.to_vector<float>();
      entries.insert(entries.begin(), 0);
      return Tensor::from(entries, {t.elements() + 1}).slice(1, t.elements() + 1);
    };
    const auto run = [&](const Tensor& x, const Tensor& gain) {
      return layer_norm_relu(x.reshape({kRows, cols}), gain, gain, 1e-5).value();
    };
    // To rounding: a GPU's sums are made in another order there.
    const Tensor wanted = run(x, gain);
    CHECK(relative_difference(run(x, moved(gain)), wanted) <= 3e-6);
    CHECK(relative_difference(run(moved(x), gain), wanted) <= 3e-6);
  }
}

TEST_CASE("the fused op equals layer_norm followed by relu, forward and backward, bit for bit") {
  for (Size size :
       {Size{1, 1}, Size{40, 64}, Size{100, 128}, Size{7, 33}, Size{20, 256}, Size{40, 777}}) {
    CAPTURE(size.d);
    const Tensor x = normal({size.n, size.d}, {1, 1}), gain = normal({size.d}, {1, 2});
    const Tensor bias = normal({size.d}, {1, 3}), d_out = normal({size.n, size.d}, {1, 4});
    std::vector<std::vector<float>> results[2];
    for (bool fused : {false, true}) {
      Tape tape;
      const Var vx = tape.leaf(x), vg = tape.leaf(gain), vb = tape.leaf(bias);
      const Var out = fused ? layer_norm_relu(vx, vg, vb) : relu(layer_norm(vx, vg, vb));
      GradientSink gradients;
      tape.backward(out, d_out, gradients);
      results[fused].push_back(out.value().to_vector<float>());
      for (const Var& leaf : {vx, vg, vb})
        results[fused].push_back(gradients[leaf].to_vector<float>());
    }
    CHECK(results[0] == results[1]);
  }
}

TEST_CASE("where the fused op's own sum is 0 no derivative comes through, as in relu's") {
  // Rows of which nothing is left: what relu is given is 0 times the gain, and no bias.
  const Tensor constant = Tensor::full({3, 4}, 0.5), d_out = normal({3, 4}, {1, 4});
  const auto check_none = [&](auto op, std::vector<Tensor> inputs) {
    Tape tape;
    std::vector<Var> leaves;
    for (const Tensor& input : inputs) leaves.push_back(tape.leaf(input));
    GradientSink gradients;
    tape.backward(op(leaves), d_out, gradients);
    for (const Var& leaf : leaves) CHECK(all_zero(gradients[leaf].to_vector<double>()));
  };
  using Leaves = const std::vector<Var>&;
  const Tensor gain = Tensor::full({4}, 1), none = zeros({4}), rows = zeros({3, 4});
  check_none([](Leaves v) { return layer_norm_relu(v[0], v[1], v[2]); }, {constant, gain, none});
  check_none([](Leaves v) { return layer_norm_relu(v[0]); }, {constant});
  check_none([](Leaves v) { return rms_norm_relu(v[0], v[1]); }, {rows, gain});
  check_none([](Leaves v) { return rms_norm_relu(v[0]); }, {rows});
}

TEST_CASE("a member of an ensemble gets the bits of the same rows alone") {
  const Tensor x = normal({3, 50, 65}, {1, 1}), gain = normal({3, 65}, {1, 2});
  const Tensor bias = normal({3, 65}, {1, 3}), d_out = normal({3, 50, 65}, {1, 4});
  const auto run = [&](const Tensor& x, const Tensor& gain, const Tensor& bias, const Tensor& d) {
    Tape tape;
    const Var vx = tape.leaf(x), vg = tape.leaf(gain), vb = tape.leaf(bias);
    GradientSink gradients;
    const Var out = layer_norm_relu(vx, vg, vb);
    tape.backward(out, d, gradients);
    return std::vector<Tensor>{out.value(), gradients[vx], gradients[vg], gradients[vb]};
  };
  const std::vector<Tensor> all = run(x, gain, bias, d_out);
  for (std::int64_t s = 0; s < 3; ++s) {
    const std::vector<Tensor> alone = run(x[s], gain[s], bias[s], d_out[s]);
    for (std::size_t i = 0; i < all.size(); ++i)
      CHECK(all[i][s].to_vector<float>() == alone[i].to_vector<float>());
  }
}

TEST_CASE("gain and bias may be one leaf, constants, or computed: each gets its derivative") {
  const Tensor x = normal({70, 9}, {1, 1}, 1, DType::f64);
  const Tensor g = normal({9}, {1, 2}, 1, DType::f64), b = normal({9}, {1, 3}, 1, DType::f64);
  const Tensor d_out = normal({70, 9}, {1, 4}, 1, DType::f64);
  const auto derivatives = [&](auto make, std::vector<Tensor> leaves) {
    Tape tape;
    std::vector<Var> of;
    for (const Tensor& leaf : leaves) of.push_back(tape.leaf(leaf));
    GradientSink gradients;
    tape.backward(make(of), d_out, gradients);
    std::vector<std::vector<double>> all;
    for (const Var& leaf : of) all.push_back(gradients[leaf].to_vector<double>());
    return all;
  };
  using Leaves = const std::vector<Var>&;
  const auto apart = derivatives([&](Leaves v) { return layer_norm(x, v[0], v[1]); }, {g, b});
  CHECK(derivatives([&](Leaves v) { return layer_norm(x, v[0], b); }, {g})[0] == apart[0]);
  CHECK(derivatives([&](Leaves v) { return layer_norm(x, g, v[0]); }, {b})[0] == apart[1]);

  const auto halved = derivatives([&](Leaves v) { return layer_norm(x, scale(v[0], 0.5), v[1]); },
                                  {scale(g, 2).value(), b});
  for (std::size_t i = 0; i < 9; ++i) CHECK(halved[0][i] == doctest::Approx(apart[0][i] / 2));
  CHECK(halved[1] == apart[1]);

  const auto of_g = derivatives([&](Leaves v) { return layer_norm(x, v[0], v[1]); }, {g, g});
  const auto both = derivatives([&](Leaves v) { return layer_norm(x, v[0], v[0]); }, {g});
  for (std::size_t i = 0; i < 9; ++i) CHECK(both[0][i] == doctest::Approx(of_g[0][i] + of_g[1][i]));
}
