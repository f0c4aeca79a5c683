#include "triangle.h"

#include "launch.cuh"
#include "mirror_tile.h"

namespace keel {
namespace {

template <class T>
struct SwapDiagonal {
  using Scalar = T;
  int64_t n;
  T *a, *d;
  bool only_read;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t first, int64_t count) const {
    g.each(count, [&](auto i) {
      const int64_t row = first + i;
      const T mine = a[row * n + row];
      if (!only_read) a[row * n + row] = d[row];
      d[row] = mine;
    });
  }
};

/// Rows i and n - 1 - i together: every pair is as long as the next.
template <class From, class To>
struct ScaleLower {
  using Scalar = double;
  static constexpr bool kApart = true;
  int64_t n;
  double value;
  const double* scale;
  const From* a;
  To* into;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t pair) const {
    scale_row(g, pair);
    if (pair != n - 1 - pair) scale_row(g, n - 1 - pair);
  }

  template <class Group>
  KEEL_HD void scale_row(Group g, int64_t row) const {
    const double mine = scale[row];
    const From* from = a + row * n;
    To* to = into + row * n;
    g.each(row, [&](auto j) {
      to[j] = static_cast<To>(static_cast<double>(from[j]) * mine * scale[j]);
    });
    g.once([&] { to[row] = static_cast<To>(value); });
  }
};

int64_t check_square(const char* tag, const Tensor& a) {
  check<ShapeError>(a.rank() == 2 && a.size(0) == a.size(1), tag, "got {}, wanted [n, n]",
                    a.shape());
  return a.size(0);
}

#ifdef KEEL_DEVICE_CODE

template <class T, Mirror kMirror>
__global__ void __launch_bounds__(MirrorTile<T, kMirror>::kThreads) mirror_kernel(int64_t n, T* a) {
  using Tile = MirrorTile<T, kMirror>;
  __shared__ T shared[Tile::kShared];
  typename Tile::Thread thread{static_cast<int>(threadIdx.x)};
  Tile(n, a, blockIdx.x, shared).run(OnGpu<typename Tile::Thread>{thread});
}

#endif

template <class T, Mirror kMirror>
void cpu_mirror(int64_t n, T* a) {
  using Tile = MirrorTile<T, kMirror>;
  [[maybe_unused]] const bool threads = n > 128;
#pragma omp parallel for schedule(static) if (threads)
  for (int64_t block = 0; block < Tile::blocks(n); ++block) {
    T shared[Tile::kShared];
    Tile(n, a, block, shared).run([](auto phase) {
      for (typename Tile::Thread thread{0}; thread.id < Tile::kThreads; ++thread.id) phase(thread);
    });
  }
}

template <Mirror kMirror>
void mirror(const char* tag, const Tensor& a) {
  const int64_t n = check_square(tag, a);
  if (n == 0) return;
  dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
#ifdef KEEL_DEVICE_CODE
    using Tile = MirrorTile<T, kMirror>;
    if (runs_device_code(a.device()))
      return launch_kernel(a.device(), tag, mirror_kernel<T, kMirror>, Tile::blocks(n),
                           Tile::kThreads, n, a.data<T>());
#endif
    cpu_mirror<T, kMirror>(n, a.data<T>());
  });
}

void run_diagonal(const char* tag, const Tensor& a, const Tensor& d, bool only_read) {
  const int64_t n = check_square(tag, a);
  check_same_kind(tag, "a", a, "d", d);
  check<ShapeError>(d.shape() == Shape{n}, tag, "got d {}, wanted [{}]", d.shape(), n);
  dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_elements(a.device(), n, SwapDiagonal<T>{n, a.data<T>(), d.data<T>(), only_read});
  });
}

}  // namespace

Tensor diagonal(const Tensor& a) {
  const Tensor d = Tensor::empty({check_square("diagonal", a)}, a.dtype(), a.device());
  run_diagonal("diagonal", a, d, true);
  return d;
}

void swap_diagonal(const Tensor& a, const Tensor& d) { run_diagonal("swap_diagonal", a, d, false); }

void scale_lower(const Tensor& a, const Tensor& scale, double value, const Tensor& into) {
  const int64_t n = check_square("scale_lower", a);
  check<ShapeError>(into.shape() == a.shape() && scale.shape() == Shape{n}, "scale_lower",
                    "got a {}, scale {}, into {}: they do not fit", a.shape(), scale.shape(),
                    into.shape());
  check<DeviceError>(into.device() == a.device() && scale.device() == a.device(), "scale_lower",
                     "a is on {}, scale on {}, into on {}: wanted one device", a.device(),
                     scale.device(), into.device());
  dispatch(a.dtype(), [&](auto from) {
    dispatch(into.dtype(), [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      launch_rows(
          a.device(), (n + 1) / 2, n,
          ScaleLower<From, To>{n, value, scale.data<double>(), a.data<From>(), into.data<To>()});
    });
  });
}

void mirror_lower(const Tensor& a) { mirror<Mirror::copy>("mirror_lower", a); }
void swap_triangles(const Tensor& a) { mirror<Mirror::swap>("swap_triangles", a); }

}  // namespace keel
