// Where the tiles, slices and shared memory of fused_mlp lie.
#include <algorithm>

#include "fused_mlp.h"
#include "fused_mlp_products.h"

namespace keel {
namespace {

int quads(int columns) { return 4 * ((columns + 3) / 4); }

// An odd number of sixteen bytes: rows one after another start in different banks.
int row_stride(int columns) { return 4 * ((columns + 3) / 4 | 1); }

FusedShared lay_out(const FusedMlp& net, int tile_rows) {
  FusedShared at;
  const int outputs = net.layers[net.hidden].outputs;
  const auto take = [&](int floats) {
    const int begin = at.total;
    at.total += quads(floats);
    return begin;
  };
  at.stage = take(FusedProducts::kStages * FusedProducts::kSlot);
  at.hidden = take(net.hidden * tile_rows * FusedProducts::kStride);
  at.x_stride = row_stride(net.layers[0].inputs);
  at.x = take(tile_rows * at.x_stride);
  at.stats = take(2 * tile_rows * 8);
  at.deviation = take(net.hidden * tile_rows);
  at.error = take(tile_rows * outputs);
  at.vectors = take(net.hidden * 3 * FusedProducts::kStride);
  at.out = take(outputs * FusedProducts::kStride + outputs);
  return at;
}

bool has_room(const FusedMlp& net, int tile_rows) {
  // Eight sums of every row and output wait in the stages.
  return lay_out(net, tile_rows).total <= FusedShared::kMost &&
         net.layers[net.hidden].outputs * tile_rows * 8 <=
             FusedProducts::kStages * FusedProducts::kSlot;
}

// Tiles of 32 rows where they all run at once, a block a multiprocessor: a step then waits for
// less. What else shares the GPU has its part of them, or it waits for these.
int choose_tile_rows(const FusedMlp& net, std::int64_t members, std::int64_t rows, int sharers) {
  const bool few = sharers * members * ((rows + 31) / 32) <= FusedTask::kMostSlots;
  return few || !net.fits(64) ? 32 : 64;
}

}  // namespace

bool FusedMlp::plain() const {
  return std::all_of(layers.begin(), layers.begin() + hidden + 1,
                     [](const FusedLayer& layer) { return layer.centred && !layer.curved(); });
}

bool FusedMlp::fits(int tile_rows) const {
  if (hidden < 1 || hidden > kMostHidden) return false;
  for (int l = 0; l <= hidden; ++l) {
    const int most = l < hidden ? kMostWidth : kMostOutputs;
    if (layers[l].inputs < 1 || layers[l].inputs > kMostWidth || layers[l].outputs < 1 ||
        layers[l].outputs > most)
      return false;
  }
  return has_room(*this, tile_rows);
}

FusedTask FusedTask::plan(const FusedMlp& net, std::int64_t members, std::int64_t rows,
                          int tile_rows, int sharers) {
  FusedTask task;
  task.net = net;
  task.members = members;
  task.rows = rows;
  task.tile_rows = tile_rows > 0 ? tile_rows : choose_tile_rows(net, members, rows, sharers);
  const bool narrow = net.layers[0].inputs <= FusedProducts::kNarrow;
  task.keep = net.hidden - (narrow ? 1 : 0) <= 1;
  task.at = lay_out(net, task.tile_rows);
  task.tiles = (rows + task.tile_rows - 1) / task.tile_rows;
  const std::int64_t share = std::clamp<std::int64_t>(kMostSlots / members, 1, task.tiles);
  task.slot_tiles = (task.tiles + share - 1) / share;
  task.member_slots = (task.tiles + task.slot_tiles - 1) / task.slot_tiles;
  for (FusedParameter& parameter : task.net.parameters) {
    parameter.part = task.slice;
    parameter.stride = quads(parameter.cols);
    task.slice += parameter.rows * parameter.stride;
    task.elements += parameter.rows * parameter.cols;
    parameter.end = task.elements;
  }
  ++task.elements;
  const int outputs = net.layers[net.hidden].outputs;
  task.loss_part = task.slice;
  task.slice += quads(outputs);
  task.loss_scale = 1 / (static_cast<float>(rows) * static_cast<float>(outputs));
  task.error_scale = 2 * task.loss_scale;
  return task;
}

std::int64_t FusedTask::workspace(const FusedMlp& net, std::int64_t members, std::int64_t rows) {
  const std::int64_t most = std::max<std::int64_t>(kMostSlots, members);
  const std::int64_t slots = std::min(most, members * ((rows + 31) / 32));
  return slots * (plan(net, members, rows).slice + std::int64_t{net.hidden} * 64 * 128);
}

void FusedTask::use(float* workspace) {
  slices = workspace;
  kept = workspace + slots() * slice;
}

}  // namespace keel
