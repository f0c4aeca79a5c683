// Descent on a dual's multipliers: wherever it stops there is a bound.
#pragma once

#include "../core/work_progress.h"
#include "tail_dual.h"

namespace keel {

struct Descent {
  TailDual::Value least;
  std::vector<double> x;  ///< the multipliers of it
};

/// `count` steps, of which one in `to_couplings` moves the multipliers of couplings, too: each of
/// those takes an eigendecomposition.
struct DescentSteps {
  std::int64_t count = 0, to_couplings = 1;
  StopFlag stop = nullptr;  ///< once it is raised there are no more
};

/// The least bound of constant + v . phi(z) that `steps` of descent find, and then at
/// a finer tolerance. `rank`: of u.
Descent descend(const TailDual& dual, const std::vector<Units>& layers,
                const std::vector<double>& v, double constant, std::int64_t rank,
                const DescentSteps& steps);

/// The same of the dual with the set's image, from where `before`, without it, ended. No worse.
Descent descend_with_image(const TailDual& dual, const TailDual& with_image, const NormImage& image,
                           const std::vector<Units>& layers, const std::vector<double>& v,
                           double constant, std::int64_t rank, const DescentSteps& steps,
                           const Descent& before);

/// Goes on from multipliers `from` of `dual`, with `image` where it has one.
Descent descend_from(const TailDual& dual, const NormImage* image, const std::vector<Units>& layers,
                     const std::vector<double>& v, double constant, std::int64_t rank,
                     const DescentSteps& steps, const std::vector<double>& from);

}  // namespace keel
