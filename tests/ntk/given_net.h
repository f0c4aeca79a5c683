// A net of given parameters.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../../nn/net.h"

namespace keel {

/// In float64, of these parameters, one after the other.
inline Net given_net(const std::string& spec, std::size_t inputs,
                     const std::vector<std::vector<double>>& values) {
  NetOptions options;
  options.dtype = DType::f64;
  Net net(spec, static_cast<std::int64_t>(inputs), options);
  REQUIRE(net.layout().entries().size() == values.size());
  for (std::size_t p = 0; p < values.size(); ++p) {
    const Tensor home = net.layout().member_view(net.flat(), p, 0);
    REQUIRE(net.layout().entries()[p].scale == 1);
    copy(home, Tensor::from(values[p], home.shape()));
  }
  return net;
}

}  // namespace keel
