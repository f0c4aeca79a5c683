// The page of `keel reproduce theory`: checks, section by section, and whether all of them hold.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reproduce.h"
#include "theory_checks.h"

namespace keel {

using Sections = std::vector<std::pair<std::string, std::vector<Check>>>;

/// `setting` goes to summary.json beside them. Checks that fail are the result's `problem`.
Reproduced theory_page(const Sections& sections, const Json& setting);

}  // namespace keel
