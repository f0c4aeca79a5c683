// The second half of fused_mlp: the slices that its blocks left, added up in a fixed order.
#pragma once

#include "fused_mlp.h"
#include "group.h"

namespace keel {

/// Adds up the slices: 32 elements of a member a block, eight threads an element.
class FusedSum {
 public:
  static constexpr int kThreads = 256, kElements = 32, kShared = kThreads;

  struct Thread {
    int id;
  };

  /// Of one member: elements of all parameters, and behind them the loss.
  KEEL_HD static int64_t elements(const FusedMlp& net) {
    int64_t total = 1;
    for (const FusedParameter& p : net.parameters) total += p.rows * p.cols;
    return total;
  }
  KEEL_HD static int64_t member_blocks(const FusedMlp& net) {
    return (elements(net) + kElements - 1) / kElements;
  }

  KEEL_HD FusedSum(const FusedTask& task, int64_t block, float* shared)
      : task_(task), shared_(shared) {
    const int64_t blocks = member_blocks(task.net);
    member_ = block / blocks;
    first_ = block % blocks * kElements;
  }

  template <class Each>
  KEEL_HD void run(Each each) const {
    each([&](Thread& t) { add_slices(t); });
    each([&](Thread& t) { store(t); });
  }

 private:
  // An element: so many sums in each slice, and where their scaled total goes.
  struct Element {
    int part, sums;
    float scale;
    float* into;
  };

  KEEL_HD bool find(int64_t index, Element& found) const {
    const FusedMlp& net = task_.net;
    for (int n = 0; n < FusedParameter::kKinds * (net.hidden + 1); ++n) {
      const FusedParameter& p = net.parameters[n];
      const int count = p.rows * p.cols;
      if (index < count) {
        const int e = static_cast<int>(index);
        const bool out = n / FusedParameter::kKinds == net.hidden;
        found = {p.part + e / p.cols * p.stride + e % p.cols, 1,
                 out ? p.scale * task_.error_scale : p.scale,
                 task_.gradients + p.flat + member_ * count + e};
        return true;
      }
      index -= count;
    }
    found = {task_.loss_part, net.layers[net.hidden].outputs, task_.loss_scale,
             task_.losses + member_};
    return index == 0;
  }

  KEEL_HD void add_slices(const Thread& t) const {
    Element element;
    if (!find(first_ + t.id % kElements, element)) return;
    const float* slices = task_.slices + member_ * task_.member_slots * task_.slice + element.part;
    float sum = 0;
    for (int k = 0; k < element.sums; ++k)
#ifdef __CUDA_ARCH__
#pragma unroll 8
#endif
      for (int64_t slot = t.id / kElements; slot < task_.member_slots; slot += 8)
        sum += slices[slot * task_.slice + k];
    shared_[t.id] = sum;
  }

  KEEL_HD void store(const Thread& t) const {
    Element element;
    if (t.id >= kElements || !find(first_ + t.id, element)) return;
    float sum = 0;
    for (int part = 0; part < 8; ++part) sum += shared_[t.id + part * kElements];
    *element.into = element.scale * sum;
  }

  const FusedTask& task_;
  float* shared_;
  int64_t member_, first_;
};

}  // namespace keel
