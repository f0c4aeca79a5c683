#include "gelu.h"

#include "elementwise.cuh"
#include "math.h"

namespace keel {
namespace {

struct Gelu {
  static constexpr Saves kSaves = Saves::input;

  template <class T>
  KEEL_HD static T value(T x) {
    const T above = normal_tail(x < T(0) ? -x : x).above;
    return x * (x < T(0) ? above : T(1) - above);
  }
  template <class T>
  KEEL_HD static T derivative(T x) {  // Phi(x) + x phi(x)
    const T size = x < T(0) ? -x : x;
    const NormalTail<T> tail = normal_tail(size);
    const T left = tail.above - size * tail.density;
    return x < T(0) ? left : T(1) - left;
  }
};

}  // namespace

Var gelu(const Var& x) { return elementwise<Gelu>("gelu", x); }

}  // namespace keel
