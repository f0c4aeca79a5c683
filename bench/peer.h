// Peers: scripts under bench/peers that do the same work with what a user would pick instead.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench.h"

namespace keel::bench {

/// The object on the last line of a script's output that is one, or why there is none.
struct PeerOutput {
  nlohmann::json result;
  std::string problem;
};

/// To be called first. One run of a peer may take so many seconds; 0: none is run, and all count as
/// not measured. Says on stderr which Python runs them: KEEL_PEERS_PYTHON, or that of
/// bench/peers/.venv, or on a GPU python3, if it has PyTorch or JAX; for *_nt.py likewise
/// KEEL_PEERS_NT_PYTHON, .venv-nt, or python3 with neural_tangents.
void set_up_peers(Device device, int seconds);

/// Runs bench/peers/<script> with --device and --threads as here.
PeerOutput run_peer(Device device, const std::string& script, const std::string& arguments);

/// The seconds at `field` ("seconds", "cases/forward 100x128") of an output, times `scale`, and
/// those of the GPU's clock at "gpu_" + field where it has them. Where there are none, a "problem"
/// beside the field says why, or how the script ended.
PeerTime peer_time(const std::string& name, const PeerOutput& output, double scale = 1,
                   const std::string& field = "seconds");

/// Both at once.
PeerTime peer_time(const std::string& name, Device device, const std::string& script,
                   const std::string& arguments, double scale = 1);

/// Adds a script of PyTorch's that trains to a row: as it is, and on a GPU, as keel replays a graph
/// there, its step as a CUDA graph, too.
void add_training_peer(Report& report, const std::string& row, const std::string& name,
                       Device device, const std::string& script, const std::string& arguments);

}  // namespace keel::bench
