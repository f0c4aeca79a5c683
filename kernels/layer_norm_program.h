// LayerNorm, forward and backward, as Programs: the same text runs on every device.
//
//   xhat = (x - mean) / sqrt(var + eps),  out = gain * xhat + bias,  then relu where fused
//   Ba, Kiros and Hinton, Layer Normalization (2016), eq. 3 and 4.
//
// RMSNorm is the same without centring: no mean is taken away, and there is no bias.
//
//   xhat = x / sqrt(mean of x^2 + eps),  out = gain * xhat,  then relu where fused
//   Zhang and Sennrich, Root Mean Square Layer Normalization (2019), eq. 4.
//
// The mean is kept relative to the row's first element: (x - first) - center. Neither a mean of 1e3
// costs digits that way, nor does a constant row leave a rounding error for eps = 0 to blow up.
#pragma once

#include <type_traits>

#include "group.h"
#include "math.h"
#include "row_chunks.h"

namespace keel {

/// Row r of [members * member_rows, cols] belongs to member r / member_rows, whose gain and bias
/// start at gain_stride * member (0: all members share them).
template <class T>
struct LayerNormShape {
  int64_t cols, member_rows, gain_stride;
  T eps;
};

/// Standardises a row and applies gain and bias; what is not centred takes no mean away, and has no
/// bias. Rows of up to 1e30 do not overflow: where the plain variance leaves the number range, it
/// is computed again from the row divided by a power of two near its largest entry.
template <class T, bool kCentred, bool kAffine, bool kRelu>
struct LayerNormForward {
  using Scalar = T;
  static constexpr bool kLongRuns = true, kRereads = true;
  LayerNormShape<T> shape;
  const T *x, *gain, *bias;
  T *out, *center, *rstd;  // center and rstd [rows]: what the pullback needs, the former if centred

  Runs runs() const { return runs_of(shape.cols, x, gain, bias, out); }

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const int64_t cols = shape.cols;
    const T* source = x + row * cols;
    const auto xr = g.load(cols, source);
    const T first = kCentred ? source[0] : T(0);
    const T n = static_cast<T>(cols);

    T mean = 0;
    if constexpr (kCentred) mean = g.sum(cols, [&](auto i) { return xr[i] - first; }) / n;
    const T variance = g.sum(cols, [&](auto i) {
      const T centred = (xr[i] - first) - mean;
      return centred * centred;
    }) / n;
    T scale = inverse_deviation(variance + shape.eps);
    if (out_of_range(variance)) rescaled(g, xr, first, mean, scale);

    g.once([&] {
      if constexpr (kCentred) center[row] = mean;
      rstd[row] = scale;
    });
    T* target = out + row * cols;
    if constexpr (kAffine && kCentred) {
      const int64_t offset = member_offset(row, shape.member_rows, shape.gain_stride);
      const auto gain_row = g.load(cols, gain + offset);
      const auto bias_row = g.load(cols, bias + offset);
      g.store(cols, target, [&](auto i) {
        return activated(multiply_add(((xr[i] - first) - mean) * scale, gain_row[i], bias_row[i]));
      });
    } else if constexpr (kAffine) {
      const auto gain_row =
          g.load(cols, gain + member_offset(row, shape.member_rows, shape.gain_stride));
      g.store(cols, target, [&](auto i) { return activated(product(xr[i] * scale, gain_row[i])); });
    } else {
      g.store(cols, target, [&](auto i) { return activated(((xr[i] - first) - mean) * scale); });
    }
  }

 private:
  KEEL_HD static T activated(T z) {
    if constexpr (kRelu) return z < 0 ? T(0) : z;  // a NaN stays one
    return z;
  }

  // A constant row has variance 0, one of zeros if not centred: with eps = 0 its xhat is defined as
  // 0, not 0/0.
  KEEL_HD static T inverse_deviation(T variance) {
    return variance == 0 ? T(0) : T(1) / std::sqrt(variance);
  }

  KEEL_HD bool out_of_range(T variance) const {
    constexpr T kTiny = sizeof(T) == 4 ? T(1e-30) : T(1e-280);  // squares start to lose digits
    return !(variance <= std::numeric_limits<T>::max()) || (shape.eps == 0 && variance < kTiny);
  }

  // The same statistics of the row times a power of two, so that all lies within (-4, 4) and no
  // product is rounded: a GPU fuses the one with a difference, and not the other.
  template <class Group, class Row>
  KEEL_HD void rescaled(Group g, const Row& xr, T first, T& mean, T& scale) const {
    const int64_t cols = shape.cols;
    const T largest = g.max(cols, [&](auto i) { return xr[i] < 0 ? -xr[i] : xr[i]; });
    if (!(largest >= std::numeric_limits<T>::min())) {  // zeros and denormals: a constant row
      mean = 0;
      if (scale == scale) scale = inverse_deviation(shape.eps);  // unless it has a NaN, too
      return;
    }
    const T shrink = 2 / power_of_two_in(largest), n = static_cast<T>(cols);
    const T small_first = first * shrink;
    T small_mean = 0;
    if constexpr (kCentred)
      small_mean = g.sum(cols, [&](auto i) { return xr[i] * shrink - small_first; }) / n;
    const T small_variance = g.sum(cols, [&](auto i) {
      const T centred = (xr[i] * shrink - small_first) - small_mean;
      return centred * centred;
    }) / n;
    mean = small_mean / shrink;
    scale = inverse_deviation(small_variance + shape.eps * shrink * shrink) * shrink;
  }
};

/// Derivatives of a chunk of rows. With z = gain * xhat + bias and d_z = d_out (z > 0 where fused):
///   d_xhat = d_z gain,  d_x = rstd (d_xhat - mean(d_xhat) - xhat mean(d_xhat xhat)),
///   d_gain = sum over rows of d_z xhat,  d_bias = sum over rows of d_z.
/// For d_x: xhat_i moves with x_j by rstd (1[i = j] - 1/n - xhat_i xhat_j / n), whatever eps is, as
/// mean and variance move by 1/n and 2 (x_j - mean) / n; contract that with d_xhat. Not centred,
/// d_x lacks mean(d_xhat), as no mean moves, and there is no d_bias.
/// x and d_out are read once, d_x is written once; a chunk writes its own sums to part_gain[chunk]
/// and part_bias[chunk], which sum_rows then adds in a fixed order. Chunks of one row leave the
/// derivative of each sample.
template <class T, bool kCentred, bool kAffine, bool kRelu>
struct LayerNormBackward {
  using Scalar = T;
  static constexpr bool kRereads = true;
  // All blocks of 64 Ki rows run at once on an H200: left to itself, nvcc takes a few registers
  // more, and a hundred of the 1024 blocks have to wait for the others.
  static constexpr int kWarpBlocks = sizeof(T) == 4 ? 8 : 0;
  LayerNormShape<T> shape;
  int64_t chunk_rows, member_chunks;  // rows a chunk, chunks a member
  const T *x, *gain, *bias, *center, *rstd, *d_out;
  T *d_x, *part_gain, *part_bias;

  Runs runs() const { return runs_of(shape.cols, x, gain, bias, d_out, d_x, part_gain, part_bias); }

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t chunk) const {
    const int64_t cols = shape.cols;
    const auto [member, begin, end] =
        rows_of_chunk(chunk, chunk_rows, member_chunks, shape.member_rows);
    if constexpr (kAffine && kCentred) {
      const auto gain_row = g.load(cols, gain + member * shape.gain_stride);
      const auto bias_row = g.load(cols, bias + member * shape.gain_stride);
      auto d_gain = g.zeros(cols, part_gain + chunk * cols);
      auto d_bias = g.zeros(cols, part_bias + chunk * cols);
      each_row(
          g, begin, end,
          [&](auto i, T xhat, T d) {
            return kRelu && multiply_add(xhat, gain_row[i], bias_row[i]) <= 0 ? T(0) : d;
          },
          [&](auto i, T d_z) { return product(d_z, gain_row[i]); },
          [&](auto i, T xhat, T d_z) {
            d_gain[i] = multiply_add(d_z, xhat, d_gain[i]);
            d_bias[i] += d_z;
          });
      g.flush(cols, d_gain, part_gain + chunk * cols);
      g.flush(cols, d_bias, part_bias + chunk * cols);
    } else if constexpr (kAffine) {
      const auto gain_row = g.load(cols, gain + member * shape.gain_stride);
      auto d_gain = g.zeros(cols, part_gain + chunk * cols);
      each_row(
          g, begin, end,
          [&](auto i, T xhat, T d) { return kRelu && product(xhat, gain_row[i]) <= 0 ? T(0) : d; },
          [&](auto i, T d_z) { return product(d_z, gain_row[i]); },
          [&](auto i, T xhat, T d_z) { d_gain[i] = multiply_add(d_z, xhat, d_gain[i]); });
      g.flush(cols, d_gain, part_gain + chunk * cols);
    } else {
      each_row(
          g, begin, end, [](auto, T xhat, T d) { return kRelu && xhat <= 0 ? T(0) : d; },
          [](auto, T d_z) { return d_z; }, [](auto, T, T) {});
    }
  }

 private:
  template <class Held>
  struct Row {
    Held x, d;
    T first, mean, scale;
  };

  // masked(i, xhat, d) is d_z; scaled(i, d_z) is d_xhat; keep(i, xhat, d_z) adds to d_gain, d_bias.
  // Where registers hold rows, the next is on its way while one is worked on: few chunks leave a
  // GPU little else to do.
  template <class Group, class Masked, class Scaled, class Keep>
  KEEL_HD void each_row(Group g, int64_t begin, int64_t end, Masked masked, Scaled scaled,
                        Keep keep) const {
    const int64_t cols = shape.cols;
    const auto load = [&](int64_t row) {
      const T* source = x + row * cols;
      return Row<decltype(g.load(cols, source))>{
          g.load(cols, source), g.load(cols, d_out + row * cols), kCentred ? source[0] : T(0),
          kCentred ? center[row] : T(0), rstd[row]};
    };
    if constexpr (std::is_pointer_v<decltype(g.load(cols, x))>) {
      for (int64_t row = begin; row < end; ++row)
        backward_row(g, row, load(row), masked, scaled, keep);
    } else {
      auto next = load(begin);
      for (int64_t row = begin; row < end; ++row) {
        const auto now = next;
        if (row + 1 < end) next = load(row + 1);
        backward_row(g, row, now, masked, scaled, keep);
      }
    }
  }

  template <class Group, class Held, class Masked, class Scaled, class Keep>
  KEEL_HD void backward_row(Group g, int64_t row, const Row<Held>& r, Masked masked, Scaled scaled,
                            Keep keep) const {
    const int64_t cols = shape.cols;
    const auto xhat_at = [&](auto i) { return ((r.x[i] - r.first) - r.mean) * r.scale; };

    T mean_d = 0, mean_dx = 0;
    if constexpr (kCentred) {
      const auto sums = g.sum(cols, [&](auto i) {
        const T xhat = xhat_at(i);
        const T d_xhat = scaled(i, masked(i, xhat, r.d[i]));
        return Sums<T, 2>{{d_xhat, product(d_xhat, xhat)}};
      });
      mean_d = sums[0] / static_cast<T>(cols);
      mean_dx = sums[1] / static_cast<T>(cols);
    } else {
      mean_dx = g.sum(cols, [&](auto i) {
        const T xhat = xhat_at(i);
        return product(scaled(i, masked(i, xhat, r.d[i])), xhat);
      }) / static_cast<T>(cols);
    }

    g.store(cols, d_x + row * cols, [&](auto i) {
      const T xhat = xhat_at(i);
      const T d_z = masked(i, xhat, r.d[i]);
      keep(i, xhat, d_z);
      return r.scale * multiply_add(-xhat, mean_dx, scaled(i, d_z) - mean_d);
    });
  }
};

}  // namespace keel
