// What a norm of a linear map of another norm's output can give (docs/certificate.md, "Several
// sets").
#pragma once

#include "affine.h"
#include "norm_set.h"

namespace keel {

/// Of a norm right behind an affine map of the u of `given`: as normed_after_dense(); and how far
/// that goes bounds what is divided by, and its half space leaves a side. Numbers of the map may be
/// off by `lost` times what rounding of them is measured by.
NormSet normed_after(const Affine& before, const NormSet& given, double lost, double eps,
                     bool centred);

}  // namespace keel
