#include "mse.h"

#include "launch.cuh"
#include "sum.h"

namespace keel {
namespace {

constexpr int kRun = 1024;

/// Sum of squared errors over a run of a member's elements, into part[member, run].
template <class T>
struct SquaredError {
  using Scalar = T;
  static constexpr int kWidest = kRun;
  int64_t n, runs, target_stride;  // n elements a member
  T scale;
  const T *prediction, *target;
  T* part;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t tile) const {
    const int64_t member = tile / runs, begin = tile % runs * kRun;
    const int64_t count = n - begin < kRun ? n - begin : kRun;
    const auto p = g.load(count, prediction + member * n + begin);
    const auto y = g.load(count, target + member * target_stride + begin);
    const T total = g.sum(count, [&](auto i) { return (p[i] - y[i]) * (p[i] - y[i]); });
    g.once([&] { part[tile] = scale * total; });
  }
};

/// d_prediction = (2 / n) d_loss[member] (prediction - target).
template <class T>
struct PullSquaredError {
  using Scalar = T;
  int64_t n, target_stride;
  T factor;
  const T *prediction, *target, *d_loss;
  T* d_prediction;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t member, int64_t first, int64_t count) const {
    const auto p = g.load(count, prediction + member * n + first);
    const auto y = g.load(count, target + member * target_stride + first);
    const T d = factor * d_loss[member];
    g.store(count, d_prediction + member * n + first, [&](auto i) { return d * (p[i] - y[i]); });
  }
};

}  // namespace

Var mse(const Var& prediction, const Tensor& target) {
  const Tensor p = prediction.value();
  const std::int64_t members = p.shape().members();
  const std::int64_t n = members == 0 ? 0 : p.elements() / members;
  check_same_kind("mse", "prediction", p, "target", target);
  const bool shared = p.rank() == 3 && target.shape() == Shape{p.size(1), p.size(2)};
  check<ShapeError>(shared || target.shape() == p.shape(), "mse",
                    "got prediction {} and target {}: they do not fit", p.shape(), target.shape());
  check<ShapeError>(n > 0, "mse", "got prediction {}, wanted at least one element a member",
                    p.shape());
  const std::int64_t stride = shared ? 0 : n, runs = (n + kRun - 1) / kRun;

  Tensor part = Tensor::empty({members, runs, 1}, p.dtype(), p.device());
  Tensor loss = Tensor::empty(p.rank() >= 3 ? Shape{members} : Shape{}, p.dtype(), p.device());
  dispatch(p.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(p.device(), members * runs, std::min<std::int64_t>(n, kRun),
                SquaredError<T>{n, runs, stride, T(1) / static_cast<T>(n), p.data<T>(),
                                target.data<T>(), part.data<T>()});
  });
  sum_rows(part, 1, false, loss);

  return record("mse", loss, {&prediction},
                [slot = prediction.slot(), p, target, members, n, stride](const Tensor& d_loss,
                                                                          Backward& backward) {
                  Tensor d_p = Tensor::empty(p.shape(), p.dtype(), p.device());
                  dispatch(p.dtype(), [&](auto t) {
                    using T = decltype(t);
                    launch_columns(
                        p.device(), members, n,
                        PullSquaredError<T>{n, stride, T(2) / static_cast<T>(n), p.data<T>(),
                                            target.data<T>(), d_loss.data<T>(), d_p.data<T>()});
                  });
                  backward.add(slot, std::move(d_p));
                });
}

}  // namespace keel
