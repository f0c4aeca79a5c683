#include "box_cuts.h"

#include <algorithm>
#include <cmath>

#include "../core/each_in_parallel.h"
#include "box_pass.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// Of the sides of a box that can be cut, the one that costs most, the longer of two alike; but the
// longest where that is far longer. What a bound gives away is not all told by side, and one that
// seems to cost all of what is told might be cut for ever. `lengths`: what sides are measured by.
std::size_t side_to_cut(const Box& box, const Vector& lost, const Vector& lengths) {
  constexpr double kFar = 16;
  std::size_t costly = box.low.size(), longest = costly;
  double most = -1, of_costly = 0, of_longest = -1;
  for (std::size_t k = 0; k < box.low.size(); ++k) {
    const double middle = box.middle(k);
    if (!(middle > box.low[k] && middle < box.high[k])) continue;
    const double length = (box.high[k] - box.low[k]) / lengths[k];
    if (length > of_longest) {
      longest = k;
      of_longest = length;
    }
    if (!(lost[k] > most || (lost[k] == most && length > of_costly))) continue;
    costly = k;
    most = lost[k];
    of_costly = length;
  }
  return of_longest > kFar * of_costly ? longest : costly;
}

}  // namespace

BoxCuts::BoxCuts(const BoxRegion& region, Vector weights)
    : region_(region), weights_(std::move(weights)), lengths_(region.roots[0].low.size()) {
  for (std::size_t k = 0; k < lengths_.size(); ++k)
    for (const Box& root : region.roots)
      lengths_[k] = std::max(lengths_[k], root.high[k] - root.low[k]);
  look_at(region.roots, Vector(region.roots.size(), kInfinity));
}

double BoxCuts::bound() const {
  return pieces_.empty() ? least_ : std::max(least_, pieces_.front().bound);
}

BoxCuts::Piece BoxCuts::piece(Box box, double whole) const {
  Piece piece{std::move(box)};
  Vector lost;
  const double bound =
      BoxPass(region_.net, piece.box, region_.within_boxes()).bound(weights_, lost);
  piece.bound = bound < whole ? bound : whole;  // what holds of the whole does of a part
  piece.cut = side_to_cut(piece.box, lost, lengths_);
  for (std::size_t k = 0; k < piece.box.low.size(); ++k) piece.point.push_back(piece.box.middle(k));
  piece.point = region_.nearby(std::move(piece.point));
  piece.value = value_at(piece.point);
  return piece;
}

double BoxCuts::value_at(const Vector& point) const {
  const Vector f = box_net_at(region_.net, point);
  double value = 0;
  for (std::size_t i = 0; i < f.size(); ++i) value += weights_[i] * f[i];
  return value;
}

// One number of the point at a time, by steps as long as the box's sides and then shorter ones.
void BoxCuts::climb(Piece& piece) const {
  constexpr int kHalvings = 12;
  constexpr std::size_t kLooks = 1000;
  std::size_t looks = 0;
  for (int halvings = 0; halvings < kHalvings && looks < kLooks;) {
    bool better = false;
    for (std::size_t k = 0; k < piece.point.size() && looks < kLooks; ++k, looks += 2)
      for (const double side : {1.0, -1.0}) {
        Vector point = piece.point;
        point[k] += side * std::ldexp(piece.box.high[k] - piece.box.low[k], -halvings);
        point = region_.nearby(std::move(point));
        const double value = value_at(point);
        if (!(value > piece.value)) continue;
        piece.value = value;
        piece.point = std::move(point);
        better = true;
      }
    halvings += !better;
  }
}

// From the best of these, where they are better than any before and, ever more seldom, where they
// are not: who climbs may get stuck.
void BoxCuts::find(std::vector<Piece>& pieces) {
  constexpr std::ptrdiff_t kStarts = 4;
  if (pieces.empty()) return;
  const auto better = [](const Piece& a, const Piece& b) { return a.value > b.value; };
  const bool anyway = boxes_ >= climb_at_;
  const auto starts = std::min(anyway ? kStarts : 1, std::ssize(pieces));
  std::partial_sort(pieces.begin(), pieces.begin() + starts, pieces.end(), better);
  if (!(anyway || pieces[0].value > found_)) return;
  if (anyway) climb_at_ = 2 * boxes_;
  each_in_parallel(static_cast<std::size_t>(starts), [&](std::size_t i) { climb(pieces[i]); });
  const Piece& best = *std::min_element(pieces.begin(), pieces.begin() + starts, better);
  if (!(best.value > found_)) return;
  found_ = best.value;
  found_at_ = best.point;
}

void BoxCuts::look_at(std::vector<Box> boxes, const Vector& whole) {
  std::vector<Piece> made(boxes.size());
  each_in_parallel(boxes.size(),
                   [&](std::size_t i) { made[i] = piece(std::move(boxes[i]), whole[i]); });
  boxes_ += std::ssize(boxes);
  find(made);
  for (Piece& each : made) {
    each.point = {};
    if (each.cut == each.box.low.size()) {
      least_ = std::max(least_, each.bound);  // a point, which no cut makes smaller
      continue;
    }
    pieces_.push_back(std::move(each));
    std::push_heap(pieces_.begin(), pieces_.end(), tighter);
  }
}

void BoxCuts::go_on(std::int64_t boxes, double near) {
  constexpr std::size_t kAtOnce = 16;  // whatever the number of threads
  while (boxes_ < boxes && !pieces_.empty() && pieces_.front().bound > least_ &&
         bound() > found_ + near) {
    std::vector<Box> parts;
    Vector whole;
    for (std::size_t i = 0; i < kAtOnce && !pieces_.empty(); ++i) {
      std::pop_heap(pieces_.begin(), pieces_.end(), tighter);
      const Piece piece = std::move(pieces_.back());
      pieces_.pop_back();
      const double middle = piece.box.middle(piece.cut);
      Box below = piece.box, above = piece.box;
      below.high[piece.cut] = above.low[piece.cut] = middle;
      for (Box* part : {&below, &above}) {
        if (!region_.narrow(*part)) continue;
        parts.push_back(std::move(*part));
        whole.push_back(piece.bound);
      }
    }
    look_at(std::move(parts), whole);
  }
}

}  // namespace keel
