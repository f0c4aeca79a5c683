#include "box_bound.h"

#include <algorithm>
#include <cmath>

namespace keel {
namespace {

constexpr std::int64_t kFirst = 4096, kFewest = 64;  // boxes of an end, to look and at all
constexpr std::int64_t kMostFeatures = 24;  // beyond, where nobody asks for boxes: none would help
constexpr double kUsual = 2e5;              // boxes of a net, and multiplications for all of them
constexpr double kWork = 5e10, kWorkOfFew = 1e11;
constexpr double kPart = 8;  // of each look, at which its pace is taken
// Of gaps: what is next to no fall, and what is worth boxes until there are no more.
constexpr double kFlat = 0.98, kWorth = 0.9;
// Of so few features nearly all nets close. Of more, bounds that have not begun to fall by a part
// of the first look are far from where they do: that takes about as many times the boxes with each.
constexpr std::int64_t kFewFeatures = 3;

double side_of(std::size_t end) { return end % 2 == 0 ? 1 : -1; }

}  // namespace

BoxBound::BoxBound(const Net& net, const NetBoundOptions& options) {
  if (options.boxes == 0) return;
  region_ = box_region(net, options);
  if (!region_) return;
  if (!options.boxes && net.input_width() > kMostFeatures) return;
  const bool few = net.input_width() <= kFewFeatures;
  always_ = few || options.all_boxes;
  const auto outputs = static_cast<std::size_t>(net.output_width());
  const double all = options.boxes
                         ? static_cast<double>(*options.boxes)
                         : std::min(kUsual, (few ? kWorkOfFew : kWork) / region_->net.work());
  most_ = static_cast<std::int64_t>(all / static_cast<double>(2 * outputs));
  if (most_ < kFewest) return;
  const std::int64_t first = std::min(most_, kFirst);
  for (std::size_t end = 0; end < 2 * outputs; ++end) {
    std::vector<double> weights(outputs);
    weights[end / 2] = side_of(end);
    ends_.push_back({BoxCuts(*region_, std::move(weights))});
  }
  // How near is near depends on both ends of an output.
  for (const double part : {kPart * kPart, kPart, kPart / 2, 1.0}) {
    if (part == 1 && !always_ &&
        std::all_of(ends_.begin(), ends_.end(), [this](const End& end) { return flat(end); }))
      break;
    for (std::size_t end = 0; end < ends_.size(); ++end)
      ends_[end].go_on(static_cast<std::int64_t>(static_cast<double>(first) / part), near(end / 2));
  }
}

void BoxBound::End::go_on(std::int64_t boxes, double near) {
  bound_before = cuts.bound();
  boxes_before = cuts.boxes();
  cuts.go_on(boxes, near);
}

bool BoxBound::flat(const End& end) const {
  const double found = end.cuts.found();
  return end.cuts.bound() - found > kFlat * (end.bound_before - found);
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
  if (always_) return true;
  const double found = end.cuts.found(), gap = end.cuts.bound() - found;
  if (!std::isfinite(gap) || !std::isfinite(end.bound_before)) return false;
  const auto boxes = static_cast<double>(end.cuts.boxes());
  const double power = 2 * std::log((end.bound_before - found) / gap) /
                       std::log(boxes / static_cast<double>(end.boxes_before));
  return !(gap * std::pow(static_cast<double>(most_) / boxes, -power) > proved - found);
}

// Anew at each look.
void BoxBound::go_on(std::size_t end, double proved) {
  End& one = ends_[end];
  const double at_least = near(end / 2);
  for (std::int64_t before = -1; before < one.cuts.boxes() && one.cuts.boxes() < most_;) {
    if (one.cuts.bound() <= one.cuts.found() + at_least || !may_pass(one, proved)) return;
    before = one.cuts.boxes();
    const double next = kPart * static_cast<double>(before);
    one.go_on(next < static_cast<double>(most_) ? static_cast<std::int64_t>(next) : most_,
              at_least);
  }
}

void BoxBound::close() {
  for (std::size_t end = 0; end < ends_.size(); ++end)
    if (!may_pass(ends_[end], ends_[end].cuts.found() + near(end / 2))) return;
  for (std::size_t end = 0; end < ends_.size(); ++end)
    go_on(end, ends_[end].cuts.found() + near(end / 2));
}

void BoxBound::go_on(const std::vector<Interval>& outputs) {
  for (std::size_t end = 0; end < ends_.size(); ++end) {
    const Interval& of = outputs[end / 2];
    const double proved = side_of(end) > 0 ? of.high : -of.low, found = ends_[end].cuts.found();
    go_on(end, found + kWorth * (proved - found));
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
