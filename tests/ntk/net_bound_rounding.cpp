// Nets whose weights make double lose digits. What the largest output is follows from how they were
// made, without the sums that lose them.
#include <doctest/doctest.h>

#include "given_net.h"
#include "naive_tail.h"

namespace keel {
namespace {

constexpr std::size_t kNormWidth = 16;

// Few bits, so that sums and multiples by powers of two are exact.
Vector few_bits(std::size_t count, std::uint64_t seed) {
  Vector values = draws(count, seed);
  for (double& value : values) value = std::round(16 * value) / 16;
  return values;
}

// [16, columns], of columns.
Vector matrix_of(const std::vector<Vector>& columns) {
  Vector weight;
  for (std::size_t i = 0; i < kNormWidth; ++i)
    for (const Vector& column : columns) weight.push_back(column[i]);
  return weight;
}

// These columns before the Layer Norm, no bias, no gain.
Net net_of(const std::vector<Vector>& columns, const Vector& last) {
  return given_net("dense(16) layernorm(affine=0, eps=0) dense(1)", columns.size(),
                   {matrix_of(columns), Vector(kNormWidth), last, {0}});
}

Vector centred(Vector x) {
  double mean = 0;
  for (double value : x) mean += value / static_cast<double>(x.size());
  for (double& value : x) value -= mean;
  return x;
}

// The largest last . h over |h|^2 <= 16 in the span of these, centred: they are far from parallel.
double largest_in_span(const std::vector<Vector>& span, const Vector& last) {
  std::vector<Vector> basis;
  double square = 0;
  for (const Vector& given : span) {
    Vector x = centred(given);
    for (int pass = 0; pass < 2; ++pass)
      for (const Vector& b : basis) {
        const double along = dot(b, x);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] -= along * b[i];
      }
    const double length = std::sqrt(dot(x, x));
    REQUIRE(length > 0.1);
    for (double& value : x) value /= length;
    square += std::pow(dot(x, last), 2);
    basis.push_back(x);
  }
  return std::sqrt(kNormWidth * square);
}

void check_reaches(const Net& net, double wanted) {
  const Interval proved = bound_net(net).outputs[0];
  CHECK(proved.high >= wanted * (1 - 1e-13));
  CHECK(proved.low <= -wanted * (1 - 1e-13));
}

TEST_CASE("net_bound: columns that nearly repeat each other, each a little less than the last") {
  for (int bits : {8, 10, 11, 12, 13, 20})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      std::vector<Vector> span, columns;
      for (std::uint64_t j = 0; j < 5; ++j) span.push_back(few_bits(kNormWidth, 10 * seed + j));
      columns.push_back(span[0]);
      for (std::size_t j = 1; j < span.size(); ++j) {
        columns.push_back(span[j - 1]);
        for (std::size_t i = 0; i < kNormWidth; ++i) columns[j][i] += std::ldexp(span[j][i], -bits);
      }
      const Vector last = few_bits(kNormWidth, 10 * seed + 9);
      check_reaches(net_of(columns, last), largest_in_span(span, last));
    }
}

TEST_CASE("net_bound: the lowest value of gelu and silu is not cut off") {
  // b is what the activation's least value makes of w, but for a little of v: there h is along v,
  // and nearly everywhere else along w.
  struct Lowest {
    const char* activation;
    double value, at;
  };
  for (const Lowest& lowest : {Lowest{"gelu", -0.16997120747990369, -0.75179},
                               Lowest{"gelu(tanh=1)", -0.17004075057121573, -0.75246},
                               Lowest{"silu", -0.27846454276107379, -1.27846},
                               Lowest{"silu(beta=0.5)", -0.55692908552214758, -2.55693}}) {
    CAPTURE(lowest.activation);
    Vector w(kNormWidth), v(kNormWidth), bias(kNormWidth), last(kNormWidth);
    w[0] = 1;
    w[1] = -1;
    v[2] = 1;
    v[3] = -1;
    for (std::size_t i = 0; i < kNormWidth; ++i) {
      bias[i] = -lowest.value * w[i] + 1e-5 * v[i];
      last[i] = v[i] - w[i];
    }
    const Net net = given_net(std::string("dense(1) ") + lowest.activation +
                                  " dense(16) layernorm(affine=0, eps=0) dense(1)",
                              1, {{1}, {0}, w, bias, last, {0}});
    const double reached = net.predict(Tensor::from(Vector{lowest.at}, {1, 1})).item();
    CHECK(reached > 5);
    CHECK(bound_net(net).outputs[0].high >= reached);
  }
}

TEST_CASE("net_bound: biases that cancel each other behind the norm still count with their size") {
  for (int bits : {30, 45, 50})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(bits);
      CAPTURE(seed);
      Vector rows = few_bits(kNormWidth, seed), apart = few_bits(kNormWidth, seed + 50);
      for (std::size_t i = 0; i < kNormWidth; ++i) {
        apart[i] /= 16;
        rows.push_back(rows[i] + apart[i]);
      }
      const double large = std::ldexp(1, bits) + static_cast<double>(seed), third = 1.0 / 3;
      const std::vector<Vector> span = {few_bits(kNormWidth, seed + 200),
                                        few_bits(kNormWidth, seed + 300)};
      const Net net = given_net(
          "dense(16) layernorm(affine=0, eps=0) dense(2) dense(1)", 2,
          {matrix_of(span), Vector(kNormWidth), rows, {large, large + 1}, {-third, third}, {0}});
      CHECK(bound_net(net).outputs[0].high >=
            third * (1 + largest_in_span(span, apart)) * (1 - 1e-13));
    }
}

TEST_CASE("net_bound: behind a norm, a layer's size and its inverse in the next change nothing") {
  NetOptions options;
  options.dtype = DType::f64;
  options.seed = 3;
  options.sigma_b2 = 0;
  const auto interval = [&](double size) {
    const Net net("dense(8) layernorm relu dense(8) relu dense(1)", 3, options);
    const Tensor first = net.layout().member_view(net.flat(), net.first_parameter(3), 0),
                 second = net.layout().member_view(net.flat(), net.first_parameter(5), 0);
    for (std::int64_t i = 0; i < first.elements(); ++i) first.data<double>()[i] *= size;
    for (std::int64_t i = 0; i < second.elements(); ++i) second.data<double>()[i] /= size;
    return bound_net(net, {.pieces = 0}).outputs[0];
  };
  const Interval plain = interval(1),
                 found = found_ahead(
                     Net("dense(8) layernorm relu dense(8) relu dense(1)", 3, options), 0);
  CHECK(plain.low <= found.low);
  CHECK(plain.high >= found.high);
  for (const double size : {1e-6, 1e6, 1e-60, 1e60, 1e-165, 1e165, 1e-270, 1e270}) {
    CAPTURE(size);
    const Interval scaled = interval(size);
    CHECK(scaled.low <= found.low);
    CHECK(scaled.high >= found.high);
    CHECK(scaled.high - scaled.low < 1.6 * (plain.high - plain.low));
  }
}

TEST_CASE("net_bound: of a layer whose weights are all 0, nothing but 0") {
  Net net("dense(6) layernorm(affine=0) relu dense(3) relu dense(2) relu dense(1)", 2,
          {.seed = 3, .dtype = DType::f64});
  for (const std::size_t layer : {3, 5, 7}) {
    const std::size_t weight = net.first_parameter(layer);
    fill(net.layout().view(net.flat(), weight + 1), 0);
    if (layer == 5) fill(net.layout().view(net.flat(), weight), 0);
  }
  const Interval bound = bound_net(net).outputs[0];
  CHECK(bound.low <= 0);
  CHECK(bound.high >= 0);
  CHECK(bound.high - bound.low < 1e-200);
}

TEST_CASE("net_bound: a column whose squares underflow is a direction like any other") {
  for (double size : {1e-165, 1e-200, 1e165})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      CAPTURE(size);
      const std::vector<Vector> span = {few_bits(kNormWidth, seed),
                                        few_bits(kNormWidth, seed + 100)};
      std::vector<Vector> columns = span;
      for (double& value : columns[1]) value *= size;
      const Vector last = few_bits(kNormWidth, seed + 200);
      check_reaches(net_of(columns, last), largest_in_span(span, last));
      columns[0] = columns[1];
      columns.pop_back();
      check_reaches(net_of(columns, last), largest_in_span({span[1]}, last));
    }
}

TEST_CASE("net_bound: last weights that are nearly one number, which a Layer Norm cancels") {
  for (int bits : {26, 40, 48})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(bits);
      const std::vector<Vector> span = {few_bits(kNormWidth, seed),
                                        few_bits(kNormWidth, seed + 100)};
      const Vector last = few_bits(kNormWidth, seed + 200);
      Vector moved = last;
      for (double& value : moved) value += std::ldexp(1, bits);
      check_reaches(net_of(span, moved), largest_in_span(span, last));
    }
}

TEST_CASE("net_bound: a unit that next to nothing of the columns reaches") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::vector<Vector> span;
    for (std::uint64_t j = 0; j < 2; ++j) {
      Vector x = few_bits(kNormWidth, 10 * seed + j);
      x[5] = 0;
      x[0] = 0;
      for (std::size_t i = 1; i < kNormWidth; ++i) x[0] -= x[i];
      x[5] = std::ldexp(1 + 0.25 * static_cast<double>(j), -40);
      span.push_back(x);
    }
    std::vector<Vector> columns = {span[0], span[0]};
    for (std::size_t i = 0; i < kNormWidth; ++i) columns[1][i] += std::ldexp(span[1][i], -10);
    Vector last(kNormWidth);
    last[5] = 1;
    check_reaches(net_of(columns, last), largest_in_span(span, last));
  }
}

TEST_CASE("net_bound: dense layers behind an activation that cancel each other") {
  for (int bits : {20, 30, 40})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      CAPTURE(bits);
      const std::vector<Vector> span = {few_bits(kNormWidth, seed),
                                        few_bits(kNormWidth, seed + 100)};
      const Vector last = few_bits(kNormWidth, seed + 200);
      Vector rows = few_bits(2 * kNormWidth, seed + 300);
      double sum = 0;
      for (std::size_t i = 0; i < kNormWidth; ++i) {
        rows.push_back(rows[i] + rows[kNormWidth + i] + std::ldexp(last[i], -bits));
        sum += last[i];
      }
      const double share = 1.0 / 3, large = std::ldexp(share, bits);  // of many bits
      // relu(h + 8) is never off: |h| <= 4
      const Net net = given_net("dense(16) layernorm(eps=0) relu dense(3) dense(1)", 2,
                                {matrix_of(span),
                                 Vector(kNormWidth),
                                 Vector(kNormWidth, 1),
                                 Vector(kNormWidth, 8),
                                 rows,
                                 Vector(3),
                                 {-large, -large, large},
                                 {0}});
      const double most = share * largest_in_span(span, last);
      const Interval proved = bound_net(net).outputs[0];
      CHECK(proved.high >= 8 * share * sum + most * (1 - 1e-13));
      CHECK(proved.low <= 8 * share * sum - most * (1 - 1e-13));
    }
}

TEST_CASE("net_bound: ordinary weights cost nothing of that") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const std::vector<Vector> span = {few_bits(kNormWidth, seed), few_bits(kNormWidth, seed + 100)};
    const Vector last = few_bits(kNormWidth, seed + 200);
    const double wanted = largest_in_span(span, last);
    const NetBound bound = bound_net(net_of(span, last));
    CHECK(bound.rank == 2);
    CHECK(bound.outputs[0].high <= wanted * (1 + 1e-7));
  }
}

}  // namespace
}  // namespace keel
