#include "embedding_image.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "../core/max_or_nan.h"

namespace keel {
namespace {

// Squares of numbers from 1e-300 to 1e300 are within its range, and on most machines it has eleven
// bits more.
using Long = long double;
using Longs = std::vector<Long>;

// Of what differences are made of: then all but four digits are left.
constexpr double kClearlyApart = 1e-4;

Longs centred(Longs v) {
  // Twice: what is left of a large mean after once is rounding of it.
  for (int pass = 0; pass < 2; ++pass) {
    Long mean = 0;
    for (Long value : v) mean += value / static_cast<Long>(v.size());
    for (Long& value : v) value -= mean;
  }
  return v;
}

Long length(const Longs& v) {
  Long squares = 0;
  for (Long value : v) squares += value * value;
  return std::sqrt(squares);
}

}  // namespace

double EmbeddingImage::rounding(std::size_t width) {
  constexpr auto kEpsilon = static_cast<double>(std::numeric_limits<Long>::epsilon());
  return 8 * kEpsilon * static_cast<double>(width) / kClearlyApart;
}

EmbeddingImage::EmbeddingImage(const std::vector<double>& weight, const std::vector<double>& bias,
                               const std::vector<double>& places, NormMap norm)
    : norm_(std::move(norm)) {
  for (std::size_t at = 0; at < places.size(); at += bias.size())
    planes_.push_back(plane_of(weight, bias, &places[at]));
  in_planes_ = std::none_of(planes_.begin(), planes_.end(),
                            [](const Plane& plane) { return plane.first.empty(); });
}

// Half of the plane that weight and the rest span, centred if the norm is, as the rest's share of
// it is 1.
EmbeddingImage::Plane EmbeddingImage::plane_of(const std::vector<double>& weight,
                                               const std::vector<double>& bias,
                                               const double* place) const {
  const std::size_t n = bias.size();
  const Longs along(weight.begin(), weight.end());
  Longs rest(n);
  for (std::size_t i = 0; i < n; ++i) rest[i] = static_cast<Long>(bias[i]) + place[i];
  Longs first = norm_.centred ? centred(along) : along,
        second = norm_.centred ? centred(rest) : rest;
  const Long first_length = length(first);
  if (!(first_length > 0)) return {};
  for (Long& value : first) value /= first_length;
  Long share = 0;
  for (std::size_t i = 0; i < n; ++i) share += first[i] * second[i];
  for (std::size_t i = 0; i < n; ++i) second[i] -= share * first[i];
  const Long second_length = length(second);
  // An error of the first vector is one of the second's, and larger by what that lost.
  if (!(first_length * second_length > kClearlyApart * length(along) * length(rest))) return {};
  const Long reach = std::sqrt(static_cast<Long>(n));
  Plane plane{std::vector<double>(n), std::vector<double>(n)};
  for (std::size_t i = 0; i < n; ++i) {
    plane.first[i] = static_cast<double>(reach * norm_.gain[i] * first[i]);
    plane.second[i] = static_cast<double>(reach * norm_.gain[i] * second[i] / second_length);
    if (!std::isfinite(plane.first[i]) || !std::isfinite(plane.second[i])) return {};
  }
  return plane;
}

// Each place sees a part of what the norm gives.
Most EmbeddingImage::most(const Direction& d) const {
  const auto [anywhere, size] = most_of_normed(norm_, d);
  double largest = 0;
  for (const Plane& plane : planes_) {
    if (plane.first.empty()) {
      largest = max_or_nan(largest, anywhere);
      continue;
    }
    double first = 0, second = 0;
    for (std::size_t i = 0; i < d.w.size(); ++i) {
      first += d.w[i] * plane.first[i];
      second += d.w[i] * plane.second[i];
    }
    largest = max_or_nan(largest, second > 0 ? std::hypot(first, second) : std::abs(first));
  }
  Most most = along(d, norm_.shift.data());
  most += {largest, size};
  return most;
}

}  // namespace keel
