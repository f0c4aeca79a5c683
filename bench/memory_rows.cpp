#include "memory_rows.h"

namespace keel::bench {

MemoryRows::MemoryRows(Report& report, const Tensor& x)
    : report_(report),
      device_(x.device()),
      bytes_(sizeof(float) * static_cast<double>(x.elements())) {
  const Tensor into = Tensor::empty(x.shape(), x.dtype(), device_);
  copied_ = measure(device_, [&] { copy(into, x); });
}

void MemoryRows::add(const std::string& name, double arrays, const std::function<void()>& f) {
  const Timing time = measure(device_, f);
  report_.add({.name = name,
               .time = time,
               .bytes = arrays * bytes_,
               .copy_fraction = arrays / 2 * copied_.median / time.median,
               .gpu_seconds = by_clock_of_gpu(device_, f)});
}

}  // namespace keel::bench
