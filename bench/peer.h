// Peers: scripts under bench/peers that do the same work with what a user would pick instead.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace keel::bench {

/// Runs bench/peers/<script> with its own environment's Python; the object on its last line of
/// output. Nothing where the environment has not been made (bench/peers/setup.sh) or it failed.
std::optional<nlohmann::json> run_peer(const std::string& script, const std::string& arguments);

}  // namespace keel::bench
