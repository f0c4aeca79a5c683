#include "elu.h"

#include "elementwise.cuh"
#include "math.h"

namespace keel {
namespace {

struct Elu {
  static constexpr Saves kSaves = Saves::output;  // the next op keeps it anyway

  template <class T>
  KEEL_HD static T value(T x) {
    return x > T(0) ? x : exponential_less_one(x > T(0) ? T(0) : x);
  }
  template <class T>
  KEEL_HD static T derivative(T y) {
    return y > T(0) ? T(1) : y + T(1);
  }
};

}  // namespace

Var elu(const Var& x) { return elementwise<Elu>("elu", x); }

}  // namespace keel
