// The second half of fused_mlp: the slices that its blocks left, added up in a fixed order, and the
// step that is taken by their sums.
#pragma once

#include "fused_mlp.h"
#include "group.h"

namespace keel {

/// Adds up the slices: an element a thread where a member has few, else eight threads an element.
class FusedSum {
 public:
  static constexpr int kThreads = 256, kFew = 8, kShared = kThreads;

  struct Thread {
    int id;
  };

  KEEL_HD static int member_blocks(const FusedTask& task) {
    const int each = task.member_slots <= kFew ? kThreads : kThreads / kFew;
    return (task.elements + each - 1) / each;
  }
  static int64_t blocks(const FusedTask& task) { return task.members * member_blocks(task); }

  KEEL_HD FusedSum(const FusedTask& task, unsigned block, float* shared)
      : task_(task), shared_(shared) {
    const unsigned blocks = static_cast<unsigned>(member_blocks(task));
    member_ = block / blocks;
    first_ = static_cast<int>(block % blocks) * (few() ? kThreads : kThreads / kFew);
  }

  template <class Each>
  KEEL_HD void run(Each each) const {
    if (few()) return each([&](Thread& t) { add_few(t); });
    each([&](Thread& t) { add_slices(t); });
    each([&](Thread& t) { store(t); });
  }

 private:
  // An element: so many sums in each slice, and where their scaled total goes: of the parameters,
  // or -1, the member's loss.
  struct Element {
    int part, sums;
    float scale;
    int64_t flat;
  };

  KEEL_HD bool few() const { return task_.member_slots <= kFew; }

  KEEL_HD bool find(int index, Element& found) const {
    const FusedMlp& net = task_.net;
    if (index >= task_.elements) return false;
    int n = 0;
    while (n < FusedParameter::kKinds * (net.hidden + 1) && index >= net.parameters[n].end) ++n;
    if (n == FusedParameter::kKinds * (net.hidden + 1)) {
      found = {task_.loss_part, net.layers[net.hidden].outputs, task_.loss_scale, -1};
      return true;
    }
    const FusedParameter& p = net.parameters[n];
    const int count = p.rows * p.cols, e = index - (p.end - count);
    const bool out = n / FusedParameter::kKinds == net.hidden;
    found = {p.part + e / p.cols * p.stride + e % p.cols, 1,
             out ? p.scale * task_.error_scale : p.scale, p.flat + member_ * count + e};
    return true;
  }

  KEEL_HD const float* slices_of(const Element& element) const {
    return task_.slices + member_ * task_.member_slots * task_.slice + element.part;
  }

  KEEL_HD void finish(const Element& element, float total) const {
    const FusedUpdate& update = task_.update;
    const int64_t at = element.flat;
    if (at < 0) {
      task_.losses[member_] = total;
      if (task_.updates()) update.record.add(member_, static_cast<double>(total));
    } else if (task_.updates()) {
      // In registers: behind a store to what may be the same memory a load waits for it.
      const double* step = update.clock.step;
      float p = update.parameters[at], m = update.first[at], v = update.second[at];
      update.rule.update(total, static_cast<float>(step[1]), static_cast<float>(step[2]), p, m, v);
      update.parameters[at] = p;
      update.first[at] = m;
      update.second[at] = v;
    } else {
      task_.gradients[at] = total;
    }
  }

  KEEL_HD void add_few(const Thread& t) const {
    Element element;
    if (!find(first_ + t.id, element)) return;
    const float* slice = slices_of(element);
    float total = 0;
    for (int slot = 0; slot < static_cast<int>(task_.member_slots); ++slot) {
      float sum = 0;
      for (int k = 0; k < element.sums; ++k) sum += slice[k];
      total += sum;
      slice += task_.slice;
    }
    finish(element, element.scale * total);
  }

  KEEL_HD void add_slices(const Thread& t) const {
    Element element;
    if (!find(first_ + t.id % (kThreads / kFew), element)) return;
    const float* slices = slices_of(element);
    float sum = 0;
    for (int k = 0; k < element.sums; ++k)
#ifdef __CUDA_ARCH__
#pragma unroll 8
#endif
      for (int64_t slot = t.id / (kThreads / kFew); slot < task_.member_slots; slot += kFew)
        sum += slices[slot * task_.slice + k];
    shared_[t.id] = sum;
  }

  KEEL_HD void store(const Thread& t) const {
    Element element;
    if (t.id >= kThreads / kFew || !find(first_ + t.id, element)) return;
    float sum = 0;
    for (int part = 0; part < kFew; ++part) sum += shared_[t.id + part * (kThreads / kFew)];
    finish(element, element.scale * sum);
  }

  const FusedTask& task_;
  float* shared_;
  int64_t member_;
  int first_;
};

}  // namespace keel
