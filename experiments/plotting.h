// Pictures, drawn by plot.py.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace keel {

struct Drawn {
  std::vector<std::string> pictures;  ///< paths; empty where no Python with matplotlib was found
  std::string how_later;              ///< then: what to install and to type
};

/// Runs `plot.py FIGURE FOLDER` with the first python3 of PATH that has matplotlib.
/// Throws keel::Error with plot.py's own words where it fails.
Drawn run_plot(const std::string& figure, const std::filesystem::path& folder);

}  // namespace keel
