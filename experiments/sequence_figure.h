// Figures 7 and `prenorm`: transformers trained to continue sequences a + b i, and what they make
// of them further on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../core/device.h"
#include "../nn/transformer_norms.h"
#include "statistics.h"

namespace keel {

/// x_i = a + b i.
struct LineOfValues {
  const char* name;
  double a, b;
  double at(std::int64_t i) const { return a + b * static_cast<double>(i); }
};

/// Those that the figure shows: rising, falling, steep.
const std::vector<LineOfValues>& shown_sequences();

/// In training i = 1 .. 30; a transformer sees 29 values and predicts the one behind each of them.
/// Values are divided by their root mean square in training, with a, b ~ N(0, 1).
inline constexpr std::int64_t kTrainedTo = 30;
inline constexpr std::int64_t kBegin = 20,
                              kEnd = 100;  ///< of the figure: predictions at kBegin + 1 .. kEnd

/// A kind of net.
struct SequenceKind {
  const char* net;  ///< standard, ln_embedding, ...
  TransformerNorms norms;
};

/// Slopes b of b i whose far predictions are kept, 1 to 10,000.
const std::vector<double>& far_slopes();

enum class Continuation { one_step, rollout };
inline const char* name_of(Continuation how) {
  return how == Continuation::one_step ? "one_step" : "rollout";
}

/// What one net makes of one sequence.
struct SequencePanel {
  LineOfValues sequence;
  std::string net;  ///< its kind
  /// one_step: of the true values up to each i, at most the last 29; rollout: of the first 20, and
  /// then of its own predictions.
  Continuation how;
  std::vector<std::vector<double>> curves;  ///< a list a seed: predictions at kBegin + 1 .. kEnd
  std::vector<Estimate> band;               ///< of their mean, by i
  double largest = 0;                       ///< size of a prediction, of any seed
};

/// What is the same for all sequences; a value a seed.
struct SequenceNet {
  std::string net{};
  std::vector<double> loss{};              ///< in the last tenth of training
  std::vector<double> mse{};               ///< over other sequences like those trained on
  std::vector<double> exponents{};         ///< of |f| over b of sequences b i, b from 100 to 10,000
  std::vector<double> far_size{};          ///< mean of |f| at b = 10,000 and -10,000
  std::vector<std::vector<double>> far{};  ///< at far_slopes(), the larger |f| of b and -b
  std::vector<double> largest{};           ///< of |f| of all that was predicted
  std::vector<double> bound{};  ///< proved, of |f| for every sequence; empty where nothing is
};

struct SequenceOptions {
  const char* figure = "";  ///< in messages
  std::vector<SequenceKind> kinds{};
  std::int64_t seeds = 5, steps = 1000, batch = 32;
  std::uint64_t first_seed = 0;
  Device device{};
  std::function<void(std::int64_t)> progress{};  ///< steps done, of sequence_steps()
};

struct SequenceRun {
  std::vector<SequenceNet> nets;      ///< by kind
  std::vector<SequencePanel> panels;  ///< ways to continue within sequences within nets
  double training_seconds = 0;
};

/// Steps that run_sequence_figure trains, summed over kinds and seeds.
std::int64_t sequence_steps(const SequenceOptions& options);

/// Trains a net of each kind for each seed on sequences drawn anew for each step, by Adam with step
/// size 1e-3 in float32; predictions are in float64, in which a rollout may grow further.
SequenceRun run_sequence_figure(const SequenceOptions& options);

}  // namespace keel
