// What keel certify says of a kernel regression.
#pragma once

#include <limits>
#include <optional>
#include <string>

#include "../ntk/certificate.h"
#include "../ntk/supremum.h"
#include "certify_search.h"
#include "standardiser.h"

namespace keel {

/// C is proved for an infinitely wide net. For nets of finite width nothing is: there is the
/// largest that a search finds within |x| <= farthest, unless it grows for ever, as without a Layer
/// Norm or RMSNorm that no residual passes by, or with a tanh or sigmoid before: where x is so that
/// a unit of it stays off its flat ends, its weights' derivatives are x times a constant. Of one
/// feature there is no such x.
struct KernelSupremum {
  Supremum proved;
  std::optional<Found> searched;
  double value() const {
    return proved.bounded ? proved.value : std::numeric_limits<double>::infinity();
  }
};

/// All that the command says; f in standardised units.
struct RegressionFindings {
  double r2 = 0;  // on the training rows
  KernelSupremum supremum;
  Certificate certificate;
  bool estimated = false;  // its smallest eigenvalue
  double if_supremum = 0;  // the bound if Theta(x, x) were nowhere larger than what was found
  Attack attack;
};

/// For summary.json, in y's own units.
Json findings_json(const RegressionFindings& found, const Standardiser& units,
                   const SearchChoice& search);

/// A table for people, and lines that say how the bound came about.
std::string findings_text(const RegressionFindings& found, const Standardiser& units,
                          const SearchChoice& search);

}  // namespace keel
