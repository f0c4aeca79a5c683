// Kernel regression against a case solved by hand and a Gauss-Jordan oracle in long double.
#include "../../ntk/regression.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../ntk/infinite_kernel.h"
#include "../gpu.h"
#include "../message_of.h"
#include "closed_kernel.h"

using namespace keel;
using test::ClosedKernel, test::column, test::draw_points, test::kernel_of;

namespace {

using std::int64_t;
using LongMatrix = std::vector<std::vector<long double>>;

/// a^-1 b by Gauss-Jordan elimination with pivoting.
LongMatrix solve_oracle(LongMatrix a, LongMatrix b) {
  const std::size_t n = a.size();
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t best = c;
    for (std::size_t r = c; r < n; ++r)
      if (std::abs(a[r][c]) > std::abs(a[best][c])) best = r;
    std::swap(a[c], a[best]);
    std::swap(b[c], b[best]);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const long double factor = a[r][c] / a[c][c];
      for (std::size_t j = c; j < n; ++j) a[r][j] -= factor * a[c][j];
      for (std::size_t j = 0; j < b[r].size(); ++j) b[r][j] -= factor * b[c][j];
    }
  }
  for (std::size_t r = 0; r < n; ++r)
    for (long double& v : b[r]) v /= a[r][r];
  return b;
}

LongMatrix gram_oracle(const ClosedKernel& kernel, const Tensor& a, const Tensor& b) {
  LongMatrix k(a.size(0), std::vector<long double>(b.size(0)));
  for (int64_t i = 0; i < a.size(0); ++i)
    for (int64_t j = 0; j < b.size(0); ++j) k[i][j] = kernel.entry(a, i, b, j);
  return k;
}

LongMatrix product_oracle(const LongMatrix& a, const LongMatrix& b, bool transpose_a = false) {
  const std::size_t rows = transpose_a ? a[0].size() : a.size(), inner = b.size();
  LongMatrix c(rows, std::vector<long double>(b[0].size()));
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t l = 0; l < inner; ++l)
      for (std::size_t j = 0; j < b[0].size(); ++j)
        c[i][j] += (transpose_a ? a[l][i] : a[i][l]) * b[l][j];
  return c;
}

LongMatrix with_ridge(LongMatrix k, double ridge) {
  for (std::size_t i = 0; i < k.size(); ++i) k[i][i] += ridge;
  return k;
}

LongMatrix rows_of(const Tensor& t) {
  const std::vector<double> v = t.to_vector<double>();
  LongMatrix m(t.size(0));
  for (std::size_t i = 0; i < m.size(); ++i)
    m[i].assign(v.begin() + i * t.size(1), v.begin() + (i + 1) * t.size(1));
  return m;
}

double largest_difference(const LongMatrix& a, const LongMatrix& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].size(); ++j)
      most = max_or_nan(most, static_cast<double>(std::abs(a[i][j] - b[i][j])));
  return most;
}

}  // namespace

TEST_CASE("two points solved by hand") {
  // Theta = [[1, 1/2], [1/2, 1]], y = (1, 2): alpha = (0, 2); at the middle Theta(x, X) = 2^(-1/4).
  const double apart = std::sqrt(2 * std::log(2.0));
  for (DType factor : {DType::f32, DType::f64}) {
    const Regression r(kernel_of(1, 1), column({0, apart}), column({1, 2}), {.factor = factor});
    const std::vector<double> alpha = r.alpha().to_vector<double>();
    CHECK(std::abs(alpha[0]) < 1e-9);
    CHECK(alpha[1] == doctest::Approx(2).epsilon(1e-9));
    CHECK(r.data_fit()[0] == doctest::Approx(4).epsilon(1e-9));
    CHECK(r.smallest_eigenvalue() == doctest::Approx(0.5).epsilon(1e-6));
    const Tensor middle = column({apart / 2});
    const double k = std::pow(2, -0.25);
    CHECK(r.predict(middle).item() == doctest::Approx(2 * k).epsilon(1e-9));
    // k' Theta^-1 k = k^2 * 2 / 1.5
    CHECK(r.variance(middle).item() == doctest::Approx(1 - k * k * 4 / 3).epsilon(1e-9));
    CHECK(r.report().residual <= 1e-10);
    CHECK(r.report().ridge == 0);
    CHECK(r.report().mean_diagonal == 1);
  }
}

TEST_CASE("alpha, mean, variance and ensemble covariance agree with elimination in long double") {
  const auto kernel = kernel_of(3, 1.5, 2), nngp = kernel_of(3, 2.5, 0.7);
  const int64_t m = 9;
  for (int64_t n : {1, 2, 40})
    for (int64_t k : {1, 3, 12})
      for (double ridge : {0.0, 0.3})
        for (DType factor : {DType::f32, DType::f64})
          for (bool cheap : {false, true}) {
            CAPTURE(n);
            CAPTURE(k);
            CAPTURE(ridge);
            CAPTURE(cheap);
            kernel->cheap = cheap;
            const Tensor x = draw_points(n, 3, 1), y = draw_points(n, k, 2),
                         test = draw_points(m, 3, 3);
            const Regression r(kernel, x, y, {.ridge = {.absolute = ridge}, .factor = factor});
            const LongMatrix theta = with_ridge(gram_oracle(*kernel, x, x), ridge);
            const LongMatrix cross = gram_oracle(*kernel, x, test);
            const LongMatrix alpha = solve_oracle(theta, rows_of(y));
            CHECK(largest_difference(rows_of(r.alpha()), alpha) < 1e-6);
            const LongMatrix mean = product_oracle(cross, alpha, true);
            CHECK(largest_difference(rows_of(r.predict(test)), mean) < 1e-8);

            const LongMatrix weights = solve_oracle(theta, cross);
            const std::vector<double> variance = r.variance(test).to_vector<double>();
            for (int64_t j = 0; j < m; ++j) {
              long double expected = kernel->entry(test, j, test, j);
              for (int64_t i = 0; i < n; ++i) expected -= cross[i][j] * weights[i][j];
              CHECK(std::abs(variance[j] - static_cast<double>(expected)) < 1e-11);
              CHECK(variance[j] >= 0);
            }

            LongMatrix covariance = gram_oracle(*nngp, test, test);
            const LongMatrix k_cross = gram_oracle(*nngp, x, test);
            const LongMatrix k_weights = product_oracle(gram_oracle(*nngp, x, x), weights);
            const LongMatrix full = product_oracle(weights, k_weights, true);
            const LongMatrix once = product_oracle(weights, k_cross, true);
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < m; ++j)
                covariance[i][j] += full[i][j] - once[i][j] - once[j][i];
            CHECK(largest_difference(rows_of(r.ensemble_covariance(*nngp, test)), covariance) <
                  1e-7);
          }
}

TEST_CASE("a float32 factor reaches 1e-10 where the condition number is 1e7") {
  const int64_t n = 300;
  const double ridge = 2.5e-6;  // the largest eigenvalue is 25
  const auto kernel = kernel_of(1, 1);
  std::vector<double> points(n), wave(n);
  for (int64_t i = 0; i < n; ++i) {
    points[i] = 0.1 * static_cast<double>(i);
    wave[i] = std::sin(points[i]) + 0.3 * std::cos(2 * points[i]);
  }
  const Tensor x = column(points), y = column(wave), test = draw_points(5, 1, 3);
  const Regression r(kernel, x, y, {.ridge = {.absolute = ridge}});
  const Regression exact(kernel, x, y, {.ridge = {.absolute = ridge}, .factor = DType::f64});
  CHECK(r.report().residual <= 1e-10);
  CHECK(r.report().sweeps <= 40);
  CHECK(exact.report().sweeps == 1);
  MESSAGE(fmt::format("{} sweeps, shift {:.1e}, residual {:.1e}", r.report().sweeps,
                      r.report().shift, r.report().residual));
  CHECK(r.smallest_eigenvalue() == doctest::Approx(ridge).epsilon(0.01));
  CHECK(exact.smallest_eigenvalue() == doctest::Approx(ridge).epsilon(0.01));

  // The residual once more, in long double.
  const LongMatrix back =
      product_oracle(with_ridge(gram_oracle(*kernel, x, x), ridge), rows_of(r.alpha()));
  long double error = 0, norm = 0;
  for (int64_t i = 0; i < n; ++i) {
    error += (back[i][0] - wave[i]) * (back[i][0] - wave[i]);
    norm += wave[i] * wave[i];
  }
  CHECK(std::sqrt(error / norm) < 2e-10);
  CHECK(largest_difference(rows_of(r.predict(test)), rows_of(exact.predict(test))) < 1e-8);
  CHECK(largest_difference(rows_of(r.variance(test).reshape({5, 1})),
                           rows_of(exact.variance(test).reshape({5, 1}))) < 1e-9);

  // Noise takes alpha to |y| / ridge, which double cannot hold to 1e-10, whatever the factor.
  const Tensor noise = draw_points(n, 1, 2);
  for (DType factor : {DType::f32, DType::f64}) {
    const Regression rough(kernel, x, noise, {.ridge = {.absolute = ridge}, .factor = factor});
    CHECK(rough.report().residual < 1e-9);
  }
}

TEST_CASE("kernels of any size, with diagonals of any size, suit a float32 factor") {
  for (double scale : {1e-60, 1e-6, 1e60}) {
    const Tensor x = draw_points(50, 3, 1), y = draw_points(50, 1, 2);
    const Regression r(kernel_of(3, 1, scale), x, y), unit(kernel_of(3, 1), x, y);
    CHECK(r.predict(x.slice(0, 1)).item() ==
          doctest::Approx(unit.predict(x.slice(0, 1)).item()).epsilon(1e-8));
    CHECK(r.smallest_eigenvalue() / scale ==
          doctest::Approx(unit.smallest_eigenvalue()).epsilon(1e-3));
  }
}

TEST_CASE("a relative ridge is a share of the mean diagonal, and is echoed") {
  const Tensor x = draw_points(30, 2, 1), y = draw_points(30, 1, 2);
  const auto kernel = kernel_of(2, 1, 4);
  const Regression relative(kernel, x, y, {.ridge = {.relative = 0.25}});
  const Regression absolute(kernel, x, y, {.ridge = {.absolute = 1}});
  CHECK(relative.report().ridge == doctest::Approx(1).epsilon(1e-15));
  CHECK(relative.report().mean_diagonal == doctest::Approx(4).epsilon(1e-15));
  CHECK(largest_difference(rows_of(relative.alpha()), rows_of(absolute.alpha())) < 1e-12);
}

TEST_CASE("a matrix that float32 cannot factor is solved with a shifted one") {
  const int64_t n = 200;
  std::vector<double> points(n);
  for (int64_t i = 0; i < n; ++i) points[i] = 0.1 * static_cast<double>(i);
  const Tensor x = column(points);
  const auto kernel = kernel_of(1, 1);
  const Tensor y = kernel->product(*kernel->points(x), draw_points(n, 1, 2));
  const Regression r(kernel, x, y, {.ridge = {.absolute = 1e-8}});
  CHECK(r.report().shift > 0);
  CHECK(r.report().residual <= 1e-10);
  MESSAGE(fmt::format("shift {:.1e}: {} sweeps", r.report().shift, r.report().sweeps));
}

TEST_CASE("targets of zero need no sweep, and one beyond double ends at rounding") {
  const auto kernel = kernel_of(2, 1);
  const Tensor x = draw_points(20, 2, 1);
  const Regression r(kernel, x, Tensor::zeros({20, 2}, DType::f64));
  for (double a : r.alpha().to_vector<double>()) CHECK(a == 0);
  CHECK(r.report().sweeps == 0);
  const Regression best(kernel, x, draw_points(20, 1, 2), {.tolerance = 1e-30});
  CHECK(best.report().residual > 0);
  CHECK(best.report().residual < 1e-12);
  CHECK(message_of([&] {
          Regression(kernel, x, draw_points(20, 1, 2), {.most_sweeps = 2});
        }).find("after 2 sweeps, wanted 1.0e-10") != std::string::npos);
}

TEST_CASE("rows that are predicted by the thousand, in blocks, get what each gets alone") {
  const Regression fit(kernel_of(2, 1.5), draw_points(12, 2, 1), draw_points(12, 1, 2),
                       {.ridge = {0.01}});
  const Tensor x = draw_points(2300, 2, 3);
  const std::vector<double> means = fit.predict(x).to_vector<double>(),
                            variances = fit.variance(x).to_vector<double>();
  REQUIRE(means.size() == 2300);
  REQUIRE(variances.size() == 2300);
  for (const int64_t row : {0, 255, 256, 511, 512, 1023, 1024, 2047, 2048, 2299}) {
    CAPTURE(row);
    const Tensor one = x.slice(row, row + 1);
    CHECK(means[static_cast<std::size_t>(row)] ==
          doctest::Approx(fit.predict(one).item()).epsilon(1e-10));
    CHECK(variances[static_cast<std::size_t>(row)] ==
          doctest::Approx(fit.variance(one).item()).epsilon(1e-10));
  }
}

TEST_CASE("no rows to predict give no predictions") {
  const Regression r(kernel_of(2, 1), draw_points(5, 2, 1), draw_points(5, 3, 2));
  CHECK(r.predict(draw_points(0, 2, 1)).shape() == Shape{0, 3});
  CHECK(r.variance(draw_points(0, 2, 1)).shape() == Shape{0});
  CHECK(r.ensemble_covariance(*kernel_of(2, 2), draw_points(0, 2, 1)).shape() == Shape{0, 0});
}

TEST_CASE("kernel regression on the GPU is that on the CPU") {
  if (!test::gpu_here("kernel regression on the GPU is that on the CPU")) return;
  const char* net = "dense(64) layernorm relu dense(1)";
  const auto on_cpu = std::make_shared<InfiniteKernel>(net, 3);
  const auto on_gpu =
      std::make_shared<InfiniteKernel>(net, 3, InfiniteKernelOptions{.device = Device::cuda()});
  const Device device = Device::cuda();
  const Tensor x = draw_points(300, 3, 1), y = draw_points(300, 2, 2), test = draw_points(20, 3, 3);
  for (DType factor : {DType::f32, DType::f64}) {
    const RegressionOptions options{.ridge = {.relative = 1e-3}, .factor = factor};
    const Regression cpu(on_cpu, x, y, options);
    const Regression gpu(on_gpu, x.to(device), y.to(device), options);
    const Tensor there = test.to(device);
    CHECK(gpu.report().residual <= 1e-10);
    CHECK(largest_difference(rows_of(cpu.predict(test)), rows_of(gpu.predict(there))) < 1e-6);
    CHECK(largest_difference(rows_of(cpu.variance(test).reshape({20, 1})),
                             rows_of(gpu.variance(there).reshape({20, 1}))) < 1e-8);
    CHECK(gpu.smallest_eigenvalue() == doctest::Approx(cpu.smallest_eigenvalue()).epsilon(1e-3));
  }
}

TEST_CASE("of a row that is no number nothing is certain, and no variance is 0") {
  const Regression r(kernel_of(1, 1), column({0, 1, 2}), column({1, 2, 3}),
                     {.ridge = {.absolute = 0.1}, .factor = DType::f64});
  const Tensor rows = column({0.5, std::nan("")});
  const std::vector<double> mean = r.predict(rows).to_vector<double>(),
                            variance = r.variance(rows).to_vector<double>();
  CHECK(std::isnan(mean[1]));
  CHECK(std::isnan(variance[1]));
  CHECK(variance[0] > 0);
}
