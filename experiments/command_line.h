// The command line as a function, so that tests can call it.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace keel {

/// Runs `keel ARGUMENTS...` and returns its exit code: 0 done, 1 failed (one line on err says why),
/// 2 bad usage (one line on err), 130 stopped by Ctrl-C, 143 by SIGTERM. Never throws, never exits.
int run_command_line(const std::vector<std::string>& arguments, std::ostream& out,
                     std::ostream& err);

}  // namespace keel
