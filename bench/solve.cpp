// Kernel regression on n inputs: its mixed-precision solve to 1e-10 beside the bare float32
// factorisation of the same matrix, and PyTorch's.
#include <cmath>

#include "../core/random.h"
#include "../kernels/cholesky.h"
#include "../ntk/infinite_kernel.h"
#include "../ntk/regression.h"
#include "bench.h"
#include "peer.h"

namespace keel::bench {
namespace {

constexpr std::int64_t kFeatures = 9;
constexpr double kRidge = 1e-3;  // of the mean diagonal, as in bench/peers/solve_torch.py

// Adds `value` to every diagonal entry.
void add_to_diagonal(const Tensor& a, double value) {
  std::vector<float> host = a.to_vector<float>();
  const auto n = static_cast<std::size_t>(a.size(0));
  for (std::size_t i = 0; i < n; ++i) host[i * (n + 1)] += static_cast<float>(value);
  copy(a, Tensor::from(host, a.shape()));
}

// Row i of L L' against row i of a, up to the diagonal.
void verify_factor(const Tensor& factor, const Tensor& a) {
  const std::int64_t i = a.size(0) - 1;
  const std::vector<double> row = factor[i].to_vector<double>();
  const double size = a[i].slice(i, i + 1).item();
  for (const std::int64_t j : {i, i / 2, std::int64_t{0}}) {
    const std::vector<double> other = factor[j].to_vector<double>();
    double got = 0;
    for (std::int64_t k = 0; k <= j; ++k) got += row[k] * other[k];
    const double wanted = a[i].slice(j, j + 1).item();
    check(std::abs(got - wanted) < 1e-4 * size, "bench", "cholesky: L L' has {}, wanted {}", got,
          wanted);
  }
}

// Some rows of (Theta + ridge I) alpha = y, in double.
void verify_solution(const Regression& regression, const Tensor& x, const Tensor& y) {
  const Kernel& kernel = regression.kernel();
  const std::int64_t n = x.size(0), rows = 3;
  const Tensor theta = Tensor::empty({rows, n}, DType::f64, x.device());
  kernel.gram(*kernel.points(x.slice(n - rows, n)), regression.points(), theta);
  const std::vector<double> entries = theta.to_vector<double>();
  const std::vector<double> alpha = regression.alpha().to_vector<double>();
  const std::vector<double> wanted = y.to_vector<double>();
  double norm = 0;
  for (double v : wanted) norm += v * v;
  for (std::int64_t i = 0; i < rows; ++i) {
    double got = regression.report().ridge * alpha[n - rows + i];
    for (std::int64_t j = 0; j < n; ++j) got += entries[i * n + j] * alpha[j];
    check(std::abs(got - wanted[n - rows + i]) < 1e-9 * std::sqrt(norm), "bench",
          "regression fits {} at a row, wanted {}", got, wanted[n - rows + i]);
  }
}

}  // namespace

void bench_solve(Report& report, Device device, const Options& options) {
  const std::int64_t n = options.quick ? 2048 : 8192;
  const Tensor x = normal({n, kFeatures}, {1, 1}).to(DType::f64).to(device);
  std::vector<double> targets = x.to_vector<double>();
  for (std::int64_t i = 0; i < n; ++i) targets[i] = std::sin(targets[i * kFeatures]);
  targets.resize(n);
  const Tensor y = Tensor::from(targets, {n, 1}, device);
  const auto kernel = std::make_shared<InfiniteKernel>("dense(128) relu dense(1)", kFeatures,
                                                       InfiniteKernelOptions{.device = device});

  const double flop = std::pow(static_cast<double>(n), 3) / 3;
  Timing bare;
  {
    const auto points = kernel->points(x);
    double mean = 0;
    for (double d : kernel->diag(*points).to_vector<double>()) mean += d / static_cast<double>(n);
    const Tensor a = Tensor::zeros({n, n}, DType::f32, device);
    kernel->gram_lower(*points, a);
    add_to_diagonal(a, kRidge * mean);
    const Tensor factor = a.clone();
    const auto factorise = [&] {
      const auto pivot = cholesky(factor);
      check(!pivot, "bench", "cholesky: pivot {} is not positive", pivot.value_or(0));
    };
    bare = measure(device, factorise, 1, 5, [&] { copy(factor, a); });
    verify_factor(factor, a);
    std::string note;
    if (device.is_cpu()) {
      note = beside_peer("torch.linalg.cholesky and solve", bare.median, "solve_torch.py",
                         fmt::format("--n {} --threads {}", n, thread_count()));
    }
    report.add({fmt::format("cholesky {0} x {0}, float32", n), bare, 0, flop, note});
  }

  std::vector<double> gram, factor, refine, solve;
  const auto regress = [&] {
    const Regression regression(kernel, x, y, {.ridge = {.relative = kRidge}});
    gram.push_back(regression.report().gram_seconds);
    factor.push_back(regression.report().factor_seconds);
    refine.push_back(regression.report().solve_seconds);
    solve.push_back(factor.back() + refine.back());
    return regression.report();
  };
  {
    const Regression regression(kernel, x, y, {.ridge = {.relative = kRidge}});
    verify_solution(regression, x, y);
  }
  const SolveReport last = regress();
  for (int repeat = 0; repeat < 4; ++repeat) regress();
  const Timing solved = summary(solve);
  const std::string of = fmt::format(", {} inputs", n);
  report.add({"regression to 1e-10: kernel matrix" + of, summary(gram)});
  report.add({"  factor" + of, summary(factor), 0, flop});
  report.add({"  refine" + of, summary(refine), 0, 0,
              fmt::format("{} products in double, residual {:.1e}", last.sweeps, last.residual)});
  report.add({"  factor and refine" + of, solved, 0, flop,
              fmt::format("{:.2f} x the bare factorisation", solved.median / bare.median)});
}

}  // namespace keel::bench
