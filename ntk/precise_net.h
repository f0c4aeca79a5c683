// A net at one input with twice double's digits, where they count.
#pragma once

#include <vector>

#include "../nn/net.h"

namespace keel {

/// f(x) of a net of one member, by plain loops on the host: a value is the sum of two doubles from
/// layer to layer, as what a Layer Norm leaves of large numbers that are nearly equal is their last
/// digits. What a norm puts out is one double: behind it these do. Throws ShapeError where x does
/// not fit.
std::vector<double> evaluate_precisely(const Net& net, const std::vector<double>& x);

}  // namespace keel
