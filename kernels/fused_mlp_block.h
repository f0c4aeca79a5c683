// The GPU's body of fused_mlp: what the threads of a block do between two barriers, and in which
// order. run(each) hands `each` one phase after another, code of (the thread's registers, shared
// memory); a GPU's block runs it and meets at a barrier, a test runs it thread after thread.
#pragma once

#include "fused_mlp_backward.h"
#include "fused_mlp_forward.h"

namespace keel {

/// kKeep: there is one wide matrix of weights at most, whose gradient stays in registers from tile
/// to tile; else each tile adds to the slice. kPlain: the net is plain(), and costs no more for
/// what others may have.
template <int kTileRows, bool kKeep, bool kPlain>
class FusedBlock {
 public:
  using Tile = FusedTile<kTileRows>;
  using Thread = typename Tile::Thread;
  static constexpr int kThreads = Tile::kThreads;

  KEEL_HD FusedBlock(const FusedTask& task, int64_t slot, float* shared)
      : forward_(Tile(task, slot, shared)), backward_(forward_) {}

  template <class Each>
  KEEL_HD void run(Each each) const {
    const Tile& slot = forward_;
    int stage = 0;  // where the next chunk of weights lies, or will
    each([&](Thread& t) {
      forward_.begin(t);
      slot.count_step(t);  // while what begin() asked for is on its way
    });
    for (int64_t tile = slot.first(); tile < slot.end(); ++tile) {
      each([&](Thread& t) { forward_.load_rows(t, tile); });
      for (int l = 0; l < slot.hidden(); ++l) forward_.run(each, l, stage);
      each([&](Thread& t) { forward_.predict(t); });
      each([&](Thread& t) { forward_.compare(t, tile); });
      each([&](Thread& t) { backward_.output_gradient(t, tile); });
      for (int l = slot.hidden() - 1; l >= 0; --l) backward_.run(each, l, stage, tile);
    }
    each([&](Thread& t) { backward_.store_wide(t); });
    each([&](Thread& t) { backward_.store_narrow(t); });
  }

 private:
  FusedForward<kTileRows, kPlain> forward_;
  FusedBackward<kTileRows, kKeep, kPlain> backward_;
};

}  // namespace keel
