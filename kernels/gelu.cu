#include "gelu.h"

#include "elementwise.cuh"
#include "math.h"

namespace keel {
namespace {

struct Gelu {
  static constexpr Saves kSaves = Saves::input;

  template <class T>
  KEEL_HD static T value(T x) {
    return x * normal_cdf(x);
  }
  template <class T>
  KEEL_HD static T derivative(T x) {
    constexpr T kInverseSqrt2Pi = T(0.39894228040143267794);
    return normal_cdf(x) + x * kInverseSqrt2Pi * exponential(T(-0.5) * x * x);
  }
};

}  // namespace

Var gelu(const Var& x) { return elementwise<Gelu>("gelu", x); }

}  // namespace keel
