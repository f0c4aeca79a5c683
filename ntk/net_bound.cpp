#include "net_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sum_bound.h"

namespace keel {

double NetBound::largest() const {
  double largest = 0;
  for (const Interval& output : outputs)
    largest = std::max({largest, std::abs(output.low), std::abs(output.high)});
  return largest;
}

namespace {

NetBound bound_of(const TailSum& sum, const NetBoundOptions& options) {
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
  result.outputs = bound_sum(sum, options);
  return result;
}

// Two proofs of one net: each output is where both say.
NetBound of_both_proofs(NetBound a, NetBound b) {
  if (b.largest() < a.largest()) std::swap(a, b);
  for (std::size_t i = 0; i < a.outputs.size(); ++i)
    a.outputs[i] = {std::max(a.outputs[i].low, b.outputs[i].low),
                    std::min(a.outputs[i].high, b.outputs[i].high)};
  return a;
}

}  // namespace

NetBound bound_net(const Net& net, const NetBoundOptions& options) {
  net.check_rows_apart("net_bound");
  check(options.within > 0, "net_bound", "got |x| within {}, wanted a number above 0",
        options.within);
  const bool anywhere = bounding_layer(net.spec()) < net.spec().size();
  if (!anywhere && std::isinf(options.within)) return {};
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
    for (double value : net.values(p))
      check(std::isfinite(value), "net_bound", "got {} in '{}', wanted finite numbers", value,
            net.layout().entries()[p].name);
  for (std::size_t i = 0; i < net.spec().size(); ++i)
    check(std::isfinite(net.spec()[i].eps), "net_bound", "got eps {} at word {}, wanted a number",
          net.spec()[i].eps, word_of(net.spec(), i));
  std::optional<TailSum> within;
  if (std::isfinite(options.within)) within = tail_sum_within(net, options.within, options.narrow);
  if (!anywhere) return bound_of(*within, options);
  NetBound bound = bound_of(tail_sum_of(net, options.narrow), options);
  return within ? of_both_proofs(std::move(bound), bound_of(*within, options)) : bound;
}

}  // namespace keel
