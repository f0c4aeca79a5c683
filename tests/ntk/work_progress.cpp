// What long work tells of itself: the truth, at no cost to its results, and it ends when told to.
#include "../../core/work_progress.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "../../core/threads.h"
#include "../../ntk/conjugate_gradients.h"
#include "../../ntk/empirical_kernel.h"
#include "../../ntk/infinite_kernel.h"
#include "../../ntk/regression.h"
#include "../bits.h"
#include "closed_kernel.h"

using namespace keel;
using test::draw_points;

namespace {

using std::int64_t;

/// Keeps what it hears.
struct Listener {
  std::vector<double> heard;
  WorkProgress ear() {
    return [this](double done) { heard.push_back(done); };
  }
  void check_all_done(std::size_t least) const {
    CHECK(heard.size() >= least);
    CHECK(std::is_sorted(heard.begin(), heard.end()));
    CHECK(heard.front() > 0);
    CHECK(heard.back() <= 1);
  }
};

struct Enough {};

/// Throws whenever it hears.
WorkProgress impatient(int& calls) {
  return [&calls](double) {
    ++calls;
    throw Enough{};
  };
}

/// Gram matrices of x with x and below their diagonals have the same bits with a listener.
void check_kernel(const Kernel& kernel, const Tensor& x, DType dtype, std::size_t least) {
  const auto points = kernel.points(x);
  const int64_t n = x.size(0);
  const auto filled = [&](bool lower, const WorkProgress& progress) {
    const Tensor into = Tensor::full({n, n}, -7, dtype);
    if (lower)
      kernel.gram_lower(*points, into, progress);
    else
      kernel.gram(*points, *points, into, progress);
    return into;
  };
  for (bool lower : {false, true}) {
    CAPTURE(lower);
    Listener listener;
    CHECK(same_bits(filled(lower, listener.ear()), filled(lower, {})));
    listener.check_all_done(least);
    int calls = 0;
    CHECK_THROWS_AS(filled(lower, impatient(calls)), Enough);
    CHECK(calls == 1);
  }
}

}  // namespace

TEST_CASE("work progress: kernels of infinite and of finite width") {
  {
    const ThreadLimit one(1);  // several come by as many tiles each as the machine lets them
    check_kernel(InfiniteKernel("dense(8) layernorm relu dense(1)", 3), draw_points(400, 3, 1),
                 DType::f32, 5);
  }
  // Strips of 512 rows need a matrix that is wide enough to be worth them.
  const Tensor many = draw_points(2100, 3, 2);  // two strips of 2^22 entries
  for (const int64_t members : {1, 2})
    for (DType dtype : {DType::f32, DType::f64})
      check_kernel(
          EmpiricalKernel(
              Net("dense(5) relu dense(2)", 3,
                  {.parameterisation = Parameterisation::ntk, .members = members, .dtype = dtype})),
          many, dtype, 2);
}

TEST_CASE("work progress: conjugate gradients tell the logarithm of the residual") {
  const int64_t n = 60;
  const Tensor b = draw_points(n, 2, 1);
  const LinearMap matrix = [&](const Tensor& v) {  // eigenvalues 1, 2, ..., 60
    const Tensor w = v.clone();
    for (int64_t i = 0; i < w.elements(); ++i)
      w.data<double>()[i] *= static_cast<double>(i / w.size(1) + 1);
    return w;
  };
  const LinearMap same = [](const Tensor& r) { return r.clone(); };
  const auto solved = [&](const WorkProgress& progress) {
    const Tensor x = Tensor::zeros({n, 2}, DType::f64);
    const CgResult result = conjugate_gradients(matrix, same, b, x, 1e-10, 200, progress);
    CHECK(result.outcome == CgResult::converged);
    return x;
  };
  Listener listener;
  CHECK(same_bits(solved(listener.ear()), solved({})));
  CHECK(listener.heard.size() > 20);
  CHECK(std::is_sorted(listener.heard.begin(), listener.heard.end()));
  CHECK(listener.heard.front() < 0.2);
  CHECK(listener.heard.back() == 1);
  int calls = 0;
  CHECK_THROWS_AS(solved(impatient(calls)), Enough);
}

TEST_CASE("work progress: a regression goes from stage to stage, and ends where it is told to") {
  const auto kernel = std::make_shared<InfiniteKernel>("dense(8) layernorm relu dense(1)", 3);
  const Tensor x = draw_points(600, 3, 1), y = draw_points(600, 1, 2),
               test = draw_points(1500, 3, 3);
  for (DType factor : {DType::f32, DType::f64}) {
    RegressionOptions options{.ridge = {.relative = 1e-3}, .factor = factor};
    const Regression quiet(kernel, x, y, options);
    std::vector<std::string> stages;
    std::map<std::string, std::vector<double>> heard;
    options.progress = [&](const char* stage, double done) {
      if (stages.empty() || stages.back() != stage) stages.push_back(stage);
      heard[stage].push_back(done);
    };
    const Regression told(kernel, x, y, options);
    CHECK(stages == std::vector<std::string>{"kernel", "factor", "solve"});
    for (const auto& entry : heard) {
      CAPTURE(entry.first);
      const std::vector<double>& done = entry.second;
      CHECK(done.front() == 0);
      CHECK(std::is_sorted(done.begin(), done.end()));
      CHECK(done.back() <= 1);
    }
    CHECK(heard["factor"].back() == doctest::Approx(1));
    CHECK(same_bits(told.alpha(), quiet.alpha()));

    Listener mean, variance;
    CHECK(same_bits(told.predict(test, mean.ear()), quiet.predict(test)));
    mean.check_all_done(2);
    CHECK(mean.heard.back() == 1);
    CHECK(same_bits(told.variance(test, variance.ear()), quiet.variance(test)));
    variance.check_all_done(6);
    CHECK(variance.heard.back() == 1);

    for (const char* last : {"kernel", "factor", "solve"}) {
      options.progress = [&](const char* stage, double) {
        if (stage == std::string(last)) throw Enough{};
      };
      CHECK_THROWS_AS(Regression(kernel, x, y, options), Enough);
    }
  }
}
