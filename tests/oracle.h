// Oracles: every op once more, in double, by its textbook formula and the plainest loops. Nothing
// here shares code with kernels/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../core/tensor.h"

namespace oracle {

using keel::Shape;
using std::int64_t;

/// Values of a tensor, in double.
struct Array {
  Shape shape;
  std::vector<double> v;

  explicit Array(Shape s) : shape(s), v(static_cast<std::size_t>(s.elements())) {}
  explicit Array(const keel::Tensor& t) : shape(t.shape()), v(t.to_vector<double>()) {}
};

using Arrays = std::vector<Array>;

template <class F>
Array map(const Array& x, F f) {
  Array y(x.shape);
  for (std::size_t i = 0; i < x.v.size(); ++i) y.v[i] = f(x.v[i]);
  return y;
}

inline Array relu(const Array& x) {
  return map(x, [](double a) { return a > 0 ? a : 0; });
}
inline Array leaky_relu(const Array& x, double slope) {
  return map(x, [slope](double a) { return a > 0 ? a : slope * a; });
}
inline Array tanh(const Array& x) {
  return map(x, [](double a) { return std::tanh(a); });
}
inline Array sigmoid(const Array& x) {
  return map(x, [](double a) { return 1 / (1 + std::exp(-a)); });
}
inline Array softplus(const Array& x) {
  return map(x, [](double a) { return a > 30 ? a : std::log(1 + std::exp(a)); });
}
constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543772;
inline double elu(double a, double alpha) { return a > 0 ? a : alpha * (std::exp(a) - 1); }
inline double selu(double a) { return kSeluScale * elu(a, kSeluAlpha); }
inline Array elu(const Array& x, double alpha) {
  return map(x, [alpha](double a) { return elu(a, alpha); });
}
inline Array selu(const Array& x) {
  return map(x, [](double a) { return selu(a); });
}
inline Array gelu(const Array& x) {
  return map(x, [](double a) { return 0.5 * a * (1 + std::erf(a / std::sqrt(2.0))); });
}
inline double gelu_by_tanh(double a) {
  return 0.5 * a * (1 + std::tanh(std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
}
inline Array gelu_by_tanh(const Array& x) {
  return map(x, [](double a) { return gelu_by_tanh(a); });
}
inline double silu(double a, double beta) { return a / (1 + std::exp(-beta * a)); }
inline Array silu(const Array& x, double beta = 1) {
  return map(x, [beta](double a) { return silu(a, beta); });
}

/// members, rows and cols of [n, d] or [S, n, d].
struct Sizes {
  int64_t members, rows, cols;
  explicit Sizes(const Shape& s)
      : members(s.rank() == 3 ? s[0] : 1), rows(s[s.rank() - 2]), cols(s[s.rank() - 1]) {}
};

/// x, below 0 times a slope: one for all, or one a column; a member's own where they have two axes.
inline Array prelu(const Array& x, const Array& slope) {
  const Sizes size(x.shape);
  const int64_t slopes = slope.shape[slope.shape.rank() - 1];
  Array y(x.shape);
  for (int64_t i = 0; i < x.shape.elements(); ++i) {
    const int64_t col = i % size.cols, member = i / size.cols / size.rows;
    const int64_t first = slope.shape.rank() == 2 ? member * slopes : 0;
    y.v[i] = x.v[i] > 0 ? x.v[i] : slope.v[first + (slopes > 1 ? col : 0)] * x.v[i];
  }
  return y;
}

/// z = weight_scale x W' + bias_scale b; operands without an ensemble axis serve every member.
inline Array dense(const Array& x, const Array& w, const Array& b, double weight_scale = 1,
                   double bias_scale = 1) {
  const Sizes sx(x.shape), sw(w.shape);
  const int64_t members = std::max(sx.members, sw.members);
  const bool ensemble = x.shape.rank() == 3 || w.shape.rank() == 3;
  Array z(ensemble ? Shape{members, sx.rows, sw.rows} : Shape{sx.rows, sw.rows});
  for (int64_t s = 0; s < members; ++s) {
    const int64_t x_at = x.shape.rank() == 3 ? s * sx.rows * sx.cols : 0;
    const int64_t w_at = w.shape.rank() == 3 ? s * sw.rows * sw.cols : 0;
    const int64_t b_at = b.shape.rank() == 2 ? s * sw.rows : 0;
    for (int64_t k = 0; k < sx.rows; ++k)
      for (int64_t o = 0; o < sw.rows; ++o) {
        double total = 0;
        for (int64_t i = 0; i < sx.cols; ++i)
          total += x.v[x_at + k * sx.cols + i] * w.v[w_at + o * sx.cols + i];
        z.v[(s * sx.rows + k) * sw.rows + o] = weight_scale * total + bias_scale * b.v[b_at + o];
      }
  }
  return z;
}

/// x / sqrt(mean of x^2 + eps) * gain; a row of zeros gives zeros.
inline Array rms_norm(const Array& x, const Array* gain, double eps) {
  const Sizes size(x.shape);
  Array y(x.shape);
  for (int64_t row = 0; row < size.members * size.rows; ++row) {
    const double* in = &x.v[row * size.cols];
    long double square = 0;
    for (int64_t c = 0; c < size.cols; ++c)
      square += static_cast<long double>(in[c]) * in[c] / static_cast<long double>(size.cols);
    const int64_t at = gain && gain->shape.rank() == 2 ? row / size.rows * size.cols : 0;
    for (int64_t c = 0; c < size.cols; ++c) {
      const double xhat = square > 0 ? static_cast<double>(in[c] / std::sqrt(square + eps)) : 0;
      y.v[row * size.cols + c] = gain ? xhat * gain->v[at + c] : xhat;
    }
  }
  return y;
}

/// (x - mean) / sqrt(var + eps) * gain + bias; a constant row gives the bias.
inline Array layer_norm(const Array& x, const Array* gain, const Array* bias, double eps) {
  const Sizes size(x.shape);
  Array y(x.shape);
  for (int64_t row = 0; row < size.members * size.rows; ++row) {
    const double* in = &x.v[row * size.cols];
    long double mean = 0, variance = 0;
    for (int64_t i = 0; i < size.cols; ++i) mean += in[i];
    mean /= size.cols;
    for (int64_t i = 0; i < size.cols; ++i) variance += (in[i] - mean) * (in[i] - mean);
    variance /= size.cols;
    const long double deviation = std::sqrt(variance + eps);
    for (int64_t i = 0; i < size.cols; ++i) {
      double out = deviation == 0 ? 0 : static_cast<double>((in[i] - mean) / deviation);
      if (gain) {
        const int64_t at = gain->shape.rank() == 2 ? row / size.rows * size.cols + i : i;
        out = out * gain->v[at] + bias->v[at];
      }
      y.v[row * size.cols + i] = out;
    }
  }
  return y;
}

/// The same down each member's columns.
inline Array batch_norm(const Array& x, const Array* gain, const Array* bias, double eps) {
  const Sizes size(x.shape);
  Array y(x.shape);
  for (int64_t member = 0; member < size.members; ++member)
    for (int64_t col = 0; col < size.cols; ++col) {
      const auto at = [&](int64_t row) { return (member * size.rows + row) * size.cols + col; };
      long double mean = 0, variance = 0;
      for (int64_t i = 0; i < size.rows; ++i) mean += x.v[at(i)];
      mean /= size.rows;
      for (int64_t i = 0; i < size.rows; ++i) variance += (x.v[at(i)] - mean) * (x.v[at(i)] - mean);
      const long double deviation = std::sqrt(variance / size.rows + eps);
      for (int64_t i = 0; i < size.rows; ++i) {
        double out = deviation == 0 ? 0 : static_cast<double>((x.v[at(i)] - mean) / deviation);
        if (gain) {
          const int64_t unit = gain->shape.rank() == 2 ? member * size.cols + col : col;
          out = out * gain->v[unit] + bias->v[unit];
        }
        y.v[at(i)] = out;
      }
    }
  return y;
}

inline Array transpose(const Array& x) {
  const Sizes size(x.shape);
  Array y(x.shape.rank() == 3 ? Shape{size.members, size.cols, size.rows}
                              : Shape{size.cols, size.rows});
  for (std::size_t i = 0; i < x.v.size(); ++i) {
    const auto at = static_cast<int64_t>(i), whole = size.rows * size.cols;
    y.v[at / whole * whole + at % size.cols * size.rows + at % whole / size.cols] = x.v[i];
  }
  return y;
}

/// Causal self-attention of sequences of `length` rows, a head at a time, in long double.
inline Array attention(const Array& qkv, int64_t length, int64_t heads) {
  const int64_t cols = qkv.shape[-1] / 3, width = cols / heads;
  const int64_t rows = qkv.shape.elements() / (3 * cols);
  Array y(qkv.shape.rank() == 3 ? Shape{qkv.shape[0], qkv.shape[1], cols} : Shape{rows, cols});
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t head = 0; head < heads; ++head) {
      const auto at = [&](int64_t of, int64_t which, int64_t c) {
        return static_cast<long double>(qkv.v[of * 3 * cols + which * cols + head * width + c]);
      };
      const int64_t first = row / length * length;
      std::vector<long double> score;
      for (int64_t j = first; j <= row; ++j) {
        score.push_back(0);
        for (int64_t c = 0; c < width; ++c) score.back() += at(row, 0, c) * at(j, 1, c);
        score.back() /= std::sqrt(static_cast<long double>(width));
      }
      const long double highest = *std::max_element(score.begin(), score.end());
      long double total = 0;
      for (long double& s : score) total += s = std::exp(s - highest);
      for (int64_t c = 0; c < width; ++c) {
        long double mixed = 0;
        for (int64_t j = first; j <= row; ++j) mixed += score[j - first] / total * at(j, 2, c);
        y.v[row * cols + head * width + c] = static_cast<double>(mixed);
      }
    }
  return y;
}

/// x + b for every row; b [S, p] has a row for each member.
inline Array add_bias(const Array& x, const Array& b) {
  const Sizes size(x.shape);
  Array y(x.shape);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    const auto at = static_cast<int64_t>(i), col = at % size.cols;
    const int64_t member = b.shape.rank() == 2 ? at / (size.rows * size.cols) : 0;
    y.v[i] = x.v[i] + b.v[member * size.cols + col];
  }
  return y;
}

inline Array add(const Array& a, const Array& b) {
  Array y(a.shape);
  for (std::size_t i = 0; i < y.v.size(); ++i) y.v[i] = a.v[i] + b.v[i];
  return y;
}
inline Array mul(const Array& a, const Array& b) {
  Array y(a.shape);
  for (std::size_t i = 0; i < y.v.size(); ++i) y.v[i] = a.v[i] * b.v[i];
  return y;
}

/// Sum over all but the ensemble axis.
inline Array sum(const Array& x) {
  const int64_t members = x.shape.members();
  Array y(x.shape.rank() >= 3 ? Shape{members} : Shape{});
  for (std::size_t i = 0; i < x.v.size(); ++i) y.v[i / (x.v.size() / members)] += x.v[i];
  return y;
}

inline Array mean(const Array& x) {
  const double n = static_cast<double>(x.v.size()) / static_cast<double>(x.shape.members());
  return map(sum(x), [n](double total) { return total / n; });
}

/// Mean squared error; a target without the ensemble axis serves every member.
inline Array mse(const Array& prediction, const Array& target) {
  Array squared(prediction.shape);
  for (std::size_t i = 0; i < squared.v.size(); ++i)
    squared.v[i] = std::pow(prediction.v[i] - target.v[i % target.v.size()], 2);
  return mean(squared);
}

}  // namespace oracle
