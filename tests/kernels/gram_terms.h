// Terms of every kind for tests of factor_gram, and their sum by the plainest loops.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/factor_gram.h"
#ifdef KEEL_EMULATED_CUDA
#include "../emulated_cuda/block.h"
#endif

namespace gram_terms {

using namespace keel;  // NOLINT: a header of tests
using std::int64_t;

/// Compute capabilities that a build which emulates GPUs takes on in turn: of both products of
/// factor_gram. One that means nothing elsewhere.
#ifdef KEEL_EMULATED_CUDA
inline constexpr int kGpus[] = {86, 90};
#else
inline constexpr int kGpus[] = {0};
#endif

/// While it lives, the emulated GPU is of this compute capability.
class EmulatedGpu {
 public:
#ifdef KEEL_EMULATED_CUDA
  explicit EmulatedGpu(int capability) : before_(emulated::capability()) {
    emulated::capability() = {capability / 10, capability % 10};
  }
  ~EmulatedGpu() { emulated::capability() = before_; }

 private:
  emulated::Capability before_;
#else
  explicit EmulatedGpu(int) {}
  ~EmulatedGpu() {}
#endif
};

inline Tensor draw(Shape shape, std::uint64_t stream, DType dtype) {
  return normal(shape, {17, stream}, 1, dtype);
}

/// Terms of every kind: one piece of u, two pieces, without v, several columns or one.
inline std::vector<GramTerm> terms_of(int64_t n, int64_t m, DType dtype, Device device = {}) {
  std::uint64_t stream = 0;
  const auto side = [&](int64_t rows, const std::vector<int64_t>& u, int64_t v) {
    GramSide side;
    for (const int64_t cols : u)
      side.u.push_back(draw({rows, cols}, 100 + stream++, dtype).to(device));
    if (v > 0) side.v = draw({rows, v}, 200 + stream++, dtype).to(device);
    return side;
  };
  std::vector<GramTerm> terms;
  const auto add = [&](const std::vector<int64_t>& u, int64_t v, double scale, double offset) {
    GramSide left = side(n, u, v);
    terms.push_back({left, n == m ? left : side(m, u, v), scale, offset});
  };
  add({5}, 3, 0.5, 0.1);
  add({1, 9}, 1, 2, 0);
  add({20}, 0, 0.3, 0);
  add({1}, 33, 1, 0.01);
  return terms;
}

/// The sum of `terms` at (i, j) in double, and of the sizes of what is added.
struct Oracle {
  struct Side {
    std::vector<std::vector<double>> u;
    std::vector<int64_t> cols;
    std::vector<double> v;
    int64_t v_cols;
  };
  std::vector<std::pair<Side, Side>> sides;
  std::vector<GramTerm> terms;

  explicit Oracle(const std::vector<GramTerm>& from) : terms(from) {
    const auto read = [](const GramSide& side) {
      Side s{{}, {}, {}, 0};
      for (const Tensor& piece : side.u) {
        s.u.push_back(piece.to_vector<double>());
        s.cols.push_back(piece.size(1));
      }
      if (side.v.defined()) {
        s.v = side.v.to_vector<double>();
        s.v_cols = side.v.size(1);
      }
      return s;
    };
    for (const GramTerm& term : terms) sides.emplace_back(read(term.left), read(term.right));
  }

  double at(int64_t i, int64_t j) const {
    double total = 0;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const auto& [left, right] = sides[t];
      double u = 0, v = 0;
      for (std::size_t piece = 0; piece < left.u.size(); ++piece)
        for (int64_t k = 0; k < left.cols[piece]; ++k)
          u += left.u[piece][i * left.cols[piece] + k] * right.u[piece][j * left.cols[piece] + k];
      for (int64_t k = 0; k < left.v_cols; ++k)
        v += left.v[i * left.v_cols + k] * right.v[j * left.v_cols + k];
      total += terms[t].left.v.defined() ? u * (terms[t].scale * v + terms[t].offset)
                                         : u * terms[t].scale;
    }
    return total;
  }
};

/// How many entries are off by more than `tolerance` of the largest, or touched above the diagonal.
inline int wrong(const Tensor& into, const std::vector<GramTerm>& terms, double factor, bool lower,
                 double untouched, double tolerance) {
  const Oracle oracle(terms);
  const auto got = into.to_vector<double>();
  const int64_t n = into.size(0), m = into.size(1);
  int count = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j) {
      const double value = got[i * m + j];
      const bool right = lower && j > i
                             ? value == untouched
                             : std::abs(value - factor * oracle.at(i, j)) <= tolerance * 300;
      count += !right;
    }
  return count;
}

inline double tolerance_of(DType dtype) { return dtype == DType::f32 ? 1e-6 : 1e-14; }

}  // namespace gram_terms
