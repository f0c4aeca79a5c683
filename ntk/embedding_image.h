// EmbeddingImage: where what a norm makes of a transformer's embedding can lie at all.
#pragma once

#include <cstdint>

#include "norm_map.h"

namespace keel {

class EmbeddingImage {
 public:
  /// Of what the norm makes of weight x + bias + place, whatever x is, at each of the places [n d].
  EmbeddingImage(const std::vector<double>& weight, const std::vector<double>& bias,
                 const std::vector<double>& places, NormMap norm);

  /// Of w . h, h at any place.
  Most most(const Direction& d) const;

  /// Whether every place is known to lie in half a plane: shift + r (sin(a) along_x() +
  /// cos(a) across(place)), |a| <= pi / 2, 0 <= r <= 1. Else rounding may have turned one.
  bool in_planes() const { return in_planes_; }
  const std::vector<double>& shift() const { return norm_.shift; }
  const std::vector<double>& along_x() const { return planes_[0].first; }
  const std::vector<double>& across(std::size_t place) const { return planes_[place].second; }
  std::size_t places() const { return planes_.size(); }

  /// What rounding may have turned a plane's vectors by, relative to their length.
  static double rounding(std::size_t width);

 private:
  struct Plane {
    std::vector<double> first, second;  // empty where it is not known
  };
  Plane plane_of(const std::vector<double>& weight, const std::vector<double>& bias,
                 const double* place) const;

  NormMap norm_;
  std::vector<Plane> planes_;
  bool in_planes_;
};

}  // namespace keel
