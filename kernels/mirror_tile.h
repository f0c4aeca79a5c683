// What an entry below the diagonal of a square matrix does to its mirror image: a block's work, a
// tile of both. Through shared memory, so that both are read and written along their rows.
#pragma once

#include "block_phases.h"

namespace keel {

enum class Mirror { copy, swap };

/// A tile of 32 x 32 entries on or below the diagonal of a [n, n], and the one across it.
template <class T, Mirror kMirror>
class MirrorTile {
  static constexpr int kSide = 32, kPitch = kSide + 1;  // odd: down a column, a bank each

 public:
  static constexpr int kThreads = 256;
  static constexpr int kShared = (kMirror == Mirror::swap ? 2 : 1) * kSide * kPitch;

  struct Thread {
    int id;
  };

  // Rows p and across - 1 - p of tiles together: every pair has across + 1 of them.
  static int64_t blocks(int64_t n) { return (across(n) + 1) / 2 * (across(n) + 1); }

  KEEL_HD MirrorTile(int64_t n, T* a, int64_t block, T* shared) : n_(n), a_(a), low_(shared) {
    const int64_t length = across(n) + 1, pair = block / length, at = block % length;
    const int64_t longer = across(n) - 1 - pair;
    const bool in_longer = at <= longer;
    row_ = (in_longer ? longer : pair) * kSide;
    col_ = (in_longer ? at : at - longer - 1) * kSide;
    done_ = !in_longer && pair == longer;  // the row in the middle has no other
  }

  template <class Each>
  KEEL_HD void run(Each each) const {
    each([&](Thread& t) { read(t); });
    each([&](Thread& t) { write(t); });
  }

 private:
  KEEL_HD static int64_t across(int64_t n) { return (n + kSide - 1) / kSide; }

  // f(entry, its place in a tile of shared memory, that of its mirror image) for the thread's
  // entries below the diagonal, or for those above it.
  template <class F>
  KEEL_HD void each_entry(const Thread& t, bool below, F f) const {
    if (done_) return;
    const int c = t.id % kSide;
    KEEL_UNROLL
    for (int pass = 0; pass < kSide * kSide / kThreads; ++pass) {
      const int r = t.id / kSide + pass * (kThreads / kSide);
      const int64_t i = (below ? row_ : col_) + r, j = (below ? col_ : row_) + c;
      if (below ? i < n_ && j < i : j < n_ && i < j)
        f(a_[i * n_ + j], r * kPitch + c, c * kPitch + r);
    }
  }

  KEEL_HD T* high() const { return low_ + kSide * kPitch; }

  KEEL_HD void read(const Thread& t) const {
    each_entry(t, true, [&](T& entry, int at, int) { low_[at] = entry; });
    if constexpr (kMirror == Mirror::swap)
      each_entry(t, false, [&](T& entry, int at, int) { high()[at] = entry; });
  }

  KEEL_HD void write(const Thread& t) const {
    each_entry(t, false, [&](T& entry, int, int mirrored) { entry = low_[mirrored]; });
    if constexpr (kMirror == Mirror::swap)
      each_entry(t, true, [&](T& entry, int, int mirrored) { entry = high()[mirrored]; });
  }

  int64_t n_;
  T* a_;
  T* low_;
  int64_t row_, col_;  // where the lower tile begins
  bool done_;
};

}  // namespace keel
