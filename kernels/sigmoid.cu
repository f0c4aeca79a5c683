#include "sigmoid.h"

#include "elementwise.cuh"
#include "math.h"

namespace keel {
namespace {

struct Sigmoid {
  static constexpr Saves kSaves = Saves::output;  // the next op keeps it anyway

  template <class T>
  KEEL_HD static T value(T x) {
    return logistic(x);
  }
  template <class T>
  KEEL_HD static T derivative(T y) {
    return y * (T(1) - y);
  }
};

}  // namespace

Var sigmoid(const Var& x) { return elementwise<Sigmoid>("sigmoid", x); }

}  // namespace keel
