#include "../../kernels/factor_gram_outputs.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../core/random.h"
#include "../gpu.h"
#include "../message_of.h"

using namespace keel;
using std::int64_t;

namespace {

Tensor draw(Shape shape, std::uint64_t stream, DType dtype = DType::f64) {
  return normal(shape, {23, stream}, 1, dtype);
}

struct Sizes {
  int64_t n, m, left, right;
};

}  // namespace

TEST_CASE("add_output_pairs: every entry, with v and without, on top of what is there") {
  for (const Sizes& sizes : {Sizes{1, 1, 1, 1},
                             {2, 3, 1, 4},
                             {5, 1, 3, 2},
                             {17, 33, 3, 3},
                             {0, 4, 2, 2},
                             {40, 40, 7, 7},
                             {2, 300, 2, 4}})
    for (const int which : {0, 1, 2}) {
      const bool with_v = which != 0;
      const DType dtype = which == 2 ? DType::f32 : DType::f64;
      const int64_t n = sizes.n, m = sizes.m, left = sizes.left, right = sizes.right;
      CAPTURE(n);
      CAPTURE(m);
      CAPTURE(with_v);
      CAPTURE(dtype);
      const Tensor u = draw({left * n, right * m}, 1, dtype), v = draw({n, m}, 2, dtype);
      const Tensor into = draw({n, m, left, right}, 3, dtype);
      const auto us = u.to_vector<double>(), vs = v.to_vector<double>(),
                 before = into.to_vector<double>();
      add_output_pairs(u, with_v ? v : Tensor(), 0.7, 0.2, false, into);
      const auto got = into.to_vector<double>();
      double worst = 0;
      for (int64_t k = 0; k < n; ++k)
        for (int64_t l = 0; l < m; ++l)
          for (int64_t c = 0; c < left; ++c)
            for (int64_t d = 0; d < right; ++d) {
              const int64_t e = ((k * m + l) * left + c) * right + d;
              const double second = with_v ? 0.7 * vs[k * m + l] + 0.2 : 0.7;
              const double wanted = before[e] + us[(c * n + k) * right * m + d * m + l] * second;
              worst = max_or_nan(worst, std::abs(got[e] - wanted));
            }
      CHECK(worst < (dtype == DType::f32 ? 1e-5 : 1e-14));
    }
}

TEST_CASE("add_output_pairs: a symmetric matrix needs its lower triangle alone") {
  for (const int64_t n : {1, 2, 33})
    for (const int64_t o : {1, 3}) {
      CAPTURE(n);
      CAPTURE(o);
      const auto mirrored = [](const Tensor& a, double above) {
        auto values = a.to_vector<double>();
        const int64_t size = a.size(0);
        for (int64_t i = 0; i < size; ++i)
          for (int64_t j = i + 1; j < size; ++j)
            values[i * size + j] = above == 0 ? values[j * size + i] : above;
        return Tensor::from(values, a.shape());
      };
      const Tensor drawn = draw({o * n, o * n}, 1), v = mirrored(draw({n, n}, 2), 0);
      const Tensor half = Tensor::zeros({n, n, o, o}, DType::f64), whole = half.clone();
      add_output_pairs(mirrored(drawn, std::nan("")), v, 2, 0.5, true, half);
      add_output_pairs(mirrored(drawn, 0), v, 2, 0.5, false, whole);
      CHECK(half.to_vector<double>() == whole.to_vector<double>());
    }
}

TEST_CASE("add_output_pairs: what does not fit is refused in one line") {
  const auto zeros = [](Shape shape) { return Tensor::zeros(shape, DType::f64); };
  const Tensor into = zeros({2, 3, 2, 2});
  const auto message = [&](const Tensor& u, const Tensor& v, bool symmetric) {
    return message_of([&] { add_output_pairs(u, v, 1, 0, symmetric, into); });
  };
  CHECK(message(zeros({4, 5}), {}, false) ==
        "add_output_pairs: got u [4, 5], into [2, 3, 2, 2]: they do not fit");
  CHECK(message(zeros({4, 6}), zeros({3, 2}), false) ==
        "add_output_pairs: got v [3, 2], into [2, 3, 2, 2]: they do not fit");
  CHECK(message(zeros({4, 6}), {}, true) ==
        "add_output_pairs: got into [2, 3, 2, 2], wanted [n, n, o, o] of a symmetric u");
}

TEST_CASE("add_output_pairs: CUDA agrees with the CPU") {
  if (!test::gpu_here("add_output_pairs: CUDA agrees with the CPU")) return;
  for (const int64_t n : {30, 200, 350})  // rows of 90, of 600, of 1050
    for (const bool symmetric : {false, true}) {
      CAPTURE(n);
      const Tensor u = draw({3 * n, 3 * n}, 1), v = draw({n, n}, 2);
      const Tensor here = Tensor::zeros({n, n, 3, 3}, DType::f64),
                   there = here.clone().to(Device::cuda());
      add_output_pairs(u, v, 0.7, 0.2, symmetric, here);
      add_output_pairs(u.to(Device::cuda()), v.to(Device::cuda()), 0.7, 0.2, symmetric, there);
      const auto a = here.to_vector<double>(), b = there.to_vector<double>();
      double worst = 0;
      for (std::size_t e = 0; e < a.size(); ++e) worst = max_or_nan(worst, std::abs(a[e] - b[e]));
      CHECK(worst < 1e-14);
    }
}
