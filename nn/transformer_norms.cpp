#include "transformer_norms.h"

#include <algorithm>
#include <iterator>

namespace keel {
namespace {

struct Place {
  const char* name;
  bool TransformerNorms::*there;
};

constexpr Place kPlaces[] = {{"embedding", &TransformerNorms::embedding},
                             {"blocks", &TransformerNorms::blocks},
                             {"last", &TransformerNorms::last}};
constexpr const char* kNone = "none";

}  // namespace

std::string places_of(const TransformerNorms& norms) {
  std::string places;
  for (const Place& place : kPlaces)
    if (norms.*place.there) places += (places.empty() ? "" : ",") + std::string(place.name);
  return places.empty() ? kNone : places;
}

std::optional<TransformerNorms> norms_at(std::string_view places) {
  TransformerNorms norms{.embedding = false};
  if (places == kNone) return norms;
  for (std::string_view rest = places;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view name = rest.substr(0, comma);
    const Place* const place = std::find_if(std::begin(kPlaces), std::end(kPlaces),
                                            [&](const Place& at) { return at.name == name; });
    if (place == std::end(kPlaces)) return {};
    norms.*place->there = true;
    if (comma == rest.size()) return norms;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace keel
