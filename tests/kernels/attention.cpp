// Attention on inputs that hurt, and what a row of a sequence may depend on. Its oracle and its
// derivatives: sequence_cases.h.
#include "../../kernels/attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "../../core/random.h"
#include "../../kernels/gradient_sink.h"
#include "../bits.h"
#include "../oracle.h"

using namespace keel;

namespace {

std::vector<float> row_of(const Tensor& x, std::int64_t row) {
  return x.slice(row, row + 1).to_vector<float>();
}

}  // namespace

TEST_CASE("attention: a row depends on those before it in its sequence alone") {
  constexpr std::int64_t kLength = 5, kHeads = 2;
  const Tensor x = normal({3 * kLength, 12}, {1, 0});
  const Tensor before = attention(x, kLength, kHeads).value();
  for (std::int64_t changed = 0; changed < x.size(0); ++changed) {
    const Tensor other = x.clone();
    fill(other.slice(changed, changed + 1), 2);
    const Tensor after = attention(other, kLength, kHeads).value();
    for (std::int64_t row = 0; row < x.size(0); ++row) {
      const bool may = row / kLength == changed / kLength && row >= changed;
      CHECK((row_of(after, row) != row_of(before, row)) == may);
    }
  }
}

TEST_CASE("attention: a sequence of one is its value; equal keys give the mean of the values") {
  const Tensor x = normal({4, 6}, {1, 0});
  const std::vector<float> alone = attention(x, 1, 1).value().to_vector<float>();
  const std::vector<float> all = x.to_vector<float>();
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t c = 0; c < 2; ++c) CHECK(alone[2 * row + c] == all[6 * row + 4 + c]);

  // Queries 1, keys 3, values 10, 20, 60: of one head one wide.
  const Tensor equal = Tensor::from(std::vector<double>{1, 3, 10, 1, 3, 20, 1, 3, 60}, {3, 3});
  const std::vector<double> mean = attention(equal, 3, 1).value().to_vector<double>();
  CHECK(mean[0] == 10);
  CHECK(mean[1] == 15);
  CHECK(mean[2] == doctest::Approx(30).epsilon(1e-15));
}

TEST_CASE("attention: scores beyond float32 leave the largest alone") {
  // Rows of a head of two columns: q, k, v. Of 1e30 their scores are 1e60, +-1e60 cancels to NaN.
  // No two are equal: a fused product may tell them apart.
  for (const double size : {1e18, 1e25, 1e30}) {
    CAPTURE(size);
    std::vector<double> values;
    const double q[4][2] = {{1, 1}, {1, -1}, {-1, 1}, {1, 0.5}};
    const double k[4][2] = {{1, 1}, {2, -2}, {-1, 2}, {1, 0.5}};
    for (int row = 0; row < 4; ++row)
      for (double value : {q[row][0] * size, q[row][1] * size, k[row][0] * size, k[row][1] * size,
                           row + 1.0, -row * 1e30})
        values.push_back(value);
    const Tensor x = Tensor::from(values, {4, 6}).to(DType::f32);
    Tape tape;
    const Var leaf = tape.leaf(x);
    const Var out = attention(leaf, 4, 1);
    const oracle::Array wanted = oracle::attention(oracle::Array(x), 4, 1);
    const std::vector<double> got = out.value().to_vector<double>();
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == doctest::Approx(wanted.v[i]).epsilon(1e-6));
  }
  // Columns of very different sizes, the largest last: scores of 1e68 and its opposite.
  const Tensor uneven =
      Tensor::from(std::vector<float>{1, 1e30f, 1, 1e38f, 4, 0, 1, 1e30f, 1, -1e38f, 8, 0}, {2, 6});
  CHECK(row_of(attention(uneven, 2, 1).value(), 1) == std::vector<float>{4, 0});
  // Equal scores of 1e60, in double too where they are 1e400.
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double size = dtype == DType::f32 ? 1e30 : 1e200;
    const Tensor x = Tensor::from(std::vector<double>{size, size, 4, size, size, 8}, {2, 3});
    const std::vector<double> got = attention(x.to(dtype), 2, 1).value().to_vector<double>();
    CHECK(got[0] == 4);
    CHECK(got[1] == doctest::Approx(6));
  }
}

TEST_CASE("attention: what is not a number stays so, behind it in its sequence") {
  const float nan = std::nanf(""), infinite = INFINITY;
  for (const float bad : {nan, infinite, -infinite})
    for (const std::int64_t column : {0, 1, 2}) {
      CAPTURE(bad);
      CAPTURE(column);
      const Tensor x = normal({6, 3}, {1, 0});
      x.data<float>()[3 + column] = bad;  // row 1 of the first sequence
      const std::vector<float> out = attention(x, 3, 1).value().to_vector<float>();
      CHECK(std::isfinite(out[0]));
      CHECK(!std::isfinite(out[1]));
      for (std::size_t row = 3; row < 6; ++row) CHECK(std::isfinite(out[row]));
      if (column > 0) CHECK(!std::isfinite(out[2]));  // a query is its own row's alone
    }
}

TEST_CASE("attention: rows are whole sequences, heads no wider than it takes") {
  const auto refused = [](Shape shape, std::int64_t length, std::int64_t heads) {
    std::string said;
    try {
      attention(Tensor::zeros(shape), length, heads);
    } catch (const ShapeError& error) {
      said = error.what();
    }
    CAPTURE(said);
    CHECK(said.starts_with("attention: got "));
  };
  refused({7, 6}, 3, 1);
  refused({6}, 3, 1);
  refused({6, 0}, 3, 1);
  refused({6, 3 * 1025}, 3, 1);
  refused({6, 6}, 3, 6148914691236517206);  // three times that is 2, past the number range
  refused({6, 6}, 0, 1);
  CHECK(attention(Tensor::zeros({6, 3 * 1024}), 3, 1).shape() == Shape{6, 1024});
}

TEST_CASE("attention: no row has a derivative of its own") {
  Tape tape;
  const Var leaf = tape.leaf(normal({6, 6}, {1, 0}));
  const Var out = attention(leaf, 3, 2);
  JacobianSink sink;
  CHECK_THROWS_WITH_AS(tape.backward(out, normal({6, 2}, {2, 0}), sink),
                       "attention: got a sink that keeps samples apart, wanted one that adds them "
                       "up: a row of a sequence is no sample by itself",
                       Error);
}
