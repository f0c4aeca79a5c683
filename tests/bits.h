// Comparing tensors to the bit.
#pragma once

#include <cstring>

#include "../core/tensor.h"

inline bool same_bits(const keel::Tensor& a, const keel::Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  return keel::dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
    const keel::Tensor host_a = a.to(keel::Device::cpu()), host_b = b.to(keel::Device::cpu());
    return std::memcmp(host_a.data<T>(), host_b.data<T>(), host_a.bytes()) == 0;
  });
}
