#include "../../ntk/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "../message_of.h"

namespace keel {
namespace {

// f of each row of x.
template <class F>
RowFunction rowwise(F f) {
  return [f](const Tensor& x) {
    const std::vector<double> all = x.to_vector<double>();
    const auto d = static_cast<std::size_t>(x.size(1));
    std::vector<double> values;
    for (std::size_t at = 0; at < all.size(); at += d)
      values.push_back(f(std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(at),
                                             all.begin() + static_cast<std::ptrdiff_t>(at + d))));
    return values;
  };
}

double norm(const std::vector<double>& x) {
  double squares = 0;
  for (double value : x) squares += value * value;
  return std::sqrt(squares);
}

Tensor no_starts(std::int64_t width) { return Tensor::empty({0, width}, DType::f64); }

TEST_CASE("search: climbs to a peak between the rays") {
  // A narrow peak of height 2 at (3, -4, 12): |x| = 13.
  const std::vector<double> peak = {3, -4, 12};
  const auto f = rowwise([&](const std::vector<double>& x) {
    double squares = 0;
    for (std::size_t i = 0; i < 3; ++i) squares += (x[i] - peak[i]) * (x[i] - peak[i]);
    return 2 / (1 + squares / 4);
  });
  SearchOptions options;
  options.directions = 64;
  options.steps = 200;
  const Found found = search_largest(f, 3, no_starts(3), options);
  CHECK(found.value > 1.99);
  CHECK(found.value <= 2);
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(found.x[i] - peak[i]) < 0.2);
  CHECK(f(Tensor::from(found.x, {1, 3}))[0] == found.value);
  options.steps = 0;
  CHECK(search_largest(f, 3, no_starts(3), options).value < found.value);
}

TEST_CASE("search: more rays than are evaluated at once") {
  // Each point is asked for once, in parts; the largest of all is found, in whichever part it is.
  double largest = -1e300;
  std::vector<std::int64_t> parts;
  const auto spread = rowwise([&](const std::vector<double>& x) {
    const double value = std::sin(1e3 * x[0]) * std::cos(7e2 * x[1]) * norm(x);
    largest = std::max(largest, value);
    return value;
  });
  const RowFunction f = [&](const Tensor& x) {
    parts.push_back(x.size(0));
    return spread(x);
  };
  SearchOptions options;
  options.directions = 2500;
  options.steps = 0;
  const Found found = search_largest(f, 2, no_starts(2), options);
  CHECK(found.evaluations == 1 + (2 + 2500) * 2 * 33);
  CHECK(parts == std::vector<std::int64_t>{65536, 65536, found.evaluations - 2 * 65536});
  CHECK(found.value == largest);
  CHECK(spread(Tensor::from(found.x, {1, 2}))[0] == largest);
}

TEST_CASE("search: what grows is followed to the edge, and no further") {
  const auto f = rowwise([](const std::vector<double>& x) { return 2 * x[0] + x[1]; });
  const Found found = search_largest(f, 2, no_starts(2));
  CHECK(norm(found.x) <= 1e6 * (1 + 1e-12));
  CHECK(found.value > 0.999 * std::sqrt(5.0) * 1e6);
}

TEST_CASE("search: climbers begin on rays of their own, and follow a ridge to its top") {
  // Along the first axis 1, far and near. Elsewhere less, but for a ridge, steep on both sides,
  // with its top of 3 at (2, 6, 0).
  const auto f = [](double size) {
    return rowwise([size](const std::vector<double>& x) {
      if (x[0] > 0.999999 * norm(x)) return size;
      const double off = std::abs(3 * x[0] - x[1]) + std::abs(x[2]),
                   before = std::abs(x[0] + x[1] - 8);
      return size * std::max(-1e3, 3 - 2 * off - before);
    });
  };
  SearchOptions options;
  options.directions = 128;
  options.climbers = 8;
  for (const double size : {1.0, 1e200, 1e-200}) {
    CAPTURE(size);
    const Found found = search_largest(f(size), 3, no_starts(3), options);
    CHECK(found.value > 2.9 * size);
    CHECK(found.value <= 3 * size);
  }
}

TEST_CASE("search: fewer climb where there are many coordinates") {
  const auto f = rowwise([](const std::vector<double>& x) { return -norm(x); });
  SearchOptions options;
  options.directions = 64;
  options.radii = 1;
  options.steps = 1;
  const auto climbers = [&](std::int64_t width) {
    const std::int64_t rays = 1 + 2 * (64 + width);
    const std::int64_t climbed = search_largest(f, width, no_starts(width), options).evaluations;
    const auto of_one = static_cast<double>(2 * width + 1);
    return static_cast<double>(climbed - rays) / of_one - 1;  // less the best point's own climb
  };
  CHECK(climbers(8) == 32);
  CHECK(climbers(128) == 16);
  CHECK(climbers(1000) == 4);
}

TEST_CASE("search: of many coordinates a gradient that is given serves, and all climb") {
  SearchOptions options;
  options.directions = 0;
  options.radii = 1;
  options.steps = 50;
  // A ridge: nothing of it lies along an axis.
  const auto height = [](const std::vector<double>& x) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += i % 2 == 0 ? x[i] : -2 * x[i];
    return sum;
  };
  for (std::int64_t width : {63, 64, 200}) {
    CAPTURE(width);
    std::int64_t rows = 0;
    const RowGradient gradient = [&](const Tensor& x) {
      rows += x.size(0);
      std::vector<double> d_x(static_cast<std::size_t>(x.elements()), 1.0);
      for (std::size_t i = 0; i < d_x.size(); ++i)
        if (i % static_cast<std::size_t>(width) % 2 == 1) d_x[i] = -2;
      return Tensor::from(d_x, x.shape());
    };
    const Found found = search_largest(rowwise(height), width, no_starts(width), options, gradient);
    const std::int64_t rays = 1 + 2 * width;
    if (width < kManyCoordinates) {
      CHECK(rows == 0);
    } else {
      CHECK(rows == 50 * (32 + 1));
      CHECK(found.evaluations == rays + 2 * rows);
    }
    const auto pairs = static_cast<double>(width / 2), more = static_cast<double>(width % 2);
    CHECK(found.value > 0.95e6 * std::sqrt(5 * pairs + more));
    CHECK(found.value <= 1.000001e6 * std::sqrt(5 * pairs + more));
  }
  const auto with = [&](double slope, std::int64_t cols) {
    return search_largest(rowwise(height), 64, no_starts(64), options, [=](const Tensor& x) {
      return Tensor::full({x.size(0), cols}, slope, DType::f64);
    });
  };
  const double best_of_rays = 2e6;
  CHECK(with(std::numeric_limits<double>::quiet_NaN(), 64).value == doctest::Approx(best_of_rays));
  CHECK(message_of([&] { with(1, 63); }) ==
        "search: got gradients [32, 63] at 32 points of 64 coordinates");
}

TEST_CASE("search: directions of the starts are tried, both ways") {
  const std::vector<double> start = {0.6, 0.8};
  // Only a needle along -start counts.
  const auto f = rowwise([&](const std::vector<double>& x) {
    const double along = -(x[0] * 0.6 + x[1] * 0.8);
    return along > 0.999999 * norm(x) ? along : 0;
  });
  SearchOptions options;
  options.directions = 0;
  options.climbers = 0;
  CHECK(search_largest(f, 2, no_starts(2), options).value == 0);
  CHECK(search_largest(f, 2, Tensor::from(start, {1, 2}), options).value == doctest::Approx(1e6));
}

TEST_CASE("search: the same twice, counts what it looks at, and finds a peak at 0") {
  std::int64_t looked = 0;
  const auto peak = rowwise([](const std::vector<double>& x) { return -norm(x); });
  const RowFunction f = [&](const Tensor& x) {
    looked += x.size(0);
    return peak(x);
  };
  const Found one = search_largest(f, 2, no_starts(2));
  CHECK(looked == one.evaluations);
  CHECK(one.value == 0);
  CHECK(one.x == std::vector<double>{0, 0});
  const Found two = search_largest(f, 2, no_starts(2));
  CHECK(two.x == one.x);
  CHECK(two.evaluations == one.evaluations);
}

TEST_CASE("search: ranges are kept to, and a corner of them is found") {
  const auto f = rowwise([](const std::vector<double>& x) {
    CHECK(x[0] <= 2 + 1e-3);  // neighbours for differences may be a hair outside
    CHECK(x[1] >= 0.5 - 1e-3);
    return x[0] - 3 * x[1];
  });
  SearchOptions options{.farthest = 3, .ranges = {{-1, 2}, {0.5, 0.7}}, .directions = 8};
  options.steps = 50;
  const Found found = search_largest(f, 2, no_starts(2), options);
  CHECK(found.value == doctest::Approx(0.5));
  CHECK(found.x == std::vector<double>{2, 0.5});
}

TEST_CASE("search: points that are given are tried, and climbed from") {
  // A peak so narrow that no ray comes near it.
  const auto f = rowwise([](const std::vector<double>& x) {
    const double off = std::hypot(x[0] - 1.2345, x[1] + 0.4321);
    return std::max(0.0, 1 - 40 * off);
  });
  SearchOptions options{.farthest = 3, .directions = 4};
  options.steps = 200;
  CHECK(search_largest(f, 2, no_starts(2), options).value == 0);
  options.points = {{1.25, -0.43}};
  const Found found = search_largest(f, 2, no_starts(2), options);
  CHECK(found.value > 0.9);
  options.points = {{30, 40}};  // brought back to where it may look
  CHECK(search_largest(f, 2, no_starts(2), options).value == 0);
}

TEST_CASE("search: bad options and values that are no numbers are refused") {
  const auto f = rowwise([](const std::vector<double>& x) { return x[0]; });
  SearchOptions options;
  options.farthest = 1e-3;
  CHECK(message_of([&] { search_largest(f, 1, no_starts(1), options); }) ==
        "search: got |x| from 0.01 to 0.001, wanted 0 < nearest <= farthest, less than 1e308 times "
        "it");
  options.farthest = 1e308;
  CHECK(message_of([&] {
          search_largest(f, 1, no_starts(1), options);
        }).starts_with("search: got |x| from 0.01 to 1e+308, "));
  CHECK(message_of([&] { search_largest({}, 1, no_starts(1)); }) ==
        "search: got no function, wanted one to search");
  CHECK(message_of([&] { search_largest(f, 1, no_starts(2)); }) ==
        "search: got starts [0, 2], wanted [s, 1]");
  CHECK(message_of([&] { search_largest(f, 0, no_starts(0)); }) ==
        "search: got 0 coordinates, wanted at least 1");
  CHECK(message_of([&] {
          search_largest(f, 1, no_starts(1), {.ranges = {{0, 1}, {0, 1}}});
        }) == "search: got 2 ranges for 1 coordinates, wanted as many");
  CHECK(message_of([&] {
          search_largest(f, 1, no_starts(1), {.points = {{0, 1}}});
        }) == "search: got a point of 2 coordinates, wanted 1");
  const auto bad = rowwise([](const std::vector<double>& x) {
    return norm(x) > 10 ? std::numeric_limits<double>::quiet_NaN() : 0;
  });
  CHECK(message_of([&] {
          search_largest(bad, 1, no_starts(1));
        }).starts_with("search: the function is not a number at |x| = "));
}

}  // namespace
}  // namespace keel
