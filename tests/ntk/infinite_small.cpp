// Kernels of infinite width where inputs are next to nothing, and only a mean is left of a sigmoid.
#include <doctest/doctest.h>

#include <cmath>

#include "../../core/random.h"
#include "../../ntk/infinite_kernel.h"

namespace keel {
namespace {

Tensor gram_of(const char* net, const Tensor& x, double* rounding = nullptr) {
  InfiniteKernelOptions options;
  options.sigma_b2 = 0;
  const InfiniteKernel kernel(net, x.size(1), options);
  const auto points = kernel.points(x);
  const Tensor into = Tensor::zeros({x.size(0), x.size(0)}, DType::f64);
  kernel.gram(*points, *points, into);
  if (rounding) *rounding = kernel.rounding(*points);
  return into;
}

// Of a small u sigmoid is 1/2 + u/4, and tanh u: a Layer Norm sees the one as a fourth of the
// other.
TEST_CASE("a sigmoid in front of a Layer Norm, of small inputs, as the tanh that it then is") {
  for (double size : {1e-3, 1e-5, 1e-7, 1e-9, 1e-20}) {
    CAPTURE(size);
    const Tensor x = normal({5, 3}, {4, 0}, size, DType::f64);
    const Tensor of_sigmoid =
        gram_of("dense(8) sigmoid layernorm(eps=1e-5) dense(8) relu dense(1)", x);
    const Tensor of_tanh = gram_of("dense(8) tanh layernorm(eps=16e-5) dense(8) relu dense(1)", x);
    for (std::int64_t i = 0; i < 25; ++i) {
      const double wanted = of_tanh.data<double>()[i];
      CHECK(of_sigmoid.data<double>()[i] ==
            doctest::Approx(wanted).epsilon(1e-6 + 2 * size * size));
    }
  }
}

// And softplus is u/2 beside a mean: what is lost of it, is said.
TEST_CASE("a softplus in front of a Layer Norm, of small inputs: what rounding left is said") {
  for (double size : {1e-4, 1e-5, 1e-6, 1e-7, 1e-8}) {
    CAPTURE(size);
    const Tensor x = normal({5, 3}, {4, 0}, size, DType::f64);
    double rounding = 0;
    const Tensor of_softplus =
        gram_of("dense(8) softplus layernorm(eps=1e-5) dense(8) relu dense(1)", x, &rounding);
    const Tensor of_line =
        gram_of("dense(8) leakyrelu(slope=1) layernorm(eps=4e-5) dense(8) relu dense(1)", x);
    // Nothing is known where the variance is rounded away, and much where it is not.
    CHECK(std::isinf(rounding) == (size < 1e-6));
    if (size > 1e-5) CHECK(rounding < 1e-3);
    const double *found = of_softplus.data<double>(), *wanted = of_line.data<double>();
    for (std::int64_t i = 0; i < 5; ++i)
      for (std::int64_t j = 0; j < 5; ++j) {
        const double unit = std::sqrt(wanted[6 * i] * wanted[6 * j]);
        CHECK(std::abs(found[5 * i + j] - wanted[5 * i + j]) <=
              unit * (rounding + 1e-6 + 2 * size));
      }
  }
}

}  // namespace
}  // namespace keel
