// A proved bound of one given net: whatever its input, each output stays within an interval. It
// takes a Layer Norm, an RMSNorm, a tanh or a sigmoid that no residual passes by; all that stands
// behind the last such norm, or else the first such tanh or sigmoid, is bounded over everything
// that it can give (docs/certificate.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "../core/work_progress.h"
#include "../nn/net.h"
#include "interval.h"

namespace keel {

/// Told, as boxes are cut, of each output's interval by what has been proved until then, and of how
/// many boxes there are.
using BoundProgress = std::function<void(const std::vector<Interval>& outputs, std::int64_t boxes)>;

struct NetBoundOptions {
  /// Of inputs with |x| <= within alone: of these any net has a bound.
  double within = kInfinity;
  /// Of inputs with every feature in an interval of its own alone, [features]; or empty.
  std::vector<Interval> ranges{};
  bool narrow = true;             ///< use what the layers before the norm allow
  std::int64_t steps = 1000;      ///< of the descent that tightens an output's bound,
  std::int64_t unit_steps = 150;  ///< and of a hidden unit's
  /// More of both, where the norm's image is bounded as well.
  std::int64_t image_steps = 2000, unit_image_steps = 500;
  /// Of two or more layers of units behind the norm, or one behind the tanh or sigmoid: the pieces
  /// of it that are looked at to tighten the outputs' ends, all in all, and the steps on each. 0:
  /// none.
  std::int64_t pieces = 32, piece_steps = 200;
  /// Boxes that the inputs' region is cut in, all in all and at the most: with few features they
  /// come near to what is reached, whatever the SPEC, and then nothing else is looked at. After a
  /// first look there are no more where they would not help. 0: none; nothing: as many as take
  /// some seconds, but of more than 24 features none.
  std::optional<std::int64_t> boxes = 0;
  bool all_boxes = false;  ///< whatever a look says; of up to three features that is so anyway
  BoundProgress progress{};
  StopFlag stop = nullptr;  ///< once it is raised, what has been proved by then is all
};

/// How near to what an output reaches is next to it: of the distance between its least and largest
/// values that were found.
inline constexpr double kNearFound = 1e-3;

/// The same of its size, where that is more: what is proved is widened by about as much.
inline constexpr double kNearSize = 4e-9;

struct NetBound {
  bool bounded = false;                   ///< false: no such layer, and nothing below is set
  std::vector<Interval> outputs{};        ///< of each output, over every input
  std::int64_t word = 0;                  ///< of that layer in the SPEC, counted from 1; 0: f is
                                          ///< bounded from x itself on, as |x| <= within
  LayerKind kind = LayerKind::layernorm;  ///< its kind, if it has a word
  std::int64_t width = 0, rank = 0;  ///< its units, and the dimension its output is confined to
  bool cone = false, image = false;  ///< whether it is confined to these, too
  /// More than one where norms stand within residuals behind that layer: it, and what each such
  /// residual adds, is bounded over a set of its own.
  std::int64_t sets = 1;
  std::int64_t activations = 0;  ///< behind a set, at most: with none f is linear
  std::int64_t boxes = 0;        ///< that were looked at
  bool closed = false;           ///< by them: each end is next to what f reaches, as above
  /// x where f nearly reaches each output's high end and its low one, as far as boxes tell.
  std::vector<std::vector<double>> found_at{};
  double largest() const;  ///< of |f| over outputs and ends
};

/// The interval of each output of a net of one member, for every input, or for those of
/// options.within or options.ranges, as real arithmetic has it; no intervals where that is
/// infinite, and the net has no Layer Norm, RMSNorm, tanh or sigmoid that no residual passes by:
/// computed in double and widened by 1e-9 of all that was summed; float32 rounds on its own. Throws
/// keel::Error for an ensemble.
NetBound bound_net(const Net& net, const NetBoundOptions& options = {});

}  // namespace keel
