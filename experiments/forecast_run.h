// What `keel forecast` computes: transformers that continue a user's series, and how far any of
// their predictions can go.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "examples.h"
#include "sequence_bound.h"
#include "sequence_units.h"

namespace keel {

/// A sequence of which the first `trained` values are trained on, the others held out. Nets see
/// values less `centre`, over `scale`: by default mean and population deviation of those trained
/// on.
class Series {
 public:
  Series(std::vector<double> values, std::int64_t trained,
         std::optional<SequenceUnits> units = std::nullopt);

  const std::vector<double>& values() const { return values_; }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }
  std::int64_t trained() const { return trained_; }
  std::vector<double> held_out() const { return {values_.begin() + trained_, values_.end()}; }

  const SequenceUnits& units() const { return units_; }  ///< scale 1 where nothing ever changes

  /// Windows of `length` + 1 values of what is trained on: x all but the last, y all but the first.
  SequenceBatch draw_windows(const TransformerOptions& net, std::int64_t step,
                             std::int64_t count) const;

  /// Of those windows' x, some that are evenly spread: [s, length] float64.
  Tensor some_windows(std::int64_t length) const;

 private:
  std::vector<double> values_, standardised_;
  std::int64_t trained_;
  SequenceUnits units_;
};

struct ForecastOptions {
  std::shared_ptr<const Transformer> given{};  ///< nothing is trained; of what follows, `ahead`
  TransformerOptions net;                      ///< its seeds do not matter
  std::uint64_t first_seed = 0;
  std::int64_t seeds = 1, steps = 1000, batch = 32, ahead = 30;
  double lr = 1e-3;
  std::function<void(std::int64_t)> progress;  ///< steps done, summed over seeds
  std::function<void()> trained;               ///< what is left takes seconds
};

/// One seed's; sequences in the series' own units, loss and bound in the net's.
struct ForecastMember {
  double loss;                   ///< mean square; NaN of nets that were given
  std::vector<double> one_step;  ///< of the held-out values, each from the true ones before it
  std::vector<double> rollout;   ///< the same from those trained on and itself
  std::vector<double> ahead;     ///< behind the series' end, from the series and itself
  SequenceBound bound;
};

struct Forecast {
  Transformer net;  ///< all seeds; float32 where trained
  std::vector<ForecastMember> members;
  double training_seconds = 0;
};

/// The nets that were given, or trains on windows drawn anew for each step, by Adam in float32;
/// predicts in float64. Throws keel::Error where a loss or a prediction is not finite, or more was
/// found than was proved.
Forecast run_forecast(const Series& series, const ForecastOptions& options);

}  // namespace keel
