#include "net_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "box_bound.h"
#include "sum_bound.h"

namespace keel {

double NetBound::largest() const {
  double largest = 0;
  for (const Interval& output : outputs)
    largest = std::max({largest, std::abs(output.low), std::abs(output.high)});
  return largest;
}

namespace {

// All but the intervals.
NetBound described(const TailSum& sum) {
  const Tail& first = first_tail(sum);
  const NormSet& set = first.set;
  NetBound result;
  result.bounded = true;
  result.word = first.word;
  result.kind = first.kind;
  result.width = set.width;
  result.rank = set.box ? set.width : set.whole ? set.width - set.centred : set.rank;
  result.cone = !set.cone.empty();
  result.image = set.image != nullptr;
  result.sets = sets_of(sum);
  result.activations = activations_of(sum);
  return result;
}

NetBound bound_of(const TailSum& sum, const NetBoundOptions& options) {
  NetBound result = described(sum);
  result.outputs = bound_sum(sum, options);
  return result;
}

std::vector<Interval> common(std::vector<Interval> a, const std::vector<Interval>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = {std::max(a[i].low, b[i].low), std::min(a[i].high, b[i].high)};
  return a;
}

// Two proofs of one net: each output is where both say.
NetBound of_both_proofs(NetBound a, NetBound b) {
  if (b.largest() < a.largest()) std::swap(a, b);
  a.outputs = common(std::move(a.outputs), b.outputs);
  return a;
}

void check_region(const Net& net, const NetBoundOptions& options) {
  check(options.within > 0, "net_bound", "got |x| within {}, wanted a number above 0",
        options.within);
  check(options.boxes.value_or(0) >= 0, "net_bound", "got {} boxes, wanted at least 0",
        options.boxes.value_or(0));
  if (options.ranges.empty()) return;
  check(std::isinf(options.within), "net_bound", "got ranges and |x| within {}, wanted one of both",
        options.within);
  check<ShapeError>(std::ssize(options.ranges) == net.input_width(), "net_bound",
                    "got {} ranges for {} features, wanted as many", options.ranges.size(),
                    net.input_width());
  for (std::size_t i = 0; i < options.ranges.size(); ++i) {
    const Interval& of = options.ranges[i];
    check(of.low <= of.high && std::isfinite(of.low) && std::isfinite(of.high), "net_bound",
          "got the range [{}, {}] of feature {}, wanted two numbers, the smaller first", of.low,
          of.high, i);
  }
}

void check_finite(const Net& net) {
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
    for (double value : net.values(p))
      check(std::isfinite(value), "net_bound", "got {} in '{}', wanted finite numbers", value,
            net.layout().entries()[p].name);
  for (std::size_t i = 0; i < net.spec().size(); ++i)
    check(std::isfinite(net.spec()[i].eps), "net_bound", "got eps {} at word {}, wanted a number",
          net.spec()[i].eps, word_of(net.spec(), i));
}

}  // namespace

NetBound bound_net(const Net& net, const NetBoundOptions& options) {
  net.check_rows_apart("net_bound");
  check_region(net, options);
  const bool anywhere = bounding_layer(net.spec()) < net.spec().size();
  const bool all = std::isinf(options.within) && options.ranges.empty();
  if (!anywhere && all) return {};
  check_finite(net);
  std::optional<TailSum> within, of_all;
  if (!all) within = tail_sum_within(net, options.within, options.ranges, options.narrow);
  if (anywhere) of_all = tail_sum_of(net, options.narrow);
  NetBound bound;
  NetBoundOptions of_boxes = options;
  if (options.progress)
    of_boxes.progress = [&](const std::vector<Interval>& outputs, std::int64_t count) {
      options.progress(bound.outputs.empty() ? outputs : common(outputs, bound.outputs), count);
    };
  BoxBound boxes(net, of_boxes);
  boxes.close();
  if (boxes.closed()) {
    bound = described(within ? *within : *of_all);
    bound.outputs = boxes.outputs();
  } else {
    if (within) bound = bound_of(*within, options);
    if (of_all) {
      NetBound own = bound_of(*of_all, options);
      bound = within ? of_both_proofs(std::move(own), std::move(bound)) : std::move(own);
    }
    boxes.go_on(bound.outputs);
  }
  if (!boxes.looked()) return bound;
  bound.outputs = common(std::move(bound.outputs), boxes.outputs());
  bound.boxes = boxes.boxes();
  bound.closed = boxes.closed();
  bound.found_at = boxes.found_at();
  return bound;
}

}  // namespace keel
