#include "lanczos.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "../core/random.h"
#include "../kernels/eigen.h"

namespace keel {
namespace {

using std::int64_t;

double dot_of(const Tensor& a, const Tensor& b) {
  const double *x = a.data<double>(), *y = b.data<double>();
  double total = 0;
  for (int64_t i = 0; i < a.elements(); ++i) total += x[i] * y[i];
  return total;
}

void add(double factor, const Tensor& a, const Tensor& into) {
  const double* x = a.data<double>();
  double* y = into.data<double>();
  for (int64_t i = 0; i < a.elements(); ++i) y[i] += factor * x[i];
}

/// Divides by its length, which it returns.
double normalise(const Tensor& a) {
  const double length = std::sqrt(dot_of(a, a));
  double* v = a.data<double>();
  for (int64_t i = 0; i < a.elements(); ++i) v[i] /= length;
  return length;
}

/// Of the tridiagonal matrix with these diagonals.
double largest_ritz_value(const std::vector<double>& alpha, const std::vector<double>& beta) {
  const auto m = static_cast<int64_t>(alpha.size());
  const Tensor t = Tensor::zeros({m, m}, DType::f64);
  for (int64_t i = 0; i < m; ++i) {
    t.data<double>()[i * m + i] = alpha[i];
    if (i > 0) t.data<double>()[i * m + i - 1] = beta[i - 1];
  }
  return symmetric_eigen(t).to_vector<double>().back();
}

}  // namespace

double largest_eigenvalue(const LinearMap& matrix, int64_t n) {
  constexpr std::size_t kMostProducts = 100;
  constexpr double kCalm = 1e-4;        // relative change that ends it, twice in a row
  constexpr double kExhausted = 1e-14;  // of the largest: no direction is left
  std::vector<Tensor> basis;
  std::vector<double> alpha, beta;
  Tensor q = normal({n, 1}, {.seed = 1, .stream = 0}, 1, DType::f64);
  normalise(q);
  double largest = 0;
  for (int calm = 0; calm < 2;) {
    basis.push_back(q);
    const Tensor w = matrix(q);
    alpha.push_back(dot_of(q, w));
    for (int pass = 0; pass < 2; ++pass)  // twice is as good as exact
      for (const Tensor& v : basis) add(-dot_of(v, w), v, w);
    const double before = largest;
    largest = largest_ritz_value(alpha, beta);
    calm = std::abs(largest - before) <= kCalm * largest ? calm + 1 : 0;
    const double length = normalise(w);
    if (!(length > kExhausted * largest) || basis.size() == kMostProducts ||
        static_cast<int64_t>(basis.size()) == n)
      break;
    beta.push_back(length);
    q = w;
  }
  return largest;
}

}  // namespace keel
