// gradcheck finds what it is there for: one derivative that is off by a hundredth, or a NaN,
// whether what follows is right or not.
#include "../../kernels/gradcheck.h"

#include <doctest/doctest.h>

#include <limits>

using namespace keel;

namespace {

// The squares of x, whose derivatives come out times factors[i].
Var squares(const Var& x, const std::vector<double>& factors) {
  std::vector<double> out = x.value().to_vector<double>();
  for (double& value : out) value *= value;
  const Shape shape = x.value().shape();
  return record(
      "squares", Tensor::from(out, shape), {&x},
      [slot = x.slot(), kept = x.value(), factors](const Tensor& d_out, Backward& backward) {
        std::vector<double> d_x = d_out.to_vector<double>();
        const std::vector<double> values = kept.to_vector<double>();
        for (std::size_t i = 0; i < d_x.size(); ++i) d_x[i] *= 2 * values[i] * factors[i];
        backward.add(slot, Tensor::from(d_x, kept.shape()));
      });
}

Gradcheck checked(const std::vector<double>& factors, double last = 0.5) {
  const Tensor x = Tensor::from(std::vector<double>{1, -2, last}, {3});
  return gradcheck([&](std::span<const Var> inputs) { return squares(inputs[0], factors); }, {x});
}

}  // namespace

TEST_CASE("gradcheck: a right derivative, one that is off by a hundredth, and a NaN") {
  CHECK(checked({1, 1, 1}).max_relative_error < 1e-9);
  for (const std::size_t wrong : {0, 1, 2}) {
    CAPTURE(wrong);
    const std::string where = "input 0, element " + std::to_string(wrong);
    std::vector<double> factors{1, 1, 1};
    factors[wrong] = 1.01;
    const Gradcheck off = checked(factors);
    CHECK(off.max_relative_error == doctest::Approx(0.01 / 1.01).epsilon(1e-3));
    CHECK(off.where.starts_with(where));
    factors[wrong] = std::numeric_limits<double>::quiet_NaN();
    const Gradcheck nan = checked(factors);
    CHECK(std::isnan(nan.max_relative_error));
    CHECK(nan.where.starts_with(where));
  }
}

TEST_CASE("gradcheck: a derivative a hundredth of the largest is held against itself") {
  const Gradcheck off = checked({1, 1, 1.01}, 0.02);
  CHECK(off.max_relative_error == doctest::Approx(0.01 / 1.01).epsilon(1e-3));
}
