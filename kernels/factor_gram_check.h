// What factor_gram() asks of each of its matrices.
#pragma once

#include "factor_gram.h"

namespace keel {

/// Throws ShapeError, or what check_same_kind() throws, unless the entries lie within `into`, and
/// each term has on both sides as many columns, of `into`'s type and on its device.
void check_gram_matrix(const GramMatrix& matrix);

}  // namespace keel
