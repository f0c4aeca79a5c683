// The pair Program against the same maps by hand.
#include "../../kernels/kernel_pairs.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../core/tensor.h"
#include "../gpu.h"
#include "every_map.h"

using namespace keel;
using std::int64_t;

namespace {

PairState mixed(const KernelMap& map, PairState s, const double* kept1, const double* kept2) {
  const Form form = map.form;
  PairState sum{0, 0};
  for (int t = 0; t < map.mixture.terms; ++t)
    for (int u = 0; u < map.mixture.terms; ++u) {
      const double over1 = kept1[1 + t], over2 = kept2[1 + u];
      const PairState share =
          map.gain != 0
              ? mixture_share<true>(form, map, s, kept1[0], over1, t, kept2[0], over2, u)
              : mixture_share<false>(form, map, s, kept1[0], over1, t, kept2[0], over2, u);
      sum = {sum.k + share.k, sum.theta + share.theta};
    }
  return sum;
}

// One pair through the maps, a function call at a time.
PairState by_hand(const std::vector<KernelMap>& maps, double r1, double r2, double c) {
  PairState s{c, 0}, kept{0, 0};
  Diagonal d1{r1, 0, 0}, d2{r2, 0, 0};
  for (const KernelMap& map : maps) {
    double kept1[9] = {}, kept2[9] = {};
    follow(map, d1, [&](int row, double value) { kept1[row] = value; });
    follow(map, d2, [&](int row, double value) { kept2[row] = value; });
    switch (map.kind) {
      case KernelMap::Kind::dense:
        s = through_dense(map, s);
        break;
      case KernelMap::Kind::relu:
        s = through_relu(map.leaks(), map, s, kept1[0], kept2[0]);
        break;
      case KernelMap::Kind::mixture:
        s = mixed(map, s, kept1, kept2);
        break;
      case KernelMap::Kind::gaussians:
        s = map.gain != 0 ? through_gaussians<true>(map, s, kept1[0], kept2[0])
                          : through_gaussians<false>(map, s, kept1[0], kept2[0]);
        break;
      case KernelMap::Kind::layer_norm:
        s = map.gain != 0
                ? through_layer_norm<true>(map, s, kept1[0] * kept2[0], kept1[1] * kept2[1])
                : through_layer_norm<false>(map, s, kept1[0] * kept2[0], kept1[1] * kept2[1]);
        break;
      case KernelMap::Kind::keep:
        kept = s;
        break;
      case KernelMap::Kind::add:
        s = through_add(map, s, kept);
        break;
    }
  }
  return s;
}

struct Tile {
  std::vector<double> r1, r2, inner;
  KernelTile tile;
};

// Inputs 2 .. 2 + rows of the first table with 1 .. 1 + cols of the second.
Tile make_tile(const KernelMaps& maps, int64_t rows, int64_t cols) {
  Tile made;
  for (int64_t i = 0; i < rows + 2; ++i) made.r1.push_back(0.1 + static_cast<double>(i % 7));
  for (int64_t j = 0; j < cols + 1; ++j) made.r2.push_back(0.2 * static_cast<double>(j % 11));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      made.inner.push_back(std::sqrt(made.r1[2 + i] * made.r2[1 + j]) *
                           std::cos(0.1 * static_cast<double>((i * 31 + j) % 63)));
  const Device device = maps.device();
  const auto tensor = [&](const std::vector<double>& v, Shape shape) {
    return Tensor::from(v, shape).to(device);
  };
  made.tile.table_a = kernel_table(maps, tensor(made.r1, {rows + 2}));
  made.tile.table_b = kernel_table(maps, tensor(made.r2, {cols + 1}));
  made.tile.row = 2;
  made.tile.col = 1;
  made.tile.inner = tensor(made.inner, {rows, cols});
  made.tile.work = Tensor::empty({maps.work_tiles(), rows, cols}, DType::f64, device);
  return made;
}

}  // namespace

TEST_CASE("the pair program does to every pair what the maps do by hand, bit for bit") {
  for (const KernelMaps& maps : {KernelMaps(all_maps()), KernelMaps(maps_with_sums())})
    for (const auto& [rows, cols] :
         {std::pair<int64_t, int64_t>{1, 1}, {3, 257}, {2, 300}, {5, 31}}) {
      Tile made = make_tile(maps, rows, cols);
      for (bool theta : {true, false}) {
        made.tile.theta = theta;
        const Tensor into = Tensor::full({rows + 1, cols + 3}, -7, DType::f64);
        kernel_pairs(maps, made.tile, into, 1, 2);
        const std::vector<double> got = into.to_vector<double>();
        for (int64_t i = 0; i <= rows; ++i)
          for (int64_t j = 0; j < cols + 3; ++j) {
            const bool inside = i >= 1 && j >= 2 && j < cols + 2;
            double wanted = -7;
            if (inside) {
              const PairState s = by_hand(maps.host(), made.r1[i + 1], made.r2[j - 1],
                                          made.inner[(i - 1) * cols + j - 2]);
              wanted = theta ? s.theta : s.k;
            }
            REQUIRE(got[i * (cols + 3) + j] == wanted);
          }
      }
    }
}

TEST_CASE("the table holds each input's own K and Theta") {
  const KernelMaps maps(maps_with_sums());
  const std::vector<double> r = {0, 1e-30, 0.5, 1, 1e6, 1e60};
  const Tensor table = kernel_table(maps, Tensor::from(r, {6}));
  REQUIRE(table.size(0) == maps.table_rows());
  const std::vector<double> k = table[maps.table_rows() - 2].to_vector<double>();
  const std::vector<double> theta = table[maps.table_rows() - 1].to_vector<double>();
  for (std::size_t i = 0; i < r.size(); ++i) {
    const PairState s = by_hand(maps.host(), r[i], r[i], r[i]);
    CHECK(k[i] == s.k);
    CHECK(theta[i] == s.theta);
    CHECK(std::isfinite(theta[i]));
  }
}

TEST_CASE("float32 keeps what double computed, to a rounding") {
  const KernelMaps maps(all_maps());
  const Tile made = make_tile(maps, 4, 130);
  const Tensor wide = Tensor::empty({4, 130}, DType::f64), narrow = Tensor::empty({4, 130});
  kernel_pairs(maps, made.tile, wide, 0, 0);
  kernel_pairs(maps, made.tile, narrow, 0, 0);
  const std::vector<double> a = wide.to_vector<double>(), b = narrow.to_vector<double>();
  for (std::size_t e = 0; e < a.size(); ++e) REQUIRE(static_cast<float>(a[e]) == b[e]);
}

TEST_CASE("lower leaves entries above the diagonal alone") {
  const KernelMaps maps({dense_map(1, 0.5)});
  const int64_t rows = 3, cols = 520;
  Tile made = make_tile(maps, rows, cols);
  made.tile.lower = true;  // inputs 2, 3, 4 with 1, 2, ...
  const Tensor into = Tensor::full({rows, cols}, -7, DType::f64);
  kernel_pairs(maps, made.tile, into, 0, 0);
  const std::vector<double> got = into.to_vector<double>();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      REQUIRE(got[i * cols + j] == (j + 1 <= i + 2 ? made.inner[i * cols + j] + 0.5 : -7));
}

TEST_CASE("an input and itself are one, whatever rounding made of their inner product") {
  const KernelMaps maps({dense_map(1, 0), map_of(KernelMap::Kind::relu), dense_map(2, 0)});
  Tile made = make_tile(maps, 1, 1);
  const double r = made.r1[2];
  made.tile.table_b = made.tile.table_a;
  made.tile.col = 2;
  const Tensor into = Tensor::empty({1, 1}, DType::f64);
  const auto theta = [&](double c) {
    fill(made.tile.inner, c);
    kernel_pairs(maps, made.tile, into, 0, 0);
    return into.item();
  };
  made.tile.rounding = 1e-14;
  CHECK(theta(r) == 2 * r);
  CHECK(theta(r * (1 - 5e-15)) == 2 * r);
  CHECK(theta(r * (1 + 5e-15)) == 2 * r);
  CHECK(theta(r * (1 - 1e-12)) < 2 * r * (1 - 1e-8));
}

TEST_CASE("kernel_pairs refuses tables and targets that do not fit") {
  const KernelMaps maps(all_maps());
  Tile made = make_tile(maps, 2, 3);
  CHECK_THROWS_AS(kernel_pairs(maps, made.tile, Tensor::empty({2, 2}), 0, 0), ShapeError);
  CHECK_THROWS_AS(kernel_pairs(maps, made.tile, Tensor::empty({2, 3}), 0, 1), ShapeError);
  made.tile.row = 3;
  CHECK_THROWS_AS(kernel_pairs(maps, made.tile, Tensor::empty({2, 3}), 0, 0), ShapeError);
  CHECK_THROWS_WITH_AS(kernel_table(maps, Tensor::zeros({3, 2}, DType::f64)),
                       "kernel_table: got r [3, 2] of float64, wanted [n] of float64", ShapeError);
  CHECK_THROWS_WITH_AS(kernel_table(maps, Tensor::zeros({3})),
                       "kernel_table: got r [3] of float32, wanted [n] of float64", ShapeError);
}

TEST_CASE("maps of more terms than a mixture or a sum has room for are refused") {
  for (const int terms : {-1, Mixture::kMost + 1}) {
    KernelMap map{.kind = KernelMap::Kind::mixture};
    map.mixture.terms = terms;
    CHECK_THROWS_WITH_AS(
        KernelMaps({map}),
        fmt::format("kernel_maps: got a mixture of {} terms, wanted 0 to 8", terms).c_str(), Error);
  }
  for (const int terms : {-1, GaussianSum::kMost + 1}) {
    KernelMap map{.kind = KernelMap::Kind::gaussians};
    map.gaussians.terms = terms;
    CHECK_THROWS_WITH_AS(
        KernelMaps({map}),
        fmt::format("kernel_maps: got a sum of {} Gaussians, wanted 0 to 13", terms).c_str(),
        Error);
  }
}

TEST_CASE("the pair program gives the same on a GPU") {
  if (!test::gpu_here("kernel_pairs")) return;
  for (const std::vector<KernelMap>& list : {all_maps(), maps_with_sums()})
    for (DType dtype : {DType::f64, DType::f32}) {
      CAPTURE(list.size());
      const KernelMaps cpu(list), gpu(list, Device::cuda());
      const Tile here = make_tile(cpu, 33, 300), there = make_tile(gpu, 33, 300);
      const Tensor a = Tensor::empty({33, 300}, dtype);
      const Tensor b = Tensor::empty({33, 300}, dtype, Device::cuda());
      kernel_pairs(cpu, here.tile, a, 0, 0);
      kernel_pairs(gpu, there.tile, b, 0, 0);
      const std::vector<double> wanted = a.to_vector<double>(), got = b.to_vector<double>();
      for (std::size_t e = 0; e < wanted.size(); ++e)
        REQUIRE(got[e] == doctest::Approx(wanted[e]).epsilon(dtype == DType::f64 ? 1e-7 : 3e-7));
    }
}
