#include "../../ntk/precise_net.h"

#include <doctest/doctest.h>

#include "../../core/max_or_nan.h"
#include "../message_of.h"
#include "plain_net.h"

using namespace keel;

namespace {

using Vector = std::vector<double>;

// Largest |a - b| over the largest |b|.
double apart(const Vector& a, const Vector& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0, largest = 1e-300;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = max_or_nan(worst, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return worst / largest;
}

void set(const Net& net, std::size_t p, const Vector& values) {
  const Tensor home = net.layout().member_view(net.flat(), p, 0);
  copy(home, Tensor::from(values, home.shape()));
}

}  // namespace

TEST_CASE("a net with twice the digits is the net, where double does") {
  plain_net::Dice dice{std::mt19937_64(7)};
  for (int trial = 0; trial < 60; ++trial) {
    CAPTURE(trial);
    const Net net =
        plain_net::random_net(dice, plain_net::random_spec(dice, 9, false), 3, DType::f64);
    CAPTURE(spec_text(net.spec()));
    const Vector x = {dice.normal(), dice.normal(), dice.normal()};
    CHECK(apart(evaluate_precisely(net, x), plain_net::Plain(net).forward(x)) < 1e-10);
  }
}

TEST_CASE("a net with twice the digits has the scales of its parameterisation, member by member") {
  const Net both("dense(9) relu layernorm dense(2)", 3,
                 {.parameterisation = Parameterisation::ntk, .members = 2, .dtype = DType::f64});
  for (std::int64_t member : {0, 1}) {
    const Net net = both.member(member);
    const Vector x = {0.3, -1.5, 0.8};
    const Vector wanted = net.predict(Tensor::from(x, {1, 3})).to_vector<double>();
    CHECK(apart(evaluate_precisely(net, x), wanted) < 1e-13);
    CHECK(net.values(0) == both.values(0, member));
  }
}

TEST_CASE("a row that is constant leaves a Layer Norm at 0, also without eps") {
  for (std::int64_t width : {3, 5, 128}) {
    Net net(fmt::format("dense({}) layernorm(eps=0) dense(1)", width), 1, {.dtype = DType::f64});
    set(net, 0, Vector(static_cast<std::size_t>(width), 0.1));
    set(net, 1, Vector(static_cast<std::size_t>(width), 0.7));
    set(net, 5, {0.25});
    CHECK(evaluate_precisely(net, {0.3}) == Vector{0.25});
  }
}

TEST_CASE("a Layer Norm sees the biases of equal rows, however far out") {
  // z = 1e8 x + b, so that z less its mean is b less its own: of any x, f is what it is at 0.
  Net net("dense(4) layernorm dense(1)", 1, {.dtype = DType::f64});
  set(net, 0, Vector(4, 1e8));
  set(net, 1, {0.3, -1.2, 0.7, 0.1});
  const Vector at_zero = evaluate_precisely(net, {0});
  const Vector far = {5.6e5 / 3};
  CHECK(apart(evaluate_precisely(net, far), at_zero) < 1e-12);
  CHECK(apart(plain_net::Plain(net).forward(far), at_zero) > 1e-4);  // double has lost them
  CHECK(message_of([&] {
          evaluate_precisely(net, {1, 2});
        }) == "evaluate_precisely: got 2 numbers for 1 members of 1 inputs, wanted one");
}

TEST_CASE(
    "a row that is multiplied leaves a Layer Norm as it was, also where its squares leave double") {
  for (const char* spec : {"dense(4) layernorm dense(1)", "dense(4) layernorm(eps=0) dense(1)"}) {
    CAPTURE(spec);
    const bool eps = std::string(spec).find("eps=0") == std::string::npos;
    Net net(spec, 1, {.dtype = DType::f64});
    set(net, 1, Vector(4));
    const double wanted = evaluate_precisely(net, {1e20})[0];
    CHECK(std::abs(wanted) > 1e-3);
    for (const double x : {1e150, 1e155, 1e200, 1e306})
      CHECK(evaluate_precisely(net, {x})[0] == doctest::Approx(wanted).epsilon(1e-12));
    for (const double x : {1e-150, 1e-165, 1e-300})
      CHECK(evaluate_precisely(net, {x})[0] ==
            doctest::Approx(eps ? net.values(5)[0] : wanted).epsilon(1e-12));
    CHECK(std::isnan(evaluate_precisely(net, {std::nan("")})[0]));
  }
}
