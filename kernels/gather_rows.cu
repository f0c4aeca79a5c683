#include "gather_rows.h"

#include "launch.cuh"

namespace keel {
namespace {

template <class T>
struct GatherRow {
  using Scalar = T;
  static constexpr bool kApart = true;
  int64_t cols, rows, order_length, source_stride;  // rows: of a member of the result
  const double *order, *first;
  const T* source;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const int64_t member = row / rows;
    const int64_t at = static_cast<int64_t>(first[member]) + row % rows;
    const auto from = static_cast<int64_t>(order[member * order_length + at]);
    const auto values = g.load(cols, source + member * source_stride + from * cols);
    g.store(cols, out + row * cols, [&](auto i) { return values[i]; });
  }
};

}  // namespace

void gather_rows(const Tensor& source, const Tensor& order, const Tensor& first,
                 const Tensor& into) {
  check_same_kind("gather_rows", "source", source, "into", into);
  check_same_kind("gather_rows", "order", order, "first", first);
  check<DeviceError>(order.device() == source.device(), "gather_rows",
                     "order is on {}, source on {}: wanted one device", order.device(),
                     source.device());
  check<ShapeError>((source.rank() == 2 || source.rank() == 3) &&
                        (into.rank() == 2 || into.rank() == 3) && source.size(-1) == into.size(-1),
                    "gather_rows", "got source {} and into {}: they do not fit", source.shape(),
                    into.shape());
  const std::int64_t members = into.shape().members();
  check<ShapeError>((source.rank() == 2 || source.shape().members() == members) &&
                        order.elements() == members * source.size(-2) &&
                        first.elements() == members,
                    "gather_rows", "got source {}, order {}, first {} for {} members",
                    source.shape(), order.shape(), first.shape(), members);
  const std::int64_t cols = into.size(-1), length = source.size(-2);
  dispatch(source.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(
        into.device(), into.shape().rows(), cols,
        GatherRow<T>{cols, into.size(-2), length, source.rank() == 3 ? length * cols : 0,
                     order.data<double>(), first.data<double>(), source.data<T>(), into.data<T>()});
  });
}

}  // namespace keel
