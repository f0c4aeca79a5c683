#include "net_bound.h"

#include <algorithm>
#include <cmath>

#include "sum_bound.h"

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
  if (bounding_layer(net.spec()) == net.spec().size()) return result;
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
    for (double value : net.values(p))
      check(std::isfinite(value), "net_bound", "got {} in '{}', wanted finite numbers", value,
            net.layout().entries()[p].name);
  for (std::size_t i = 0; i < net.spec().size(); ++i)
    check(std::isfinite(net.spec()[i].eps), "net_bound", "got eps {} at word {}, wanted a number",
          net.spec()[i].eps, word_of(net.spec(), i));
  const TailSum sum = tail_sum_of(net, options.narrow);
  const Tail& first = first_tail(sum);
  const NormSet& set = first.set;
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

}  // namespace keel
