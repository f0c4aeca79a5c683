// Projections on cones, and the cone that a Layer Norm's output stays in.
#include "../../ntk/cone.h"

#include <doctest/doctest.h>

#include "naive_tail.h"

namespace keel {
namespace {

double length(const Vector& x) { return std::sqrt(dot(x, x)); }

// The nearest point of a cone of three generators in three dimensions: of each of its faces' spans,
// if inside the cone, the nearest of all.
Vector nearest_of_faces(const Vector& generators, const Vector& g) {
  Vector best(3);
  for (unsigned face = 1; face < 8; ++face) {
    // alternating projections' fixed point would do; a face of k <= 3 is solved by elimination
    std::vector<std::size_t> of;
    for (std::size_t j = 0; j < 3; ++j)
      if (face >> j & 1U) of.push_back(j);
    const std::size_t k = of.size();
    std::vector<Vector> system(k, Vector(k + 1));
    const auto row = [&](std::size_t a) {
      return Vector(generators.begin() + static_cast<std::ptrdiff_t>(3 * of[a]),
                    generators.begin() + static_cast<std::ptrdiff_t>(3 * of[a] + 3));
    };
    for (std::size_t a = 0; a < k; ++a) {
      for (std::size_t b = 0; b < k; ++b) system[a][b] = dot(row(a), row(b));
      system[a][k] = dot(row(a), g);
    }
    for (std::size_t a = 0; a < k; ++a)
      for (std::size_t b = 0; b < k; ++b) {
        if (a == b) continue;
        const double factor = system[b][a] / system[a][a];
        for (std::size_t c = 0; c <= k; ++c) system[b][c] -= factor * system[a][c];
      }
    Vector point(3);
    bool inside = true;
    for (std::size_t a = 0; a < k; ++a) {
      const double alpha = system[a][k] / system[a][a];
      inside = inside && alpha >= 0;
      for (std::size_t i = 0; i < 3; ++i) point[i] += alpha * row(a)[i];
    }
    Vector off(3), best_off(3);
    for (std::size_t i = 0; i < 3; ++i) off[i] = g[i] - point[i], best_off[i] = g[i] - best[i];
    if (inside && length(off) < length(best_off)) best = point;
  }
  return best;
}

TEST_CASE("cone: the projection is the nearest of all faces' points") {
  int cones = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Vector generators = draws(9, seed);
    const Cone cone(generators, 3);
    if (cone.empty()) continue;  // three in three dimensions: all but the flattest have a side
    ++cones;
    for (std::uint64_t at = 0; at < 10; ++at) {
      const Vector g = draws(3, 1000 + 10 * seed + at), want = nearest_of_faces(generators, g);
      Vector alpha;
      const Vector p = cone.project(g, alpha, 100000);
      CHECK(length(p) == doctest::Approx(length(want)).epsilon(1e-4));
      for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(p[i] - want[i]) < 1e-3 * length(g));
    }
  }
  CHECK(cones > 40);
}

TEST_CASE("cone: wherever descent stops, g . u <= p . u in the cone, and p is no longer than g") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    constexpr std::size_t kCount = 14, kRank = 9;
    Vector generators = draws(kCount * kRank, seed);
    for (std::size_t j = 0; j < kCount; ++j) generators[j * kRank] = 0.1 + std::abs(generators[j]);
    for (std::size_t i = 0; i < kRank; ++i) {
      generators[i] = 0;                                          // a generator of 0,
      generators[3 * kRank + i] = generators[2 * kRank + i] * 5;  // one twice
    }
    const Cone cone(generators, kRank);
    REQUIRE(!cone.empty());
    const Vector g = draws(kRank, seed + 500), weights = draws(kCount * 20, seed + 900);
    for (std::int64_t sweeps : {0, 1, 3, 100}) {
      Vector alpha = sweeps == 3 ? Vector(kCount - 1, 0.3) : Vector();
      const Vector p = cone.project(g, alpha, sweeps);
      CHECK(length(p) <= length(g));
      for (std::size_t at = 0; at < 20; ++at) {
        Vector u(kRank);
        for (std::size_t j = 0; j < kCount; ++j)
          for (std::size_t i = 0; i < kRank; ++i)
            u[i] += std::abs(weights[at * kCount + j]) * generators[j * kRank + i];
        CHECK(dot(g, u) <= dot(p, u) + 1e-12 * length(u));
      }
    }
  }
}

TEST_CASE("cone: p - g is on no generator's wrong side, not by a rounding either") {
  int moved = 0;
  for (std::int64_t sweeps : {10, 3000})
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      CAPTURE(sweeps);
      CAPTURE(seed);
      const std::size_t rank = 3 + seed % 4, count = rank + 2;
      Vector generators = draws(count * rank, seed);
      for (std::size_t j = 0; j < count; ++j)
        generators[j * rank] = 0.3 + std::abs(generators[j * rank]);
      const Cone cone(generators, static_cast<std::int64_t>(rank));
      REQUIRE(!cone.empty());
      const Vector g = draws(rank, seed + 1000);
      Vector alpha;
      const Vector p = cone.project(g, alpha, sweeps);
      moved += p != g;
      for (std::size_t j = 0; j < count; ++j) {
        long double along = 0;  // of numbers of 53 bits: next to exact
        for (std::size_t i = 0; i < rank; ++i)
          along += (static_cast<long double>(p[i]) - g[i]) * generators[j * rank + i];
        CHECK(along >= 0);
      }
    }
  CHECK(moved > 300);
}

TEST_CASE("cone: what no plane has on one side says nothing") {
  CHECK(Cone({}, 3).empty());
  CHECK(Cone({0, 0, 0, 0}, 2).empty());
  CHECK(Cone({1, 0, -1, 0}, 2).empty());
  CHECK(Cone({1, 0, -1, 1, -1, -1}, 2).empty());
  CHECK(Cone({1, 0, -1, 1e-9}, 2).empty());
  CHECK(!Cone({1, 0, -1, 1}, 2).empty());
  Vector alpha;
  CHECK(Cone({1, 0, -1, 0}, 2).project({3, 4}, alpha, 10) == Vector{3, 4});
  const Cone ray({0, 2}, 2);
  REQUIRE(!ray.empty());
  CHECK(ray.project({3, 4}, alpha, 10)[0] == doctest::Approx(0));
  CHECK(ray.project({3, 4}, alpha, 10)[1] == doctest::Approx(4));
  CHECK(length(ray.project({3, -4}, alpha, 10)) < 1e-6);
}

TEST_CASE("norm_set: every input's output is in the cone") {
  int cones = 0;
  for (const char* phi : {"relu", "gelu", "silu"})
    for (const char* widths :
         {"dense(5) {0} dense(12) layernorm dense(1)", "dense(5) {0} dense(4) layernorm dense(1)",
          "dense(9) {0} dense(10) layernorm(eps=2) {0} dense(1)",
          "dense(5) {0} dense(12) rmsnorm dense(1)"})
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const std::string spec = fmt::format(fmt::runtime(widths), phi);
        CAPTURE(spec);
        CAPTURE(seed);
        const Net net = random_net(spec, 2, seed);
        const NormSet set = first_tail(tail_sum_of(net)).set;
        if (set.cone.empty()) continue;
        ++cones;
        const Naive naive(net);
        const Vector xs = draws(200, seed + 77);
        for (std::size_t at = 0; at < 100; ++at) {
          const double far = std::pow(10, -2.0 + 0.06 * static_cast<double>(at));
          const Vector u = coordinates(set, naive.ahead({far * xs[2 * at], far * xs[2 * at + 1]}));
          Vector alpha;
          const Vector p = set.cone.project(u, alpha, 5000);
          for (std::size_t i = 0; i < u.size(); ++i) CHECK(std::abs(p[i] - u[i]) < 2e-3);
          CHECK(dot(u, set.cone.inward()) >= -1e-12);
        }
      }
  CHECK(cones > 25);
}

}  // namespace
}  // namespace keel
