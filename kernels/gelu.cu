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

struct GeluByTanh {
  static constexpr Saves kSaves = Saves::input;

  template <class T>
  KEEL_HD static T value(T x) {
    return x * logistic(x * (T(kGeluLinear) + T(kGeluCubic) * (x * x)));
  }
  template <class T>
  KEEL_HD static T derivative(T x) {
    // Past |x| = 100 the logistic function is 0 or 1, in double too, and squares may be infinite.
    const T square = x * x < T(1e4) ? x * x : T(1e4);
    const T z = x * (T(kGeluLinear) + T(kGeluCubic) * square), s = logistic(z);
    const T slope = T(kGeluLinear) + T(3 * kGeluCubic) * square;  // of z
    return s + x * (slope * (s * (T(1) - s)));
  }
};

}  // namespace

Var gelu(const Var& x) { return elementwise<Gelu>("gelu", x); }

Var gelu_by_tanh(const Var& x) { return elementwise<GeluByTanh>("gelu_by_tanh", x); }

}  // namespace keel
