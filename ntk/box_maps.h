// What becomes of a net's dense maps where boxes are taken through them.
#pragma once

#include "affine.h"

namespace keel {

/// The map less the mean of its outputs.
Affine centred(Affine map);

/// Of (a, t): W a + b t and, where t goes on, t.
Affine with_bias_of_last(const Affine& map, bool goes_on);

/// The map, and behind its outputs the last of its inputs.
Affine beside_last(Affine map);

/// With the columns of `map`, less their means if a norm takes these away, Q R, Q's orthonormal and
/// R upper triangular, this is the inverse of R, scaled to keep the last variable as it is: what a
/// norm divides by is then a sum of squares of the variables. Any such matrix is a change of
/// variables, if it is none too steep: R's diagonal is kept from 0, in parts of each column's
/// length.
Affine spherical_change(const Affine& map, bool centres);

}  // namespace keel
