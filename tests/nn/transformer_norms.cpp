// Where a transformer's norms stand, as a text.
#include "../../nn/transformer_norms.h"

#include <doctest/doctest.h>

#include "../norm_places.h"

using namespace keel;

TEST_CASE("transformer norms: a text names their places, and is read back") {
  CHECK(places_of({}) == "embedding");
  CHECK(places_of({.embedding = false}) == "none");
  CHECK(places_of({.embedding = false, .blocks = true, .last = true}) == "blocks,last");
  for (const TransformerNorms& norms : test::all_norms()) {
    TransformerNorms back = norms_at(places_of(norms)).value();
    CHECK(back.centred);
    back.centred = norms.centred;
    CHECK(back == norms);
  }
  CHECK(norms_at("last,blocks") == norms_at("blocks,last"));
  for (const char* text : {"", ",", "none,last", "last,", ",last", "Last", "blocks last", "all"}) {
    CAPTURE(text);
    CHECK_FALSE(norms_at(text).has_value());
  }
}
