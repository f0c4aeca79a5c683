#include "silu.h"

#include "elementwise.cuh"
#include "math.h"

namespace keel {
namespace {

struct Silu {
  static constexpr Saves kSaves = Saves::input;

  template <class T>
  KEEL_HD static T value(T x) {
    return x * logistic(x);
  }
  template <class T>
  KEEL_HD static T derivative(T x) {
    const T s = logistic(x);
    return s * (T(1) + x * (T(1) - s));
  }
};

}  // namespace

Var silu(const Var& x) { return elementwise<Silu>("silu", x); }

}  // namespace keel
