#include "../../nn/layout.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "../../nn/net.h"
#include "../bits.h"
#include "../message_of.h"

using namespace keel;

TEST_CASE("net: float32 begins with what float64 does, rounded") {
  for (const auto weights : {Distribution::normal, Distribution::uniform}) {
    const char* spec = "dense(30) relu dense(2)";
    const Net narrow(spec, 5, {.weights = weights});
    const Net wide(spec, 5, {.dtype = DType::f64, .weights = weights});
    CHECK(same_bits(narrow.flat(), wide.flat().to(DType::f32)));
  }
}

TEST_CASE("net: a layout has parameters and members of its own alone, and a seed for each") {
  const Net one("dense(2)", 3), two("dense(2)", 3, {.members = 2});
  for (const Net* net : {&one, &two}) {
    const std::string last = std::to_string(net->members() - 1);
    for (const std::int64_t member : {std::int64_t{-1}, net->members()})
      CHECK(message_of([&] { net->layout().member_view(net->flat(), 0, member); }) ==
            "layout: got member " + std::to_string(member) + ", wanted one from 0 to " + last);
    CHECK(message_of([&] { net->layout().view(net->flat(), 2); }) ==
          "layout: got parameter 2, wanted one from 0 to 1");
    CHECK(net->first_parameter(1) == 2);
    CHECK_THROWS_AS(net->first_parameter(2), std::out_of_range);
  }
  const std::vector<std::uint64_t> seeds = {1, 2, 3};
  CHECK(message_of([&] { initial_values(two.layout(), seeds, DType::f32); }) ==
        "initial_values: got 3 seeds, wanted one of each of 2 members");
}

TEST_CASE("net: layers that the text of a SPEC cannot say are refused") {
  CHECK(message_of([] { Net(Spec{{.kind = LayerKind::dense, .width = 0}}, 3); }) ==
        "dense: got width 0, wanted at least 1");
  CHECK(message_of([] {
          Net({{.kind = LayerKind::leakyrelu, .slope = 2}, {.kind = LayerKind::dense, .width = 1}},
              3);
        }) == "activation: got slope 2, wanted 0 to 1");
}
