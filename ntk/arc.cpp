#include "arc.h"

namespace keel {

const std::array<Angle, kAngles + 1>& angles() {
  static const auto all = [] {
    std::array<Angle, kAngles + 1> all;
    for (int i = 0; i <= kAngles; ++i) {
      const double angle = kAngleStep * i - std::numbers::pi / 2;
      all[static_cast<std::size_t>(i)] = {std::sin(angle), std::cos(angle)};
    }
    return all;
  }();
  return all;
}

}  // namespace keel
