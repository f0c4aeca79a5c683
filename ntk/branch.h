// Branch and bound on a dual (docs/certificate.md, "Branching").
#pragma once

#include "descent.h"

namespace keel {

/// The largest constant + v . phi(z) behind a norm, and how much work to do for it.
struct BranchProblem {
  const TailDual& dual;
  const NormImage* image = nullptr;  ///< the dual's, if it has one
  const std::vector<Units>& layers;  ///< the dual's
  const std::vector<double>& v;
  double constant = 0;
  std::int64_t rank = 0;    ///< of u
  std::int64_t pieces = 0;  ///< to look at
  DescentSteps steps{};     ///< of the descent on each
};

/// A bound of it, no worse than `whole`, which a descent on the dual found for all of it: that of
/// the loosest of the pieces which cutting the last layer's units, one after the other, leaves. The
/// same for any number of threads.
TailDual::Value branch(const BranchProblem& problem, const Descent& whole);

}  // namespace keel
