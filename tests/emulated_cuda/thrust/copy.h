#pragma once

#include <algorithm>

#include "execution_policy.h"

namespace thrust {
template <class Policy, class From, class Size, class Into>
void copy_n(const Policy& policy, From from, Size size, Into into) {
  policy([=] { std::copy_n(from, size, into); });
}
}  // namespace thrust
