// What a factorisation tells of itself, and that nothing depends on it.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/cholesky.h"
#include "../../kernels/triangle.h"

using namespace keel;

namespace {

/// Random entries with a diagonal that outweighs them.
Tensor dominant(std::int64_t n, DType dtype) {
  const Tensor a = normal({n, n}, {3, 0}, 1, dtype);
  swap_diagonal(a, Tensor::full({n}, 4 * static_cast<double>(n), dtype));
  return a;
}

}  // namespace

TEST_CASE("cholesky tells how far it is, with the same bits, and ends where it is told to") {
  for (DType dtype : {DType::f32, DType::f64}) {
    const Tensor a = dominant(1100, dtype);  // three panels of columns
    const Tensor quiet = a.clone(), told = a.clone();
    REQUIRE_FALSE(cholesky(quiet).has_value());
    std::vector<double> heard;
    REQUIRE_FALSE(cholesky(told, [&](double done) { heard.push_back(done); }).has_value());
    CHECK(heard.size() >= 5);
    CHECK(std::is_sorted(heard.begin(), heard.end()));
    CHECK(heard.front() > 0);
    CHECK(heard.back() == doctest::Approx(1).epsilon(1e-9));
    CHECK(told.to_vector<double>() == quiet.to_vector<double>());
    int calls = 0;
    const auto enough = [&](double) {
      if (++calls == 2) throw 7;
    };
    CHECK_THROWS_AS((void)cholesky(a, enough), int);
    CHECK(calls == 2);
  }
}
