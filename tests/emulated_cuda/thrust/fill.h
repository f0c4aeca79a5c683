#pragma once

#include <algorithm>

#include "execution_policy.h"

namespace thrust {
template <class Policy, class Into, class Size, class T>
void fill_n(const Policy& policy, Into into, Size size, const T& value) {
  policy([=] { std::fill_n(into, size, value); });
}
}  // namespace thrust
