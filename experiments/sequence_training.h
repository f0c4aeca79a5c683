// Training of transformers on sequences that are drawn for each step, and what they predict.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "../nn/transformer.h"
#include "sequence_units.h"

namespace keel {

/// On the CPU, [n, length] or [S, n, length]: at place t x is seen up to there, and y is wanted.
struct SequenceBatch {
  Tensor x, y;
};

/// Of all members' sequences, one after another, in the dtype of the options.
SequenceBatch batch_of(const TransformerOptions& options, const std::vector<double>& x,
                       const std::vector<double>& y);

struct SequenceTraining {
  const char* who;  ///< of messages
  std::int64_t steps = 1000, batch = 32;
  double lr = 1e-3;  ///< Adam's step size
  /// `batch` sequences a member, in the dtype of the options, by their seeds and the step alone.
  std::function<SequenceBatch(const TransformerOptions&, std::int64_t step)> draw;
  std::function<void(std::int64_t)> progress;  ///< steps done, summed over members
};

/// One member.
struct TrainedTransformer {
  Transformer net;
  double loss;  ///< mean over the last tenth of the steps
};

/// The seeds first_seed, first_seed + 1, ... of each of `kinds` (whose own seeds do not matter),
/// kinds one after another: on a GPU all members of a kind at once, on a CPU a thread each. Throws
/// keel::Error where a loss is not finite in the end.
std::vector<TrainedTransformer> train_transformers(std::vector<TransformerOptions> kinds,
                                                   std::uint64_t first_seed, std::int64_t seeds,
                                                   const SequenceTraining& training);

/// All of them as members of one transformer; they must be of one kind.
Transformer joined(const std::vector<TrainedTransformer>& members);

/// Copies of the members, each a transformer by itself.
std::vector<Transformer> members_of(const Transformer& all);

/// work(0) to work(count - 1), of a net each: one after another on a GPU, which one fills; on the
/// CPU a thread each.
void each_net(Device device, std::size_t count, const std::function<void(std::size_t)>& work);

/// Of a net of one member, for x [n, length]: its predictions at every place, [n, length]. In
/// blocks: attention keeps a number for every two places of a sequence.
std::vector<double> predict_in_blocks(const Transformer& net, const std::vector<double>& x);

/// Throws keel::Error, by the name of `who`, for the first of these predictions that is not finite:
/// of rows from `first` on, `how` they were predicted.
void check_finite(const std::vector<double>& predictions, const char* who, const char* how,
                  std::int64_t first, std::uint64_t seed);

/// One transformer's predictions of a series in units of its own; in float64, where a rollout may
/// grow further.
class SequencePredictor {
 public:
  SequencePredictor(const Transformer& net, const SequenceUnits& units);

  /// What follows each of these windows, of 1 to `length` values.
  std::vector<double> next(const std::vector<std::vector<double>>& windows) const;

  /// The same of sequence[.., i), for i from `begin` to `end` - 1: each from true values alone.
  std::vector<double> one_step(const std::vector<double>& sequence, std::int64_t begin,
                               std::int64_t end) const;

  /// `count` values behind `sequence`, each from what was predicted before it, too.
  std::vector<double> rollout(std::vector<double> sequence, std::int64_t count) const;

 private:
  // The last values of sequence[.., end), as many as the net sees.
  std::vector<double> window_of(const std::vector<double>& sequence, std::int64_t end) const;

  Transformer net_;
  SequenceUnits units_;
};

}  // namespace keel
