// What certify's search of a net climbs.
#include "../../experiments/largest_output.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../core/random.h"

namespace keel {
namespace {

TEST_CASE("largest output: its gradient, by central differences") {
  struct Case {
    const char* spec;
    std::int64_t members;
  };
  for (const auto& of :
       {Case{"dense(5) layernorm gelu dense(3)", 1},
        {"dense(4) tanh dense(1)", 1},
        {"dense(6) silu dense(6) residual(rmsnorm softplus dense(6)) layernorm dense(2)", 1},
        {"dense(5) layernorm gelu dense(3)", 3},
        {"dense(4) tanh dense(1)", 2}}) {
    CAPTURE(of.spec);
    CAPTURE(of.members);
    NetOptions options;
    options.seed = 3;
    options.members = of.members;
    options.dtype = DType::f64;
    options.sigma_b2 = 0.5;
    const Net net(of.spec, 4, options);
    const auto outputs = static_cast<std::size_t>(net.output_width());
    OutputSize uneven;  // not of any interval: middles and units that differ
    for (std::size_t j = 0; j < outputs; ++j) {
      uneven.middle.push_back(0.3 * static_cast<double>(j) - 0.2);
      uneven.unit.push_back(1 + 0.5 * static_cast<double>(j));
    }
    for (const OutputSize& size : {size_of_outputs(net), uneven}) {
      const RowFunction f = largest_output(net, size, 1e300);
      const RowGradient gradient = gradient_of_largest(net, size);
      const Tensor x = normal({20, 4}, {5, 0}, 1, DType::f64);
      const std::vector<double> at = x.to_vector<double>();
      const std::vector<double> found = gradient(x).to_vector<double>();
      REQUIRE(found.size() == at.size());
      constexpr double kStep = 1e-6;
      std::vector<std::vector<double>> sides;
      for (std::size_t axis = 0; axis < 4; ++axis) {
        for (double side : {kStep, -kStep}) {
          std::vector<double> moved = at;
          for (std::size_t i = axis; i < moved.size(); i += 4) moved[i] += side;
          sides.push_back(f(Tensor::from(moved, x.shape())));
        }
        const auto &up = sides[sides.size() - 2], &down = sides.back();
        for (std::size_t i = 0; i < up.size(); ++i)
          CHECK(found[4 * i + axis] ==
                doctest::Approx((up[i] - down[i]) / (2 * kStep)).epsilon(1e-6).scale(1));
      }
    }
  }
}

TEST_CASE("largest output: that of each row, in blocks") {
  NetOptions options;
  options.dtype = DType::f64;
  const Net net("dense(1) dense(4200)", 1, options);  // more rows than one block has
  const Tensor x = normal({4200, 1}, {5, 0}, 1, DType::f64);
  const std::vector<double> all = net.predict(x).to_vector<double>();
  const std::vector<double> largest = largest_output(net, size_of_outputs(net), 1e300)(x);
  REQUIRE(largest.size() == 4200);
  for (std::size_t i = 0; i < largest.size(); i += 97) {
    double wanted = 0;
    for (std::size_t j = 0; j < 4200; ++j) wanted = std::max(wanted, std::abs(all[4200 * i + j]));
    CHECK(largest[i] == wanted);
  }
}

TEST_CASE("largest output: that of an ensemble's mean, by its nets one by one") {
  const Net all("dense(5) layernorm gelu dense(3)", 4,
                {.members = 3, .seed = 3, .dtype = DType::f64, .sigma_b2 = 0.5});
  const Tensor x = normal({7, 4}, {5, 0}, 1, DType::f64);
  std::vector<double> mean(7 * 3, 0.0);
  for (std::int64_t s = 0; s < 3; ++s) {
    const std::vector<double> said = all.member(s).predict(x).to_vector<double>();
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += said[i] / 3;
  }
  const OutputSize size = size_of_outputs(all);
  // Above what is proved twice the digits tell, of each net: the same but for rounding.
  for (double most : {1e300, 0.0}) {
    const std::vector<double> largest = largest_output(all, size, most)(x);
    REQUIRE(largest.size() == 7);
    for (std::size_t i = 0; i < 7; ++i) {
      double wanted = 0;
      for (std::size_t j = 0; j < 3; ++j) wanted = std::max(wanted, std::abs(mean[3 * i + j]));
      CHECK(largest[i] == doctest::Approx(wanted).epsilon(1e-12));
    }
  }
}

TEST_CASE("largest output: 1 at either end of an interval") {
  NetBound bound;
  bound.outputs = {{-1, 3}, {2, 2}};
  const OutputSize share = share_of_intervals(bound);
  CHECK(share(-1, 0) == 1);
  CHECK(share(3, 0) == 1);
  CHECK(share(1, 0) == 0);
  CHECK(share(2, 1) == 0);
  CHECK(share(2 + 2e-6, 1) == doctest::Approx(1));
}

}  // namespace
}  // namespace keel
