#include "repeated_rows.h"

#include <algorithm>
#include <numeric>

namespace keel {

std::vector<std::pair<std::int64_t, std::int64_t>> repeated_rows(std::span<const double> x,
                                                                 std::int64_t cols) {
  if (cols == 0) return {};
  const auto row = [&](std::int64_t i) { return x.subspan(i * cols, cols); };
  std::vector<std::int64_t> order(x.size() / cols);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return std::ranges::lexicographical_compare(row(a), row(b));
  });
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  std::size_t first = 0;  // of the run of equal rows
  for (std::size_t i = 1; i < order.size(); ++i)
    if (std::ranges::equal(row(order[first]), row(order[i])))
      pairs.emplace_back(order[i], order[first]);
    else
      first = i;
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace keel
