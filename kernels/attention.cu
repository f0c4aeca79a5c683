#include "attention.h"

#include <cmath>

#include "launch.cuh"
#include "math.h"
#include "transpose.h"

namespace keel {
namespace {

/// A row of a launch is a head of a token: row = token * heads + head, and token `t` of its
/// sequence, the sequence's first token `first`.
struct AttentionShape {
  int64_t length, heads, width;

  struct Place {
    int64_t token, head, t, first;
  };
  KEEL_HD Place place(int64_t row) const {
    const int64_t token = row / heads, t = token % length;
    return {token, row - token * heads, t, token - t};
  }
  KEEL_HD int64_t model() const { return heads * width; }
  KEEL_HD int64_t stride() const { return 3 * model(); }  // from one token's q, k and v to the next

  // Where a token's query of a head begins; its key and its value lie model() further each.
  KEEL_HD int64_t query(int64_t token, int64_t head) const {
    return token * stride() + head * width;
  }
  KEEL_HD int64_t output(int64_t token, int64_t head) const {
    return token * model() + head * width;
  }
  // Where, in the transposed tokens of a sequence, [3 model(), length], a head's key begins (1), or
  // its value (2).
  KEEL_HD int64_t across(int64_t first, int64_t head, int which) const {
    return first * stride() + (which * model() + head * width) * length;
  }
};

/// The largest of |a_0|, |a_step|, ..., n of them.
template <class T>
KEEL_HD T largest_of(int64_t n, const T* a, int64_t step) {
  T largest = 0;
  for (int64_t c = 0; c < n; ++c) {
    const T size = a[c * step] < 0 ? -a[c * step] : a[c * step];
    if (size > largest) largest = size;
  }
  return largest;
}

/// sum += the sum over begin <= j < end of weight(j) row(j): four at a time, as a CPU's group loads
/// and stores `sum` each time.
template <class Group, class Sum, class Weight, class Row>
KEEL_HD void add_weighted(Group g, int64_t width, int64_t begin, int64_t end, Sum& sum,
                          Weight weight, Row row) {
  int64_t j = begin;
  for (; j + 4 <= end; j += 4) {
    const auto a = weight(j), b = weight(j + 1), c = weight(j + 2), d = weight(j + 3);
    const auto *of_a = row(j), *of_b = row(j + 1), *of_c = row(j + 2), *of_d = row(j + 3);
    g.each(width,
           [&](auto i) { sum[i] += (a * of_a[i] + b * of_b[i]) + (c * of_c[i] + d * of_d[i]); });
  }
  for (; j < end; ++j) {
    const auto a = weight(j);
    const auto* of_a = row(j);
    g.each(width, [&](auto i) { sum[i] += a * of_a[i]; });
  }
}

/// Softmax over j <= t of q_t . k_j / sqrt(width), into weights [rows, length].
template <class T>
struct AttentionWeights {
  using Scalar = T;
  static constexpr bool kLongRuns = true, kRereads = true;
  static constexpr int kWidest = kLongestSequence;
  AttentionShape shape;
  T scale;
  const T *qkv, *transposed;
  T* weights;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const auto at = shape.place(row);
    const int64_t count = at.t + 1, length = shape.length;
    const T* query = qkv + shape.query(at.token, at.head);
    const T* keys = transposed + shape.across(at.first, at.head, 1);
    T* target = weights + row * length;

    auto score = g.zeros(count, target);
    add_weighted(
        g, count, 0, shape.width, score, [&](int64_t c) { return scale * query[c]; },
        [&](int64_t c) { return keys + c * length; });
    // An infinite score, or none at all where infinities cancel, is no zero when taken from itself.
    const T beyond = g.sum(count, [&](auto j) { return score[j] - score[j]; });
    if (beyond == 0) {
      const T highest = g.max(count, [&](auto j) { return score[j]; });
      g.each(count, [&](auto j) { score[j] = exponential(score[j] - highest); });
    } else {
      rescaled(g, count, query, keys, score);
    }
    const T total = g.sum(count, [&](auto j) { return score[j]; });
    g.store(count, target, [&](auto j) { return score[j] / total; });
  }

 private:
  // The same of q and k divided by powers of two. Their product is taken back where a score is
  // below the highest, and may then be minus infinity, of which the exponential is 0.
  template <class Group, class Row>
  KEEL_HD void rescaled(Group g, int64_t count, const T* query, const T* keys, Row& score) const {
    const int64_t width = shape.width, length = shape.length;
    const T of_query = power_of_two_in(largest_of(width, query, 1));
    const T of_keys =
        power_of_two_in(g.max(count, [&](auto j) { return largest_of(width, keys + j, length); }));
    g.each(count, [&](auto j) {
      T total = 0;
      for (int64_t c = 0; c < width; ++c)
        total += (query[c] / of_query) * (keys[c * length + j] / of_keys);
      score[j] = total;
    });
    const T highest = g.max(count, [&](auto j) { return score[j]; });
    g.each(count, [&](auto j) {
      const T below = (score[j] - highest) * scale;
      score[j] = below == 0 ? T(1) : exponential(below * of_query * of_keys);
    });
  }
};

/// out of a head of a token: the sum over j <= t of weight_j v_j.
template <class T>
struct MixValues {
  using Scalar = T;
  static constexpr bool kLongRuns = true, kRereads = true;
  static constexpr int kWidest = kLongestSequence;
  AttentionShape shape;
  const T *qkv, *weights;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const auto at = shape.place(row);
    const T* values = qkv + shape.query(at.first, at.head) + 2 * shape.model();
    T* target = out + shape.output(at.token, at.head);
    auto sum = g.zeros(shape.width, target);
    add_weighted(
        g, shape.width, 0, at.t + 1, sum,
        [&](int64_t j) { return weights[row * shape.length + j]; },
        [&](int64_t j) { return values + j * shape.stride(); });
    g.flush(shape.width, sum, target);
  }
};

/// Derivatives of q_t . k_j. With d_p_j = d_out . v_j, those of what softmax was taken of are
/// p_j (d_p_j - sum over i of p_i d_p_i).
template <class T>
struct PullWeights {
  using Scalar = T;
  static constexpr bool kLongRuns = true, kRereads = true;
  static constexpr int kWidest = kLongestSequence;
  AttentionShape shape;
  T scale;
  const T *transposed, *weights, *d_out;
  T* d_scores;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const auto at = shape.place(row);
    const int64_t count = at.t + 1, length = shape.length;
    const T* values = transposed + shape.across(at.first, at.head, 2);
    const T* d = d_out + shape.output(at.token, at.head);
    T* target = d_scores + row * length;
    const auto p = g.load(count, weights + row * length);
    auto d_p = g.zeros(count, target);
    add_weighted(
        g, count, 0, shape.width, d_p, [&](int64_t c) { return d[c]; },
        [&](int64_t c) { return values + c * length; });
    const T mean = g.sum(count, [&](auto j) { return p[j] * d_p[j]; });
    g.store(count, target, [&](auto j) { return p[j] * (d_p[j] - mean) * scale; });
  }
};

/// Derivatives of q, k and v of a head of a token: q of those before it, k and v of those behind.
template <class T>
struct PullTokens {
  using Scalar = T;
  static constexpr bool kLongRuns = true, kRereads = true;
  static constexpr int kWidest = kLongestSequence;
  AttentionShape shape;
  const T *qkv, *weights, *d_scores, *d_out;
  T* d_qkv;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const auto at = shape.place(row);
    const int64_t width = shape.width, length = shape.length, model = shape.model();
    T* target = d_qkv + shape.query(at.token, at.head);
    // What token i of the sequence makes of this one: an index to weights and d_scores.
    const auto seen_by = [&](int64_t i) {
      return ((at.first + i) * shape.heads + at.head) * length + at.t;
    };
    auto d_query = g.zeros(width, target);
    add_weighted(
        g, width, 0, at.t + 1, d_query, [&](int64_t j) { return d_scores[row * length + j]; },
        [&](int64_t j) { return qkv + shape.query(at.first + j, at.head) + model; });
    g.flush(width, d_query, target);

    auto d_key = g.zeros(width, target + model);
    add_weighted(
        g, width, at.t, length, d_key, [&](int64_t i) { return d_scores[seen_by(i)]; },
        [&](int64_t i) { return qkv + shape.query(at.first + i, at.head); });
    g.flush(width, d_key, target + model);

    auto d_value = g.zeros(width, target + 2 * model);
    add_weighted(
        g, width, at.t, length, d_value, [&](int64_t i) { return weights[seen_by(i)]; },
        [&](int64_t i) { return d_out + shape.output(at.first + i, at.head); });
    g.flush(width, d_value, target + 2 * model);
  }
};

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
          qkv.size(-1) % (3 * heads) == 0 && qkv.size(-1) / (3 * heads) <= kLongestSequence,
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
