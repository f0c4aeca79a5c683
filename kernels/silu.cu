#include "silu.h"

#include "elementwise.cuh"
#include "math.h"

namespace keel {
namespace {

struct Silu {
  static constexpr Saves kSaves = Saves::input;
  Constant beta;

  template <class T>
  KEEL_HD T value(T x) const {
    return x * logistic(beta.as<T>() * x);
  }
  template <class T>
  KEEL_HD T derivative(T x) const {
    const T z = beta.as<T>() * x, s = logistic(z);
    return s * (T(1) + z * (T(1) - s));
  }
};

}  // namespace

Var silu(const Var& x, double beta) {
  check(beta >= kLeastSiluBeta && beta <= kMostSiluBeta, "silu", "got beta {}, wanted {} to {}",
        beta, kLeastSiluBeta, kMostSiluBeta);
  return elementwise("silu", x, Silu{Constant(beta)});
}

}  // namespace keel
