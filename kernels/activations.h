// What the activations do to an element, for kernels that map elements (elementwise.cuh) and for
// those that apply one on their way (fused_mlp). A Function has
//   template <class T> T value(T x)              y = f(x)
//   template <class T> T derivative(T saved)     f'(x), from what kSaves names
//   kSaves: Saves::input or Saves::output, the latter as the next op keeps it anyway
// They need not be static: one with numbers of its own is handed along.
#pragma once

#include "elu.h"
#include "gelu.h"
#include "math.h"

namespace keel {

enum class Saves { input, output };

/// A number of a Function's own, kept in both types: a GPU converts no double for each element.
class Constant {
 public:
  explicit constexpr Constant(double value) : single_(static_cast<float>(value)), double_(value) {}
  template <class T>
  KEEL_HD T as() const {
    if constexpr (sizeof(T) == sizeof(float)) return single_;
    return static_cast<T>(double_);
  }

 private:
  float single_;
  double double_;
};

namespace activations {

/// x itself: where there is none.
struct Identity {
  static constexpr Saves kSaves = Saves::output;

  template <class T>
  KEEL_HD static T value(T x) {
    return x;
  }
  template <class T>
  KEEL_HD static T derivative(T) {
    return T(1);
  }
};

struct Relu {
  static constexpr Saves kSaves = Saves::output;

  template <class T>
  KEEL_HD static T value(T x) {
    return x < 0 ? T(0) : x;
  }
  template <class T>
  KEEL_HD static T derivative(T y) {
    return y <= 0 ? T(0) : T(1);
  }
};

struct LeakyRelu {
  static constexpr Saves kSaves = Saves::output;  // of x's sign
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

/// kScaled: of a beta other than 1, which costs a CPU up to a tenth of the time.
template <bool kScaled>
struct Silu {
  static constexpr Saves kSaves = Saves::input;
  Constant beta;

  template <class T>
  KEEL_HD T scaled(T x) const {
    return kScaled ? beta.as<T>() * x : x;
  }
  template <class T>
  KEEL_HD T value(T x) const {
    return x * logistic(scaled(x));
  }
  template <class T>
  KEEL_HD T derivative(T x) const {
    // Past |z| = 1000 the logistic function is 0 or 1, in double too, and z may be infinite.
    T z = scaled(x);
    if (kScaled) z = z > T(1e3) ? T(1e3) : z < T(-1e3) ? T(-1e3) : z;
    const T s = logistic(z);
    return s * (T(1) + z * (T(1) - s));
  }
};

struct Tanh {
  static constexpr Saves kSaves = Saves::output;

  template <class T>
  KEEL_HD static T value(T x) {
    return hyperbolic_tangent(x);
  }
  template <class T>
  KEEL_HD static T derivative(T y) {
    return (T(1) - y) * (T(1) + y);
  }
};

struct Sigmoid {
  static constexpr Saves kSaves = Saves::output;

  template <class T>
  KEEL_HD static T value(T x) {
    return logistic(x);
  }
  template <class T>
  KEEL_HD static T derivative(T y) {
    return y * (T(1) - y);
  }
};

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

// above x, and below 0 alpha (exp(x) - 1): a sum, of which one term is 0. Of two results to choose
// from g++ would compute the exponential on its own side of a branch alone, and no vectors.
struct Elu {
  static constexpr Saves kSaves = Saves::output;
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

}  // namespace activations

/// One of them, chosen as a kernel runs.
struct AnyActivation {
  enum class Kind {
    none,
    relu,
    leaky_relu,
    gelu,
    gelu_by_tanh,
    silu,
    tanh,
    sigmoid,
    softplus,
    elu
  };
  Kind kind = Kind::none;
  Constant number{0};  // leaky_relu: slope; silu: beta; elu: alpha
  Constant above{1};   // elu: slope above 0

  /// f(the Function).
  template <class F>
  KEEL_HD void visit(F f) const {
    using namespace activations;
    switch (kind) {
      case Kind::none:
        return f(Identity{});
      case Kind::relu:
        return f(Relu{});
      case Kind::leaky_relu:
        return f(LeakyRelu{number});
      case Kind::gelu:
        return f(Gelu{});
      case Kind::gelu_by_tanh:
        return f(GeluByTanh{});
      case Kind::silu:
        return f(Silu<true>{number});
      case Kind::tanh:
        return f(Tanh{});
      case Kind::sigmoid:
        return f(Sigmoid{});
      case Kind::softplus:
        return f(Softplus{});
      case Kind::elu:
        return f(Elu{number, above});
    }
  }
};

}  // namespace keel
