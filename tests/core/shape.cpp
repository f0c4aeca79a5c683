#include "../../core/shape.h"

#include <doctest/doctest.h>

#include <limits>

using namespace keel;

TEST_CASE("a shape counts its elements, rows, columns and members") {
  struct Case {
    Shape shape;
    int rank;
    std::int64_t elements, rows, cols, members;
  };
  const Case cases[] = {
      {{}, 0, 1, 1, 1, 1},         {{5}, 1, 5, 1, 5, 1},
      {{0}, 1, 0, 1, 0, 1},        {{3, 4}, 2, 12, 3, 4, 1},
      {{0, 4}, 2, 0, 0, 4, 1},     {{3, 0}, 2, 0, 3, 0, 1},
      {{2, 3, 4}, 3, 24, 6, 4, 2}, {{2, 3, 4, 5}, 4, 120, 24, 5, 2},
      {{0, 3, 4}, 3, 0, 0, 4, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.shape.str());
    CHECK(c.shape.rank() == c.rank);
    CHECK(c.shape.elements() == c.elements);
    CHECK(c.shape.rows() == c.rows);
    CHECK(c.shape.cols() == c.cols);
    CHECK(c.shape.members() == c.members);
  }
}

TEST_CASE("axes count from either end") {
  const Shape shape{2, 3, 5};
  CHECK(shape[0] == 2);
  CHECK(shape[2] == 5);
  CHECK(shape[-1] == 5);
  CHECK(shape[-3] == 2);
  CHECK_THROWS_WITH_AS(shape[3], "shape: [2, 3, 5] has no axis 3", ShapeError);
  CHECK_THROWS_WITH_AS(shape[-4], "shape: [2, 3, 5] has no axis -4", ShapeError);
  CHECK_THROWS_WITH_AS(Shape()[0], "shape: [] has no axis 0", ShapeError);
  CHECK_THROWS_WITH_AS(Shape()[-1], "shape: [] has no axis -1", ShapeError);
}

TEST_CASE("shapes are equal where rank and sizes are") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK(Shape{} == Shape{});
  CHECK(Shape{2, 3} != Shape{3, 2});
  CHECK(Shape{2} != Shape{2, 1});
  CHECK(Shape{} != Shape{1});
  CHECK(Shape{} != Shape{0});
  CHECK(Shape{0, 3} != Shape{3, 0});
  Shape built;
  built.push_back(2);
  built.push_back(3);
  CHECK(built == Shape{2, 3});
}

TEST_CASE("a fifth axis is refused") {
  CHECK_THROWS_WITH_AS((Shape{1, 1, 1, 1, 1}), "shape: got 5 sizes, wanted at most 4", ShapeError);
  Shape shape{1, 2, 3, 4};
  CHECK_THROWS_WITH_AS(shape.push_back(5), "shape: got more than 4 sizes", ShapeError);
  CHECK(shape == Shape{1, 2, 3, 4});
}

TEST_CASE("a negative size is refused") {
  CHECK_THROWS_WITH_AS((Shape{2, -1}), "shape: got size -1, wanted >= 0", ShapeError);
  Shape shape{2};
  CHECK_THROWS_AS(shape.push_back(std::numeric_limits<std::int64_t>::min()), ShapeError);
  CHECK(shape == Shape{2});
}

TEST_CASE("sizes whose product overflows are refused") {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  CHECK(Shape{kMax}.elements() == kMax);
  CHECK(Shape{kMax, 1, 1}.elements() == kMax);
  CHECK_THROWS_WITH_AS((Shape{kHuge, kHuge}),
                       "shape: [1099511627776, 1099511627776] has more elements than 64 bits can "
                       "count",
                       ShapeError);
  CHECK_THROWS_AS((Shape{kMax, 2}), ShapeError);
  CHECK_THROWS_AS((Shape{2, 2, kMax}), ShapeError);
  // Wraps round to 0 and to a small number: an unchecked product would pass.
  CHECK_THROWS_AS((Shape{std::int64_t{1} << 32, std::int64_t{1} << 32}), ShapeError);
  CHECK_THROWS_AS((Shape{(std::int64_t{1} << 32) + 1, std::int64_t{1} << 32}), ShapeError);
}

TEST_CASE("an empty axis does not hide an overflow, wherever it stands") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  CHECK_THROWS_AS((Shape{0, kHuge, kHuge}), ShapeError);
  CHECK_THROWS_AS((Shape{kHuge, 0, kHuge}), ShapeError);
  CHECK_THROWS_AS((Shape{kHuge, kHuge, 0}), ShapeError);
  CHECK(Shape{0, kHuge, 2}.elements() == 0);
}

TEST_CASE("a refused axis leaves the shape as it was") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  Shape shape{kHuge};
  CHECK_THROWS_AS(shape.push_back(kHuge), ShapeError);
  CHECK(shape == Shape{kHuge});
  CHECK(shape.rank() == 1);
}
