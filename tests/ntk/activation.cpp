// What the bounds know of activations.
#include "../../ntk/activation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "../message_of.h"
#include "naive_tail.h"

namespace keel {
namespace {

TEST_CASE("activation: what it stays in on an interval, and how far it goes") {
  for (const LayerSpec& layer :
       {LayerSpec{.kind = LayerKind::relu}, LayerSpec{.kind = LayerKind::leakyrelu, .slope = 0.3},
        LayerSpec{.kind = LayerKind::gelu}, LayerSpec{.kind = LayerKind::silu},
        LayerSpec{.kind = LayerKind::tanh}, LayerSpec{.kind = LayerKind::sigmoid},
        LayerSpec{.kind = LayerKind::softplus}, LayerSpec{.kind = LayerKind::elu}}) {
    const Activation phi = layer;
    const Vector ends = draws(200, 5);
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      const double a = 3 * std::min(ends[i], ends[i + 1]), b = 3 * std::max(ends[i], ends[i + 1]);
      const Interval range = phi.range(a, b);
      for (int step = 0; step <= 100; ++step) {
        const double z = a + (b - a) * step / 100, value = phi(z);
        CHECK(range.low <= value);
        CHECK(value <= range.high + 1e-14);  // of b, of which this z may be a rounding off
        CHECK(std::abs(value - phi(a)) <= 1.13 * phi.spread(z - a) + 1e-14);
        if (phi.least()) CHECK(value >= *phi.least());
        if (!phi.kinked()) CHECK(std::abs(value) <= phi.largest(a, b) + 1e-14);
        const double relu = std::max(z, phi.kinked() ? phi.slope * z : 0.0);
        if (const auto beside = phi.beside_relu()) {
          CHECK(value - relu >= beside->low);
          CHECK(value - relu <= beside->high);
        }
      }
    }
  }
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
