// Rows of ops that memory binds: each beside a copy of its input, measured just before.
#pragma once

#include "../kernels/gradient_sink.h"
#include "bench.h"

namespace keel::bench {

class MemoryRows {
 public:
  /// Times a copy of x, which stays where it is.
  MemoryRows(Report& report, const Tensor& x);

  const Timing& copied() const { return copied_; }
  double bytes() const { return bytes_; }  ///< of x

  /// Times f, which reads and writes as many arrays as large as x.
  void add(const std::string& name, double arrays, const std::function<void()>& f);

 private:
  Report& report_;
  Device device_;
  Timing copied_;
  double bytes_;
};

/// Takes a derivative of a parameter, and drops the one of x where a net hands it on to the layer
/// below: a leaf would get a copy.
class DropInput : public GradientSink {
 public:
  explicit DropInput(const Var& x) : x_(x.slot()) {}
  void total(Slot leaf, const Tensor& d_leaf) override {
    if (leaf != x_) GradientSink::total(leaf, d_leaf);
  }

 private:
  Slot x_;
};

}  // namespace keel::bench
