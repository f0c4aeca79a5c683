#include "leaky_relu.h"

#include "elementwise.cuh"

namespace keel {
namespace {

struct LeakyRelu {
  static constexpr Saves kSaves = Saves::output;  // of x's sign; the next op keeps it anyway
  Constant slope;

  template <class T>
  KEEL_HD T value(T x) const {
    return x < 0 ? slope.as<T>() * x : x;
  }
  template <class T>
  KEEL_HD T derivative(T y) const {
    return y <= 0 ? slope.as<T>() : T(1);
  }
};

}  // namespace

Var leaky_relu(const Var& x, double slope) {
  check(slope >= 0 && slope <= 1, "leaky_relu", "got slope {}, wanted 0 to 1", slope);
  return elementwise("leaky_relu", x, LeakyRelu{Constant(slope)});
}

}  // namespace keel
