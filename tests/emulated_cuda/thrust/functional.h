#pragma once

#include <functional>

namespace thrust {
using std::plus;
}  // namespace thrust
