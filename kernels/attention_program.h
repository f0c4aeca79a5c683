// Causal self-attention, forward and backward, as Programs: the same text runs on every device.
//
//   out_t = sum over j <= t of p_j v_j,  p = softmax of q_t . k_j / sqrt(width)
//   Vaswani et al., Attention Is All You Need (2017), eq. 1.
//
// Two launches each way, with the p or their derivatives in memory between them, as no row may read
// what another wrote in the same launch.
#pragma once

#include "attention.h"
#include "group.h"
#include "math.h"

namespace keel {

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

namespace detail {

template <class T>
KEEL_HD T magnitude(T x) {
  return x < 0 ? -x : x;
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

}  // namespace detail

/// Softmax over j <= t of q_t . k_j / sqrt(width), into weights [rows, length].
template <class T>
struct AttentionWeights {
  using Scalar = T;
  static constexpr bool kRereads = true, kApart = true;
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
    detail::add_weighted(
        g, count, 0, shape.width, score, [&](int64_t c) { return scale * query[c]; },
        [&](int64_t c) { return keys + c * length; });
    T total = normalise(g, count, score, 1, 1);
    if (!(total > 0)) total = rescaled(g, count, query, keys, score);
    const T share = 1 / total;
    g.store(count, target, [&](auto j) { return score[j] * share; });
  }

 private:
  // Scores, times both factors, become exponentials relative to the highest's; returns their sum.
  // It is NaN where a score is infinite, or none at all as infinities cancelled: 0 times that.
  template <class Group, class Row>
  KEEL_HD static T normalise(Group g, int64_t count, Row& score, T factor, T other) {
    const T highest = g.max(count, [&](auto j) { return score[j]; });
    g.each(count, [&](auto j) {
      score[j] = exponential((score[j] - highest) * factor * other) + 0 * score[j];
    });
    return g.sum(count, [&](auto j) { return score[j]; });
  }

  // The same of q and k times powers of two, so that all lies within (-8, 8). Those are taken back
  // where a score is below the highest, and may then be minus infinity, of which the exponential is
  // 0.
  template <class Group, class Row>
  KEEL_HD T rescaled(Group g, int64_t count, const T* query, const T* keys, Row& score) const {
    T largest_query = 0, largest_key = 0;
    for (int64_t c = 0; c < shape.width; ++c) {
      const T* key = keys + c * shape.length;
      const T largest = g.max(count, [&](auto j) { return detail::magnitude(key[j]); });
      if (largest > largest_key) largest_key = largest;
      if (detail::magnitude(query[c]) > largest_query) largest_query = detail::magnitude(query[c]);
    }
    const T of_query = power_of_two_in(largest_query) / 4;
    const T of_keys = power_of_two_in(largest_key) / 4;
    const T shrink_query = scale / of_query, shrink_key = 1 / of_keys;
    g.each(count, [&](auto j) { score[j] = 0; });
    for (int64_t c = 0; c < shape.width; ++c) {
      const T* key = keys + c * shape.length;
      const T factor = query[c] * shrink_query;
      g.each(count, [&](auto j) { score[j] += factor * (key[j] * shrink_key); });
    }
    return normalise(g, count, score, of_query, of_keys);
  }
};

/// out of a head of a token: the sum over j <= t of weight_j v_j.
template <class T>
struct MixValues {
  using Scalar = T;
  static constexpr bool kLongRuns = true, kRereads = true, kApart = true;
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
    detail::add_weighted(
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
  static constexpr bool kRereads = true, kApart = true;
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
    detail::add_weighted(
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
  static constexpr bool kApart = sizeof(T) == 4;  // doubles would spill
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
    detail::add_weighted(
        g, width, 0, at.t + 1, d_query, [&](int64_t j) { return d_scores[row * length + j]; },
        [&](int64_t j) { return qkv + shape.query(at.first + j, at.head) + model; });
    g.flush(width, d_query, target);

    auto d_key = g.zeros(width, target + model);
    detail::add_weighted(
        g, width, at.t, length, d_key, [&](int64_t i) { return d_scores[seen_by(i)]; },
        [&](int64_t i) { return qkv + shape.query(at.first + i, at.head); });
    g.flush(width, d_key, target + model);

    auto d_value = g.zeros(width, target + 2 * model);
    detail::add_weighted(
        g, width, at.t, length, d_value, [&](int64_t i) { return weights[seen_by(i)]; },
        [&](int64_t i) { return d_out + shape.output(at.first + i, at.head); });
    g.flush(width, d_value, target + 2 * model);
  }
};

}  // namespace keel
