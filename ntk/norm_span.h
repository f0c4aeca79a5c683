// The span that a norm's output lies in, of what it is given: a map's columns and bias.
#pragma once

#include "norm_set.h"

namespace keel {

struct NormSpan {
  NormSet set;         ///< every h where the span is no restriction, or rounding leaves it open
  double of_bias = 0;  ///< where `half`: the deviation of what of the bias the columns do not span
};

/// Of W's columns and b, less their means if `centred`, W [width, inputs]. `off`: how far rounding
/// may have put each of them from what is meant, the bias last; or empty.
NormSpan norm_span(const std::vector<double>& weight, const std::vector<double>& bias,
                   std::int64_t inputs, double eps, bool centred,
                   const std::vector<double>& off = {});

/// Less the mean. Relative to the first element: equal numbers become exactly 0.
void centre(std::vector<double>& x);

/// No more than what a norm leaves of a deviation, or of a root mean square, which it divides by
/// one no less.
double part_of(double deviation, double eps);

}  // namespace keel
