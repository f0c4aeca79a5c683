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
    double& into = losses[static_cast<int64_t>(epoch[member]) * members + member];
    const double part = share * loss;
    into = row[member] == 0 ? part : into + part;
    row[member] += static_cast<double>(rows);
    if (row[member] >= static_cast<double>(epoch_rows)) {
      row[member] = 0;
      epoch[member] += 1;
    }
  }
};

}  // namespace keel
