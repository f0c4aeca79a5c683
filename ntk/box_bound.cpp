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
  progress_ = options.progress;
  stop_ = options.stop;
  if (!options.boxes && net.input_width() > kMostFeatures) return;
  region_ = box_region(net, options);
  if (!region_) return;
  const bool few = net.input_width() <= kFewFeatures;
  always_ = few || options.all_boxes;
  long_ = options.all_boxes && !few;
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
      look(end, static_cast<std::int64_t>(static_cast<double>(first) / part));
    cut();
  }
}

void BoxBound::look(std::size_t end, std::int64_t boxes) {
  End& one = ends_[end];
  one.bound_before = one.cuts.bound();
  one.boxes_before = one.cuts.boxes();
  one.wanted = boxes;
}

// All ends to the boxes of their looks, some of each in turn, so that whoever waits sees an
// interval close in from both sides.
void BoxBound::cut() {
  constexpr std::int64_t kTurn = 512;
  for (bool cuts = true; cuts;) {
    cuts = false;
    for (std::size_t end = 0; end < ends_.size(); ++end) {
      BoxCuts& of = ends_[end].cuts;
      const std::int64_t before = of.boxes(), wanted = ends_[end].wanted;
      if (before >= wanted || raised(stop_)) continue;
      of.go_on(std::min(before + kTurn, wanted), near(end / 2));
      cuts = cuts || of.boxes() > before;
      if (progress_) progress_(outputs(), boxes());
    }
  }
}

bool BoxBound::flat(const End& end) const {
  const double found = end.cuts.found();
  return end.cuts.bound() - found > kFlat * (end.bound_before - found);
}

double BoxBound::near(std::size_t output) const {
  const double high = ends_[2 * output].cuts.found(), low = -ends_[2 * output + 1].cuts.found();
  return std::max(kNearFound * (high - low), kNearSize * std::max(std::abs(high), std::abs(low)));
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

// Of each end below `proved`, anew at each look.
void BoxBound::go_on_within(const std::vector<double>& proved) {
  const auto next = [](std::int64_t boxes, std::int64_t most) {
    const double more = kPart * static_cast<double>(boxes);
    return more < static_cast<double>(most) ? static_cast<std::int64_t>(more) : most;
  };
  std::vector<std::int64_t> before(ends_.size(), -1);  // boxes at the last look
  for (bool looks = true; looks;) {
    looks = false;
    std::vector<std::size_t> open;
    std::int64_t spare = 0;  // what others leave
    for (std::size_t end = 0; end < ends_.size(); ++end) {
      const BoxCuts& of = ends_[end].cuts;
      if (of.boxes() > before[end] && of.bound() > of.found() + near(end / 2) &&
          may_pass(ends_[end], proved[end]))
        open.push_back(end);
      else
        spare += std::max<std::int64_t>(most_ - of.boxes(), 0);
    }
    for (const std::size_t end : open) {
      const std::int64_t boxes = ends_[end].cuts.boxes(), most = most_ + spare / std::ssize(open);
      if (boxes >= most) continue;
      before[end] = boxes;
      look(end, next(boxes, most));
      looks = true;
    }
    cut();
  }
}

void BoxBound::close() {
  if (long_) return;
  std::vector<double> proved;
  for (std::size_t end = 0; end < ends_.size(); ++end) {
    proved.push_back(ends_[end].cuts.found() + near(end / 2));
    if (!may_pass(ends_[end], proved[end])) return;
  }
  go_on_within(proved);
}

void BoxBound::go_on(const std::vector<Interval>& outputs) {
  std::vector<double> wanted;
  for (std::size_t end = 0; end < ends_.size(); ++end) {
    const Interval& of = outputs[end / 2];
    const double proved = side_of(end) > 0 ? of.high : -of.low, found = ends_[end].cuts.found();
    wanted.push_back(found + kWorth * (proved - found));
  }
  go_on_within(wanted);
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
