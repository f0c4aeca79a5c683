// Pictures, drawn by plot.py.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "command.h"
#include "output.h"

namespace keel {

struct Drawn {
  std::vector<std::string> pictures;  ///< paths; empty where no Python with matplotlib was found
  std::string how_later;              ///< then: what to install and to type
};

/// Runs `plot.py FIGURE FOLDER` with the first python3 of PATH that has matplotlib.
/// Throws keel::Error with plot.py's own words where it fails.
Drawn run_plot(const std::string& figure, const std::filesystem::path& folder);

/// Draws what a command wrote into its folder, of which summary.json then tells; without a Python
/// that can, a note says how. Returns what is wrong with the picture, where something is: the
/// numbers are worth having.
std::string draw(const std::string& figure, const OutputFolder& folder, const Context& context,
                 Json& summary);

}  // namespace keel
