// Cutting the inputs' region in boxes, the loosest first, until what is left is near what was found
// (docs/certificate.md, "Cutting x").
#pragma once

#include "box_region.h"

namespace keel {

/// The largest weights . f over a region. The same for any number of threads.
class BoxCuts {
 public:
  /// The region must outlive it.
  BoxCuts(const BoxRegion& region, std::vector<double> weights);

  /// Cuts until so many boxes have been looked at, or the bound is no more than `near` above what
  /// was found.
  void go_on(std::int64_t boxes, double near);

  double bound() const;  ///< of all of the region
  double found() const { return found_; }
  const std::vector<double>& found_at() const { return found_at_; }  ///< in the region
  std::int64_t boxes() const { return boxes_; }                      ///< looked at

 private:
  struct Piece {
    Box box;
    double bound = 0;
    std::size_t cut = 0;  // the input whose side is to be cut
    std::vector<double> point{};
    double value = 0;
  };
  static bool tighter(const Piece& a, const Piece& b) { return a.bound < b.bound; }
  void look_at(std::vector<Box> boxes, const std::vector<double>& whole);
  Piece piece(Box box, double whole) const;
  double value_at(const std::vector<double>& point) const;
  void climb(Piece& piece) const;
  void find(std::vector<Piece>& pieces);

  const BoxRegion& region_;
  std::vector<double> weights_, lengths_;  // of the region's sides
  std::vector<Piece> pieces_{};            // a heap, the loosest on top
  double found_ = -kInfinity, least_ = -kInfinity;
  std::vector<double> found_at_{};
  std::int64_t boxes_ = 0, climb_at_ = 0;
};

}  // namespace keel
