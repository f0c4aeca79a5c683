// A net as the steps that a box of its inputs is taken through (docs/certificate.md, "Cutting x").
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "../nn/net.h"
#include "activation.h"
#include "affine.h"

namespace keel {

/// A dense map, also as its columns: what sums of forms go along.
struct BoxMap {
  std::size_t inputs = 0, outputs = 0;
  std::vector<double> weight{}, columns{};   ///< [outputs, inputs], [inputs, outputs]
  std::vector<double> column_sizes{};        ///< of columns: their elements' sizes
  std::vector<double> rounded_sizes{};       ///< what rounding of them is measured by, or empty
  std::vector<double> bias{}, bias_sizes{};  ///< [outputs]
  explicit BoxMap(const Affine& map);
};

/// Where the net's last input t goes on as the last value, z being t times what it was: phi(z) is
/// t phi(z / t), and t; or phi(z / t) alone, of a tanh or a sigmoid.
enum class UnitScale { one, perspective, quotient };

struct BoxUnits {
  std::size_t units = 0;  ///< but for t
  LayerActivation phi = LayerKind::relu;
  UnitScale scale = UnitScale::one;
};

/// c / sqrt(mean of c^2 + eps), then gain and bias; a Layer Norm's mean is taken away before, by a
/// map. `eps_of_last`: eps times the square of the net's last input.
struct BoxNorm {
  std::size_t units = 0;
  double eps = 0;
  bool eps_of_last = false;
  std::vector<double> gain{}, bias{};
  std::vector<double> most{};  ///< of each |c / sqrt(...)|, whatever c is
};

/// A norm that does not divide: its values come out r times what they are, r = sqrt(mean of c^2 +
/// eps), which goes on behind them as t does. With eps_of_last it is eps t^2, and t goes in behind
/// c.
struct BoxDivisor {
  BoxNorm norm{};
};

struct BoxKeep {};  ///< x of a residual, from here on

/// And here added. With t behind it, t stays; where t is no longer behind what it is added to, that
/// is t times as much.
struct BoxAdd {
  bool last_stays = false, times_last = false;
};

using BoxStep = std::variant<BoxMap, BoxUnits, BoxNorm, BoxDivisor, BoxKeep, BoxAdd>;

struct BoxNet {
  std::size_t inputs = 0, outputs = 0, norms = 0, products = 0;
  std::size_t divisors = 0;
  bool homogeneous = false;  ///< takes (p, t), t >= 0, and gives f(p / t)
  /// [inputs, inputs]: what (p, t) is of what it takes, where that is not (p, t) but as near to a
  /// norm's output as is linear; the last is t all the same. Or empty.
  std::vector<double> change{};
  std::vector<BoxStep> steps{};

  /// Gives r f and, behind it, r: that of the last norm that no residual passes by. All such norms
  /// are BoxDivisors then, linear but for one number each. So it is unless a norm within a residual
  /// stands behind one.
  bool divides() const { return divisors > 0; }

  /// Of linear forms of a box: one number of each variable, and those of norms and of products.
  std::size_t variables() const {
    return inputs + norms * (1 + inputs) + products * inputs + divisors;
  }
  /// About how many multiplications taking a box through is.
  double work() const;
};

/// A net of one member, as it is.
BoxNet box_net(const Net& net);

/// A net as a function of (p, t), x = p / t, t >= 0: ahead of the layer that bounds it, which
/// bounding_layer() says there is, values are t times what they were, and so are biases, and t goes
/// on beside them. It is continuous up to t = 0, infinitely far away, but where phi(z / t) jumps.
/// `spherical`: where a norm follows the first dense layer, of variables of which the square that
/// it divides by is a sum of squares, but for eps: no box of them sees it come close to 0.
BoxNet homogeneous_box_net(const Net& net, bool spherical = false);

/// f at x, [outputs], in double.
std::vector<double> box_net_at(const BoxNet& net, std::vector<double> x);

/// out[i] += sum over j of x[j] columns[j, i], of columns [inputs, outputs].
void add_product(const std::vector<double>& columns, std::size_t inputs, const double* x,
                 double* out);

}  // namespace keel
