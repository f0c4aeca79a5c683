// What kernel regression refuses, in which words, and before what.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../../ntk/infinite_kernel.h"
#include "../../ntk/regression.h"
#include "../difference.h"
#include "../gpu.h"
#include "../message_of.h"
#include "closed_kernel.h"

using namespace keel;
using test::column, test::draw_points, test::kernel_of;

namespace {

// The same entries on a GPU, by way of the host.
class ClosedKernelOnGpu : public test::ClosedKernel {
 public:
  using ClosedKernel::ClosedKernel;
  Device device() const override { return Device::cuda(); }
  std::shared_ptr<const Points> points(const Tensor& x) const override {
    return ClosedKernel::points(x.to(Device::cpu()));
  }
  void gram(const Points& a, const Points& b, const Tensor& into,
            const WorkProgress& progress = {}) const override {
    through_host(into, [&](const Tensor& host) { ClosedKernel::gram(a, b, host, progress); });
  }
  void gram_lower(const Points& a, const Tensor& into,
                  const WorkProgress& progress = {}) const override {
    through_host(into, [&](const Tensor& host) { ClosedKernel::gram_lower(a, host, progress); });
  }
  Tensor diag(const Points& a) const override { return ClosedKernel::diag(a).to(device()); }

 private:
  template <class Fill>
  static void through_host(const Tensor& into, Fill fill) {
    const Tensor host = into.to(Device::cpu());
    fill(host);
    copy(into, host);
  }
};

}  // namespace

TEST_CASE("repeated rows are refused by number without a ridge, and welcome with one") {
  const Tensor x = column({3, 1, 3, 2, 1, 3, -0.0, 0.0}), y = draw_points(8, 1, 2);
  for (DType factor : {DType::f32, DType::f64}) {
    try {
      Regression(kernel_of(1, 1), x, y, {.factor = factor});
      FAIL("wanted NotPositiveDefinite");
    } catch (const NotPositiveDefinite& error) {
      CHECK(error.pivot() == 2);
      CHECK(error.repeated_rows() == NotPositiveDefinite::Pairs{{2, 0}, {4, 1}, {5, 0}, {7, 6}});
      const std::string said = error.what();
      CHECK(said.starts_with(
          "regression: Theta of 8 rows is singular, pivot 2 (from 0); 4 of its "
          "input rows (from 0) are as an earlier one: 2 = 0, 4 = 1, 5 = 0, 7 = 6; a "
          "ridge of "));
      // What it advises holds.
      const double ridge = std::stod(said.substr(said.find("ridge of ") + 9));
      const Regression again(kernel_of(1, 1), x, y,
                             {
                                 .ridge = {.absolute = ridge},
                                 .factor = factor,
                             });
      CHECK(again.report().residual <= 1e-8);
    }
    const Regression r(kernel_of(1, 1), x, y, {.ridge = {.absolute = 0.1}, .factor = factor});
    CHECK(r.report().residual <= 1e-10);
  }
}

TEST_CASE("an indefinite kernel is refused with its pivot and an eigenvalue") {
  auto kernel = kernel_of(1, 1);
  kernel->off_diagonal = 1.5;  // between rows 1 and 2: c = 1.5 exp(-0.005)
  const Tensor x = column({0, 10, 10.1, 20}), y = column({1, 2, 3, 4});
  for (DType factor : {DType::f32, DType::f64}) {
    try {
      Regression(kernel, x, y, {.factor = factor});
      FAIL("wanted NotPositiveDefinite");
    } catch (const NotPositiveDefinite& error) {
      CHECK(error.repeated_rows().empty());
      CHECK(std::string(error.what()).find("--ridge") != std::string::npos);
      CHECK(error.pivot() == 2);
      if (factor == DType::f32) continue;
      // (1 - c^2) / (1 + c^2); the smallest is 1 - c = -0.49
      CHECK(std::string(error.what()).find("smallest eigenvalue about -0.38 or less") !=
            std::string::npos);
    }
  }
}

TEST_CASE("an indefinite kernel on the GPU is refused in the words of the CPU") {
  if (!test::gpu_here("an indefinite kernel on the GPU is refused in the words of the CPU")) return;
  const auto here = kernel_of(1, 1);
  const auto there = std::make_shared<ClosedKernelOnGpu>(1, 1);
  here->off_diagonal = there->off_diagonal = 1.5;
  std::vector<double> places(60);  // apart, but for rows 40 and 41
  for (int i = 0; i < 60; ++i) places[i] = i == 41 ? 400.1 : 10.0 * i;
  const Tensor x = column(places), y = draw_points(60, 1, 2);
  for (DType factor : {DType::f32, DType::f64}) {
    const std::string wanted = message_of([&] { Regression(here, x, y, {.factor = factor}); });
    CHECK(wanted.find("pivot 41") != std::string::npos);
    CHECK((wanted.find("smallest eigenvalue about -0.38") != std::string::npos) ==
          (factor == DType::f64));
    CHECK(message_of([&] {
            Regression(there, x.to(Device::cuda()), y.to(Device::cuda()), {.factor = factor});
          }) == wanted);
  }
}

TEST_CASE("a smooth kernel without a ridge is refused, not answered with noise") {
  std::vector<double> points(100);
  for (int i = 0; i < 100; ++i) points[i] = 0.01 * i;
  for (DType factor : {DType::f32, DType::f64})
    CHECK_THROWS_AS(
        Regression(kernel_of(1, 1), column(points), draw_points(100, 1, 2), {.factor = factor}),
        NotPositiveDefinite);
}

TEST_CASE("what is not finite is named by row") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto kernel = kernel_of(1, 1);
  CHECK(message_of([&] {
          Regression(kernel, column({0, nan, 1}), column({1, 2, 3}));
        }) == "regression: x is nan in row 1 (from 0)");
  CHECK(message_of([&] {
          Regression(kernel, column({0, 1, 2}),
                     column({1, 2, std::numeric_limits<double>::infinity()}));
        }) == "regression: y is inf in row 2 (from 0)");
  CHECK(message_of([&] {
          Regression(kernel, column({0, 1, 2}), column({1, -1e308, 3}));
        }) ==
        "regression: got y = -1e+308 in row 1 (from 0), wanted at most 1e+150 in size: scale it");
  auto infinite = kernel_of(1, 1, std::numeric_limits<double>::infinity());
  CHECK(message_of([&] {
          Regression(infinite, column({0, 1}), column({1, 2}));
        }) == "regression: Theta(x, x) is inf for row 0 of x (from 0)");
}

TEST_CASE("a kernel that float32 does not hold is refused for it, unless double holds it as well") {
  const Tensor x = column({0, 1, 3}), y = column({1, 2, 3});
  const auto refusal = [](double scale, const char* wanted) {
    return fmt::format(
        "regression: Theta(x, x) + ridge is {:.3g} for row 0 of x (from 0), wanted {}", scale,
        wanted);
  };
  for (const double scale : {1e-160, 1e160}) {
    const std::string wanted = refusal(scale, "1e-150 to 1e+150: scale the inputs or the net");
    for (DType factor : {DType::f32, DType::f64})
      CHECK(message_of([&] { Regression(kernel_of(1, 1, scale), x, y, {.factor = factor}); }) ==
            wanted);
  }
  for (const double scale : {1e37, 1e-31, 1e149, 1e-149}) {
    CAPTURE(scale);
    auto kernel = std::make_shared<test::ClosedKernel>(1, 1, scale);
    kernel->cheap = true;  // is not kept in double
    CHECK(message_of([&] { Regression(kernel, x, y); }) ==
          refusal(scale, "1e-30 to 1e+36: factor in double (--dtype f64)"));
    const auto off = [&](const Regression& fit) {
      return test::largest_difference(fit.predict(x), y);
    };
    CHECK(off(Regression(kernel, x, y, {.factor = DType::f64})) < 1e-9);
    kernel->cheap = false;
    CHECK(off(Regression(kernel, x, y)) < 1e-9);
  }
}

TEST_CASE("misfits are refused with sizes") {
  const auto kernel = kernel_of(2, 1);
  const Tensor x = draw_points(4, 2, 1), y = draw_points(4, 1, 2);
  CHECK(message_of([&] { Regression(kernel, draw_points(4, 3, 1), y); }) ==
        "regression: got x [4, 3], wanted [n, 2]");
  CHECK(message_of([&] { Regression(kernel, x, draw_points(5, 1, 1)); }) ==
        "regression: got y [5, 1], wanted [4, targets]");
  CHECK(message_of([&] { Regression(kernel, draw_points(0, 2, 1), draw_points(0, 1, 1)); }) ==
        "regression: got no rows, wanted at least one");
  CHECK(message_of([&] { Regression(kernel, x.to(DType::f32), y.to(DType::f32)); }) ==
        "regression: got float32 data, wanted float64");
  CHECK(message_of([&] { Regression(kernel, x, y, {.ridge = {.absolute = 1, .relative = 1}}); }) ==
        "regression: got ridge 1 and relative ridge 1, wanted at most one of them");
  CHECK_THROWS_AS(Regression(kernel, x, y, {.ridge = {.absolute = -1}}), Error);
  for (const double tolerance : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_AS(Regression(kernel, x, y, {.tolerance = tolerance}), Error);
  CHECK_THROWS_AS(Regression(nullptr, x, y), Error);
}

TEST_CASE("the plan counts bytes, and what does not fit is refused before it is asked for") {
  const auto kernel = kernel_of(1, 1);
  const MemoryPlan small = Regression::plan(*kernel, 1000, 1, {});
  CHECK(small.matrix == 4'000'000);
  CHECK(small.kept == 8'000'000);
  CHECK(Regression::plan(*kernel, 1000, 1, {.factor = DType::f64}).matrix == 8'000'000);
  CHECK(Regression::plan(*kernel, 1000, 1, {.factor = DType::f64}).kept == 0);
  CHECK(Regression::plan(*kernel, 4'000'000'000, 1, {}).total() > std::size_t{1} << 62);
  kernel->cheap = true;
  CHECK(Regression::plan(*kernel, 1000, 1, {}).kept == 0);

  const std::int64_t n = 3'000'000;  // 36 TB
  const Tensor x = Tensor::zeros({n, 1}, DType::f64);
  const std::size_t before = memory_stats(Device::cpu()).in_use;
  reset_peak(Device::cpu());
  CHECK_THROWS_AS(Regression(kernel, x, x), OutOfMemory);
  CHECK(memory_stats(Device::cpu()).peak_in_use == before);
}

TEST_CASE("what waits in the pool is available, on a GPU too") {
  const bool gpu = test::gpu_here("what waits in the pool is available");
  const Device device = gpu ? Device::cuda() : Device::cpu();
  const InfiniteKernel kernel("dense(8) relu dense(1)", 2, {.device = device});
  // 12 bytes an entry of Theta: a GPU gives more than half of what is free, a CPU does not.
  const auto rows_that_take = [&](double share) {
    return static_cast<std::int64_t>(
        std::sqrt(share * static_cast<double>(available_memory(device)) / 12));
  };
  CHECK(Regression::plan(kernel, rows_that_take(0.4), 1, {}).kept > 0);
  const std::int64_t n = rows_that_take(0.7);
  CHECK((Regression::plan(kernel, n, 1, {}).kept > 0) == gpu);
  CHECK(Regression::plan(kernel, rows_that_take(0.9), 1, {}).kept == 0);
  trim_memory(device);
  const std::size_t free = describe(device).free_bytes, size = std::size_t{256} << 20;
  const std::size_t available = available_memory(device);
  { const Storage waits(device, size); }
  CHECK(memory_stats(device).cached >= size);
  if (!gpu) return;  // other programs take and give a CPU's memory meanwhile
  CHECK(describe(device).free_bytes <= free - size);
  CHECK(available_memory(device) + size / 8 >= available);
  CHECK(Regression::plan(kernel, n, 1, {}).kept > 0);
}
