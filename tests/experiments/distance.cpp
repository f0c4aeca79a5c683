// How far nets can go by distance: the data, and a small run. (reproduce.cpp has the command.)
#include "../../experiments/distance.h"

#include <cmath>

#include "helpers.h"

namespace keel {
namespace {

TEST_CASE("distance: Friedman's function") {
  const double middle[] = {0.5, 1, 0.5, 0.5, 0.5}, corner[] = {1, 0.5, 1, 1, 1};
  CHECK(friedman(middle) == doctest::Approx(17.5));
  CHECK(friedman(corner) == doctest::Approx(30));
}

TEST_CASE("distance: nets without a norm go on with the distance, and those with one stay") {
  DistanceOptions options;
  options.seeds = 2;
  options.epochs = 60;
  options.rows = 40;
  options.width = 8;
  options.steps = 100;
  options.boxes = 2000;
  options.within = {0.1, 10, 1e3};
  int told = 0;
  options.progress = [&] { ++told; };
  const DistanceRun run = run_distance(options);
  CHECK(run.farthest_row > 2);
  CHECK(run.farthest_row < 4);
  REQUIRE(run.curves.size() == 8);
  CHECK(told == 24);
  for (const DistanceCurve& curve : run.curves) {
    CAPTURE(curve.net);
    REQUIRE(curve.at.size() == 3);
    for (const WithinDistance& at : curve.at) {
      CHECK(at.proved.low <= at.found.low);
      CHECK(at.found.low < at.found.high);
      CHECK(at.found.high <= at.proved.high);
    }
    for (std::size_t i = 0; i < 2; ++i) {  // nearer, no wider
      CHECK(curve.at[i].proved.low >= curve.at[i + 1].proved.low);
      CHECK(curve.at[i].proved.high <= curve.at[i + 1].proved.high);
    }
    const double grown = (curve.at[2].proved.high - curve.at[2].proved.low) /
                         (curve.at[1].proved.high - curve.at[1].proved.low);
    if (curve.net == 0)
      CHECK(grown == doctest::Approx(100).epsilon(0.2));
    else
      CHECK(grown < 3);
  }
  CHECK(run.curves[0].at[0].proved.high != run.curves[1].at[0].proved.high);
}

}  // namespace
}  // namespace keel
