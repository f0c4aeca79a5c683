#include "../../ntk/net_bound.h"

#include <doctest/doctest.h>

#include <limits>

#include "../message_of.h"
#include "../sanitized.h"
#include "naive_tail.h"

namespace keel {
namespace {

// The least and the largest output behind any h that the last norm may give: random ones, and
// random steps up and down from the best.
Interval found_behind(const Net& net, std::size_t output, std::uint64_t seed, int starts,
                      int steps) {
  const Naive naive(net);
  const Vector random = draws(naive.width * static_cast<std::size_t>(starts + 2 * steps), seed);
  auto next = random.begin();
  const auto direction = [&] {
    const auto from = next;
    next += static_cast<std::ptrdiff_t>(naive.width);
    return Vector(from, next);
  };
  Vector lowest, highest;
  Interval found;
  const auto try_at = [&](const Vector& h, double side) {
    const double value = naive.behind(h)[output];
    if (lowest.empty() || (side <= 0 && value < found.low)) found.low = value, lowest = h;
    if (highest.empty() || (side >= 0 && value > found.high)) found.high = value, highest = h;
  };
  for (int i = 0; i < starts; ++i)
    try_at(normed(direction(), i % 4 == 0 ? 0.25 * (i % 16) / 4 : 1, naive.centred), 0);
  for (double side : {-1.0, 1.0})
    for (int i = 0; i < steps; ++i) {
      Vector h = direction();
      const double length = std::pow(10, -3.0 * i / steps);
      const Vector& best = side < 0 ? lowest : highest;
      for (std::size_t j = 0; j < h.size(); ++j) h[j] = best[j] + length * h[j];
      try_at(normed(h, 1, naive.centred), side);
    }
  return found;
}

using Specs = std::vector<const char*>;

std::vector<std::string> filled(const Specs& specs, const std::string& phi, int width) {
  const auto fill = [&](std::string spec) {
    const auto put = [&](const std::string& what, const std::string& with) {
      for (std::size_t at = spec.find(what); at != spec.npos; at = spec.find(what))
        spec.replace(at, what.size(), with);
    };
    put("D", fmt::format("dense({})", width));
    put("P", phi);
    return spec;
  };
  std::vector<std::string> result;
  for (const char* spec : specs) result.push_back(fill(spec));
  return result;
}

void check_bounds(const Specs& specs, std::uint64_t seed) {
  for (const std::string phi :
       {"relu", "leakyrelu(slope=0.2)", "gelu", "silu", "tanh", "sigmoid", "softplus", "elu",
        "selu", "prelu(per_unit=1)", "gelu(tanh=1)", "silu(beta=3)"})
    for (int width : {1, 2, 3, 33})
      for (const std::string& spec : filled(specs, phi, width)) {
        const std::int64_t inputs = 1 + static_cast<std::int64_t>(seed % 3);
        ++seed;
        // A sanitizer sees all sizes in relu, and what else there is of code in three others.
        const bool other = phi == "silu" || phi == "tanh" || phi == "sigmoid";
        if (test::kSanitized && phi != "relu" && !(other && width <= 3)) continue;
        const Net net = random_net(spec, inputs, seed);
        NetBoundOptions options;
        options.steps = options.unit_steps = options.image_steps = options.unit_image_steps =
            options.piece_steps = 30;
        options.pieces = 8;  // a few cuts of each kind: how much they gain is branch's to say
        const NetBound narrow = bound_net(net, options);
        options.narrow = false;
        const NetBound whole = bound_net(net, options);
        REQUIRE(narrow.bounded);
        REQUIRE(narrow.outputs.size() == static_cast<std::size_t>(net.output_width()));
        for (std::size_t i = 0; i < narrow.outputs.size(); ++i) {
          CAPTURE(spec);
          CAPTURE(inputs);
          const Interval behind = found_behind(net, i, seed, 200, 200), ahead = found_ahead(net, i);
          CHECK(whole.outputs[i].low <= behind.low);
          CHECK(behind.high <= whole.outputs[i].high);
          CHECK(narrow.outputs[i].low <= ahead.low);
          CHECK(ahead.high <= narrow.outputs[i].high);
          CHECK(std::isfinite(narrow.largest()));
          // no straw man: the bound is of the size of what there is
          const double least = whole.activations > 1 ? 1e-3 : 1e-6;  // 30 steps leave a coupling
          CHECK(whole.outputs[i].high - whole.outputs[i].low <
                least + 20 * (behind.high - behind.low));
        }
      }
}

TEST_CASE("net_bound: neither what a Layer Norm can give nor any input found passes it") {
  check_bounds(
      {"D layernorm P dense(1)", "D P layernorm dense(2)", "D layernorm(affine=0) P D P dense(1)",
       "D P D layernorm(eps=0) P dense(2)", "D layernorm P D layernorm(eps=3) P dense(1)",
       "D P layernorm D P D P dense(1)", "D layernorm D dense(1)", "D layernorm P P dense(1)",
       "D layernorm layernorm(affine=0, eps=0) D P dense(2)"},
      0);
}

TEST_CASE("net_bound: nor what an RMSNorm can give") {
  check_bounds(
      {"D rmsnorm P dense(1)", "D P rmsnorm dense(2)", "D rmsnorm(affine=0) P D P dense(1)",
       "D P D rmsnorm P dense(2)", "D rmsnorm P D rmsnorm(eps=3) P dense(1)",
       "D layernorm P D rmsnorm P dense(1)", "D rmsnorm layernorm(affine=0) D P dense(2)"},
      1000);
}

TEST_CASE("net_bound: a linear tail's maximum is |c| + sqrt(d) |centred w g|, exactly") {
  for (int width : {2, 3, 33, 128}) {
    const Net net = random_net(fmt::format("dense({0}) relu layernorm dense(1)", width), 2, 7);
    const auto values = [&](std::size_t p) {
      return net.layout().member_view(net.flat(), p, 0).to_vector<double>();
    };
    const Vector gain = values(2), bias = values(3), w = values(4);
    Vector wg(gain.size());
    for (std::size_t i = 0; i < wg.size(); ++i) wg[i] = w[i] * gain[i];
    const double middle = values(5)[0] + dot(w, bias), mean = dot(wg, Vector(wg.size(), 1)) / width;
    const double reach = std::sqrt(width * (dot(wg, wg) - width * mean * mean));
    const NetBound bound = bound_net(net);
    CHECK(bound.activations == 0);
    CHECK(bound.outputs[0].high == doctest::Approx(middle + reach).epsilon(1e-8));
    CHECK(bound.outputs[0].low == doctest::Approx(middle - reach).epsilon(1e-8));
    CHECK(bound.largest() == doctest::Approx(std::abs(middle) + reach).epsilon(1e-8));
  }
  // Of RMSNorm nothing is centred.
  const Net root = random_net("dense(33) relu rmsnorm dense(1)", 2, 7);
  const Vector gain = root.values(2), w = root.values(3);
  double square = 0;
  for (std::size_t i = 0; i < w.size(); ++i) square += std::pow(w[i] * gain[i], 2);
  const NetBound of_root = bound_net(root);
  CHECK(of_root.kind == LayerKind::rmsnorm);
  CHECK(of_root.rank == 33);
  CHECK(of_root.outputs[0].high ==
        doctest::Approx(root.values(4)[0] + std::sqrt(33 * square)).epsilon(1e-8));
  // One unit: a Layer Norm gives 0, and the net is a constant.
  const Net one = random_net("dense(1) layernorm relu dense(1)", 1, 3);
  const NetBound bound = bound_net(one);
  const double value = one.predict(Tensor::full({1, 1}, 5.0, DType::f64)).to_vector<double>()[0];
  CHECK(bound.outputs[0].low == doctest::Approx(value).epsilon(1e-7));
  CHECK(bound.outputs[0].high == doctest::Approx(value).epsilon(1e-7));
}

TEST_CASE("net_bound: an ensemble and no steps are refused; no Layer Norm, no bound") {
  NetOptions options;
  options.members = 2;
  const Net two("dense(4) layernorm relu dense(1)", 2, options);
  CHECK(message_of([&] { bound_net(two); }) ==
        "net_bound: got a net of 2 members, wanted one: Net::member");
  CHECK(bound_net(two.member(1)).bounded);
  CHECK(message_of([&] { bound_net(two.member(0), {.steps = 0}); }) ==
        "net_bound: got 0 and 150 steps, wanted at least 1");
  for (const double lost : {std::nan(""), std::numeric_limits<double>::infinity()})
    for (const std::size_t p : {std::size_t{0}, std::size_t{4}}) {  // ahead of the norm, behind it
      const Net one = two.member(0);
      const Tensor weight = one.layout().view(one.flat(), p);
      fill(weight, lost);
      CHECK(message_of([&] { bound_net(one); }) ==
            fmt::format("net_bound: got {} in '{}', wanted finite numbers", lost,
                        one.layout().entries()[p].name));
    }
  Spec spec = two.spec();
  spec[1].eps = std::nan("");
  CHECK(message_of([&] { bound_net(Net(spec, 2)); }) ==
        "net_bound: got eps nan at word 2, wanted a number");
  const Net none("dense(4) relu dense(1)", 2);
  CHECK(!bound_net(none).bounded);
  CHECK(message_of([&] { tail_sum_of(none); }) ==
        "net_bound: got 'dense(4) relu dense(1)', wanted a layernorm, an rmsnorm, "
        "a tanh or a sigmoid");
  // The parameterisation is a way of writing the weights: scales belong to them.
  NetOptions ntk;
  ntk.parameterisation = Parameterisation::ntk;
  ntk.dtype = DType::f64;
  const Net scaled("dense(33) relu dense(33) layernorm dense(1)", 40, ntk);
  const Interval found = found_ahead(scaled, 0), bound = bound_net(scaled).outputs[0];
  CHECK(found.high <= bound.high);
  CHECK(found.high > 0.05 * bound.high);
}

}  // namespace
}  // namespace keel
