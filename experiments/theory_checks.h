// The paper's statements as checks with numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "command.h"
#include "theory_setting.h"

namespace keel {

/// One statement, what was measured, and whether it agrees.
struct Check {
  std::string statement, measured;
  bool holds = false;
  Json numbers = Json::object();
};

std::vector<Check> check_diagonals();
std::vector<Check> check_growth();
/// Widening nets: `seeds` nets a width; `progress` after each net.
std::vector<Check> check_convergence(std::int64_t seeds, const Context& context,
                                     const std::function<void()>& progress);
std::int64_t convergence_nets(std::int64_t seeds);
std::vector<Check> check_explosion(Device device);
std::vector<Check> check_certificates(const std::vector<ToyRegression>& regressions);
std::vector<Check> check_minimisers(const Context& context);

}  // namespace keel
