// Maps of every kind, one behind the other, as a net of infinite width has them.
#pragma once

#include <vector>

#include "../../kernels/kernel_map.h"

namespace keel {

inline KernelMap dense_map(double weight, double bias) {
  KernelMap map;
  map.weight = map.from_k = weight;
  map.bias = map.constant = bias;
  return map;
}

inline KernelMap map_of(KernelMap::Kind kind, double gain = 0, double constant = 0,
                        double eps = 0) {
  KernelMap map;
  map.kind = kind;
  map.gain = gain;
  map.constant = constant;
  map.eps = eps;
  return map;
}

// Which takes no mean away; its own gain's share waits.
inline KernelMap rms_map() {
  KernelMap map = map_of(KernelMap::Kind::layer_norm, 0, 0, 1e-3);
  map.centred = 0;
  return map;
}

inline KernelMap mixture_map(const Mixture& mixture, double gain) {
  KernelMap map = map_of(KernelMap::Kind::mixture, gain);
  map.mixture = mixture;
  return map;
}

inline KernelMap gaussians_map(const GaussianSum& sum, double gain) {
  KernelMap map = map_of(KernelMap::Kind::gaussians, gain);
  map.gaussians = sum;
  return map;
}

inline KernelMap leaky_map(double leak, double gain, double own_leak = 0) {
  KernelMap map = map_of(KernelMap::Kind::relu, gain);
  map.leak = leak;
  map.own_leak = own_leak;
  return map;
}

inline KernelMap tanh_map(double gain) {
  KernelMap map = mixture_map(kTanhMixture, gain);
  map.form = Form::distribution;
  return map;
}

inline KernelMap sigmoid_map(double gain) {
  KernelMap map = mixture_map(kLogisticMixture, gain);
  map.form = Form::distribution;
  map.slope = map.shift = 0.5;
  return map;
}

inline KernelMap softplus_map(double gain) {
  KernelMap map = mixture_map(kLogisticMixture, gain);
  map.form = Form::integral;
  return map;
}

inline KernelMap add_map(double gain, double from_k) {
  KernelMap map = map_of(KernelMap::Kind::add, gain);
  map.from_k = from_k;
  return map;
}

// Every kind of map, before and after each other.
inline std::vector<KernelMap> all_maps() {
  using Kind = KernelMap::Kind;
  return {dense_map(1, 0.01),
          map_of(Kind::layer_norm, 0, 1, 1e-5),
          map_of(Kind::keep),
          map_of(Kind::relu, 1),
          dense_map(2, 0.3),
          add_map(1, 0),
          mixture_map(kGeluMixture, 0),
          map_of(Kind::keep),
          dense_map(0.5, 0.3),
          add_map(0, 1),
          map_of(Kind::layer_norm),
          dense_map(2, 0),
          map_of(Kind::relu),
          rms_map(),
          map_of(Kind::layer_norm, 1, 1, 1e-5),
          dense_map(2, 0),
          map_of(Kind::relu),
          dense_map(1.5, 0.1),
          map_of(Kind::layer_norm, 0, 1, 0.1),
          mixture_map(kLogisticMixture, 1),
          dense_map(1, 0.2),
          leaky_map(0.3, 0),
          dense_map(1, 0.2),
          map_of(Kind::layer_norm, 0, 1, 1e-5),
          leaky_map(0.01, 1),
          dense_map(2, 0.1),
          leaky_map(0, 0, 1),
          dense_map(1.5, 0.1),
          map_of(Kind::layer_norm, 0, 1, 1e-5),
          leaky_map(0.25, 1, 1),
          dense_map(2, 0.1),
          tanh_map(0),
          dense_map(2, 0.1),
          map_of(Kind::layer_norm, 0, 1, 1e-5),
          tanh_map(1),
          dense_map(1, 0.2),
          sigmoid_map(0),
          map_of(Kind::layer_norm, 0, 1, 1e-5),
          sigmoid_map(1),
          dense_map(2, 0.1),
          softplus_map(0),
          map_of(Kind::layer_norm, 0, 1, 1e-5),
          softplus_map(1),
          dense_map(1, 0.2)};
}

// Of which sums of Gaussians are some: other kernels on a GPU.
inline std::vector<KernelMap> maps_with_sums() {
  using Kind = KernelMap::Kind;
  std::vector<KernelMap> maps = all_maps();
  for (const KernelMap& map :
       {gaussians_map(elu_sum(0.7), 0), dense_map(1, 0.2), map_of(Kind::layer_norm, 0, 1, 1e-5),
        gaussians_map(elu_sum(1.7, 1.05), 1), dense_map(1, 0.2), gaussians_map(kGeluByTanhSum, 0),
        map_of(Kind::layer_norm, 0, 1, 1e-5), gaussians_map(kGeluByTanhSum, 1), dense_map(1, 0.2)})
    maps.push_back(map);
  return maps;
}

}  // namespace keel
