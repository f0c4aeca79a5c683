// Where the losses of a training are kept, by epoch and member, counted on the device: what was
// recorded as a CUDA graph is replayed without the host knowing the epoch.
#pragma once

#include "group.h"

namespace keel {

/// losses [epochs, members] gather share * loss, the mean over an epoch's steps; the member then
/// moves on by `rows` of the epoch's rows. epoch [members] and row [members] say where it stands.
struct LossRecord {
  int64_t members = 0, rows = 0, epoch_rows = 0;
  double share = 0;
  double *epoch = nullptr, *row = nullptr, *losses = nullptr;

  KEEL_HD void add(int64_t member, double loss) const {
    // Each read once, ahead of the stores: behind one a GPU would read again what it may be.
    const double at_epoch = epoch[member], at_row = row[member];
    double& into = losses[static_cast<int64_t>(at_epoch) * members + member];
    const double part = share * loss, next = at_row + static_cast<double>(rows);
    const bool ends = next >= static_cast<double>(epoch_rows);
    into = at_row == 0 ? part : into + part;
    row[member] = ends ? 0 : next;
    if (ends) epoch[member] = at_epoch + 1;
  }
};

}  // namespace keel
