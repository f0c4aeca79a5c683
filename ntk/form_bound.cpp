#include "form_bound.h"

#include <cmath>

#include "../kernels/one_blas_thread.h"
#include "form_dual.h"
#include "interval.h"

namespace keel {

Most FormBound::most(const Direction& d, const Direction& of_units, int steps) const {
  constexpr double kLongest = 0.3, kShortest = 0.05;  // a step, and what of it the last one is
  const OneBlasThread one;  // where a descent ends depends on the last digit
  FormDual dual(rows_, d, of_units);
  if (!dual.any_parabola()) return {kInfinity, 0};
  Most least{kInfinity, 0};
  double start = 0;
  for (const double slack : {-1.0, 1.0, 3.0, 6.0}) {
    dual.multipliers().back() = slack;
    const Most at = dual.value();
    if (at.value < least.value) {
      least = at;
      start = slack;
    }
    if (!dual.any_kink()) break;
  }
  dual.multipliers().back() = start;
  for (int step = 0; step < steps; ++step) {
    const Most at = dual.value();
    if (!std::isfinite(at.value)) break;
    if (at.value < least.value) least = at;
    dual.step(kLongest * std::pow(kShortest, static_cast<double>(step) / steps));
  }
  return least;
}

}  // namespace keel
