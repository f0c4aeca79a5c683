#include "elu.h"

#include "elementwise.cuh"
#include "math.h"

namespace keel {
namespace {

// above x, and below 0 alpha (exp(x) - 1): a sum, of which one term is 0. Of two results to choose
// from g++ would compute the exponential on its own side of a branch alone, and no vectors.
struct Elu {
  static constexpr Saves kSaves = Saves::output;  // the next op keeps it anyway
  Constant alpha, above;

  template <class T>
  KEEL_HD T value(T x) const {
    const T below = alpha.as<T>() * exponential_less_one(x > T(0) ? T(0) : x);
    return above.as<T>() * (x > T(0) ? x : T(0)) + below;
  }
  template <class T>
  KEEL_HD T derivative(T y) const {
    return y > T(0) ? above.as<T>() : y + alpha.as<T>();
  }
};

}  // namespace

Var elu(const Var& x, double alpha) {
  check(alpha >= 0 && alpha <= 100, "elu", "got alpha {}, wanted 0 to 100", alpha);
  return elementwise("elu", x, Elu{Constant(alpha), Constant(1)});
}

Var selu(const Var& x) {
  return elementwise("selu", x, Elu{Constant(kSeluScale * kSeluAlpha), Constant(kSeluScale)});
}

}  // namespace keel
