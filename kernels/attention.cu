#include "attention.h"

#include <cmath>

#include "attention_program.h"
#include "launch.cuh"
#include "transpose.h"

namespace keel {
namespace {

struct Saved {
  Tensor qkv, transposed, weights;  // [3 d, length] a sequence; [rows, length]
  AttentionShape shape;
  double scale;

  std::int64_t rows() const { return qkv.shape().rows() * shape.heads; }
};

Tensor weights_of(const Saved& saved) {
  const Tensor& qkv = saved.qkv;
  Tensor weights = Tensor::empty({saved.rows(), saved.shape.length}, qkv.dtype(), qkv.device());
  dispatch(qkv.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(qkv.device(), saved.rows(), saved.shape.length,
                AttentionWeights<T>{saved.shape, static_cast<T>(saved.scale), qkv.data<T>(),
                                    saved.transposed.data<T>(), weights.data<T>()});
  });
  return weights;
}

Tensor forward(const Saved& saved) {
  const Tensor& qkv = saved.qkv;
  Shape shape = qkv.rank() == 3 ? Shape{qkv.size(0), qkv.size(1)} : Shape{qkv.size(0)};
  shape.push_back(saved.shape.model());
  Tensor out = Tensor::empty(shape, qkv.dtype(), qkv.device());
  dispatch(qkv.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(qkv.device(), saved.rows(), saved.shape.width,
                MixValues<T>{saved.shape, qkv.data<T>(), saved.weights.data<T>(), out.data<T>()});
  });
  return out;
}

Tensor pull(const Saved& saved, const Tensor& d_out) {
  const Tensor &qkv = saved.qkv, &weights = saved.weights;
  Tensor d_scores = Tensor::empty(weights.shape(), qkv.dtype(), qkv.device());
  Tensor d_qkv = Tensor::empty(qkv.shape(), qkv.dtype(), qkv.device());
  dispatch(qkv.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(qkv.device(), saved.rows(), saved.shape.length,
                PullWeights<T>{saved.shape, static_cast<T>(saved.scale), saved.transposed.data<T>(),
                               weights.data<T>(), d_out.data<T>(), d_scores.data<T>()});
    launch_rows(qkv.device(), saved.rows(), saved.shape.width,
                PullTokens<T>{saved.shape, qkv.data<T>(), weights.data<T>(), d_scores.data<T>(),
                              d_out.data<T>(), d_qkv.data<T>()});
  });
  return d_qkv;
}

void check_shapes(const Tensor& qkv, std::int64_t length, std::int64_t heads) {
  check<ShapeError>(length >= 1 && length <= kLongestSequence, "attention",
                    "got sequences of {}, wanted 1 to {}", length, kLongestSequence);
  check<ShapeError>(heads >= 1, "attention", "got {} heads, wanted at least 1", heads);
  check<ShapeError>(
      (qkv.rank() == 2 || qkv.rank() == 3) && qkv.size(-2) % length == 0 && qkv.size(-1) > 0 &&
          heads <= qkv.size(-1) && qkv.size(-1) % (3 * heads) == 0 &&
          qkv.size(-1) / (3 * heads) <= kLongestSequence,
      "attention",
      "got qkv {}, wanted a multiple of {} rows and of 3 * {} columns, heads at most {} wide, "
      "with or without members",
      qkv.shape(), length, heads, kLongestSequence);
}

}  // namespace

Var attention(const Var& qkv, std::int64_t length, std::int64_t heads) {
  const Tensor& value = qkv.value();
  check_shapes(value, length, heads);
  const std::int64_t width = value.size(-1) / (3 * heads);
  Saved saved{value, {}, {}, {length, heads, width}, 1 / std::sqrt(static_cast<double>(width))};
  // Where keys of neighbours lie side by side, a member of a group per key reads them in one go.
  saved.transposed =
      transpose(value.reshape({value.shape().rows() / length, length, value.size(-1)})).value();
  saved.weights = weights_of(saved);
  return record("attention", forward(saved), {&qkv},
                [saved, slot = qkv.slot()](const Tensor& d_out, Backward& backward) {
                  check(!backward.per_sample(), "attention",
                        "got a sink that keeps samples apart, wanted one that adds them up: a row "
                        "of a sequence is no sample by itself");
                  backward.add(slot, pull(saved, d_out));
                });
}

}  // namespace keel
