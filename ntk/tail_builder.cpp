#include "tail_builder.h"

#include "tail_start.h"

namespace keel {

void TailBuilder::layers(const Net& net, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    const LayerSpec& layer = net.spec()[i];
    if (layer.kind == LayerKind::dense)
      dense(dense_affine(net, i));
    else if (layer.kind == LayerKind::residual)
      residual();
    else if (layer.kind == LayerKind::add)
      add();
    else
      activation(activation_of(net, i));
  }
}

void TailBuilder::dense(const Affine& next) {
  push(beside_identity(next, kept_));
  width_ = next.outputs;
}

void TailBuilder::activation(const LayerActivation& phi) {
  end();
  if (tail_.activations.empty()) tail_.direct = untouched_;
  tail_.push_back(phi, static_cast<std::size_t>(kept_));
  open_ = false;
}

void TailBuilder::residual() {
  push(identities(2, 1, width_));
  kept_ = width_;
}

void TailBuilder::add() {
  push(identities(1, 2, width_));
  kept_ = 0;
}

Tail TailBuilder::tail() const {
  TailBuilder whole = *this;
  whole.end();
  return std::move(whole.tail_);
}

void TailBuilder::end() {
  if (!open_) push(identity_map(width_ + kept_));
}

void TailBuilder::push(Affine next) {
  if (open_) {
    Affine made = composed(next, tail_.affine.back());
    check_large_enough(large_enough(made, next, tail_.affine.back()));
    tail_.affine.back() = std::move(made);
  } else {
    tail_.affine.push_back(std::move(next));
  }
  open_ = true;
  untouched_ = false;
}

}  // namespace keel
