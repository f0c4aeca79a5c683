// What a SPEC's layers are, and where they stand.
#include <algorithm>
#include <utility>

#include "../core/error.h"
#include "../kernels/layer_norm.h"
#include "spec.h"

namespace keel {

bool joins(LayerKind kind) { return kind == LayerKind::residual || kind == LayerKind::add; }

bool has_residual(const Spec& spec) {
  return std::any_of(spec.begin(), spec.end(),
                     [](const LayerSpec& layer) { return joins(layer.kind); });
}

bool normalises_rows(LayerKind kind) {
  return kind == LayerKind::layernorm || kind == LayerKind::rmsnorm;
}

bool bounds_units(LayerKind kind) { return kind == LayerKind::tanh || kind == LayerKind::sigmoid; }

bool bounds_rows(LayerKind kind) { return normalises_rows(kind) || bounds_units(kind); }

double default_eps(LayerKind kind) {
  return kind == LayerKind::rmsnorm ? kRmsEps : LayerSpec().eps;
}

double default_slope(LayerKind kind) { return kind == LayerKind::prelu ? 0.25 : LayerSpec().slope; }

void check_residuals(const Spec& spec) {
  std::int64_t width = 0, word = 0;
  std::int64_t taken = 0, begin = 0;  // of the residual that is open
  std::size_t first = 0;              // layer within it
  for (std::size_t i = 0; i < spec.size(); ++i) {
    word += spec[i].identities + (spec[i].kind == LayerKind::add ? 0 : 1);
    if (spec[i].kind == LayerKind::dense) width = spec[i].width;
    if (spec[i].kind == LayerKind::residual) {
      check(width > 0 && begin == 0, "spec",
            "got a residual at word {}, wanted it behind a dense layer and in no other residual",
            word);
      taken = width;
      begin = word;
      first = i + 1;
    }
    if (spec[i].kind == LayerKind::add) {
      check(begin > 0, "spec", "got an end of a residual behind word {}, wanted its begin", word);
      check(i > first, "spec", "the residual at word {} has no layers, wanted some", begin);
      check<ShapeError>(width == taken, "spec",
                        "the residual at word {} takes {} units and gives {}, wanted as many",
                        begin, taken, width);
      begin = 0;
    }
  }
  check(begin == 0, "spec", "got a residual at word {} without an end", begin);
}

Spec without_batch_norms(const Spec& spec) {
  Spec plain;
  std::int64_t identities = 0;
  for (const LayerSpec& layer : spec) {
    identities += layer.identities;
    if (layer.kind == LayerKind::batchnorm) {
      ++identities;
      continue;
    }
    plain.push_back(layer);
    plain.back().identities = std::exchange(identities, 0);
  }
  return plain;
}

std::int64_t word_of(const Spec& spec, std::size_t layer) {
  check<ShapeError>(layer < spec.size(), "spec", "got layer {}, wanted one of the {} there are",
                    layer, spec.size());
  std::int64_t word = 0;
  for (std::size_t i = 0; i <= layer; ++i)
    word += spec[i].identities + (spec[i].kind == LayerKind::add ? 0 : 1);
  return word;
}

std::string number_of(const Spec& spec, std::size_t layer) {
  check<ShapeError>(layer < spec.size(), "spec", "got layer {}, wanted one of the {} there are",
                    layer, spec.size());
  std::int64_t outer = -1, inner = -1;
  bool within = false;
  for (std::size_t i = 0; i <= layer; ++i) {
    (within ? inner : outer) += spec[i].identities;
    if (spec[i].kind == LayerKind::add) {
      within = false;
      continue;
    }
    ++(within ? inner : outer);
    if (spec[i].kind != LayerKind::residual) continue;
    inner = -1;
    within = i != layer;
  }
  return within ? fmt::format("{}.{}", outer, inner) : fmt::to_string(outer);
}

}  // namespace keel
