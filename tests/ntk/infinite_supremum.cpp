// sup Theta(x, x) over all x: known answers, and a dense scan that must not find more.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "../../ntk/infinite_kernel.h"
#include "../../ntk/interval.h"
#include "../message_of.h"
#include "../sanitized.h"

using namespace keel;

namespace {

Supremum supremum(const std::string& net, double b, double first_sigma_w2 = 1,
                  Parameterisation parameterisation = Parameterisation::ntk,
                  KernelOutput output = KernelOutput::ntk) {
  InfiniteKernelOptions options;
  options.first_sigma_w2 = first_sigma_w2;
  options.sigma_b2 = b;
  options.parameterisation = parameterisation;
  return InfiniteKernel(net, 4, options, output).supremum();
}

const std::string kNorm = "layernorm(affine=0, eps=0) ";

}  // namespace

TEST_CASE("suprema of the paper's nets") {
  for (double b : {0.01, 0.3}) {
    const Supremum none = supremum("dense(8) relu dense(8) relu dense(1)", b);
    CHECK_FALSE(none.bounded);
    CHECK(none.value == kInfinity);
    CHECK(none.limit == kInfinity);
    CHECK(none.growth == 2);

    const Supremum first = supremum("dense(8) " + kNorm + "relu dense(8) relu dense(1)", b);
    CHECK(first.bounded);
    CHECK(first.growth == 0);
    CHECK(first.value == doctest::Approx(3 + 3 * b).epsilon(2e-6));
    CHECK(first.limit == doctest::Approx(3 + 3 * b).epsilon(1e-13));

    const Supremum second = supremum("dense(8) relu dense(8) " + kNorm + "relu dense(1)", b);
    CHECK(second.bounded);
    CHECK(second.value == doctest::Approx(3 + b).epsilon(2e-6));
    CHECK(second.limit == doctest::Approx(3 + b).epsilon(1e-13));
    CHECK(second.at == kInfinity);

    const double every = 1 + b + (2 + b) / (1 + b);
    const Supremum all =
        supremum("dense(8) " + kNorm + "relu dense(8) " + kNorm + "relu dense(1)", b);
    CHECK(all.value == doctest::Approx(every).epsilon(2e-6));
    CHECK(all.limit == doctest::Approx(every).epsilon(1e-13));
  }
}

TEST_CASE("a supremum of an elu far from 1 behind which a Layer Norm takes its mean") {
  struct Case {
    const char* net;
    double sigma_w2, sigma_b2;
  };
  for (const Case& of :
       {Case{"dense(64) dense(64) elu(alpha=20) layernorm(affine=0) dense(1)", 2, 0.01},
        {"dense(64) dense(64) elu(alpha=100) layernorm(eps=88.8, affine=0) dense(1)",
         3.4910239138652668, 0.00032244676414685115}}) {
    CAPTURE(of.net);
    InfiniteKernelOptions options;
    options.sigma_w2 = of.sigma_w2;
    options.sigma_b2 = of.sigma_b2;
    const InfiniteKernel kernel(of.net, 1, options);
    double largest = 0;
    for (double x = 1e-3; x < 1e6; x *= 1.01) {
      const auto points = kernel.points(Tensor::full({1, 1}, x, DType::f64));
      largest = std::max(largest, kernel.diag(*points).item());
    }
    const double proved = kernel.supremum().value;
    CHECK(proved >= largest);
    CHECK(proved <= largest * 1.001);
  }
}

TEST_CASE("a supremum that is reached at 0, and one in the middle") {
  // Standard parameterisation: Theta = (4 r + 1) / (r + b) / 2 + ..., most at r = 0 for small b.
  const Supremum at_zero =
      supremum("dense(8) " + kNorm + "relu dense(1)", 0.01, 1, Parameterisation::standard);
  CHECK(at_zero.at == 0);
  CHECK(at_zero.value == doctest::Approx(2 * 0.5 / 0.01 + 8 * 0.5 + 1).epsilon(2e-6));
  const Supremum middle = supremum("dense(8) gelu dense(8) layernorm gelu dense(1)", 0.01);
  CHECK(middle.at > 0.1);
  CHECK(middle.at < 10);
  CHECK(middle.value > middle.limit * 1.001);
}

TEST_CASE("with eps = 0 and no biases some kernels grow without limit towards x = 0") {
  const Supremum found =
      supremum("dense(8) " + kNorm + "relu dense(1)", 0, 1, Parameterisation::standard);
  CHECK_FALSE(found.bounded);
  CHECK(found.value == kInfinity);
  CHECK(found.at == 0);
  CHECK(found.growth == 0);
  CHECK(std::isfinite(found.limit));
  // Theta starts at K in the NTK parameterisation, which shrinks as fast: nothing blows up.
  CHECK(supremum("dense(8) " + kNorm + "relu dense(1)", 0).bounded);
}

TEST_CASE("with an eps nothing grows without limit, however often norms magnify what is small") {
  for (const char* norm : {"rmsnorm", "layernorm", "rmsnorm(affine=0, eps=1e-12)"})
    for (int norms : {1, 4, 6, 8})
      for (auto parameterisation : {Parameterisation::ntk, Parameterisation::standard}) {
        CAPTURE(norm);
        CAPTURE(norms);
        std::string spec;
        for (int i = 0; i < norms; ++i) spec += fmt::format("dense(8) {} relu ", norm);
        const InfiniteKernelOptions options{.parameterisation = parameterisation, .sigma_b2 = 0};
        const InfiniteKernel kernel(spec + "dense(1)", 4, options);
        const Supremum found = kernel.supremum();
        REQUIRE(found.bounded);
        double most = kernel.diagonal(0);
        for (double log_r = -300; log_r < 60; log_r += 0.5)
          most = std::max(most, kernel.diagonal(std::exp(log_r)));
        CHECK(most / found.value <= 1);
        CHECK(most > 0.9 * found.value);
      }
}

TEST_CASE("over |x| <= R a kernel that grows has a supremum, and one that does not no larger one") {
  for (const char* net :
       {"dense(8) relu dense(8) relu dense(1)", "dense(8) tanh dense(8) layernorm relu dense(1)",
        "dense(8) gelu dense(8) silu dense(1)",
        "dense(8) residual(layernorm relu dense(8)) dense(1)",
        "dense(8) softplus dense(8) sigmoid dense(1)", "dense(8) layernorm relu dense(1)"})
    for (auto parameterisation : {Parameterisation::ntk, Parameterisation::standard})
      for (const double farthest : {1e-3, 1.0, 40.0, 1e7}) {
        CAPTURE(net);
        CAPTURE(farthest);
        const InfiniteKernel kernel(net, 4, {.parameterisation = parameterisation});
        const Supremum found = kernel.supremum(farthest), all = kernel.supremum();
        REQUIRE(found.bounded);
        CHECK(found.value <= all.value);
        CHECK(found.growth == all.growth);
        CHECK(found.limit == all.limit);
        const double edge = farthest * farthest / 4;
        CHECK(found.at <= edge * (1 + 1e-9));
        double most = std::max(kernel.diagonal(0), kernel.diagonal(edge));
        for (int i = 0; i < 400; ++i)
          most = std::max(most, kernel.diagonal(edge * std::exp(-0.1 * i)));
        CHECK(most <= found.value);
        CHECK(found.value <= most * (1 + 3e-6));
      }
  const InfiniteKernel kernel("dense(8) relu dense(1)", 4);
  CHECK(message_of([&] { kernel.supremum(1e-30); }) ==
        "supremum: got |x|^2 / n0 up to 2.5e-61, wanted 1e-20 to 1e+100");
  CHECK(message_of([&] { kernel.supremum(1e60); }) ==
        "supremum: got |x|^2 / n0 up to 2.5e+119, wanted 1e-20 to 1e+100");
}

TEST_CASE("a kernel that still changes where inputs end is refused") {
  for (const auto& [spec, parameterisation] :
       {std::pair{"dense(8) layernorm(affine=0, eps=1e40) relu dense(1)", Parameterisation::ntk},
        {"dense(8) layernorm(affine=0, eps=1e-200) relu dense(1)", Parameterisation::standard}}) {
    const std::string message =
        message_of([&, net = spec, as = parameterisation] { supremum(net, 0, 1, as); });
    CAPTURE(message);
    CHECK(message.starts_with("supremum: got a kernel that "));
    CHECK(message.ends_with("wanted its limit: variances and eps of ordinary sizes"));
  }
}

TEST_CASE(
    "ahead of any norm tanh or sigmoid leaves K bounded, and Theta growing like |x|, whatever is "
    "behind") {
  for (const char* net :
       {"dense(8) tanh dense(1)", "dense(8) relu dense(8) tanh dense(8) tanh dense(1)",
        "dense(8) tanh dense(8) layernorm relu dense(1)", "dense(8) tanh layernorm dense(1)",
        "dense(8) sigmoid dense(1)", "dense(8) softplus dense(8) sigmoid layernorm dense(1)"}) {
    CAPTURE(net);
    const InfiniteKernel theta(net, 3), k(net, 3, {}, KernelOutput::nngp);
    const Supremum found = theta.supremum(), of_k = k.supremum();
    CHECK(!found.bounded);
    CHECK(found.growth == 1);
    const double slope = std::log(theta.diagonal(1e16) / theta.diagonal(1e12)) / std::log(1e2);
    CHECK(slope == doctest::Approx(1).epsilon(1e-3));
    CHECK(of_k.bounded);
    CHECK(of_k.growth == 0);
    CHECK(k.diagonal(1e12) <= of_k.value);
    CHECK(k.diagonal(1e12) == doctest::Approx(of_k.limit).epsilon(1e-4));
  }
  for (const char* net : {"dense(8) leakyrelu dense(1)", "dense(8) softplus dense(1)",
                          "dense(8) prelu(per_unit=1) dense(1)"})
    CHECK(InfiniteKernel(net, 3).supremum().growth == 2);
}

TEST_CASE("a norm within a residual bounds nothing: x passes it by") {
  for (const char* net : {"dense(8) residual(layernorm relu dense(8)) dense(1)",
                          "dense(8) residual(layernorm tanh dense(8)) relu dense(1)",
                          "dense(8) residual(tanh dense(8) layernorm) dense(1)"}) {
    CAPTURE(net);
    const InfiniteKernel theta(net, 3);
    const Supremum found = theta.supremum();
    CHECK(!found.bounded);
    CHECK(found.growth == 2);
    const double slope = std::log(theta.diagonal(1e16) / theta.diagonal(1e12)) / std::log(1e2);
    CHECK(slope == doctest::Approx(2).epsilon(1e-3));
  }
}

TEST_CASE("no input exceeds the supremum, and some input comes within 2e-6 of it") {
  for (const char* net :
       {"dense(8) layernorm relu dense(8) relu dense(1)",
        "dense(8) relu layernorm dense(8) relu dense(1)",
        "dense(8) gelu dense(8) layernorm gelu dense(1)",
        "dense(8) layernorm gelu dense(8) layernorm gelu dense(1)",
        "dense(8) gelu layernorm dense(8) gelu layernorm dense(1)",
        "dense(8) layernorm(eps=0.5) silu dense(1)",
        "dense(8) silu(beta=3) layernorm dense(1)",
        "dense(8) layernorm layernorm gelu dense(1)",
        "dense(8) layernorm dense(1)",
        "dense(8) rmsnorm relu dense(8) relu dense(1)",
        "dense(8) gelu rmsnorm(eps=1e-3) layernorm dense(1)",
        "dense(8) leakyrelu(slope=0.2) layernorm dense(8) leakyrelu dense(1)",
        "dense(8) prelu(per_unit=1) layernorm dense(8) prelu(slope=0, per_unit=1) dense(1)",
        "dense(8) layernorm prelu(per_unit=1) layernorm dense(1)",
        "dense(8) elu layernorm dense(8) elu(alpha=3) dense(1)",
        "dense(8) layernorm selu dense(8) layernorm selu layernorm dense(1)",
        "dense(8) gelu(tanh=1) layernorm dense(8) gelu(tanh=1) dense(1)",
        "dense(8) layernorm tanh dense(8) relu dense(1)",
        "dense(8) layernorm sigmoid dense(8) layernorm sigmoid dense(1)",
        "dense(8) softplus layernorm dense(8) softplus rmsnorm dense(1)",
        "dense(8) softplus residual(dense(8) softplus dense(8)) layernorm dense(1)",
        "dense(8) residual(relu dense(8)) softplus residual(dense(8)) layernorm dense(1)",
        "dense(8) residual(softplus dense(8)) layernorm sigmoid layernorm dense(1)",
        "dense(8) relu dense(8) layernorm tanh layernorm dense(1)",
        "dense(8) residual(layernorm relu dense(8)) residual(layernorm relu dense(8)) layernorm "
        "dense(1)",
        "dense(8) layernorm residual(relu dense(8) gelu dense(8)) dense(1)",
        "dense(8) relu residual(dense(8) layernorm) rmsnorm dense(1)",
        "dense(8) residual(tanh dense(8)) layernorm relu dense(1)",
        "dense(8) residual(dense(8)) layernorm dense(1)",
        "dense(8) residual(relu dense(8)) residual(relu dense(8)) layernorm relu dense(1)",
        "dense(8) residual(leakyrelu dense(8)) layernorm silu dense(1)"})
    for (double b : {0.0, 0.01, 1.0})
      for (auto parameterisation : {Parameterisation::ntk, Parameterisation::standard})
        for (auto output : {KernelOutput::ntk, KernelOutput::nngp}) {
          CAPTURE(net);
          CAPTURE(b);
          CAPTURE(static_cast<int>(parameterisation));
          CAPTURE(static_cast<int>(output));
          InfiniteKernelOptions options;
          options.sigma_b2 = b;
          options.parameterisation = parameterisation;
          const InfiniteKernel kernel(net, 4, options, output);
          const Supremum found = kernel.supremum();
          REQUIRE(found.bounded);
          double most = kernel.diagonal(0);
          for (double log_r = -60; log_r < 60; log_r += test::kSanitized ? 0.5 : 0.05)
            most = std::max(most, kernel.diagonal(std::exp(log_r)));
          most = std::max(most, found.limit);
          if (found.at > 0 && found.at < 1e30)  // and around the place itself
            for (int i = -200; i <= 200; ++i)
              most = std::max(most, kernel.diagonal(found.at * std::exp(i * 1e-5)));
          CHECK(most <= found.value);
          const double reached = found.at == kInfinity ? found.limit : kernel.diagonal(found.at);
          CHECK(reached >= found.value * (1 - 2e-6));
          CHECK(kernel.diagonal(1e30) == doctest::Approx(found.limit));
        }
}
