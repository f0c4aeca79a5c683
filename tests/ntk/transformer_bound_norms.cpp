// The interval that no prediction of a transformer leaves, wherever its norms stand.
#include "bounded_transformer.h"

using namespace keel;
using namespace keel::bounded;

namespace {

// The first parameter of what the embedding's norm is ahead of.
std::size_t behind_embedding(const TransformerNorms& norms) {
  return 3 + (norms.embedding ? norms.centred ? 2 : 1 : 0);
}

// What takes up attention, and hidden units: blocks add nothing.
void silence_blocks(const Transformer& net) {
  const TransformerNorms& norms = net.options().norms;
  std::size_t p = behind_embedding(norms);
  const std::size_t of_norm = norms.blocks ? norms.centred ? 2 : 1 : 0;
  for (std::int64_t half = 0; half < 2 * net.options().blocks; ++half) {
    p += of_norm + 2;
    scale_parameter(net, p++, 0);
    scale_parameter(net, p++, 0);
  }
}

}  // namespace

TEST_CASE("transformer bound: no sequence passes it, wherever norms stand") {
  for (const TransformerNorms& norms : test::all_norms()) {
    if (!norms.bound_all()) continue;
    CAPTURE(places_of(norms));
    CAPTURE(norms.centred);
    double closest = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Transformer net = drawn_transformer(seed, norms);
      const Interval proved = bound_transformer(net);
      const FoundOutputs found = search(net, seed + 100);
      CAPTURE(seed);
      check_within(found, proved);
      closest = std::max(closest, (found.high - found.low) / (proved.high - proved.low));
    }
    CHECK(closest > 0.7);
  }
}

// A Layer Norm of two units gives (1, -1) or (-1, 1), an RMSNorm of one unit 1 or -1, but for eps.
TEST_CASE("transformer bound: exact behind a last norm that gives two values") {
  for (const bool centred : {true, false})
    for (const bool blocks : {false, true})
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const Transformer net(
            {.length = 1,
             .width = centred ? 2 : 1,
             .heads = 1,
             .hidden = 3,
             .norms = {.embedding = false, .blocks = blocks, .last = true, .centred = centred},
             .seeds = {seed},
             .dtype = DType::f64});
        silence_blocks(net);
        test::shake_norms(net, seed);
        const Interval proved = bound_transformer(net);
        FoundOutputs found;
        for (const double x : {-1e6, 1e6}) found.look(net, Tensor::full({1, 1}, x, DType::f64));
        CAPTURE(seed);
        check_within(found, proved);
        CHECK(found.high == doctest::Approx(proved.high).epsilon(1e-6));
        CHECK(found.low == doctest::Approx(proved.low).epsilon(1e-6));
      }
}

// What an RMSNorm gives at a place lies in half a plane, too: of another than a Layer Norm's.
TEST_CASE("transformer bound: exact behind an embedding's norm where blocks add nothing") {
  for (const TransformerNorms& norms :
       {TransformerNorms{.centred = false}, TransformerNorms{.blocks = true},
        TransformerNorms{.blocks = true, .centred = false}}) {
    const Transformer net({.length = 3,
                           .width = 8,
                           .hidden = 2,
                           .blocks = 2,
                           .norms = norms,
                           .seeds = {4},
                           .dtype = DType::f64});
    silence_blocks(net);
    test::shake_norms(net, 4);
    const Interval proved = bound_transformer(net);
    FoundOutputs found;
    for (double angle = -1.57; angle < 1.57; angle += 1e-3)
      found.look(net, Tensor::full({1, 3}, 5 * std::tan(angle), DType::f64));
    check_within(found, proved);
    CHECK(found.high == doctest::Approx(proved.high).epsilon(1e-3));
    CHECK(found.low == doctest::Approx(proved.low).epsilon(1e-3));
  }
}

// Behind the last norm nothing else counts; in sums of blocks each part has its share.
TEST_CASE("transformer bound: what a last norm is given changes nothing") {
  TransformerOptions options = {
      .length = 2, .width = 6, .heads = 2, .hidden = 4, .seeds = {3}, .dtype = DType::f64};
  options.norms = norms_at("embedding,blocks,last").value();
  const Transformer net(options), other = net.clone();
  const std::size_t last = net.layout().entries().size() - 4;
  for (std::size_t p = 0; p < last; ++p) scale_parameter(other, p, 7);
  const Interval proved = bound_transformer(net), changed = bound_transformer(other);
  CHECK(changed.low == proved.low);
  CHECK(changed.high == proved.high);
  scale_parameter(other, last + 2, 2);
  CHECK(bound_transformer(other).high > 1.5 * proved.high);
}

TEST_CASE("transformer bound: each part of a block with norms counts") {
  TransformerOptions options = {.length = 2,
                                .width = 6,
                                .heads = 2,
                                .hidden = 4,
                                .blocks = 1,
                                .seeds = {3},
                                .dtype = DType::f64};
  options.norms = norms_at("embedding,blocks").value();
  const Transformer net(options);
  const auto size = [](const Interval& interval) { return interval.high - interval.low; };
  const double whole = size(bound_transformer(net));
  const std::size_t first = behind_embedding(options.norms);
  // Of attention's norm the gain, values' weight, what takes them up; the same of the ReLU layer.
  for (const std::size_t p : {first, first + 2, first + 4, first + 6, first + 8, first + 10}) {
    const Transformer without = net.clone();
    scale_parameter(without, p, 0);
    CAPTURE(p);
    CHECK(size(bound_transformer(without)) < 0.95 * whole);
    check_within(search(without, p), bound_transformer(without));
  }
}

TEST_CASE("transformer bound: where every norm is passed by, it says so") {
  TransformerOptions options = {.width = 4, .heads = 1, .hidden = 2, .dtype = DType::f64};
  for (const char* places : {"none", "blocks"}) {
    options.norms = norms_at(places).value();
    CHECK(refusal_of(Transformer(options)) ==
          fmt::format("transformer_bound: got a transformer with norms at '{}', wanted one behind "
                      "the embedding or ahead of the last layer: nothing bounds what passes all "
                      "norms by",
                      places));
  }
  for (const char* places : {"embedding,blocks", "blocks,last"}) {
    options.norms = norms_at(places).value();
    const Transformer large(options), bad(options);
    const std::size_t entries = large.layout().entries().size();
    for (std::size_t p = 0; p < entries; ++p) scale_parameter(large, p, 1e200);
    CHECK(
        refusal_of(large).starts_with("transformer_bound: got weights so large that a bound is ["));
    bad.layout().view(bad.flat(), entries - 5).data<double>()[0] = std::nan("");
    CHECK(refusal_of(bad).starts_with("transformer_bound: got nan in "));
  }
}
