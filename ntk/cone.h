// A cone that a norm's output cannot leave, and the dual cone's share of a bound
// (docs/certificate.md, "The cone").
#pragma once

#include <cstdint>
#include <vector>

namespace keel {

/// K = {sum alpha_j g_j: alpha >= 0}, of generators that all lie on one side of a plane.
class Cone {
 public:
  Cone() = default;
  /// `generators` [count, rank]: of any length, those of 0 are left out. Empty, which says nothing,
  /// where no plane has all of them well on one side.
  Cone(std::vector<double> generators, std::int64_t rank);

  bool empty() const { return margins_.empty(); }
  const std::vector<double>& inward() const { return inward_; }  ///< of length 1

  /// p = g + y with y.u >= 0 for every u of K, so that g.u <= p.u <= |p| |u|. The shortest p is g's
  /// projection on K, and reaches that bound; `sweeps` of coordinate descent come near it, from
  /// `alpha` [count], which is left where they end. Any alpha gives a valid p; empty is 0.
  std::vector<double> project(const std::vector<double>& g, std::vector<double>& alpha,
                              std::int64_t sweeps) const;

 private:
  std::size_t cols() const { return static_cast<std::size_t>(rank_); }
  std::int64_t rank_ = 0;
  std::vector<double> generators_{};  // [count, rank], of length 1
  std::vector<double> inward_{};      // [rank], of length 1
  std::vector<double> margins_{};     // [count]: generator . inward_, > 0
};

}  // namespace keel
