// Nets whose weights leave double's range downward where they are multiplied.
#include <doctest/doctest.h>

#include "given_net.h"
#include "naive_tail.h"

namespace keel {
namespace {

// f(1) is 0.6 sqrt(10) in all of these, or as many powers of ten less, but double makes 0 of it on
// the way, and of the sizes that margins are taken of.
TEST_CASE("net_bound: weights whose products underflow are refused, and no smaller bound is said") {
  constexpr std::size_t kUnits = 4;
  const auto bound = [](const std::string& spec, double gain, const std::vector<double>& factors) {
    std::vector<Vector> values = {
        {1, -1, 2, -2}, Vector(kUnits), Vector(kUnits, gain), Vector(kUnits)};
    for (std::size_t f = 0; f < factors.size(); ++f) {
      const bool last = f + 1 == factors.size();
      Vector weight(last ? kUnits : kUnits * kUnits, last ? factors[f] : 0);
      for (std::size_t i = 0; !last && i < kUnits; ++i) weight[i * kUnits + i] = factors[f];
      values.push_back(weight);
      values.push_back(Vector(last ? 1 : kUnits));
    }
    std::string message = "nothing thrown";
    const Net net = given_net(spec, 1, values);
    try {
      const Interval proved = bound_net(net).outputs[0];
      return fmt::format("at most {}", proved.high);
    } catch (const Error& error) {
      message = error.what();
    }
    return message.substr(0, message.find(" that"));
  };
  const std::string refused = "net_bound: got weights so small";
  const std::string begin = "dense(4) layernorm(eps=0) ";
  CHECK(bound(begin + "dense(4) relu dense(4) relu dense(1)", 1e-200, {1e-200, 1e200, 1e200}) ==
        refused);
  CHECK(bound(begin + "relu dense(4) relu dense(4) relu dense(4) relu dense(4) relu dense(1)",
              1e-110, {1e-110, 1e-110, 1e110, 1e110, 1e110}) == refused);
  CHECK(bound(begin + "dense(4) relu dense(1)", 1e-160, {1e-160, 1e300}) == refused);
  CHECK(bound(begin + "relu dense(1)", 1e-320, {1e307}) == refused);
  CHECK(bound(begin + "dense(1)", 1e-200, {1e-200}) == refused);
  std::string many = begin;
  std::vector<double> factors;
  for (int i = 0; i < 8; ++i) many += "dense(4) ", factors.push_back(1e-37);
  for (int i = 0; i < 8; ++i) many += "relu dense(4) ", factors.push_back(1e37);
  factors.push_back(1e37);
  CHECK(bound(many + "relu dense(1)", 1e-37, factors) == refused);
  // Weights of 0, and small ones that nothing is lost of, are no reason to refuse.
  CHECK(bound(begin + "relu dense(4) relu dense(1)", 0, {1, 1}).starts_with("at most "));
  CHECK(bound(begin + "relu dense(4) relu dense(1)", 1, {0, 1}).starts_with("at most "));
  CHECK(
      bound(begin + "relu dense(4) relu dense(1)", 1e-60, {1e-60, 1e-60}).starts_with("at most "));
  CHECK(bound(begin + "relu dense(4) relu dense(1)", 1e-120, {1e60, 1e60}).starts_with("at most "));
}

TEST_CASE("net_bound: gelu and silu of numbers whose squares leave double") {
  for (const char* activation : {"gelu", "gelu(tanh=1)", "silu", "silu(beta=100)"})
    for (double size : {1e150, 1e153, 1e154, 1e155, 1e200}) {
      CAPTURE(activation);
      CAPTURE(size);
      // Units of 10 +- 2 sizes, taken over a size each: f is 10 + 0.3 (h_0 + h_1), |h|^2 <= 4.
      Vector bias(4, 10 * size), last = {0.3 / size, 0.3 / size, 0.2 / size, 0.2 / size};
      const Net net =
          given_net(std::string("dense(4) layernorm(eps=0) ") + activation + " dense(1)", 3,
                    {draws(12, 5), draws(4, 6), Vector(4, size), bias, last, {0}});
      // Of h of mean 0 in four dimensions: the last weights less their mean, 0.05 each.
      const double reach = 2 * 0.1;
      const Interval proved = bound_net(net).outputs[0];
      CHECK(proved.high >= 10 + reach);
      CHECK(proved.high <= 10 + 1.01 * reach);
      CHECK(proved.low <= 10 - reach);
      CHECK(proved.low >= 10 - 1.01 * reach);
    }
}

}  // namespace
}  // namespace keel
