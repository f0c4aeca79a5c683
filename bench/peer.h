// Peers: scripts under bench/peers that do the same work with what a user would pick instead.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace keel::bench {

/// Runs bench/peers/<script> with the Python of bench/peers/<environment>; the object on its last
/// line of output. Nothing where the environment has not been made (bench/peers/setup.sh) or it
/// failed.
std::optional<nlohmann::json> run_peer(const std::string& script, const std::string& arguments,
                                       const std::string& environment = ".venv");

/// "name 1.2 s: 3.4 x", or "name not measured": a script of bench/peers whose JSON says "seconds",
/// times `scale`, beside our `seconds`. Scripts *_nt.py run in .venv-nt.
std::string beside_peer(const std::string& name, double seconds, const std::string& script,
                        const std::string& arguments, double scale = 1);

}  // namespace keel::bench
