#include "conjugate_gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../core/max_or_nan.h"

namespace keel {
namespace {

using std::int64_t;
using Scalars = std::vector<double>;  // one a column

constexpr int64_t kSerial = 1 << 16;  // elements that are not worth a second thread

/// Dot products of the columns: of so many rows each, then of these, so that the bits do not depend
/// on the number of threads.
Scalars dots(const Tensor& a, const Tensor& b) {
  constexpr int64_t kRows = 4096;
  const int64_t n = a.size(0), k = a.size(1), parts = std::max<int64_t>(1, (n + kRows - 1) / kRows);
  const double *x = a.data<double>(), *y = b.data<double>();
  Scalars part(static_cast<std::size_t>(parts * k), 0.0);
#pragma omp parallel for if (n * k > kSerial)
  for (int64_t p = 0; p < parts; ++p) {
    double* sum = part.data() + p * k;
    for (int64_t i = p * kRows; i < std::min(n, (p + 1) * kRows); ++i)
      for (int64_t j = 0; j < k; ++j) sum[j] += x[i * k + j] * y[i * k + j];
  }
  Scalars total(part.begin(), part.begin() + k);
  for (int64_t p = 1; p < parts; ++p)
    for (int64_t j = 0; j < k; ++j) total[j] += part[static_cast<std::size_t>(p * k + j)];
  return total;
}

/// y = a x + b y, column by column.
void combine(const Scalars& a, const Tensor& x, const Scalars& b, const Tensor& y) {
  const int64_t n = x.size(0), k = x.size(1);
  const double* from = x.data<double>();
  double* into = y.data<double>();
#pragma omp parallel for if (n * k > kSerial)
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < k; ++j)
      into[i * k + j] = a[j] * from[i * k + j] + b[j] * into[i * k + j];
}

struct Solver {
  const LinearMap &matrix, &preconditioner;
  const Tensor &b, &x;
  double tolerance;
  int most_products;
  const WorkProgress& progress;

  const int64_t columns = b.size(1);
  const Scalars ones = Scalars(columns, 1), zeros = Scalars(columns, 0);
  const Scalars norms = norms_of(b);
  Tensor r = b.clone();
  CgResult result{};
  double told = 0;

  static Scalars norms_of(const Tensor& a) {
    Scalars norm = dots(a, a);
    for (double& v : norm) v = std::sqrt(v);
    return norm;
  }

  Tensor product(const Tensor& v) {
    ++result.products;
    return matrix(v);
  }

  void update_residual() {
    r = product(x);
    combine(ones, b, Scalars(columns, -1), r);
  }

  /// |r| / |b| of each column; NaN stays NaN.
  Scalars relative() const {
    Scalars ratio = norms_of(r);
    for (int64_t j = 0; j < columns; ++j) ratio[j] = ratio[j] == 0 ? 0 : ratio[j] / norms[j];
    return ratio;
  }

  static double largest(const Scalars& values) {
    double most = 0;
    for (double v : values) most = max_or_nan(most, v);
    return most;
  }

  /// Residuals go down by about the same factor each time: their logarithm tells the time. They may
  /// go up; what was told does not go down.
  void tell(const Scalars& ratio) {
    if (!progress) return;
    const double done = std::log(largest(ratio)) / std::log(tolerance);
    if (done > told) told = std::min(done, 1.0);
    progress(told);
  }

  /// Runs the recurrence until it believes every column done. False: negative curvature.
  bool run() {
    Tensor z = preconditioner(r);
    const Tensor p = z.clone();
    Scalars rz = dots(r, z), step(columns), back(columns), beta(columns), ratio = relative();
    while (result.products + 1 < most_products) {  // one is left to check with
      const Tensor q = product(p);
      const Scalars pq = dots(p, q);
      for (int64_t j = 0; j < columns; ++j) {
        const bool active = ratio[j] > tolerance / 2 && rz[j] > 0;
        if (active && !(pq[j] > 0)) {
          result.curvature = pq[j] / dots(p, p)[j];
          return false;
        }
        step[j] = active ? rz[j] / pq[j] : 0;
        back[j] = -step[j];
      }
      if (step == zeros) return true;
      combine(step, p, ones, x);
      combine(back, q, ones, r);
      ratio = relative();
      tell(ratio);
      if (largest(ratio) <= tolerance / 2) return true;
      z = preconditioner(r);
      const Scalars zq = dots(z, q);
      for (int64_t j = 0; j < columns; ++j) beta[j] = step[j] == 0 ? 0 : back[j] * zq[j] / rz[j];
      rz = dots(r, z);
      combine(ones, z, beta, p);
    }
    return true;
  }

  CgResult solve() {
    if (dots(x, x) != zeros) update_residual();
    result.residual = largest(relative());
    double before = std::numeric_limits<double>::infinity();
    while (!(result.residual <= tolerance)) {
      if (!(result.residual < before / 2)) {  // a run from a true residual gained nothing
        result.outcome = CgResult::stagnated;
        break;
      }
      if (result.products + 2 > most_products) {
        result.outcome = CgResult::exhausted;
        break;
      }
      before = result.residual;
      if (!run()) {
        result.outcome = CgResult::negative_curvature;
        break;
      }
      update_residual();
      result.residual = largest(relative());
    }
    result.r = r;
    return result;
  }
};

}  // namespace

CgResult conjugate_gradients(const LinearMap& matrix, const LinearMap& preconditioner,
                             const Tensor& b, const Tensor& x, double tolerance, int most_products,
                             const WorkProgress& progress) {
  check_same_kind("conjugate_gradients", "b", b, "x", x);
  check<ShapeError>(
      b.rank() == 2 && b.dtype() == DType::f64 && b.device().is_cpu() && x.shape() == b.shape(),
      "conjugate_gradients", "got b {} and x {}, wanted float64 [n, k] on the cpu", b.shape(),
      x.shape());
  return Solver{matrix, preconditioner, b, x, tolerance, most_products, progress}.solve();
}

}  // namespace keel
