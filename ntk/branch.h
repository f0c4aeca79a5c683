// Branch and bound on a dual (docs/certificate.md, "Branching").
#pragma once

#include "descent.h"

namespace keel {

/// The largest value behind a Layer Norm that a dual bounds, and how much work to do.
struct BranchProblem {
  const UnitRows& rows;
  const NormSet& set;
  const std::vector<Units>& layers;
  const std::vector<double>& v;
  double constant = 0;
  bool one_kappa = false;
  std::int64_t pieces = 0;  ///< to look at
  std::int64_t steps = 0;   ///< of the descent on each
};

/// A bound of it, no worse than `whole`, which a descent found for all of it: that of the loosest
/// of the pieces which cutting the last layer's units, one after the other, leaves. The same for
/// any number of threads.
TailDual::Value branch(const BranchProblem& problem, const Descent& whole);

}  // namespace keel
