// What the bounds know of activations.
#include "../../ntk/activation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "../message_of.h"
#include "activations.h"
#include "naive_tail.h"

namespace keel {
namespace {

TEST_CASE("activation: what it stays in on an interval, and how far it goes") {
  std::vector<Activation> all(kCurved.begin(), kCurved.end());
  all.push_back(LayerKind::relu);
  for (double slope : {0.3, 0.0, 1.0, 3.0, -0.5, -1.0, -4.0})
    all.push_back(Activation::of_slope(slope));
  for (const Activation& phi : all) {
    CAPTURE(name_of(phi.kind));
    CAPTURE(phi.slope);
    CAPTURE(phi.alpha);
    const Vector ends = draws(200, 5);
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      const double a = 3 * std::min(ends[i], ends[i + 1]), b = 3 * std::max(ends[i], ends[i + 1]);
      const Interval range = phi.range(a, b);
      Interval farthest{kInfinity, -kInfinity};
      for (int step = 0; step <= 100; ++step) {
        const double z = a + (b - a) * step / 100, value = phi(z);
        CHECK(range.low - 1e-14 <= value);  // of b, of which this z may be a rounding off
        CHECK(value <= range.high + 1e-14);
        CHECK(std::abs(value - phi(a)) <= 1.13 * phi.spread(z - a) + 1e-14);
        if (phi.least()) CHECK(value >= *phi.least());
        farthest = {std::min(farthest.low, value), std::max(farthest.high, value)};
        if (!phi.kinked()) CHECK(std::abs(value) <= phi.largest(a, b) + 1e-14);
        const double relu = z > 0 ? phi.above * z : phi.kinked() ? phi.slope * z : 0.0;
        if (const auto beside = phi.beside_relu()) {
          CHECK(value - relu >= beside->low);
          CHECK(value - relu <= beside->high);
          const Interval here = phi.beside_relu(a, b);
          CHECK(value - relu >= here.low - 1e-14);
          CHECK(value - relu <= here.high + 1e-14);
          CHECK(here.low >= beside->low);
          CHECK(here.high <= beside->high);
        }
      }
      // And no more than it: but for where gelu and silu are lowest, which is known to some digits.
      CHECK(range.high - farthest.high <= 1e-12);
      CHECK(farthest.low - range.low <= 0.05 * (b - a) + 2e-3);
    }
  }
}

TEST_CASE("activation: beside its two lines it is what it is at the ends, which may be infinite") {
  for (const LayerSpec& word : kCurved) {
    if (bounds_units(word.kind)) continue;
    CAPTURE(spec_text({word}));
    const Activation phi(word);
    const double far = 40 / std::min(phi.beta, 1.0);
    for (const Interval& z : {Interval{far, kInfinity}, Interval{-kInfinity, -far}}) {
      const Interval of = phi.beside_relu(z.low, z.high);
      const double lowest = phi.is_elu() && z.low < 0 ? -phi.alpha : 0;
      CHECK(of.low == doctest::Approx(lowest));
      CHECK(of.high - of.low <= 1e-9);
    }
    const Interval all = phi.beside_relu(-kInfinity, kInfinity), known = *phi.beside_relu();
    CHECK(all.low == doctest::Approx(known.low).epsilon(1e-5));
    CHECK(all.high == doctest::Approx(known.high).epsilon(1e-5));
  }
}

TEST_CASE("activation: a slope a unit, or one of all") {
  const LayerActivation each({0.5, -2, 0.5});
  CHECK(each.kinked());
  CHECK(each.of(1)(-3) == 6);
  CHECK(each.of(2)(-3) == -1.5);
  CHECK(each.of(1)(3) == 3);
  CHECK(!each.least());
  CHECK(each.and_one_more().of(3)(7) == 7);
  CHECK(LayerActivation({-0.5, 0}).least() == 0.0);
  const LayerActivation same({0.25, 0.25});
  CHECK(same.of(1000)(-4) == -1);  // as of a layer of any width
  CHECK(same.and_one_more().of(2)(-4) == -1);
  CHECK(LayerActivation(LayerKind::gelu).least() == Activation(LayerKind::gelu).least());
  CHECK(message_of([] { LayerActivation(std::vector<double>{}); }) ==
        "activation: got no slopes, wanted one for each unit");
}

TEST_CASE("activation: far out neither value nor slope leaves double") {
  for (const LayerKind kind :
       {LayerKind::tanh, LayerKind::sigmoid, LayerKind::softplus, LayerKind::elu})
    for (const double z : {-1e300, -800.0, 800.0, 1e300}) {
      CAPTURE(name_of(kind));
      CAPTURE(z);
      const Activation phi = kind;
      const bool rises = kind == LayerKind::softplus || kind == LayerKind::elu;
      const bool falls = kind == LayerKind::tanh || kind == LayerKind::elu;
      CHECK(phi(z) == (z > 0 ? (rises ? z : 1) : falls ? -1 : 0));
      CHECK(phi.steepest(z, z) >= 0);
      CHECK(phi.steepest(z, z) <= 1);
      CHECK(phi.curvature(z, z) < 1e-300);
    }
}

TEST_CASE("activation: what bounds slopes and bends is no less than quotients of differences") {
  for (const LayerSpec& layer : kCurved) {
    CAPTURE(spec_text({layer}));
    const Activation phi = layer;
    constexpr double kStep = 1e-3;
    for (double a = -8; a < 8; a += 0.125)
      for (double length : {0.125, 0.5, 2.0})
        for (double z = a + kStep; z + kStep <= a + length; z += length / 16) {
          CAPTURE(a);
          CAPTURE(z);
          const double b = a + length, before = phi(z - kStep), at = phi(z),
                       behind = phi(z + kStep);
          CHECK(std::abs(behind - before) <= 2 * kStep * phi.steepest(a, b) + 1e-14);
          const bool corner = phi.is_elu() && z - kStep < 0 && z + kStep > 0;
          if (!corner)
            CHECK(std::abs(behind - 2 * at + before) <=
                  kStep * kStep * phi.curvature(a, b) + 1e-14);
        }
  }
}

TEST_CASE("activation: selu keeps what is normal at mean 0 and variance 1") {
  const Activation selu = LayerKind::selu;
  constexpr double kStep = 1e-3;
  double mean = 0, square = 0;
  for (double z = -12; z < 12; z += kStep) {
    const double value = selu(z + kStep / 2),
                 mass = kStep * std::exp(-0.5 * std::pow(z + kStep / 2, 2)) / std::sqrt(2 * M_PI);
    mean += mass * value;
    square += mass * value * value;
  }
  CHECK(std::abs(mean) < 1e-6);
  CHECK(square == doctest::Approx(1).epsilon(1e-6));
}

TEST_CASE("activation: gelu's form by tanh and silu far out, and a beta that no silu has") {
  const Activation by_tanh = LayerSpec{.kind = LayerKind::gelu, .by_tanh = true};
  for (const double z : {-1e300, -1e103, -50.0, 50.0, 1e103, 1e300}) {
    CAPTURE(z);
    CHECK(by_tanh(z) == std::max(z, 0.0));
    CHECK(by_tanh.curvature(z, z) < 1e-300);
    for (const double beta : {0.01, 1.0, 100.0}) {
      const Activation silu = LayerSpec{.kind = LayerKind::silu, .beta = beta};
      CHECK(std::isfinite(silu(z)));
      CHECK(silu(z) <= std::max(z, 0.0));
      CHECK(silu.curvature(z, z) <= 0.5 * beta);
    }
  }
  for (const double beta : {0.0, -1.0, 101.0, std::nan("")})
    CHECK(message_of([&] {
            Activation{LayerSpec{.kind = LayerKind::silu, .beta = beta}};
          }).find("silu of a beta from 0.01 to 100") != std::string::npos);
}

TEST_CASE("activation: an alpha that no elu has is refused") {
  for (const double alpha : {-0.1, 100.5, std::nan("")})
    CHECK(message_of([&] {
            Activation{LayerSpec{.kind = LayerKind::elu, .alpha = alpha}};
          }).find("elu of an alpha from 0 to 100") != std::string::npos);
}

TEST_CASE("activation: other layers are refused") {
  for (const LayerKind kind : {LayerKind::dense, LayerKind::layernorm, LayerKind::batchnorm}) {
    CAPTURE(name_of(kind));
    CHECK(message_of([&] {
            Activation{kind};
          }).starts_with(fmt::format("activation: got {}", name_of(kind))));
  }
}

}  // namespace
}  // namespace keel
