// Intervals of a net's outputs by cutting its inputs' region.
#pragma once

#include <optional>

#include "box_cuts.h"
#include "net_bound.h"

namespace keel {

/// Two ends of each output, in two goes: a first look, which tells whether more would.
class BoxBound {
 public:
  /// Nothing where the options ask for none, and where there is no region to cut or too few boxes
  /// for every end. Looks.
  BoxBound(const Net& net, const NetBoundOptions& options);

  bool looked() const { return !ends_.empty(); }
  /// Whether all ends are near what was found.
  bool closed() const;
  /// Cuts on where, by how the first look went, all ends may come near to what was found, unless
  /// that may take minutes: who ends it early is to have what else there is to prove, too.
  void close();
  /// Cuts on what ends of `outputs` it may come within, by how the first look went.
  void go_on(const std::vector<Interval>& outputs);

  std::vector<Interval> outputs() const;
  std::vector<std::vector<double>> found_at() const;  ///< x, of each output's high and low end
  std::int64_t boxes() const;

 private:
  struct End {
    BoxCuts cuts;
    double bound_before = kInfinity;  // and at how many boxes, to tell a pace
    std::int64_t boxes_before = 0;
    std::int64_t wanted = 0;  // boxes of the look that it is at
  };
  double near(std::size_t output) const;
  bool flat(const End& end) const;
  bool may_pass(const End& end, double proved) const;
  void look(std::size_t end, std::int64_t boxes);
  void cut();
  void go_on_within(const std::vector<double>& proved);

  std::optional<BoxRegion> region_{};
  std::vector<End> ends_{};  // of each output its high end, and its low one
  std::int64_t most_ = 0;    // boxes for each end
  bool always_ = false;      // cuts on, whatever a look says
  bool long_ = false;        // and that may take minutes
  BoundProgress progress_{};
  StopFlag stop_ = nullptr;
};

}  // namespace keel
