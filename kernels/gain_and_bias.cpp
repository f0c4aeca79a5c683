#include "gain_and_bias.h"

namespace keel {
namespace {

void check_columns(const char* op, const char* name, const Tensor& x, const Tensor& parameter,
                   bool may_be_own) {
  check_same_kind(op, "x", x, name, parameter);
  const std::int64_t cols = x.size(-1);
  const bool shared = parameter.rank() == 1 && parameter.size(0) == cols;
  const bool own = may_be_own && parameter.rank() == 2 && parameter.size(1) == cols &&
                   (x.rank() == 2 || parameter.size(0) == x.size(0));
  check<ShapeError>(shared || own, op, "{} {} has {} elements, x {} needs {}", name,
                    parameter.shape(), parameter.elements(), x.shape(), cols);
}

}  // namespace

void check_gain(const char* op, const Var& x, const Var& gain, bool members_may_have_their_own) {
  check_columns(op, "gain", x.value(), gain.value(), members_may_have_their_own);
}

void check_gain_and_bias(const char* op, const Var& x, const Var& gain, const Var& bias,
                         bool members_may_have_their_own) {
  check_gain(op, x, gain, members_may_have_their_own);
  check_columns(op, "bias", x.value(), bias.value(), members_may_have_their_own);
  check<ShapeError>(gain.shape() == bias.shape(), op, "got gain {} and bias {}, wanted one shape",
                    gain.shape(), bias.shape());
}

}  // namespace keel
