#include "softplus.h"

#include "elementwise.cuh"
#include "math.h"

namespace keel {
namespace {

struct Softplus {
  static constexpr Saves kSaves = Saves::input;

  // Neither sum of exp(x) and 1 overflows, nor is it lost where exp(x) is small.
  template <class T>
  KEEL_HD static T value(T x) {
    return (x > T(0) ? x : T(0)) + log_of_one_plus(exponential(x > T(0) ? -x : x));
  }
  template <class T>
  KEEL_HD static T derivative(T x) {
    return logistic(x);
  }
};

}  // namespace

Var softplus(const Var& x) { return elementwise<Softplus>("softplus", x); }

}  // namespace keel
