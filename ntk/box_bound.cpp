#include "box_bound.h"

#include <algorithm>
#include <cmath>

namespace keel {
namespace {

constexpr std::int64_t kFirst = 4096, kFewest = 64;  // boxes of an end, to look and at all
constexpr std::int64_t kMostFeatures = 24;  // beyond, where nobody asks for boxes: none would help
constexpr double kUsual = 2e5, kWork = 5e10;  // boxes of a net, and multiplications for all of them
constexpr double kPart = 8;                   // of the first look, at which its pace is taken

double side_of(std::size_t end) { return end % 2 == 0 ? 1 : -1; }

}  // namespace

BoxBound::BoxBound(const Net& net, const NetBoundOptions& options) {
  if (options.boxes == 0) return;
  region_ = box_region(net, options);
  if (!region_) return;
  if (!options.boxes && net.input_width() > kMostFeatures) return;
  const auto outputs = static_cast<std::size_t>(net.output_width());
  const double all = options.boxes ? static_cast<double>(*options.boxes)
                                   : std::min(kUsual, kWork / region_->net.work());
  most_ = static_cast<std::int64_t>(all / static_cast<double>(2 * outputs));
  if (most_ < kFewest) return;
  const std::int64_t first = std::min(most_, kFirst);
  for (std::size_t end = 0; end < 2 * outputs; ++end) {
    std::vector<double> weights(outputs);
    weights[end / 2] = side_of(end);
    ends_.push_back({BoxCuts(*region_, std::move(weights))});
  }
  // How near is near depends on both ends of an output.
  for (const double part : {kPart * kPart, kPart, 1.0})
    for (std::size_t end = 0; end < ends_.size(); ++end) {
      BoxCuts& cuts = ends_[end].cuts;
      ends_[end].gap_before = cuts.bound() - cuts.found();
      cuts.go_on(static_cast<std::int64_t>(static_cast<double>(first) / part), near(end / 2));
    }
}

double BoxBound::near(std::size_t output) const {
  const double high = ends_[2 * output].cuts.found(), low = -ends_[2 * output + 1].cuts.found();
  return std::max(kNearFound * (high - low), 1e-6 * std::max(std::abs(high), std::abs(low)));
}

bool BoxBound::closed() const {
  for (std::size_t end = 0; end < ends_.size(); ++end) {
    const BoxCuts& cuts = ends_[end].cuts;
    if (!(cuts.bound() <= cuts.found() + near(end / 2))) return false;
  }
  return looked();
}

// Gaps fall like a power of the number of boxes, ever faster: twice the power is not too much.
bool BoxBound::may_pass(const End& end, double proved) const {
  const double gap = end.cuts.bound() - end.cuts.found();
  if (!std::isfinite(gap) || !std::isfinite(end.gap_before)) return false;
  const double power = 2 * std::log(end.gap_before / gap) / std::log(kPart);
  const double more = static_cast<double>(most_) / static_cast<double>(end.cuts.boxes());
  return !(gap * std::pow(more, -power) > proved - end.cuts.found());
}

void BoxBound::close() {
  for (std::size_t end = 0; end < ends_.size(); ++end)
    if (!may_pass(ends_[end], ends_[end].cuts.found() + near(end / 2))) return;
  for (std::size_t end = 0; end < ends_.size(); ++end) ends_[end].cuts.go_on(most_, near(end / 2));
}

void BoxBound::go_on(const std::vector<Interval>& outputs) {
  for (std::size_t end = 0; end < ends_.size(); ++end) {
    const Interval& of = outputs[end / 2];
    const double proved = side_of(end) > 0 ? of.high : -of.low;
    if (may_pass(ends_[end], proved)) ends_[end].cuts.go_on(most_, near(end / 2));
  }
}

std::vector<Interval> BoxBound::outputs() const {
  std::vector<Interval> result;
  for (std::size_t end = 0; end < ends_.size(); end += 2)
    result.push_back({-ends_[end + 1].cuts.bound(), ends_[end].cuts.bound()});
  return result;
}

std::vector<std::vector<double>> BoxBound::found_at() const {
  std::vector<std::vector<double>> result;
  for (const End& end : ends_) result.push_back(region_->input(end.cuts.found_at()));
  return result;
}

std::int64_t BoxBound::boxes() const {
  std::int64_t boxes = 0;
  for (const End& end : ends_) boxes += end.cuts.boxes();
  return boxes;
}

}  // namespace keel
