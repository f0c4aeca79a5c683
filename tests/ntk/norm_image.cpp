// The image of a norm: what bounds it, and how tight that makes a net's bound.
#include "../../ntk/norm_image.h"

#include <doctest/doctest.h>

#include "../../ntk/first_units.h"
#include "../sanitized.h"
#include "naive_tail.h"

namespace keel {
namespace {

// h of inputs near and far, and of some whose first layer is all off.
std::vector<Vector> some_h(const Net& net, std::uint64_t seed, int count) {
  const Naive naive(net);
  const auto inputs = static_cast<std::size_t>(net.input_width());
  std::vector<Vector> all;
  for (int at = 0; at < count; ++at) {
    Vector x = draws(inputs, seed * 10000 + static_cast<std::uint64_t>(at));
    for (double& value : x) value *= std::pow(10, -2.0 + 6.0 * at / count);
    all.push_back(naive.ahead(std::move(x)));
  }
  return all;
}

const std::vector<std::string> kSpecs = {
    "dense(6) relu dense(9) layernorm relu dense(1)",
    "dense(6) gelu dense(12) layernorm silu dense(1)",
    "dense(6) relu dense(5) layernorm(eps=1) gelu dense(1)",
    "dense(6) layernorm relu dense(9) layernorm relu dense(1)",
    "dense(9) layernorm silu dense(7) layernorm(affine=0) relu dense(1)",
    "dense(4) layernorm(eps=0.5) dense(6) gelu dense(8) layernorm relu dense(1)",
    "dense(5) dense(6) relu dense(9) layernorm dense(4) relu dense(1)",
    "dense(6) relu dense(9) layernorm relu dense(3) relu dense(1)",
    "dense(3) relu dense(12) layernorm dense(4) relu dense(1)",
    "dense(6) relu dense(9) rmsnorm relu dense(1)",
    "dense(6) rmsnorm gelu dense(9) rmsnorm relu dense(1)",
    "dense(6) softplus dense(12) layernorm softplus dense(1)",
    "dense(6) elu dense(12) layernorm elu(alpha=3) dense(1)",
    "dense(6) elu(alpha=0.3) dense(9) layernorm relu dense(1)",
    "dense(6) selu dense(12) layernorm selu dense(1)",
    "dense(6) prelu(per_unit=1) dense(12) layernorm prelu(per_unit=1) dense(1)",
    "dense(6) layernorm prelu(per_unit=1) dense(9) layernorm prelu dense(1)",
    "dense(6) layernorm elu dense(9) layernorm relu dense(1)",
    "dense(6) layernorm softplus dense(9) layernorm sigmoid dense(1)",
};

// Calls f(net, tail, seed) for every net whose image is bounded, and returns how many there were.
template <class F>
int for_each_image(F f) {
  int images = 0;
  for (const std::string& spec : kSpecs)
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      CAPTURE(spec);
      CAPTURE(seed);
      const Net net = random_net(spec, 2, seed);
      const Tail tail = tail_sum_of(net)[0].tail;
      if (!tail.set.image) continue;
      ++images;
      f(net, tail, seed);
    }
  return images;
}

TEST_CASE("norm_image: any lambda's bound holds for every input, and its subgradient supports it") {
  const int images = for_each_image([](const Net& net, const Tail& tail, std::uint64_t seed) {
    const NormSet& set = tail.set;
    const NormImage& image = *set.image;
    const auto rank = static_cast<std::size_t>(set.rank);
    const auto multipliers = [&](std::uint64_t from, double inner) {
      Vector x = draws(image.multipliers(), from);
      for (std::size_t i = rank; i < x.size(); ++i) {
        x[i] *= inner;
        if (image.not_negative(i)) x[i] = std::abs(x[i]);
      }
      return x;
    };
    const std::vector<Vector> h = some_h(net, seed, 60);
    for (double inner : {0.0, 0.3, 1.0}) {
      const Vector x = multipliers(seed + 40, inner), y = multipliers(seed + 80, inner);
      Vector slope(x.size()), other(x.size());
      const double at_x = image(x.data(), 1e-9, slope.data(), nullptr).bound,
                   at_y = image(y.data(), 1e-9, other.data(), nullptr).bound;
      for (const Vector& each : h) {
        const Vector u = coordinates(set, each);
        CHECK(dot(u, Vector(x.begin(), x.begin() + set.rank)) <= at_x + 1e-9);
      }
      double along = 0;
      for (std::size_t i = 0; i < x.size(); ++i) along += slope[i] * (y[i] - x[i]);
      CHECK(at_y >= at_x + along - 1e-4 * (1 + at_x));
    }
  });
  CHECK(images > 50);
}

TEST_CASE("tail_dual: with an image, any multipliers bound what the net does") {
  int images = 0;
  for_each_image([&](const Net& net, const Tail& tail, std::uint64_t seed) {
    if (tail.activations.size() != 1) return;
    ++images;
    const UnitRows rows(tail);
    const std::vector<Units> layers = {
        first_units(tail, rows, linear_intervals(tail.affine[0], tail.set))};
    const TailDual dual(rows, tail.set, layers, 1, rows.signs_alone(), true);
    const Affine& last = tail.affine.back();
    const auto at = [&](const Vector& x, Vector& gradient) {
      return dual(last.weight, last.bias[0], x, 1e-9, gradient).bound;
    };
    const auto multipliers = [&](std::uint64_t from) {
      Vector x = draws(dual.multipliers().size, from);
      for (std::size_t i = 0; i < x.size(); ++i)
        if (dual.multipliers().not_negative[i]) x[i] = std::abs(x[i]);
      return x;
    };
    const Vector x = multipliers(seed + 7), y = multipliers(seed + 70);
    Vector slope, other;
    const double at_x = at(x, slope), at_y = at(y, other);
    const Naive naive(net);
    for (const Vector& h : some_h(net, seed, 40)) CHECK(naive.behind(h)[0] <= at_x + 1e-9);
    double along = 0;
    for (std::size_t i = 0; i < x.size(); ++i) along += slope[i] * (y[i] - x[i]);
    CHECK(at_y >= at_x + along - 1e-4 * (1 + std::abs(at_x)));
  });
  CHECK(images > 40);
}

// The output over a fine grid of directions and lengths of the one or two inputs.
Interval over_grid(const Net& net) {
  const Naive naive(net);
  const bool one = net.input_width() == 1;
  Interval found{1e300, -1e300};
  for (int turn = 0; turn < (one ? 2 : 200); ++turn)
    for (int step = -60; step <= 120; ++step) {
      const double far = std::pow(10, step / 20.0), angle = turn * 3.14159265358979 / 100;
      const Vector x = one ? Vector{turn == 0 ? far : -far}
                           : Vector{far * std::cos(angle), far * std::sin(angle)};
      const double value = naive.behind(naive.ahead(x))[0];
      found = {std::min(found.low, value), std::max(found.high, value)};
    }
  return found;
}

TEST_CASE("net_bound: with cone and image, against every input of a plane") {
  double ratios = 0, whole_ratios = 0;
  int nets = 0;
  for (const char* spec : {"dense(16) relu dense(16) layernorm dense(1)",
                           "dense(16) relu dense(16) layernorm relu dense(1)",
                           "dense(16) layernorm relu dense(16) layernorm relu dense(1)",
                           "dense(16) layernorm gelu dense(16) layernorm gelu dense(1)",
                           "dense(16) layernorm silu dense(16) layernorm dense(1)",
                           "dense(16) gelu dense(16) layernorm dense(1)",
                           "dense(16) relu dense(16) layernorm dense(8) relu dense(1)",
                           "dense(16) relu dense(16) layernorm relu dense(8) relu dense(1)"})
    for (std::uint64_t seed = 0; seed < (test::kSanitized ? 1U : 4U); ++seed) {
      CAPTURE(spec);
      CAPTURE(seed);
      const Net net = random_net(spec, 1 + static_cast<std::int64_t>(seed % 2), seed);
      const Interval found = over_grid(net);
      const NetBound bound = bound_net(net);
      const Interval whole = bound_net(net, {.narrow = false}).outputs[0], at = bound.outputs[0];
      CHECK(at.low <= found.low);
      CHECK(found.high <= at.high);
      if (!bound.image) continue;
      ++nets;
      CHECK(at.high - at.low <= (whole.high - whole.low) * (1 + 1e-6));
      ratios += (found.high - found.low) / (at.high - at.low);
      whole_ratios += (found.high - found.low) / (whole.high - whole.low);
    }
  CHECK(nets > (test::kSanitized ? 6 : 25));
  CHECK(ratios / nets > 0.42);
  CHECK(whole_ratios / nets < 0.25);
}

// The part of `column` [n] that no combination of these columns is.
std::vector<long double> beyond(std::vector<std::vector<long double>> columns,
                                std::vector<long double> column) {
  columns.push_back(std::move(column));
  const auto along = [](const auto& a, const auto& b) {
    long double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  for (std::size_t j = 0; j < columns.size(); ++j) {
    for (int pass = 0; pass < 3; ++pass)
      for (std::size_t l = 0; l < j; ++l) {
        const long double share = along(columns[l], columns[j]);
        for (std::size_t i = 0; i < columns[j].size(); ++i) columns[j][i] -= share * columns[l][i];
      }
    if (j + 1 == columns.size()) break;
    const long double length = std::sqrt(along(columns[j], columns[j]));
    for (long double& value : columns[j]) value /= length;
  }
  return columns.back();
}

TEST_CASE("homogeneous: what cancels where inputs are nearly parallel is in the margins") {
  constexpr std::size_t kRows = 64;
  double worst = 0, beyond_margin_of_size = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    // Of two inputs and the bias, each a little of the next: 1e-4 of it is its own.
    const Vector first = draws(kRows, 3 * seed), second = draws(kRows, 3 * seed + 1),
                 third = draws(kRows, 3 * seed + 2);
    Affine map{kRows, 2, {}, {}};
    for (std::size_t i = 0; i < kRows; ++i) {
      map.weight.push_back(first[i]);
      map.weight.push_back(first[i] + 2e-4 * second[i]);
      map.bias.push_back(second[i] + 1e-4 * third[i]);
    }
    Vector generators(kRows + 1, 1);
    generators.back() = 0;
    const std::optional<Tail> tail = homogeneous(map, generators, LayerKind::relu);
    if (!tail) continue;
    std::vector<std::vector<long double>> given(3, std::vector<long double>(kRows + 1));
    for (std::size_t i = 0; i < kRows; ++i) {
      given[0][i] = map.weight[2 * i];
      given[1][i] = map.weight[2 * i + 1];
      given[2][i] = map.bias[i];
    }
    given[2][kRows] = 1;
    const Affine& made = tail->affine[0];
    const Vector sizes = output_sizes(made);
    for (std::size_t column = 0; column < 3; ++column) {
      std::vector<long double> of(kRows + 1);
      for (std::size_t i = 0; i <= kRows; ++i) of[i] = made.weight[3 * i + column];
      const std::vector<long double> error = beyond(given, of);
      for (std::size_t i = 0; i <= kRows; ++i) {
        const double off = static_cast<double>(std::abs(error[i]));
        double length = 0;
        for (std::size_t c = 0; c < 3; ++c) length += std::pow(made.weight[3 * i + c], 2);
        worst = std::max(worst, off / sizes[i]);
        beyond_margin_of_size = std::max(beyond_margin_of_size, off / std::sqrt(length));
      }
    }
  }
  CHECK(worst < 1e-2 * kMargin);
  CHECK(beyond_margin_of_size > 0.1 * kMargin);  // or there was nothing to tell
}

// Copies `values` over the net's parameter p, from its first element on.
void set_parameter(const Net& net, std::size_t p, const std::function<void(Vector&)>& change) {
  const Tensor home = net.layout().member_view(net.flat(), p, 0);
  Vector values = home.to_vector<double>();
  change(values);
  copy(home, Tensor::from(values, home.shape()));
}

TEST_CASE("net_bound: weights that make a cone flat, empty, or a line") {
  const char* spec = "dense(5) relu dense({}) layernorm relu dense(1)";
  const auto every = [](double value) {
    return [value](Vector& all) { std::fill(all.begin(), all.end(), value); };
  };
  for (int width : {1, 2, 3, 7, 20}) {
    CAPTURE(width);
    const std::string text = fmt::format(fmt::runtime(spec), width);
    const auto column = [&](std::size_t j, const std::function<double(std::size_t)>& to) {
      return [=](Vector& all) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i) all[5 * i + j] = to(i);
      };
    };
    const std::vector<std::pair<std::size_t, std::function<void(Vector&)>>> changes = {
        {0, every(0)},    // first weights
        {1, every(0)},    // first biases
        {1, every(-2)},   // units off near 0
        {2, every(0)},    // all columns 0
        {2, every(0.7)},  // constant columns: nothing, centred
        {2, column(0, [](std::size_t) { return -1.0; })},
        {2, column(1, [](std::size_t i) { return -1.0 - static_cast<double>(i); })},
        {2,
         [](Vector& all) {  // columns 0 and 1 the same, 2 and 3 opposite: no plane
           for (std::size_t i = 0; i < all.size(); i += 5)
             all[i + 1] = all[i], all[i + 3] = -all[i + 2];
         }},
        {3, every(0)},    // no bias
        {3, every(0.4)},  // nor a centred one
        {4, every(0)},    // no gain
        {6, every(0)},    // no output weights
    };
    for (std::size_t which = 0; which < changes.size(); ++which)
      for (std::uint64_t seed = 0; seed < (test::kSanitized ? 1U : 2U); ++seed) {
        CAPTURE(which);
        CAPTURE(seed);
        const Net net = random_net(text, 2, seed + 3);
        set_parameter(net, changes[which].first, changes[which].second);
        const Interval found = over_grid(net);
        const NetBound bound = bound_net(net, {.steps = 100, .image_steps = 200});
        CHECK(bound.outputs[0].low <= found.low);
        CHECK(found.high <= bound.outputs[0].high);
        CHECK(std::isfinite(bound.largest()));
        if (which == 7) CHECK(!bound.cone);
      }
  }
}

}  // namespace
}  // namespace keel
