// FormMaximum: how large a convex quadratic form can be of what stands at places of a sequence.
#pragma once

#include <cstddef>
#include <vector>

#include "../core/tensor.h"
#include "adam.h"
#include "arc.h"

namespace keel {

/// The largest l'u + u'Qu, Q positive semidefinite [rows, rows], of what n paths bring: path i,
/// with rows i each to (i + 1) each, u_i = sin(a) times its first row and cos(a) times one of the
/// others, a place's, or a mean of such vectors. The form is convex: the largest is where each path
/// has one place. It is at most what each path has by itself, at its best place, and each pair, at
/// the best two: x'My is at most M's larger singular value. Another pair may want others: numbers
/// that a path's place gets from each pair and that the pair is taken, "messages" as they are
/// called where linear programs bound random fields (Wainwright et al., 2005), change no sum, and
/// any are right.
class FormMaximum {
 public:
  FormMaximum(std::size_t paths, std::size_t each);

  /// A vector of a path: sin times its first row and cos times `row`.
  struct Turn {
    std::size_t first, row;
    Angle angle;
  };
  struct Pair {
    Turn one, other;
    std::size_t one_path, other_path;
  };

  /// At most that. `linear` [rows]; of `form` what stands above its diagonal blocks is read, and
  /// those. No number where it is none.
  double most(const std::vector<double>& linear, const Tensor& form);

  /// Where the last one was taken: a path each, and a pair of paths each.
  const std::vector<Turn>& own() const { return own_; }
  const std::vector<Pair>& pairs() const { return pairs_; }

  /// Moves the messages a step down (Adam's way), `rate` times what a pair has on average.
  void step(double rate);

 private:
  double of_path(std::size_t path, const std::vector<double>& linear, const double* form);
  double of_pair(Pair& pair, const double* form) const;
  std::size_t rows() const { return paths_ * each_; }
  // What a place of `path` is given by the pair with `other`: [each_], the first unused.
  std::size_t messages(std::size_t path, std::size_t other) const {
    return (path * paths_ + other) * each_;
  }

  std::size_t paths_, each_;
  std::vector<Turn> own_;
  std::vector<Pair> pairs_;
  std::vector<double> messages_;
  Adam adam_;
  std::vector<double> given_;  // a row's messages, summed
  double of_pairs_ = 0;        // the pairs' sum, at the last one
};

}  // namespace keel
