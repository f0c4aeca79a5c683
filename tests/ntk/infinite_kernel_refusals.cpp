// What the kernel of infinite width refuses, and how it says so; and inputs of no size.
#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "../../ntk/infinite_kernel.h"
#include "../message_of.h"

using namespace keel;

TEST_CASE("what the infinite kernel refuses, word for word") {
  const auto made = [](const char* net, InfiniteKernelOptions options = {}) {
    return message_of([&] { InfiniteKernel(net, 2, options); });
  };
  CHECK(made("dense(3) relu gelu dense(1)") ==
        "kernel_map: got 'gelu' (word 3) on what another activation left, which is not Gaussian: "
        "wanted a dense layer between");
  CHECK(made("dense(3) relu layernorm silu dense(1)").find("'silu' (word 4)") != std::string::npos);
  CHECK(made("dense(3) layernorm layernorm relu dense(1)") == "no error");
  CHECK(made("dense(3) identity batchnorm relu dense(1)") ==
        "infinite_kernel: got a batchnorm at word 3, wanted layers of one input at a time: it has "
        "no kernel of two inputs alone");
  CHECK(
      made("dense(3) layernorm identity elu gelu(tanh=1) dense(1)")
          .starts_with("kernel_map: got 'gelu(tanh=1)' (word 5) on what another activation left"));
  CHECK(made("dense(3) prelu dense(1)") ==
        "kernel_map: got 'prelu' (word 2), whose one slope of all units leaves a kernel that is "
        "random at any width, wanted prelu(per_unit=1)");
  // Of values that hardly vary nothing is left once their mean is taken away.
  for (const char* of : {"dense(3) sigmoid layernorm(eps=0) dense(1)",
                         "dense(3) relu dense(3) softplus rmsnorm layernorm(eps=1e-12) dense(1)"})
    CHECK(made(of).find("behind a sigmoid or softplus, wanted 1e-09 or more") != std::string::npos);
  for (const char* of : {"dense(3) sigmoid rmsnorm(eps=0) dense(1)",
                         "dense(3) softplus dense(3) layernorm(eps=0) dense(1)"})
    CHECK(made(of) == "no error");
  // What shares weights with what it is added to is not independent of it.
  for (const char* within : {"relu", "layernorm", "relu layernorm", "dense(3) relu",
                             "dense(3) gelu rmsnorm", "rmsnorm identity layernorm"}) {
    CAPTURE(within);
    CHECK(made(fmt::format("dense(3) residual({}) dense(1)", within).c_str())
              .ends_with("wanted a dense layer at its end, or one ahead of norms alone"));
  }
  CHECK(made("dense(3) residual(identity relu dense(3) identity layernorm) relu dense(1)")
            .starts_with("kernel_map: got 'relu' (word 8) on a residual's sum with values of a "
                         "norm's gain"));
  CHECK(made("dense(3) layernorm residual(dense(3)) layernorm relu dense(1)")
            .find("wanted a dense layer between, or that norm without a gain (affine=0)") !=
        std::string::npos);
  CHECK(made("dense(3) relu residual(dense(3)) relu dense(1)")
            .starts_with("kernel_map: got 'relu' (word 5) on what another activation left"));
  for (const char* net : {"dense(3) residual(relu dense(3) layernorm) dense(1)",
                          "dense(3) layernorm residual(dense(3)) layernorm dense(2) relu dense(1)",
                          "dense(3) layernorm(affine=0) residual(dense(3)) relu dense(1)"})
    CHECK(made(net) == "no error");
  // A Spec made by hand: data are not Gaussian, and nothing has centred them.
  for (const LayerKind kind : {LayerKind::relu, LayerKind::layernorm})
    CHECK(message_of([&] {
            InfiniteKernel(Spec{{.kind = kind}, {.kind = LayerKind::dense, .width = 1}}, 2);
          }).find("wanted a net that begins and ends with dense(k)") != std::string::npos);
  InfiniteKernelOptions huge;
  huge.sigma_w2 = 1e60;
  CHECK(made("dense(3) dense(1)", huge).find("take a smaller sigma_w2") != std::string::npos);

  const InfiniteKernel kernel("dense(3) relu dense(1)", 2);
  const auto points_of = [&](Tensor x) { return message_of([&] { kernel.points(x); }); };
  CHECK(points_of(Tensor::zeros({4, 3}, DType::f64)) ==
        "infinite_kernel: got x float64 [4, 3], wanted [n, 2] float64");
  CHECK(points_of(Tensor::zeros({4, 2})).find("float32") != std::string::npos);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double bad : {nan, 1e60, std::numeric_limits<double>::infinity()})
    CHECK(points_of(Tensor::from(std::vector<double>{1, 2, 3, bad}, {2, 2})).find("in row 1") !=
          std::string::npos);
  CHECK(message_of([&] { kernel.entry(1, 1, 1.1); }).find("at most 1 in size") !=
        std::string::npos);
  CHECK(message_of([&] { kernel.diagonal(-1); }).find("wanted from 0") != std::string::npos);

  const auto points = kernel.points(Tensor::zeros({4, 2}, DType::f64));
  CHECK_THROWS_AS(kernel.gram_lower(*points, Tensor::empty({4, 3})), ShapeError);
  CHECK_THROWS_AS(kernel.product(*points, Tensor::zeros({4, 1})), ShapeError);
  const InfiniteKernel other("dense(3) relu dense(1)", 2);
  CHECK(message_of([&] { other.diag(*points); }) == "diag: got points of another kernel");
}

TEST_CASE("points are a copy: what is written to x later does not reach them") {
  const InfiniteKernel kernel("dense(4) relu dense(1)", 2);
  const Tensor x = Tensor::from(std::vector<double>{1, 2, -1, 0.5}, {2, 2});
  const auto points = kernel.points(x);
  const auto gram = [&] {
    const Tensor into = Tensor::empty({2, 2}, DType::f64);
    kernel.gram(*points, *points, into);
    return into.to_vector<double>();
  };
  const std::vector<double> before = gram();
  fill(x, 7);
  CHECK(gram() == before);
}

TEST_CASE("no inputs, one input, no columns") {
  const InfiniteKernel kernel("dense(4) relu dense(1)", 3);
  const Tensor none = Tensor::zeros({0, 3}, DType::f64), one = Tensor::full({1, 3}, 1, DType::f64);
  const auto nobody = kernel.points(none), somebody = kernel.points(one);
  kernel.gram(*nobody, *somebody, Tensor::empty({0, 1}));
  kernel.gram(*somebody, *nobody, Tensor::empty({1, 0}));
  kernel.gram_lower(*nobody, Tensor::empty({0, 0}));
  CHECK(kernel.diag(*nobody).shape() == Shape{0});
  CHECK(kernel.product(*nobody, Tensor::zeros({0, 2}, DType::f64)).shape() == Shape{0, 2});
  CHECK(kernel.product(*somebody, Tensor::zeros({1, 0}, DType::f64)).shape() == Shape{1, 0});
}
