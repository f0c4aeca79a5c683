// The part of Thrust that keel uses, on the host at once or on an emulated GPU's stream.
#pragma once

#include <functional>
#include <utility>

#include "../driver.h"

namespace thrust {

struct HostPolicy {
  template <class F>
  void operator()(F f) const {
    f();
  }
};
struct StreamPolicy {
  keel::emulated::Stream* stream;
  template <class F>
  void operator()(F f) const {
    const std::lock_guard lock(keel::emulated::driver_mutex());
    keel::emulated::enqueue(*stream, f);
  }
};

inline constexpr HostPolicy host;
namespace cuda {
struct OnStream {
  StreamPolicy on(keel::emulated::Stream* stream) const { return {stream}; }
};
inline constexpr OnStream par_nosync;
}  // namespace cuda

}  // namespace thrust
