#include "net_bound.h"

#include <algorithm>
#include <cmath>

#include "tail_bound.h"

namespace keel {

double NetBound::largest() const {
  double largest = 0;
  for (const Interval& output : outputs)
    largest = std::max({largest, std::abs(output.low), std::abs(output.high)});
  return largest;
}

NetBound bound_net(const Net& net, const NetBoundOptions& options) {
  net.check_rows_apart("net_bound");
  NetBound result;
  if (!has_bound(net.spec())) return result;
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
    for (double value : net.values(p))
      check(std::isfinite(value), "net_bound", "got {} in '{}', wanted finite numbers", value,
            net.layout().entries()[p].name);
  for (std::size_t i = 0; i < net.spec().size(); ++i)
    check(std::isfinite(net.spec()[i].eps), "net_bound", "got eps {} at word {}, wanted a number",
          net.spec()[i].eps, word_of(net.spec(), i));
  const Tail tail = tail_of(net, options.narrow);
  result.bounded = true;
  result.word = tail.word;
  const NormSet& set = tail.set;
  result.kind = tail.kind;
  result.width = set.width;
  result.rank = set.box ? set.width : set.whole ? set.width - set.centred : set.rank;
  result.activations = static_cast<std::int64_t>(tail.activations.size()) - set.box;
  result.cone = !tail.set.cone.empty();
  result.image = tail.set.image != nullptr;
  result.outputs = bound_tail(tail, options);
  return result;
}

}  // namespace keel
