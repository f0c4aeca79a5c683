#include "spec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "../core/error.h"
#include "../kernels/silu.h"
#include "spec_word.h"

namespace keel {
namespace {

constexpr const char* kKnown =
    "dense(width), relu, leakyrelu(slope=0.01), prelu(slope=0.25, per_unit=0), gelu(tanh=0), "
    "silu(beta=1), tanh, sigmoid, softplus, elu(alpha=1), selu, identity, batchnorm, rmsnorm, "
    "layernorm(affine=1, eps=1e-5) or residual(words)";
constexpr std::string_view kIdentity = "identity", kResidual = "residual";
constexpr const char* kOfNorm = "affine=0|1 or eps=value";

// All but dense, whose option is its width, and residual, which has words.
constexpr struct {
  LayerKind kind;
  const char* name;
  const char* options;  // none: nullptr
} kNames[] = {{LayerKind::relu, "relu", nullptr},
              {LayerKind::leakyrelu, "leakyrelu", "slope=value"},
              {LayerKind::prelu, "prelu", "slope=value or per_unit=0|1"},
              {LayerKind::gelu, "gelu", "tanh=0|1"},
              {LayerKind::silu, "silu", "beta=value"},
              {LayerKind::tanh, "tanh", nullptr},
              {LayerKind::sigmoid, "sigmoid", nullptr},
              {LayerKind::softplus, "softplus", nullptr},
              {LayerKind::elu, "elu", "alpha=value"},
              {LayerKind::selu, "selu", nullptr},
              {LayerKind::layernorm, "layernorm", kOfNorm},
              {LayerKind::rmsnorm, "rmsnorm", kOfNorm},
              {LayerKind::batchnorm, "batchnorm", kOfNorm}};

LayerSpec parse_dense(const SpecWord& word) {
  LayerSpec layer{.kind = LayerKind::dense};
  check(parse_whole(trim(word.inside), layer.width) && layer.width >= 1 &&
            layer.width <= std::numeric_limits<std::int32_t>::max(),
        "spec", "got {}, wanted dense(width) with a width from 1 to 2147483647", word.at());
  return layer;
}

// `wanted`: those there are; `seen`: the options of this word so far.
void parse_option(const SpecWord& word, std::string_view option, const char* wanted,
                  LayerSpec& layer, std::vector<std::string_view>& seen) {
  const std::size_t equals = option.find('=');
  const std::string_view name = trim(option.substr(0, equals));
  const std::string_view value =
      equals == option.npos ? std::string_view() : trim(option.substr(equals + 1));
  const auto is = [&](LayerKind kind) { return layer.kind == kind; };
  const bool norm = normalises_rows(layer.kind) || is(LayerKind::batchnorm);
  const auto flag = [&] {
    check(value == "0" || value == "1", "spec", "got {} '{}' in {}, wanted {}=0 or {}=1", name,
          shown(value), word.at(), name, name);
    return value == "1";
  };
  const auto number = [&](double& into, double least, double most) {
    check(parse_whole(value, into) && into >= least && into <= most, "spec",
          "got {} '{}' in {}, wanted a number from {} to {}", name, shown(value), word.at(), least,
          most);
  };
  if (name == "affine" && norm) {
    layer.affine = flag();
  } else if (name == "per_unit" && is(LayerKind::prelu)) {
    layer.per_unit = flag();
  } else if (name == "slope" && (is(LayerKind::prelu) || is(LayerKind::leakyrelu))) {
    number(layer.slope, 0, 1);
  } else if (name == "alpha" && is(LayerKind::elu)) {
    number(layer.alpha, 0, 100);
  } else if (name == "beta" && is(LayerKind::silu)) {
    number(layer.beta, kLeastSiluBeta, kMostSiluBeta);
  } else if (name == "tanh" && is(LayerKind::gelu)) {
    layer.by_tanh = flag();
  } else if (name == "eps" && norm) {
    check(parse_whole(value, layer.eps) && std::isfinite(layer.eps) && layer.eps >= 0, "spec",
          "got eps '{}' in {}, wanted a number >= 0", shown(value), word.at());
  } else {
    fail("spec", "unknown option '{}' in {}, wanted {}", shown(trim(option)), word.at(), wanted);
  }
  check(std::find(seen.begin(), seen.end(), name) == seen.end(), "spec",
        "got {} twice in {}, wanted it once", name, word.at());
  seen.push_back(name);
}

LayerSpec parse_options(const SpecWord& word, LayerKind kind, const char* wanted) {
  LayerSpec layer{.kind = kind, .eps = default_eps(kind), .slope = default_slope(kind)};
  if (!word.has_parentheses) return layer;
  std::string_view rest = word.inside;
  std::vector<std::string_view> seen;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    parse_option(word, rest.substr(0, comma), wanted, layer, seen);
    more = comma != rest.npos;
    if (more) rest = rest.substr(comma + 1);
  }
  return layer;
}

bool is_identity(const SpecWord& word) {
  if (word.name != kIdentity) return false;
  check(!word.has_parentheses, "spec", "got {}, wanted {} without parentheses", word.at(),
        word.name);
  return true;
}

LayerSpec parse_layer(const SpecWord& word) {
  if (word.name == "dense") return parse_dense(word);
  for (const auto& [kind, name, options] : kNames) {
    if (word.name != name) continue;
    check(options || !word.has_parentheses, "spec", "got {}, wanted {} without parentheses",
          word.at(), name);
    return parse_options(word, kind, options);
  }
  fail("spec", "unknown layer {}, wanted {}", word.at(), kKnown);
}

// Words of a SPEC to its layers.
struct Parser {
  Spec spec;
  SpecWord last;                // that was read
  int read = 0;                 // words
  std::int64_t identities = 0;  // ahead of the next layer
  bool begun = false;           // with a dense layer, or behind what stands before a tail

  void take(std::string_view rest, bool within) {
    while (!rest.empty()) {
      last = next_word(rest, ++read, kResidual);
      if (is_identity(last))
        ++identities;
      else if (last.name == kResidual)
        residual(last, within);
      else
        push(parse_layer(last));
    }
  }

 private:
  void push(LayerSpec layer) {
    begun = begun || layer.kind == LayerKind::dense;
    check(begun || layer.kind == LayerKind::batchnorm, "spec",
          "got {} as the first layer, wanted dense(width)", last.at());
    layer.identities = std::exchange(identities, 0);
    spec.push_back(layer);
  }

  void residual(const SpecWord& word, bool within) {
    check(!within, "spec", "got {} within a residual, wanted other words there", word.at());
    const std::string_view words = trim(word.inside);
    check(!words.empty(), "spec", "got {}, wanted residual(words), as in residual(relu dense(8))",
          word.at());
    push({.kind = LayerKind::residual});
    take(words, true);
    push({.kind = LayerKind::add});
  }
};

std::string layer_text(const LayerSpec& layer) {
  if (layer.kind == LayerKind::dense) return fmt::format("dense({})", layer.width);
  std::string options;
  const auto add = [&](const std::string& option) {
    options += (options.empty() ? "" : ", ") + option;
  };
  if (!layer.affine) add("affine=0");
  if (layer.eps != default_eps(layer.kind)) add(fmt::format("eps={}", layer.eps));
  if (layer.slope != default_slope(layer.kind)) add(fmt::format("slope={}", layer.slope));
  if (layer.per_unit) add("per_unit=1");
  if (layer.alpha != LayerSpec().alpha) add(fmt::format("alpha={}", layer.alpha));
  if (layer.beta != LayerSpec().beta) add(fmt::format("beta={}", layer.beta));
  if (layer.by_tanh) add("tanh=1");
  return options.empty() ? name_of(layer.kind)
                         : fmt::format("{}({})", name_of(layer.kind), options);
}

Spec parse(std::string_view text, bool tail) {
  std::string_view rest = trim(text);
  check(!rest.empty(), "spec", "got no layers, wanted some, as in \"dense(128) relu dense(1)\"");
  Parser parser;
  parser.begun = tail;
  parser.take(rest, false);
  check(parser.identities == 0 && parser.spec.back().kind == LayerKind::dense, "spec",
        "got {} as the last layer, wanted dense(k) for k outputs",
        parser.identities == 0 && parser.spec.back().kind == LayerKind::add
            ? fmt::format("a residual, which ends with {},", parser.last.at())
            : parser.last.at());
  check_residuals(parser.spec);
  return std::move(parser.spec);
}

}  // namespace

const char* name_of(LayerKind kind) {
  for (const auto& known : kNames)
    if (known.kind == kind) return known.name;
  return kind == LayerKind::dense ? "dense" : kind == LayerKind::residual ? "residual" : "add";
}

Spec parse_spec(std::string_view text) { return parse(text, false); }

Spec parse_tail(std::string_view text) { return parse(text, true); }

std::string spec_text(const Spec& spec) {
  std::string text;
  for (const LayerSpec& layer : spec) {
    for (std::int64_t i = 0; i < layer.identities; ++i) text += std::string(kIdentity) + " ";
    if (layer.kind == LayerKind::residual) {
      text += std::string(kResidual) + "(";
      continue;
    }
    if (layer.kind == LayerKind::add && text.ends_with(' ')) text.pop_back();
    text += (layer.kind == LayerKind::add ? ")" : layer_text(layer)) + " ";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace keel
