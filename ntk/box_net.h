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

struct BoxUnits {
  std::size_t units = 0;
  LayerActivation phi = LayerKind::relu;
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

struct BoxKeep {};  ///< x of a residual, from here on
struct BoxAdd {};   ///< and here added

using BoxStep = std::variant<BoxMap, BoxUnits, BoxNorm, BoxKeep, BoxAdd>;

struct BoxNet {
  std::size_t inputs = 0, outputs = 0, norms = 0;
  bool homogeneous = false;  ///< takes (p, t), t >= 0, and gives f(p / t)
  std::vector<BoxStep> steps{};

  /// Of linear forms of a box: one number of each variable, and those of norms.
  std::size_t variables() const { return inputs + norms * (1 + inputs); }
  /// About how many multiplications taking a box through is.
  double work() const;
};

/// A net of one member, as it is.
BoxNet box_net(const Net& net);

/// Whether what is ahead of the net's first norm is positively homogeneous, but for biases, and no
/// residual: then f(p / t) is a function of (p, t) up to t = 0.
bool may_be_homogeneous(const Spec& spec);

/// Of such a net: biases ahead of the norm, and the root of its eps, are t times what they were.
BoxNet homogeneous_box_net(const Net& net);

/// f at x, [outputs], in double.
std::vector<double> box_net_at(const BoxNet& net, std::vector<double> x);

/// out[i] += sum over j of x[j] columns[j, i], of columns [inputs, outputs].
void add_product(const std::vector<double>& columns, std::size_t inputs, const double* x,
                 double* out);

}  // namespace keel
