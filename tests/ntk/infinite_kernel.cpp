// The kernel of infinite width: known diagonals, inputs that hurt, and every way of asking for it.
#include "../../ntk/infinite_kernel.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../core/threads.h"
#include "../../keel.h"
#include "../gpu.h"

using namespace keel;
using std::int64_t;

namespace {

const char* const kNets[] = {
    "dense(16) relu dense(16) relu dense(1)",
    "dense(16) layernorm(affine=0, eps=0) relu dense(16) relu dense(1)",
    "dense(16) relu dense(16) layernorm relu dense(1)",
    "dense(16) relu layernorm dense(16) relu layernorm dense(1)",
    "dense(16) layernorm gelu dense(16) gelu dense(1)",
    "dense(16) silu layernorm(affine=0) dense(1)",
    "dense(16) silu(beta=0.3) dense(16) layernorm silu(beta=5) layernorm dense(1)",
    "dense(16) relu rmsnorm dense(16) rmsnorm relu dense(1)",
    "dense(16) gelu rmsnorm(affine=0) layernorm dense(1)",
    "dense(16) sigmoid layernorm dense(16) layernorm sigmoid dense(1)",
    "dense(16) softplus layernorm dense(16) rmsnorm softplus rmsnorm dense(1)",
    "dense(16) elu(alpha=0.5) layernorm dense(16) layernorm elu dense(1)",
    "dense(16) selu dense(16) gelu(tanh=1) layernorm dense(1)",
    "dense(16) dense(1)",
    "dense(1)",
};

InfiniteKernelOptions paper(double sigma_b2 = 0.01) {
  InfiniteKernelOptions options;
  options.first_sigma_w2 = 1;
  options.sigma_b2 = sigma_b2;
  return options;
}

struct Matrix {
  int64_t n, m;
  std::vector<double> v;
  double operator()(int64_t i, int64_t j) const { return v[static_cast<std::size_t>(i * m + j)]; }
};

Matrix gram(const InfiniteKernel& kernel, const Tensor& x1, const Tensor& x2,
            DType dtype = DType::f64) {
  const Tensor into = Tensor::full({x1.size(0), x2.size(0)}, -7, dtype);
  kernel.gram(*kernel.points(x1), *kernel.points(x2), into);
  return {into.size(0), into.size(1), into.to_vector<double>()};
}

// n rows of normals with some rows repeated, one 0, and rows of other sizes and opposite sign.
Tensor awkward(int64_t n, int64_t d) {
  std::vector<double> x = normal({n, d}, {5, 0}, 1, DType::f64).to_vector<double>();
  const auto row = [&](int64_t i) { return x.begin() + i * d; };
  if (n > 6) {
    std::copy_n(row(0), d, row(n - 1));
    std::copy_n(row(1), d, row(n / 2));
    std::fill_n(row(2), d, 0.0);
    for (int64_t c = 0; c < d; ++c) {
      row(3)[c] = 1e4 * row(4)[c];
      row(5)[c] = -row(4)[c];
      row(6)[c] = row(4)[c] * (1 + 1e-9);
    }
  }
  return Tensor::from(x, {n, d});
}

double mean_product(const Tensor& x, int64_t i, int64_t j) {
  const int64_t d = x.size(1);
  double sum = 0;
  for (int64_t c = 0; c < d; ++c) sum += x.data<double>()[i * d + c] * x.data<double>()[j * d + c];
  return sum / static_cast<double>(d);
}

}  // namespace

TEST_CASE("the four nets of the paper have their diagonals in closed form") {
  const auto net = [](bool first, bool second) {
    const std::string norm = "layernorm(affine=0, eps=0) ";
    return "dense(128) " + (first ? norm : "") + "relu dense(128) " + (second ? norm : "") +
           "relu dense(1)";
  };
  for (double b : {0.0, 0.01, 0.3})
    for (double r : {1e-8, 0.5, 1.0, 37.0, 1e12, 1e60}) {
      CAPTURE(b);
      CAPTURE(r);
      const auto theta = [&](bool first, bool second) {
        return InfiniteKernel(net(first, second), 3, paper(b)).diagonal(r);
      };
      CHECK(theta(false, false) == doctest::Approx(3 * r + 6 * b).epsilon(1e-14));
      CHECK(theta(true, false) == doctest::Approx(3 + 3 * b).epsilon(1e-14));
      CHECK(theta(false, true) ==
            doctest::Approx(1 + b + (2 * r + 3 * b) / (r + 2 * b)).epsilon(1e-14));
      CHECK(theta(true, true) == doctest::Approx(1 + b + (2 + b) / (1 + b)).epsilon(1e-14));
    }
}

TEST_CASE("one hidden relu layer agrees with the arc-cosine kernels") {
  // Cho and Saul (2009), eq. 3 to 6: K = s (sin t + (pi - t) cos t) / (2 pi), and (pi - t) / (2
  // pi).
  const double b = 0.2, pi = std::acos(-1.0);
  const InfiniteKernel ntk("dense(8) relu dense(1)", 2, paper(b));
  const InfiniteKernel nngp("dense(8) relu dense(1)", 2, paper(b), KernelOutput::nngp);
  for (double r : {0.3, 2.0})
    for (double r2 : {0.7, 90.0})
      for (double cosine : {-1.0, -0.4, 0.0, 0.8}) {
        const double c = cosine * std::sqrt(r * r2), s = std::sqrt((r + b) * (r2 + b));
        const double t = std::acos((c + b) / s);
        const double k = 2 * s * (std::sin(t) + (pi - t) * std::cos(t)) / (2 * pi) + b;
        CHECK(nngp.entry(r, r2, c) == doctest::Approx(k).epsilon(1e-12));
        CHECK(ntk.entry(r, r2, c) ==
              doctest::Approx(k + 2 * (c + b) * (pi - t) / (2 * pi)).epsilon(1e-12));
      }
}

TEST_CASE("the standard parameterisation weighs each block by its fan-in") {
  // Theta = (n K + 1) of the last layer, and sigma_w2 E[phi' phi'] (d c + 1) through it.
  const double b = 0.3, r = 1.7;
  InfiniteKernelOptions options = paper(b);
  options.parameterisation = Parameterisation::standard;
  const InfiniteKernel kernel("dense(50) relu dense(1)", 4, options);
  CHECK(kernel.diagonal(r) ==
        doctest::Approx(50 * (r + b) / 2 + 1 + 2 * 0.5 * (4 * r + 1)).epsilon(1e-14));
  // A bias that starts at 0 is trained all the same.
  options.sigma_b2 = 0;
  CHECK(InfiniteKernel("dense(1)", 4, options).diagonal(r) == doctest::Approx(4 * r + 1));
}

TEST_CASE("gram, gram_lower, diag, entry and product are one kernel") {
  for (const char* net : kNets)
    for (const Shape& shape : {Shape{1, 1}, Shape{7, 1}, Shape{65, 3}, Shape{257, 5}}) {
      const int64_t n = shape[0], d = shape[1];  // tiles are 64 x 256, squares 128 x 128
      CAPTURE(net);
      CAPTURE(n);
      const InfiniteKernel kernel(net, d, paper());
      const Tensor x = awkward(n, d);
      const auto points = kernel.points(x);
      const Matrix k = gram(kernel, x, x);
      const std::vector<double> diag = kernel.diag(*points).to_vector<double>();
      const Tensor lower = Tensor::full({n, n}, -7, DType::f64);
      kernel.gram_lower(*points, lower);
      const std::vector<double> l = lower.to_vector<double>();
      for (int64_t i = 0; i < n; ++i) {
        REQUIRE(k(i, i) == diag[i]);
        for (int64_t j = 0; j < n; ++j) {
          REQUIRE(std::isfinite(k(i, j)));
          REQUIRE(l[i * n + j] == (j <= i ? k(i, j) : -7));
          const double size = std::sqrt(diag[i] * diag[j]);
          // Inner products that another loop rounds: near-parallel angles keep half the digits.
          REQUIRE(std::abs(k(i, j) - k(j, i)) <= 1e-7 * size);
          const double bound = std::sqrt(mean_product(x, i, i) * mean_product(x, j, j));
          const double c = std::clamp(mean_product(x, i, j), -bound, bound);
          const double entry = kernel.entry(mean_product(x, i, i), mean_product(x, j, j), c);
          REQUIRE(std::abs(k(i, j) - entry) <= 1e-7 * size);
        }
      }
      const Tensor v = normal({n, 3}, {9, 0}, 1, DType::f64);
      const std::vector<double> product = kernel.product(*points, v).to_vector<double>();
      for (int64_t i = 0; i < n; ++i)
        for (int64_t c = 0; c < 3; ++c) {
          double wanted = 0, size = 0;
          for (int64_t j = 0; j < n; ++j) {
            const double term = (j <= i ? k(i, j) : k(j, i)) * v.data<double>()[j * 3 + c];
            wanted += term;
            size += std::abs(term);
          }
          REQUIRE(std::abs(product[i * 3 + c] - wanted) <= 1e-9 * size);
        }
    }
}

TEST_CASE("repeated rows have bitwise equal entries") {
  for (int64_t d : {1, 9, 200}) {
    const InfiniteKernel kernel("dense(4) layernorm relu dense(4) gelu dense(1)", d, paper());
    const int64_t n = 150;
    const Tensor x = awkward(n, d);
    const Matrix k = gram(kernel, x, x);
    CHECK(k(n - 1, 0) == k(0, 0));
    CHECK(k(0, n - 1) == k(0, 0));
    CHECK(k(n / 2, 1) == k(1, 1));
  }
}

TEST_CASE("gram and product have the same bits for any number of threads") {
  const InfiniteKernel kernel("dense(4) layernorm relu dense(4) relu dense(1)", 3, paper());
  const Tensor x = awkward(700, 3), v = normal({700, 2}, {8, 0}, 1, DType::f64);
  std::vector<std::vector<double>> products, grams;
  for (int threads : {1, 2, 5}) {
    const ThreadLimit limit(threads);
    products.push_back(kernel.product(*kernel.points(x), v).to_vector<double>());
    grams.push_back(gram(kernel, x, x).v);
  }
  CHECK(products[1] == products[0]);
  CHECK(products[2] == products[0]);
  CHECK(grams[1] == grams[0]);
  CHECK(grams[2] == grams[0]);
}

TEST_CASE("the kernel is positive semi-definite") {
  for (const char* net : kNets) {
    CAPTURE(net);
    const int64_t n = 60;
    const InfiniteKernel kernel(net, 2, paper());
    const Tensor x = normal({n, 2}, {3, 0}, 2, DType::f64);
    Matrix k = gram(kernel, x, x);
    double trace = 0;
    for (int64_t i = 0; i < n; ++i) trace += k(i, i);
    // Cholesky of K + 1e-9 trace: a pivot below 0 is an eigenvalue below -1e-9 trace.
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double& at = k.v[i * n + j];
        if (i == j) at += 1e-9 * trace;
        for (int64_t p = 0; p < j; ++p) at -= k(i, p) * k(j, p);
        if (i == j) {
          REQUIRE(at > 0);
          at = std::sqrt(at);
        } else {
          at /= k(j, j);
        }
      }
  }
}

TEST_CASE("float32 holds what float64 does, to a rounding") {
  for (const char* net : kNets) {
    CAPTURE(net);
    const InfiniteKernel kernel(net, 3, paper());
    const Tensor x = awkward(70, 3);
    const Matrix wide = gram(kernel, x, x), narrow = gram(kernel, x, x, DType::f32);
    for (std::size_t e = 0; e < wide.v.size(); ++e)
      REQUIRE(std::abs(narrow.v[e] - wide.v[e]) <= 1e-7 * std::abs(wide.v[e]));
  }
}

TEST_CASE("inputs of 1e30, of 1e-30 and of 0 give finite numbers") {
  for (const char* net : kNets)
    for (double b : {0.0, 0.01})
      for (auto parameterisation : {Parameterisation::ntk, Parameterisation::standard}) {
        CAPTURE(net);
        CAPTURE(b);
        InfiniteKernelOptions options = paper(b);
        options.parameterisation = parameterisation;
        const InfiniteKernel kernel(net, 2, options);
        const Tensor x = Tensor::from(
            std::vector<double>{0, 0, 1, 2, 1e30, -1e30, 1e30, 2e30, -1, -2, 1e-30, 2e-30, 1e49, 1},
            {7, 2});
        for (double value : gram(kernel, x, x).v) REQUIRE(std::isfinite(value));
        for (double value : kernel.diag(*kernel.points(x)).to_vector<double>())
          REQUIRE(std::isfinite(value));
      }
}

TEST_CASE(
    "without biases the kernel of relu nets is homogeneous, and one layer norm undoes lengths") {
  const auto with = [](const char* net) { return InfiniteKernel(net, 1, paper(0)); };
  const InfiniteKernel plain = with("dense(4) relu dense(4) relu dense(1)");
  const InfiniteKernel normed = with("dense(4) layernorm(eps=0) relu dense(4) relu dense(1)");
  for (double scale : {1e-20, 1e3, 1e30}) {
    CHECK(plain.entry(scale, scale, 0.3 * scale) ==
          doctest::Approx(scale * plain.entry(1, 1, 0.3)).epsilon(1e-13));
    CHECK(normed.entry(scale, 1, 0.3 * std::sqrt(scale)) ==
          doctest::Approx(normed.entry(1, 1, 0.3)).epsilon(1e-13));
  }
}

TEST_CASE("the infinite kernel gives the same on a GPU") {
  if (!test::gpu_here("infinite_kernel")) return;
  for (const char* net : kNets) {
    CAPTURE(net);
    InfiniteKernelOptions options = paper();
    const InfiniteKernel cpu(net, 5, options);
    options.device = Device::cuda();
    const InfiniteKernel gpu(net, 5, options);
    const std::int64_t n = test::gpu_is_emulated() && net != kNets[0] ? 400 : 2500;  // tiles: 2048
    const Tensor x = normal({n, 5}, {4, 0}, 1, DType::f64), there = x.to(Device::cuda());
    const Tensor v = normal({n, 2}, {6, 0}, 1, DType::f64);
    const std::vector<double> wanted = cpu.product(*cpu.points(x), v).to_vector<double>();
    const auto points = gpu.points(there);
    const std::vector<double> got = gpu.product(*points, v.to(Device::cuda())).to_vector<double>();
    double size = 0;
    for (double value : wanted) size = std::max(size, std::abs(value));
    for (std::size_t e = 0; e < wanted.size(); ++e)
      REQUIRE(std::abs(got[e] - wanted[e]) <= 1e-9 * size);
    const Tensor lower = Tensor::full({n, n}, -7, DType::f32, Device::cuda());
    gpu.gram_lower(*points, lower);
    const std::vector<double> diag = cpu.diag(*cpu.points(x)).to_vector<double>();
    const std::vector<double> l = lower.to_vector<double>();
    for (std::int64_t i = 0; i < n; ++i) {
      REQUIRE(l[i * (n + 1)] == doctest::Approx(diag[i]).epsilon(1e-6));
      if (i + 1 < n) REQUIRE(l[i * n + i + 1] == -7);
    }
  }
}
