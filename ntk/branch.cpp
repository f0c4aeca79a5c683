#include "branch.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "../core/each_in_parallel.h"
#include "../kernels/one_blas_thread.h"
#include "first_units.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// The points at which a unit of the last layer is on one side of a value of its y.
struct Side {
  std::size_t unit = 0;
  double at = 0;
  bool above = false;
};

struct Piece {
  std::vector<Side> sides{};
  Descent found{};
  bool whole = false;  // no unit is left to cut
  double bound() const { return found.least.bound + kMargin * found.least.size; }
};

bool tighter(const Piece& a, const Piece& b) { return a.bound() < b.bound(); }

// A kink, behind which it is a line; else the middle. Nothing where there is none to cut, as in a
// line.
std::optional<double> cut_of(const Units& units, std::size_t j) {
  const double low = units.low[j], high = units.high[j], scale = units.scale[j];
  const double at = units.phi(j).kinked() ? -units.origin[j] / scale : low + (high - low) / 2;
  if (units.passes(j) || !(scale > 0 && at > low && at < high)) return std::nullopt;
  return at;
}

class Branches {
 public:
  explicit Branches(const BranchProblem& problem) : problem_(problem) {}

  // The unit to cut. What a cut gives is not known before a descent; two guesses at it disagree,
  // and their geometric mean does better than either: what the unit's maximum is above its value at
  // a point of the set, and how far a chord over its interval is from a kink in it. Where the first
  // tells of none, the second alone.
  std::optional<Side> next(const Piece& piece) const {
    constexpr double kTolerance = 3e-3;
    const OneBlasThread one;
    const std::vector<Units> layers = within(piece.sides);
    Vector gaps, gradient;
    TailDual(problem_.dual, layers)(problem_.v, problem_.constant, piece.found.x, kTolerance,
                                    gradient, {.gaps = &gaps});
    const Units& last = layers.back();
    std::optional<Side> best;
    double most = -1, widest = -1;
    for (std::size_t j = 0; j < last.size(); ++j) {
      const std::optional<double> at = cut_of(last, j);
      if (!at) continue;
      const double chord = std::abs(problem_.v[j]) * last.scale[j] * (*at - last.low[j]) *
                           (last.high[j] - *at) / (last.high[j] - last.low[j]);
      const double score = std::max(0.0, gaps[j]) * chord;
      if (!(score > most || (score == most && chord > widest))) continue;
      most = score;
      widest = chord;
      best = Side{j, *at};
    }
    return best;
  }

  Piece part(const Piece& of, Side side, bool above) const {
    const OneBlasThread one;
    side.above = above;
    Piece piece{of.sides};
    piece.sides.push_back(side);
    const std::vector<Units> layers = within(piece.sides);
    piece.found = descend_from(TailDual(problem_.dual, layers), problem_.image, layers, problem_.v,
                               problem_.constant, problem_.rank, problem_.steps, of.found.x);
    if (!tighter(piece, of)) piece.found = of.found;  // it holds for a part as well
    return piece;
  }

 private:
  std::vector<Units> within(const std::vector<Side>& sides) const {
    std::vector<Units> layers = problem_.layers;
    for (const Side& side : sides)
      (side.above ? layers.back().low : layers.back().high)[side.unit] = side.at;
    return layers;
  }

  const BranchProblem& problem_;
};

}  // namespace

TailDual::Value branch(const BranchProblem& problem, const Descent& whole) {
  constexpr std::size_t kAtOnce = 4;  // whatever the number of threads
  if (!std::isfinite(whole.least.bound)) return whole.least;
  const Branches branches(problem);
  std::vector<Piece> pieces = {{{}, whole}};  // a heap, the loosest on top
  const auto push = [&pieces](Piece piece) {
    pieces.push_back(std::move(piece));
    std::push_heap(pieces.begin(), pieces.end(), tighter);
  };
  for (std::int64_t seen = 0;
       seen + 2 <= problem.pieces && !pieces[0].whole && !raised(problem.steps.stop);) {
    const std::size_t count =
        std::min({kAtOnce, pieces.size(), static_cast<std::size_t>((problem.pieces - seen) / 2)});
    std::vector<Piece> taken(count), parts(2 * count);
    for (Piece& piece : taken) {
      std::pop_heap(pieces.begin(), pieces.end(), tighter);
      piece = std::move(pieces.back());
      pieces.pop_back();
    }
    std::vector<std::optional<Side>> sides(count);
    each_in_parallel(count, [&](std::size_t i) {
      if (!taken[i].whole) sides[i] = branches.next(taken[i]);
    });
    each_in_parallel(2 * count, [&](std::size_t i) {
      if (sides[i / 2]) parts[i] = branches.part(taken[i / 2], *sides[i / 2], i % 2 == 1);
    });
    for (std::size_t i = 0; i < count; ++i) {
      taken[i].whole = !sides[i];
      if (taken[i].whole) {
        push(std::move(taken[i]));
        continue;
      }
      seen += 2;
      push(std::move(parts[2 * i]));
      push(std::move(parts[2 * i + 1]));
    }
  }
  return pieces[0].found.least;
}

}  // namespace keel
