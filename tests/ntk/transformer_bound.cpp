// The interval that no prediction of a transformer leaves: never left, and tight where it is exact.
#include "../../ntk/transformer_bound.h"

#include "bounded_transformer.h"

using namespace keel;
using namespace keel::bounded;

TEST_CASE("transformer bound: no sequence passes it") {
  double closest = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Transformer net = drawn_transformer(seed);
    // Queries so large that attention picks.
    if (seed % 3 == 0) scale_parameter(net, 5, 30);
    const Interval proved = bound_transformer(net);
    const FoundOutputs found = search(net, seed + 100);
    CAPTURE(seed);
    check_within(found, proved);
    closest = std::max(closest, (found.high - found.low) / (proved.high - proved.low));
  }
  CHECK(closest > 0.9);  // some are small enough to be known well
}

TEST_CASE("transformer bound: exact where blocks add nothing") {
  const Transformer net = without_blocks(3, 0);
  const Interval proved = bound_transformer(net);
  FoundOutputs found;
  for (double angle = -1.57; angle < 1.57; angle += 1e-3)
    found.look(net, Tensor::full({1, 3}, 5 * std::tan(angle), DType::f64));
  check_within(found, proved);
  CHECK(found.high == doctest::Approx(proved.high).epsilon(1e-3));
  CHECK(found.low == doctest::Approx(proved.low).epsilon(1e-3));
}

// Of such numbers double knows a few digits of what the Layer Norm sees.
TEST_CASE("transformer bound: an embedding that the Layer Norm sees nothing of, or only that") {
  for (const bool of_values : {true, false}) {
    TransformerOptions options;
    options.length = 2;
    options.width = 4;
    options.heads = 2;
    options.hidden = 3;
    options.dtype = DType::f64;
    const Transformer net(options);
    // Equal in all units: the mean takes it away. Places of zeros leave rows that are constant.
    for (const std::size_t p :
         of_values ? std::vector<std::size_t>{0} : std::vector<std::size_t>{1, 2}) {
      const Tensor view = net.layout().view(net.flat(), p);
      fill(view, of_values ? 0.7 : 0);
    }
    const Interval proved = bound_transformer(net);
    FoundOutputs found = search(net, 7);
    found.look(net, Tensor::zeros({1, 2}, DType::f64));
    check_within(found, proved);
  }
}

// 0.13 to 0.15; without what holds both blocks together 0.09.
TEST_CASE("transformer bound: behind two blocks a good part of it is found") {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Transformer net(
        {.length = 4, .width = 16, .heads = 2, .hidden = 64, .seeds = {seed}, .dtype = DType::f64});
    const Interval proved = bound_transformer(net);
    const FoundOutputs found = search(net, seed);
    CAPTURE(seed);
    check_within(found, proved);
    CHECK(found.high - found.low > 0.11 * (proved.high - proved.low));
  }
}

TEST_CASE("transformer bound: a member's, in float32 too") {
  TransformerOptions options;
  options.length = 3;
  options.width = 8;
  options.hidden = 6;
  options.seeds = {1, 2};
  const Transformer both(options);
  options.seeds = {2};
  const Interval one = bound_transformer(Transformer(options)), second = bound_transformer(both, 1);
  CHECK(second.low == one.low);
  CHECK(second.high == one.high);
  CHECK(bound_transformer(both, 0).high != one.high);
  CHECK_THROWS_WITH_AS(bound_transformer(both, 2),
                       "transformer_bound: got member 2, wanted one from 0 to 1", Error);
}

TEST_CASE("transformer bound: what it refuses") {
  const TransformerOptions options = {.width = 4, .heads = 1, .hidden = 2, .dtype = DType::f64};
  const Transformer large(options);
  scale_parameter(large, 7, 1e300);
  scale_parameter(large, 11, 1e300);
  CHECK(refusal_of(large).starts_with("transformer_bound: got weights so large that a bound is ["));
  // A unit's interval that is no number, though predictions are: 1e320 less all but a little of it.
  const Transformer lost(
      {.length = 1, .width = 4, .heads = 1, .hidden = 1, .blocks = 1, .dtype = DType::f64});
  for (std::size_t p = 7; p < 15; ++p) scale_parameter(lost, p, 0);
  const auto at = [&](std::size_t p) { return lost.layout().view(lost.flat(), p).data<double>(); };
  at(13)[0] = 1;
  const double far = lost.predict(Tensor::full({1, 1}, 1e30, DType::f64)).item();
  at(13)[0] = 0;
  at(3)[0] = at(9)[0] = 1e160;
  at(4)[0] = -std::nextafter(1e160 * std::abs(far), 0.0);
  at(11)[1] = 1e-300;
  at(13)[1] = 1;
  const Tensor out = lost.predict(Tensor::full({1, 1}, far < 0 ? -1e30 : 1e30, DType::f64));
  CHECK(std::isfinite(out.item()));
  CHECK(out.item() > 100);
  CHECK(refusal_of(lost).starts_with("transformer_bound: got weights so large that a bound is ["));
  // Of the embedding the bound needs nothing but directions.
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    const Transformer net(options);
    net.layout().view(net.flat(), 0).data<double>()[1] = bad;
    CHECK(refusal_of(net) ==
          fmt::format("transformer_bound: got {} in 0.weight, wanted finite numbers", bad));
  }
}
