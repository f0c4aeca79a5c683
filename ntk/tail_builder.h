// Puts the words behind a norm, a tanh or a sigmoid into a tail.
#pragma once

#include "../nn/net.h"
#include "tail.h"

namespace keel {

/// A tail that grows, word by word. Within a residual all values are followed by those of x, which
/// is to be added at its end.
class TailBuilder {
 public:
  explicit TailBuilder(Tail start)
      : tail_(std::move(start)),
        width_(tail_.affine.back().outputs),
        open_(tail_.affine.size() > tail_.activations.size()) {}

  /// The layers [first, last) of a net of one member: dense layers, activations and residuals.
  void layers(const Net& net, std::size_t first, std::size_t last);

  void dense(const Affine& next);
  void activation(const LayerActivation& phi);
  void residual();
  void add();

  /// Of all that has been put into it.
  Tail tail() const;

 private:
  void push(Affine next);
  void end();

  Tail tail_;
  std::int64_t width_, kept_ = 0;
  bool open_;              // the last affine map may still take in another
  bool untouched_ = true;  // the first is as the norm left it
};

}  // namespace keel
