// The paper's own setting, in which its statements are checked: the NTK parameterisation,
// sigma_w^2 = 1 in the first dense layer and 2 in the others, sigma_b^2 = 0.01, two hidden ReLU
// layers, Layer Norm before the activation, without gain, bias or eps.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../ntk/certificate.h"
#include "toy_figure.h"

namespace keel {

inline constexpr double kTheorySigmaB2 = 0.01;

/// A net of the theory: its SPEC with hidden layers of `width`.
struct TheoryNet {
  const char* name;   ///< standard, ln_first, ln_second, ln_every or ln_after
  const char* label;  ///< for people
  bool bounded;
  std::string spec(std::int64_t width) const;
};

/// standard, ln_first, ln_second, ln_every: the paper's four.
const std::vector<TheoryNet>& theory_nets();

/// The infinite-width kernel of any net in this setting.
std::shared_ptr<const InfiniteKernel> paper_kernel(std::string_view spec, std::int64_t inputs,
                                                   Device device);
std::shared_ptr<const InfiniteKernel> theory_kernel(const TheoryNet& net, std::int64_t inputs,
                                                    Device device);

/// The regression of one toy data set with the kernel of one net, and its certificate.
struct ToyRegression {
  const ToyData* data;
  const TheoryNet* net;
  std::shared_ptr<const Regression> regression;
  Certificate certificate;
  Found largest;  ///< of |f| within |x| <= 1e6
  double train_mse = 0;
};

/// Every data set with every net: 100 points on [-5, 5], relative ridge `kToyRidge`, float64.
inline constexpr double kToyRidge = 1e-6;
std::vector<ToyRegression> toy_regressions(Device device);

}  // namespace keel
