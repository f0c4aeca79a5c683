#include "reshape.h"

namespace keel {

Var reshape(const Var& x, Shape shape) {
  return record("reshape", x.value().reshape(shape), {&x},
                [slot = x.slot(), from = x.shape()](const Tensor& d_out, Backward& backward) {
                  backward.add(slot, d_out.reshape(from));
                });
}

}  // namespace keel
