#include "factor_gram_outputs.h"

#include "launch.cuh"

namespace keel {
namespace {

template <class T>
struct AddOutputPairs {
  using Scalar = T;
  static constexpr bool kApart = true;  // into has gaps between a row's entries; runs would spill
  int64_t n, m, left, right;            // samples and outputs of either side
  T scale, offset;
  bool symmetric;
  const T *u, *v;
  T* into;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const int64_t c = row / n, k = row % n;
    for (int64_t d = 0; d < right; ++d) {
      const int64_t before = row + 1 - d * m;  // up to and with the diagonal
      const int64_t count = !symmetric || before > m ? m : before;
      if (count <= 0) return;
      const T *products = u + (row * right + d) * m, *seconds = v ? v + k * m : nullptr;
      const auto value = [&](int64_t l) {
        return products[l] * (seconds ? scale * seconds[l] + offset : scale);
      };
      T* to = into + (k * m * left + c) * right + d;
      g.each(count, [&](auto l) { to[l * left * right] += value(l); });
      if (!symmetric) continue;
      T* mirrored = into + (k * right + d) * left + c;
      const int64_t step = n * left * right;
      g.each(d == c ? k : count, [&](auto l) { mirrored[l * step] += value(l); });
    }
  }
};

}  // namespace

void add_output_pairs(const Tensor& u, const Tensor& v, double scale, double offset, bool symmetric,
                      const Tensor& into) {
  constexpr const char* kTag = "add_output_pairs";
  check_same_kind(kTag, "u", u, "into", into);
  check<ShapeError>(into.rank() == 4 && u.shape() == Shape{into.size(0) * into.size(2),
                                                           into.size(1) * into.size(3)},
                    kTag, "got u {}, into {}: they do not fit", u.shape(), into.shape());
  check<ShapeError>(!symmetric || (into.size(0) == into.size(1) && into.size(2) == into.size(3)),
                    kTag, "got into {}, wanted [n, n, o, o] of a symmetric u", into.shape());
  if (v.defined()) {
    check_same_kind(kTag, "v", v, "into", into);
    check<ShapeError>(v.shape() == Shape{into.size(0), into.size(1)}, kTag,
                      "got v {}, into {}: they do not fit", v.shape(), into.shape());
  }
  if (into.elements() == 0) return;
  dispatch(into.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(
        into.device(), u.size(0), u.size(1),
        AddOutputPairs<T>{into.size(0), into.size(1), into.size(2), into.size(3),
                          static_cast<T>(scale), static_cast<T>(offset), symmetric, u.data<T>(),
                          v.defined() ? v.data<T>() : nullptr, into.data<T>()});
  });
}

}  // namespace keel
