#include "../../ntk/empirical_kernel.h"
#include "../difference.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../core/random.h"
#include "../../ntk/regression.h"
#include "../bits.h"
#include "../gpu.h"
#include "../message_of.h"

using namespace keel;
using std::int64_t;

namespace {

constexpr const char* kSpec = "dense(12) layernorm relu dense(9) gelu dense(2)";

Tensor inputs(int64_t n, std::uint64_t seed) { return normal({n, 3}, {seed, 0}, 1, DType::f64); }

Net net_of(DType dtype, int64_t members, Device device = {}) {
  return Net(kSpec, 3,
             {.parameterisation = Parameterisation::ntk,
              .members = members,
              .seed = 4,
              .dtype = dtype,
              .device = device});
}

}  // namespace

TEST_CASE("empirical kernel: the mean over members and outputs of J J'") {
  for (const int64_t members : {1, 3}) {
    const EmpiricalKernel kernel(net_of(DType::f64, members));
    const Tensor x = inputs(30, 1), x2 = inputs(17, 2);
    const Jacobian j(kernel.net(), x), j2(kernel.net(), x2);
    const auto a = kernel.points(x), b = kernel.points(x2);
    CHECK(a->rows() == 30);
    CHECK(kernel.input_width() == 3);
    const Tensor into = Tensor::empty({30, 17}, DType::f64);
    kernel.gram(*a, *b, into);
    CHECK(same_bits(into, j.gram(j2, OutputMode::trace, true)));
    CHECK(same_bits(into, kernel.matrix(x, x2)));
    const Tensor lower = Tensor::full({30, 30}, 5, DType::f64);
    kernel.gram_lower(*a, lower);
    const auto got = lower.to_vector<double>(),
               whole = j.gram(OutputMode::trace, true).to_vector<double>();
    int wrong = 0;
    for (int64_t i = 0; i < 30; ++i)
      for (int64_t k = 0; k < 30; ++k) wrong += got[i * 30 + k] != (k <= i ? whole[i * 30 + k] : 5);
    CHECK(wrong == 0);
    CHECK(same_bits(kernel.diag(*a), j.diag(true)));
    CHECK(same_bits(kernel.diagonal(x), j.diag(true)));
    const Tensor v = normal({30, 2}, {7, 0}, 1, DType::f64);
    CHECK(same_bits(kernel.product(*a, v), j.product(v)));
  }
}

TEST_CASE("empirical kernel: a float32 net has diagonals and products in double") {
  for (const int64_t members : {1, 2}) {
    const EmpiricalKernel kernel(net_of(DType::f32, members));
    Net exact = net_of(DType::f64, members);
    copy(exact.flat(), kernel.net().flat());
    const Tensor x = inputs(40, 1), v = normal({40, 1}, {7, 0}, 1, DType::f64);
    const Jacobian j(exact, x);
    const auto points = kernel.points(x);
    CHECK(same_bits(kernel.product(*points, v), j.product(v)));
    CHECK(same_bits(kernel.diag(*points), j.diag(true)));
    // A Gram matrix has the precision of where it is written to.
    const Tensor wide = Tensor::empty({40, 40}, DType::f64), narrow = Tensor::empty({40, 40});
    kernel.gram(*points, *points, wide);
    kernel.gram(*points, *points, narrow);
    CHECK(same_bits(wide, j.gram(OutputMode::trace, true)));
    CHECK(
        same_bits(narrow, Jacobian(kernel.net(), x.to(DType::f32)).gram(OutputMode::trace, true)));
    CHECK(test::relative_difference(narrow, wide) < 1e-5);
    // Theta v in double and the matrix times v are one.
    const auto theta = wide.to_vector<double>(), values = v.to_vector<double>();
    std::vector<double> wanted(40);
    for (int64_t i = 0; i < 40; ++i)
      for (int64_t k = 0; k < 40; ++k) wanted[i] += theta[i * 40 + k] * values[k];
    CHECK(test::relative_difference(kernel.product(*points, v), Tensor::from(wanted, {40})) <
          1e-12);
  }
}

TEST_CASE("empirical kernel: diagonals of many inputs are made in blocks") {
  const EmpiricalKernel kernel(
      Net("dense(3000) relu dense(8)", 3, {.parameterisation = Parameterisation::ntk}));
  const Tensor x = inputs(200, 1);  // blocks of 87 rows
  const Tensor blocks = kernel.diagonal(x);
  CHECK(test::relative_difference(blocks, kernel.diag(*kernel.points(x))) < 1e-14);
  CHECK(kernel.diagonal(inputs(0, 1)).shape() == Shape{0});
}

TEST_CASE("empirical kernel: nets are shared or moved in, and inputs are kept") {
  const auto net = std::make_shared<const Net>(net_of(DType::f64, 1));
  const EmpiricalKernel kernel(net);
  CHECK(&kernel.net() == net.get());
  const Tensor x = inputs(5, 1);
  const auto points = kernel.points(x);
  const Tensor wanted = kernel.matrix(x, x);
  fill(x, 0);
  const Tensor into = Tensor::empty({5, 5}, DType::f64);
  kernel.gram(*points, *points, into);
  CHECK(same_bits(into, wanted));
}

TEST_CASE("empirical kernel: what does not fit is refused in one line") {
  const EmpiricalKernel kernel(net_of(DType::f64, 1)), other(net_of(DType::f64, 1));
  CHECK(message_of([&] {
          (void)kernel.points(Tensor::zeros({4, 2}, DType::f64));
        }) == "empirical_kernel: got x [4, 2] float64, wanted [n, 3] float64");
  CHECK(message_of([&] {
          (void)kernel.points(Tensor::zeros({4, 3}));
        }) == "empirical_kernel: got x [4, 3] float32, wanted [n, 3] float64");
  const auto points = other.points(inputs(4, 1));
  CHECK(message_of([&] { (void)kernel.diag(*points); }) ==
        "empirical_kernel: got the points of another kernel, wanted this one's");
  CHECK(message_of([&] { (void)other.product(*points, inputs(4, 1).to(DType::f32)); }) ==
        "jacobian: v is float32, the Jacobian is float64: wanted one dtype");
  CHECK(message_of([] { EmpiricalKernel(std::shared_ptr<const Net>()); }) ==
        "empirical_kernel: got no net");
}

TEST_CASE("empirical kernel: regression with it keeps no copy of Theta in double") {
  const auto kernel = std::make_shared<EmpiricalKernel>(net_of(DType::f32, 2));
  CHECK(kernel->cheap_product());
  CHECK(Regression::plan(*kernel, 1000, 1, {}).kept == 0);
  const Tensor x = inputs(40, 1), y = normal({40, 1}, {7, 0}, 1, DType::f64);
  const Regression regression(kernel, x, y, {.ridge = {.relative = 1e-3}});
  CHECK(regression.report().residual <= 1e-10);
  // Predictions at the inputs leave the ridge's share of the targets: Theta alpha = y - ridge
  // alpha.
  const auto at = regression.predict(x).to_vector<double>(), wanted = y.to_vector<double>(),
             alpha = regression.alpha().to_vector<double>();
  for (std::size_t k = 0; k < at.size(); ++k)
    CHECK(at[k] == doctest::Approx(wanted[k] - regression.report().ridge * alpha[k]).epsilon(1e-8));
}

TEST_CASE("empirical kernel: CUDA agrees with the CPU") {
  if (!test::gpu_here("empirical kernel: CUDA agrees with the CPU")) return;
  const Device gpu = Device::cuda();
  const EmpiricalKernel here(net_of(DType::f32, 2)), there(net_of(DType::f32, 2, gpu));
  const Tensor x = inputs(150, 1), v = normal({150, 1}, {7, 0}, 1, DType::f64);
  CHECK(test::relative_difference(there.matrix(x.to(gpu), x.to(gpu), DType::f32),
                                  here.matrix(x, x, DType::f32)) < 1e-5);
  CHECK(test::relative_difference(there.product(*there.points(x.to(gpu)), v.to(gpu)),
                                  here.product(*here.points(x), v)) < 1e-12);
  CHECK(test::relative_difference(there.diagonal(x.to(gpu)), here.diagonal(x)) < 1e-12);
}
