// transpose: rows become columns.
#pragma once

#include "../core/tape.h"

namespace keel {

/// x [n, d] -> [d, n]; with an ensemble axis, per member: [S, n, d] -> [S, d, n]. Rows of the
/// result are no samples any more: a sink that keeps those apart is refused.
Var transpose(const Var& x);

}  // namespace keel
