#pragma once

#include <algorithm>

#include "execution_policy.h"

namespace thrust {
template <class Policy, class First, class Second, class Into, class F>
void transform(const Policy& policy, First first, First last, Second second, Into into, F f) {
  policy([=] { std::transform(first, last, second, into, f); });
}
}  // namespace thrust
