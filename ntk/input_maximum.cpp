#include "input_maximum.h"

#include <algorithm>
#include <cmath>

#include "../kernels/eigen.h"
#include "../kernels/one_blas_thread.h"
#include "dot.h"
#include "shell_maximum.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// Eigenvalues ascending, and the matrix's rows become the eigenvectors.
Vector eigen(Vector& matrix, std::int64_t n) {
  if (n == 0) return {};
  const OneBlasThread one;  // where a descent ends depends on the last digit
  const Tensor a = Tensor::from(matrix, {n, n});
  const Vector values = symmetric_eigen(a).to_vector<double>();
  matrix = a.to_vector<double>();
  return values;
}

}  // namespace

InputMaximum::InputMaximum(const UnitRows& rows, const NormSet& set, std::size_t units,
                           bool one_kappa)
    : rows_(rows), set_(set), units_(units), one_kappa_(one_kappa) {
  if (!one_kappa_ || rows.signs_alone()) return;
  vectors_ = rows.gram(Vector(units, 1.0));
  values_ = eigen(vectors_, rows.rank());
}

double InputMaximum::shell(const double* kappa, Vector& g, const Vector& added) const {
  const auto k = static_cast<std::size_t>(rows_.rank());
  if (rows_.signs_alone()) {
    const double length = std::sqrt(dot(g.data(), g.data(), k));
    const ShellMaximum found = shell_maximum({kappa[0] * rows_.square()}, {length}, set_.inner);
    for (double& part : g) part *= length > 0 ? found.u[0] / length : 0;
    return found.value;
  }
  Vector values = values_, own;
  if (one_kappa_) {
    for (double& value : values) value *= kappa[0];
  } else {
    own = rows_.gram({kappa, kappa + units_});
    for (std::size_t i = 0; i < added.size(); ++i) own[i] += added[i];
    if (!std::ranges::all_of(own, [](double entry) { return std::isfinite(entry); }))
      return HUGE_VAL;
    values = eigen(own, rows_.rank());
  }
  const Vector& vectors = one_kappa_ ? vectors_ : own;
  Vector along(k);
  for (std::size_t i = 0; i < k; ++i) along[i] = dot(&vectors[i * k], g.data(), k);
  const bool turned = one_kappa_ && kappa[0] < 0;  // then the last eigenvalue is the smallest
  const auto turn = [&](Vector& x) {
    if (turned) std::reverse(x.begin(), x.end());
  };
  turn(values);
  turn(along);
  ShellMaximum found = shell_maximum(values, along, set_.inner);
  turn(found.u);
  g.assign(k, 0);
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < k; ++j) g[j] += found.u[i] * vectors[i * k + j];
  return found.value;
}

Vector InputMaximum::within_cone(const double* kappa, const Vector& g, const Vector& added,
                                 Vector* alpha) const {
  constexpr std::int64_t kFew = 10, kMany = 3000;
  if (set_.cone.empty()) return g;
  Vector from_zero, p = set_.cone.project(g, alpha ? *alpha : from_zero, alpha ? kFew : kMany);
  if (rows_.signs_alone()) return p;
  Vector u = g, u_of_p = p;
  return shell(kappa, u, added) < shell(kappa, u_of_p, added) ? g : p;
}

}  // namespace keel
