// Kernel regression on n inputs: its mixed-precision solve to 1e-10 beside the bare float32
// factorisation of the same matrix, and PyTorch's, and what one of its sweeps does; with --large,
// all of it on 40,132.
#include <algorithm>
#include <cmath>
#include <optional>

#include "../core/random.h"
#include "../kernels/cholesky.h"
#include "../kernels/diagonal_inverses.h"
#include "../kernels/solve_lower.h"
#include "../kernels/symmetric_product.h"
#include "../kernels/triangle.h"
#include "../ntk/infinite_kernel.h"
#include "../ntk/regression.h"
#include "bench.h"
#include "peer.h"
#include "sizes.h"

namespace keel::bench {
namespace {

constexpr double kRidge = 1e-3;  // of the mean diagonal, as in bench/peers/solve_torch.py

// Adds to every diagonal entry `share` of their mean.
void add_ridge(const Tensor& a, double share) {
  dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
    std::vector<T> entries = diagonal(a).to_vector<T>();
    double mean = 0;
    for (T entry : entries) mean += entry / static_cast<double>(entries.size());
    for (T& entry : entries) entry += static_cast<T>(share * mean);
    swap_diagonal(a, Tensor::from(entries, {a.size(0)}, a.device()));
  });
}

void factorise(const Tensor& a) {
  const auto pivot = cholesky(a);
  check(!pivot, "bench", "cholesky: pivot {} is not positive", pivot.value_or(0));
}

// sin of the first feature.
Tensor targets(const Tensor& x) {
  const std::vector<double> values = x.to_vector<double>();
  std::vector<double> y;
  for (std::size_t i = 0; i < values.size(); i += kFeatures) y.push_back(std::sin(values[i]));
  return Tensor::from(y, {x.size(0), 1}, x.device());
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

// What the goal names, a factor in cuSOLVER's hands alone; of either triangle, as one may be
// faster. Returns the run's fastest factorisation, ours among them.
double add_cusolver(Report& report, const Tensor& a, double ours, std::size_t repeats) {
  if (a.device().is_cpu()) return ours;
  mirror_lower(a);
  const std::int64_t n = a.size(0);
  double fastest = ours;
  for (const Fill fill : {Fill::lower, Fill::upper}) {
    const Timing time = cusolver_cholesky(a, fill, repeats).value();
    report.add({fmt::format("cuSOLVER alone {0} x {0}, float32, {1}", n,
                            fill == Fill::upper ? "upper" : "lower (as keel)"),
                time, 0, std::pow(static_cast<double>(n), 3) / 3,
                fmt::format("keel's cholesky takes {:.2f} x as long", ours / time.median)});
    fastest = std::min(fastest, time.median);
  }
  return fastest;
}

// What a sweep of the refinement does on the device: a product with the kernel in double, and both
// solves with its factor in float32, `factor`, for one vector.
void bench_sweep(Report& report, const Kernel& kernel, const Tensor& x, const Tensor& factor,
                 double ridge) {
  const Device device = x.device();
  const std::int64_t n = x.size(0);
  const Tensor theta = Tensor::zeros({n, n}, DType::f64, device);
  kernel.gram_lower(*kernel.points(x), theta);
  add_ridge(theta, ridge);
  const Tensor ones = Tensor::full({n, 1}, 1, DType::f64, device), b = ones.clone();
  symmetric_product(theta, Triangle::lower, ones, b);
  const std::vector<double> sums = b.to_vector<double>(), last = theta[n - 1].to_vector<double>();
  double wanted = 0, largest = 0;
  for (double entry : last) wanted += entry;
  for (double sum : sums) largest = std::max(largest, std::abs(sum));
  check(std::abs(sums.back() - wanted) < 1e-12 * largest, "bench",
        "symmetric_product: a row times ones is {}, wanted {}", sums.back(), wanted);
  const double bytes = 4.0 * static_cast<double>(n) * static_cast<double>(n + 1);  // of a triangle
  const std::string of = fmt::format(", {} inputs", n);
  report.add({"  product with the kernel in double" + of,
              measure(device, [&] { symmetric_product(theta, Triangle::lower, ones, b); }), bytes});

  Tensor inverses;
  if (device.is_cuda()) {
    inverses = invert_diagonal_blocks(factor);
    report.add({"  inverses of its factor's blocks" + of,
                measure(device, [&] { invert_diagonal_blocks(factor); })});
  }
  const Tensor right = b.to(Device::cpu()).to(DType::f32).to(device), solution = right.clone();
  const auto solve = [&] {
    solve_lower(factor, solution, inverses);
    solve_lower_transposed(factor, solution, inverses);
  };
  solve();
  symmetric_product(theta, Triangle::lower, solution.to(Device::cpu()).to(DType::f64).to(device),
                    b);
  const std::vector<double> again = b.to_vector<double>();
  for (std::size_t i = 0; i < again.size(); ++i)
    check(std::abs(again[i] - sums[i]) < 1e-3 * largest, "bench",
          "solves with a factor: row {} of the matrix times the solution is {}, wanted {}", i,
          again[i], sums[i]);
  report.add({"  two solves with its factor, float32" + of,
              measure(device, solve, 0.5, 7, [&] { copy(solution, right); }), bytes});
}

// Of a matrix of that size, whatever its kernel: the work is the same.
void bench_peers(Report& report, Device device, std::int64_t n, const std::string& cholesky_row,
                 const std::string& solve_row) {
  report.later([&report, device, n, cholesky_row, solve_row] {
    const PeerOutput peer = run_peer(device, "solve_torch.py", fmt::format("--n {}", n));
    report.add_peers(cholesky_row, {peer_time("torch.linalg.cholesky", peer, 1, "factor/seconds")});
    report.add_peers(solve_row, {peer_time("torch.linalg.cholesky and solve, float32", peer)});
  });
}

void bench_regression(Report& report, Device device, std::int64_t n) {
  const Tensor x = normal({n, kFeatures}, {1, 1}).to(DType::f64).to(device), y = targets(x);
  const auto kernel = std::make_shared<InfiniteKernel>("dense(128) relu dense(1)", kFeatures,
                                                       InfiniteKernelOptions{.device = device});
  const double flop = std::pow(static_cast<double>(n), 3) / 3;
  const std::string cholesky_row = fmt::format("cholesky {0} x {0}, float32", n);
  Timing bare;
  {
    const Tensor a = Tensor::zeros({n, n}, DType::f32, device);
    kernel->gram_lower(*kernel->points(x), a);
    add_ridge(a, kRidge);
    const Tensor factor = a.clone();
    bare = measure(
        device, [&] { factorise(factor); }, 1, 5, [&] { copy(factor, a); });
    verify_factor(factor, a);
    report.add({cholesky_row, bare, 0, flop});
    add_cusolver(report, a, bare.median, 5);
    bench_sweep(report, *kernel, x, factor, kRidge);
  }

  std::vector<double> gram, factor, refine, solve;
  SolveReport last;
  for (int repeat = 0; repeat < 6; ++repeat) {
    const Regression regression(kernel, x, y, {.ridge = {.relative = kRidge}});
    last = regression.report();
    if (repeat == 0) {  // a warm-up too
      verify_solution(regression, x, y);
      continue;
    }
    gram.push_back(last.gram_seconds);
    factor.push_back(last.factor_seconds);
    refine.push_back(last.solve_seconds);
    solve.push_back(factor.back() + refine.back());
  }
  const Timing solved = summary(solve);
  const std::string of = fmt::format(", {} inputs", n);
  report.add({"regression to 1e-10: kernel matrix" + of, summary(gram)});
  report.add({"  factor" + of, summary(factor), 0, flop});
  report.add({"  refine" + of, summary(refine), 0, 0,
              fmt::format("{} products in double, residual {:.1e}", last.sweeps, last.residual)});
  const std::string solve_row = "  factor and refine" + of;
  report.add({solve_row, solved, 0, flop,
              fmt::format("{:.2f} x the bare factorisation", solved.median / bare.median)});
  bench_peers(report, device, n, cholesky_row, solve_row);
}

// The exact regression of the protein experiment in size, kernel and ridge, on random inputs.
void bench_exact_regression(Report& report, Device device, std::int64_t n) {
  const Tensor x = normal({n, kFeatures}, {1, 1}).to(DType::f64).to(device), y = targets(x);
  const auto kernel = std::make_shared<InfiniteKernel>(
      "dense(128) layernorm(affine=0) relu dense(128) relu dense(1)", kFeatures,
      InfiniteKernelOptions{.first_sigma_w2 = 1, .device = device});
  // On a CPU half a minute each; a GPU's first call of all also makes its memory and its
  // libraries'.
  const std::size_t repeats = device.is_cuda() ? 3 : 1;
  const std::string cholesky_row = fmt::format("cholesky {0} x {0}, float32", n);
  const double flop = std::pow(static_cast<double>(n), 3) / 3;
  Timing gram, bare;
  double fastest = 0;  // of what factorises, seconds
  {
    const Tensor a = Tensor::zeros({n, n}, DType::f32, device);
    gram = measure(
        device, [&] { kernel->gram_lower(*kernel->points(x), a); }, 0, 3);
    bare = measure(
        device, [&] { factorise(a); }, 0, repeats,
        [&] {
          kernel->gram_lower(*kernel->points(x), a);
          add_ridge(a, 1e-2);
        });
    report.add({fmt::format("kernel matrix, {} inputs, LN first", n), gram,
                2 * std::pow(static_cast<double>(n), 2)});
    report.add({cholesky_row, bare, 0, flop});
    fastest = bare.median;
    if (device.is_cuda()) {
      bench_sweep(report, *kernel, x, a, 1e-2);
      kernel->gram_lower(*kernel->points(x), a);
      add_ridge(a, 1e-2);
      fastest = add_cusolver(report, a, bare.median, 3);
    }
  }
  trim_memory(device);
  reset_peak(device);
  std::optional<Regression> regression;
  std::vector<double> solve;
  const Timing whole = measure(
      device,
      [&] {
        regression.emplace(kernel, x, y, RegressionOptions{.ridge = {.relative = 1e-2}});
        solve.push_back(regression->report().factor_seconds + regression->report().solve_seconds);
      },
      0, repeats, [&] { regression.reset(); });
  if (solve.size() > 1) solve.erase(solve.begin());  // as measure() drops its warm-up
  const Timing solve_time = summary(solve);
  verify_solution(*regression, x, y);
  const SolveReport& solved = regression->report();
  const double peak = static_cast<double>(memory_stats(device).peak_in_use);
  report.add(
      {fmt::format("exact regression, {} inputs, to 1e-10", n), whole, 0, flop,
       fmt::format("{:.2f} x kernel matrix and bare factorisation; all of it {:.2f} x the run's "
                   "fastest bare factorisation; {:.2f} GiB; {} products in double, residual {:.1e}",
                   whole.median / (gram.median + bare.median), whole.median / fastest,
                   peak / (1 << 30), solved.sweeps, solved.residual)});
  const std::string solve_row = fmt::format("  factor and refine, {} inputs", n);
  report.add({solve_row, solve_time, 0, flop,
              fmt::format("{:.2f} x the bare factorisation", solve_time.median / bare.median)});
  regression.reset();
  if (device.is_cuda()) bench_peers(report, device, n, cholesky_row, solve_row);
}

}  // namespace

void bench_solve(Report& report, Device device, const Options& options) {
  bench_regression(report, device, options.size(8192, 2048, 200));
  if (options.large || options.rehearse)
    bench_exact_regression(report, device, options.size(40132, 300));
  else
    report.leave_out("exact regression, 40132 inputs", "--large takes it in");
}

}  // namespace keel::bench
