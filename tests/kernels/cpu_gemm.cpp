// CpuGemm against plain loops in double: every way it reads and packs, edges, strides, threads.
#include "../../kernels/cpu_gemm.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "../../core/random.h"
#include "../../core/threads.h"

using namespace keel;
using std::int64_t;

namespace {

struct Sizes {
  int64_t m, n, k;
};

template <class T>
std::vector<T> draw(int64_t rows, int64_t row_stride, std::uint64_t stream) {
  return normal({rows * row_stride}, {5, stream}, 1, dtype_of<T>()).template to_vector<T>();
}

/// A product whose rows have `gap` elements between them.
template <class T>
struct Product {
  Sizes size;
  bool ta, tb;
  int64_t gap;
  int64_t lda() const { return (ta ? size.m : size.k) + gap; }
  int64_t ldb() const { return (tb ? size.k : size.n) + gap; }
  int64_t ldc() const { return size.n + gap; }
  std::vector<T> a = draw<T>(ta ? size.k : size.m, lda(), 1);
  std::vector<T> b = draw<T>(tb ? size.n : size.k, ldb(), 2);
  std::vector<T> before = draw<T>(size.m, ldc(), 3);
  std::vector<double> plain = sums();  ///< op(a) op(b)

  std::vector<T> run(T alpha, T beta, std::vector<T> c) const {
    CpuGemm<T>{ta,       tb,    size.m,   size.n, size.k,   alpha, beta,
               a.data(), lda(), b.data(), ldb(),  c.data(), ldc()}
        .run();
    return c;
  }

  std::vector<double> sums() const {
    std::vector<double> total(size.m * size.n);
    for (int64_t i = 0; i < size.m; ++i)
      for (int64_t l = 0; l < size.k; ++l) {
        const double left = a[ta ? l * lda() + i : i * lda() + l];
        for (int64_t j = 0; j < size.n; ++j)
          total[i * size.n + j] += left * double(b[tb ? j * ldb() + l : l * ldb() + j]);
      }
    return total;
  }

  double expected(double alpha, double beta, int64_t i, int64_t j) const {
    return alpha * plain[i * size.n + j] + (beta == 0 ? 0 : beta * double(before[i * ldc() + j]));
  }

  /// Largest error of `c`, over the sqrt(k) that an entry is worth; infinite where the gaps
  /// changed.
  double error(const std::vector<T>& c, double alpha, double beta) const {
    double worst = 0;
    for (int64_t i = 0; i < size.m; ++i)
      for (int64_t j = 0; j < ldc(); ++j) {
        const double got = c[i * ldc() + j];
        if (j >= size.n) {
          if (got != before[i * ldc() + j]) return std::numeric_limits<double>::infinity();
          continue;
        }
        worst = max_or_nan(worst, std::abs(got - expected(alpha, beta, i, j)));
      }
    return worst / std::sqrt(static_cast<double>(size.k));
  }
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void check_product(Sizes size, int64_t gap) {
  const double tolerance = 100 * std::numeric_limits<T>::epsilon();
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      CAPTURE(size.m);
      CAPTURE(size.n);
      CAPTURE(size.k);
      CAPTURE(gap);
      CAPTURE(ta);
      CAPTURE(tb);
      const Product<T> p{size, ta, tb, gap};
      const std::vector<T> c = p.run(T(0.5), T(2), p.before);
      CHECK(p.error(c, 0.5, 2) < tolerance);
      for (const int threads : {1, 2, 5}) {
        const ThreadLimit limit(threads);
        CHECK(same_bits(p.run(T(0.5), T(2), p.before), c));
      }
      CHECK(p.error(p.run(T(-1), T(1), p.before), -1, 1) < tolerance);
      // What c held is not read: not even a NaN of it.
      std::vector<T> nan = p.before;
      for (int64_t i = 0; i < size.m; ++i)
        for (int64_t j = 0; j < size.n; ++j)
          nan[i * p.ldc() + j] = std::numeric_limits<T>::quiet_NaN();
      CHECK(p.error(p.run(T(1), T(0), nan), 1, 0) < tolerance);
    }
}

}  // namespace

TEST_CASE("cpu_gemm: edges of tiles, in float32 and float64") {
  for (const int64_t m : {1, 5, 13, 25})
    for (const int64_t n : {1, 7, 16, 33})
      for (const int64_t k : {1, 3, 70}) {
        check_product<float>({m, n, k}, 0);
        check_product<double>({m, n, k}, 3);
      }
}

TEST_CASE("cpu_gemm: several blocks, strips and panels; rows far apart; threads across and along") {
  for (const Sizes& size : std::vector<Sizes>{{250, 40, 300},
                                              {16, 600, 520},
                                              {1, 700, 1100},
                                              {700, 1, 1100},
                                              {1, 530, 1},
                                              {40, 560, 257},
                                              {26, 544, 512}}) {
    check_product<float>(size, 0);
    check_product<double>(size, 0);
    check_product<float>(size, 5);
  }
}

TEST_CASE("cpu_gemm: a row of a small product has the same bits whatever stands beside it") {
  for (const bool tb : {false, true}) {
    const Product<float> all{{41, 130, 400}, false, tb, 0};
    REQUIRE(
        CpuGemm<float>{false, tb, 41, 130, 400, 1, 0, nullptr, 0, nullptr, 0, nullptr, 0}.small());
    const std::vector<float> whole = all.run(1, 0, all.before);
    for (const int64_t rows : {1, 2, 12, 30}) {
      Product<float> some = all;
      some.size.m = rows;
      const std::vector<float> part = some.run(1, 0, all.before);
      CHECK(std::memcmp(part.data(), whole.data(), sizeof(float) * rows * 130) == 0);
    }
  }
}
