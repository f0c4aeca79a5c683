// RMSNorm at infinite width, beside Layer Norm and its formulas.
#include <doctest/doctest.h>

#include <cmath>

#include "../../core/random.h"
#include "../../ntk/infinite_kernel.h"

using namespace keel;

TEST_CASE("right behind a dense layer RMSNorm and Layer Norm have one kernel, but for a bias") {
  // The mean of infinitely many units is 0.
  const auto kernel = [](const char* norm) {
    return InfiniteKernel(fmt::format("dense(8) {0} relu dense(8) {0} gelu dense(1)", norm), 2);
  };
  const InfiniteKernel root = kernel("rmsnorm(affine=0, eps=0.1)"),
                       layer = kernel("layernorm(affine=0, eps=0.1)");
  for (double r : {0.3, 2.0, 1e10})
    for (double cosine : {-0.9, 0.2, 1.0}) {
      const double c = cosine * std::sqrt(r * 0.7);
      CHECK(root.entry(r, 0.7, c) == layer.entry(r, 0.7, c));
    }
}

TEST_CASE("RMSNorm behind relu divides by the root of the second moment") {
  // relu of N(0, q): second moment q / 2, E[relu relu'] = s (sin t + (pi - t) cos t) / (2 pi).
  const double b = 0.2, eps = 0.3, pi = std::acos(-1.0), r = 0.7, r2 = 3, cosine = 0.4;
  const InfiniteKernel nngp("dense(8) relu rmsnorm(eps=0.3) dense(1)", 2,
                            {.first_sigma_w2 = 1.0, .sigma_b2 = b}, KernelOutput::nngp);
  const double c = cosine * std::sqrt(r * r2), s = std::sqrt((r + b) * (r2 + b));
  const double t = std::acos((c + b) / s);
  const double moment = s * (std::sin(t) + (pi - t) * std::cos(t)) / (2 * pi);
  const double k = moment / std::sqrt(((r + b) / 2 + eps) * ((r2 + b) / 2 + eps));
  CHECK(nngp.entry(r, r2, c) == doctest::Approx(2 * k + b).epsilon(1e-12));
}

TEST_CASE("what a mean that is taken away costs of the digits, an RMSNorm does not") {
  const Tensor x = normal({5, 2}, {1, 0}, 1, DType::f64);
  const auto rounding = [&](const char* norm) {
    const InfiniteKernel kernel(fmt::format("dense(8) relu {} dense(8) relu dense(1)", norm), 2);
    return kernel.rounding(*kernel.points(x));
  };
  CHECK(rounding("rmsnorm") == rounding(""));
  CHECK(rounding("rmsnorm") < rounding("layernorm"));
  CHECK(rounding("rmsnorm layernorm") == rounding("layernorm"));
}
