// What a layer's quadratic multipliers take from the layer before.
#include "../../ntk/coupling.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../../ntk/net_bound.h"
#include "naive_tail.h"

namespace keel {
namespace {

// relu(dense(width)) of a Layer Norm's output, in three dimensions, into 6 units.
struct Case {
  explicit Case(std::uint64_t seed, bool crosses)
      : net(random_net("dense(8) layernorm relu dense(6) relu dense(1)", 2, seed)),
        tail(tail_sum_of(net)[0].tail),
        rows(tail) {
    units.from = tail.affine[1];
    units.from_sizes = weight_sizes(units.from);
    units.origin.assign(6, 0);
    units.scale.assign(6, 1);
    place = {.kappa = 0, .theta = 6, .shift = 14, .cross = 22, .slack = 30, .crosses = crosses};
    x = normal({31}, {seed, 9}, 1, DType::f64).to_vector<double>();
    if (!crosses) {
      place.slack = 22;
      x.resize(23);
    }
    coupling.move_to(units, rows, place, x);
  }
  // -d.P d + r.d, written out.
  double rest(const Vector& d, const Vector& u) const {
    const Vector y = rows.of(u);
    double sum = 0;
    for (std::size_t i = 0; i < d.size(); ++i) {
      const double cross = place.crosses ? x[place.cross + i] * y[i] : 0;
      sum += d[i] * (x[place.shift + i] + cross - coupling.theta()[i] * d[i]);
    }
    for (std::size_t j = 0; j < 6; ++j) {
      double z = 0;
      for (std::size_t i = 0; i < d.size(); ++i) z += units.from.weight[j * d.size() + i] * d[i];
      sum += x[place.kappa + j] * z * z;
    }
    return sum;
  }
  double bound(const Vector& u) const {
    double sum = coupling.constant();
    for (std::size_t a = 0; a < coupling.linear().size(); ++a) {
      sum += coupling.linear()[a] * u[a];
      for (std::size_t b = 0; b < u.size(); ++b)
        sum += u[a] * coupling.quadratic()[a * u.size() + b] * u[b];
    }
    return sum;
  }
  Net net;
  Tail tail;
  UnitRows rows;
  Units units;
  CouplingPlace place;
  Vector x;
  Coupling coupling;
};

TEST_CASE("coupling: the rest's maximum over all values is its bound, whatever the multipliers") {
  for (const bool crosses : {true, false})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      const Case with(seed, crosses);
      REQUIRE(with.coupling.finite());
      REQUIRE(with.rows.rank() == 3);
      Vector u = normal({3}, {seed, 1}, 0.5, DType::f64).to_vector<double>();
      const double bound = with.bound(u);
      // Ascent by coordinates, each exactly: the rest is concave.
      Vector d(8);
      for (int sweep = 0; sweep < 4000; ++sweep)
        for (double& part : d) {
          const double at = part;
          const auto rest = [&](double value) {
            part = value;
            return with.rest(d, u);
          };
          const double below = rest(at - 1), here = rest(at), above = rest(at + 1);
          part = at + 0.5 * (above - below) / (2 * here - above - below);
        }
      const double found = with.rest(d, u);
      CHECK(found <= bound + 1e-9 * (1 + with.coupling.size()));
      CHECK(found == doctest::Approx(bound).epsilon(1e-4));
    }
}

TEST_CASE("coupling: theta leaves P positive definite by the slack, and stays where it was made") {
  Case with(3, true);
  const Vector theta = with.coupling.theta();
  with.coupling.move_to(with.units, with.rows, with.place, with.x);
  CHECK(with.coupling.theta() == theta);
  Vector more = with.x;
  more[with.place.slack] += std::log(2.0);  // theta goes up by as much as the slack
  with.coupling.move_to(with.units, with.rows, with.place, more);
  for (std::size_t i = 0; i < theta.size(); ++i)
    CHECK(with.coupling.theta()[i] - theta[i] ==
          doctest::Approx(std::exp(with.x[with.place.slack])));
  more[with.place.kappa] = 1e300;
  more[with.place.kappa + 1] = std::numeric_limits<double>::infinity();
  with.coupling.move_to(with.units, with.rows, with.place, more);
  CHECK(!with.coupling.finite());
}

TEST_CASE("coupling: of two layers behind a norm, most of the bound is found") {
  double bounds = 0, largest = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    const Net net = random_net("dense(48) layernorm relu dense(48) relu dense(1)", 3, seed);
    const Interval found = found_ahead(net, 0), bound = bound_net(net, {.pieces = 0}).outputs[0];
    CHECK(bound.low <= found.low);
    CHECK(bound.high >= found.high);
    bounds += bound.high - bound.low;
    largest += found.high - found.low;
  }
  CHECK(largest > 0.7 * bounds);
}

}  // namespace
}  // namespace keel
