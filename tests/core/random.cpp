#include "../../core/random.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "../../core/threads.h"

using namespace keel;

// Says so by the test's name.
static bool no_gpu() {
  if (cuda_device_count() == 0) MESSAGE("skipped: no GPU is visible");
  return cuda_device_count() == 0;
}

using Words = std::array<std::uint32_t, 4>;

// Philox4x32-10 from the text of Salmon et al. (2011), section 3.3: ten rounds, the key bumped
// between them by the golden ratio and by sqrt(3) - 1.
static Words philox(Words c, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

static std::array<double, 2> expected_uniform(RandomKey key, std::uint64_t index) {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const Words w = philox({low(index), low(index >> 32), low(key.stream), low(key.stream >> 32)},
                         low(key.seed), low(key.seed >> 32));
  const auto unit = [](std::uint32_t lo, std::uint32_t hi) {
    return std::ldexp(static_cast<double>((hi * (std::uint64_t{1} << 32) + lo) >> 11), -53);
  };
  return {unit(w[0], w[1]), unit(w[2], w[3])};
}

TEST_CASE("the test's own Philox gives Random123's published known answers") {
  CHECK(philox({0, 0, 0, 0}, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t kOnes = 0xffffffff;
  CHECK(philox({kOnes, kOnes, kOnes, kOnes}, kOnes, kOnes) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform draws are Philox4x32-10 of seed, stream and index") {
  // Known answer for a counter and a key of zeros, 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
  const auto zero = uniform({2}, {0, 0}, DType::f64).to_vector<double>();
  CHECK(zero[0] == std::ldexp(static_cast<double>(0xe169c58d6627e8d5u >> 11), -53));
  CHECK(zero[1] == std::ldexp(static_cast<double>(0x9b00dbd8bc57ac4cu >> 11), -53));

  for (const RandomKey key : {RandomKey{0, 0}, RandomKey{1, 0}, RandomKey{0, 1},
                              RandomKey{0x0123456789abcdef, 0xfedcba9876543210},
                              RandomKey{std::uint64_t{1} << 32, std::uint64_t{1} << 32}}) {
    const auto draws = uniform({1001}, key, DType::f64).to_vector<double>();
    int wrong = 0;
    for (std::size_t i = 0; i < draws.size(); ++i)
      wrong += draws[i] != expected_uniform(key, i / 2)[i % 2];
    CHECK(wrong == 0);
  }
}

TEST_CASE("normal draws are Box and Muller's of the same bits, times the deviation") {
  const RandomKey key{11, 12};
  const auto draws = normal({100}, key, 2.5, DType::f64).to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < draws.size(); i += 2) {
    const auto [u, v] = expected_uniform(key, i / 2);
    const double radius = 2.5 * std::sqrt(-2 * std::log1p(-u)), angle = 2 * std::acos(-1.0) * v;
    worst = max_or_nan(worst, std::abs(draws[i] - radius * std::cos(angle)));
    worst = max_or_nan(worst, std::abs(draws[i + 1] - radius * std::sin(angle)));
  }
  CHECK(worst < 1e-13);
}

TEST_CASE("uniform lies in [0, 1), and float32 is float64 cut to 24 bits") {
  const auto wide = uniform({1 << 20}, {5, 6}, DType::f64).to_vector<double>();
  const auto narrow = uniform({1 << 20}, {5, 6}).to_vector<float>();
  CHECK(*std::min_element(wide.begin(), wide.end()) >= 0);
  CHECK(*std::max_element(wide.begin(), wide.end()) < 1);
  CHECK(*std::max_element(narrow.begin(), narrow.end()) < 1.0f);
  int wrong = 0, would_round_up = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    wrong += narrow[i] != std::ldexp(static_cast<float>(std::floor(std::ldexp(wide[i], 24))), -24);
    would_round_up += static_cast<float>(wide[i]) > narrow[i];
  }
  CHECK(wrong == 0);
  CHECK(would_round_up > 1000);  // cutting is not rounding: the test above could tell
}

TEST_CASE("uniform draws fill their range evenly") {
  constexpr int kBins = 64, kDraws = 1 << 18;
  const auto draws = uniform({kDraws}, {1, 2}, DType::f64).to_vector<double>();
  std::array<double, kBins> count{};
  for (double u : draws) ++count[static_cast<std::size_t>(u * kBins)];
  double chi2 = 0;
  for (double c : count) chi2 += (c - kDraws / kBins) * (c - kDraws / kBins) / (kDraws / kBins);
  CHECK(chi2 < 107);  // 63 degrees of freedom: 1 in 2000
  CHECK(chi2 > 30);   // and not more even than chance
}

TEST_CASE("normal draws have the moments and tails of a normal distribution") {
  constexpr int n = 1 << 20;
  const auto z = normal({n}, {3, 4}, 1, DType::f64).to_vector<double>();
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, neighbours = 0, beyond = 0;
  for (int i = 0; i < n; ++i) {
    const double square = z[i] * z[i];
    m1 += z[i];
    m2 += square;
    m3 += square * z[i];
    m4 += square * square;
    neighbours += i + 1 < n ? z[i] * z[i + 1] : 0;
    beyond += std::abs(z[i]) > 3;
  }
  // Four standard errors each: Var z^k = 1, 2, 15, 96.
  const double error = 4 / std::sqrt(static_cast<double>(n));
  CHECK(std::abs(m1 / n) < error);
  CHECK(std::abs(m2 / n - 1) < error * std::sqrt(2.0));
  CHECK(std::abs(m3 / n) < error * std::sqrt(15.0));
  CHECK(std::abs(m4 / n - 3) < error * std::sqrt(96.0));
  CHECK(std::abs(neighbours / n) < error);
  CHECK(std::abs(beyond / n - 0.0026998) < error * std::sqrt(0.0027));
}

TEST_CASE("a float32 normal draw is the float64 draw, rounded") {
  const Tensor wide = normal({3, 33}, {8, 9}, 0.3, DType::f64),
               narrow = normal({3, 33}, {8, 9}, 0.3);
  CHECK(narrow.dtype() == DType::f32);
  CHECK(narrow.to_vector<float>() == wide.to(DType::f32).to_vector<float>());
  CHECK(normal({50}, {8, 9}, 0).to_vector<float>() == std::vector<float>(50, 0.0f));
}

TEST_CASE("shape and size do not change the draws, odd sizes included") {
  const auto all = normal({64}, {1, 1}).to_vector<float>();
  for (std::int64_t n : {1, 2, 3, 7, 33, 63}) {
    CAPTURE(n);
    CHECK(normal({n}, {1, 1}).to_vector<float>() ==
          std::vector<float>(all.begin(), all.begin() + n));
  }
  CHECK(normal({4, 4, 4}, {1, 1}).to_vector<float>() == all);
  CHECK(normal({}, {1, 1}).item() == all[0]);
  CHECK(uniform({0, 5}, {1, 1}).shape() == Shape{0, 5});
  CHECK(normal({3, 0}, {1, 1}, 1, DType::f64).elements() == 0);
}

TEST_CASE("the number of threads does not change a bit") {
  const auto draw = [](int threads) {
    const ThreadLimit limit(threads);
    return std::pair(uniform({100001}, {2, 3}, DType::f64).to_vector<double>(),
                     normal({100001}, {2, 3}, 1.5).to_vector<float>());
  };
  const auto one = draw(1), four = draw(4), seven = draw(7);
  CHECK(one == four);
  CHECK(one == seven);
}

TEST_CASE("seeds and streams name different sequences") {
  constexpr std::uint64_t kHigh = std::uint64_t{1} << 32;
  std::map<std::vector<double>, int> seen;
  const RandomKey keys[] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {kHigh, 0}, {0, kHigh}, {2, 0}, {0, 2}};
  for (const RandomKey& key : keys) ++seen[uniform({20}, key, DType::f64).to_vector<double>()];
  CHECK(seen.size() == std::size(keys));
  CHECK(permutation(100, {0, 0}) != permutation(100, {1, 0}));
  CHECK(permutation(100, {0, 0}) != permutation(100, {0, 1}));
  CHECK(permutation(100, {0, 1}) == permutation(100, {0, 1}));
}

TEST_CASE("a permutation is the same on every machine and in every version") {
  CHECK(permutation(8, {1, 2}) == std::vector<std::int64_t>{4, 2, 3, 7, 0, 6, 5, 1});
}

TEST_CASE("a permutation holds each index once") {
  for (std::int64_t n : {0, 1, 2, 3, 100, 10007}) {
    CAPTURE(n);
    auto order = permutation(n, {4, 5});
    CHECK(order.size() == static_cast<std::size_t>(n));
    if (n >= 100) CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> identity(static_cast<std::size_t>(n));
    std::iota(identity.begin(), identity.end(), 0);
    CHECK(order == identity);
  }
  CHECK_THROWS_WITH_AS(permutation(-1, {}), "permutation: got n = -1, wanted n >= 0", Error);
}

TEST_CASE("every order of four is as likely as any other") {
  constexpr int kDraws = 24000;
  std::map<std::vector<std::int64_t>, double> count;
  for (std::uint64_t i = 0; i < kDraws; ++i) ++count[permutation(4, {9, i})];
  REQUIRE(count.size() == 24);
  double chi2 = 0;
  for (const auto& [order, c] : count)
    chi2 += (c - kDraws / 24) * (c - kDraws / 24) / (kDraws / 24);
  CHECK(chi2 < 50);  // 23 degrees of freedom: 1 in 1000
  CHECK(chi2 > 6);
}

TEST_CASE("a GPU gets the CPU's draws") {
  if (no_gpu()) return;
  const Device gpu = Device::cuda();
  CHECK(normal({1001}, {1, 2}, 1, DType::f32, gpu).device() == gpu);
  CHECK(normal({1001}, {1, 2}, 1, DType::f32, gpu).to_vector<float>() ==
        normal({1001}, {1, 2}).to_vector<float>());
}
