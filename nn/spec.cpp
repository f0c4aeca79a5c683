#include "spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "../core/error.h"
#include "../kernels/layer_norm.h"

namespace keel {
namespace {

constexpr const char* kKnown =
    "dense(width), relu, leakyrelu(slope=0.01), gelu, silu, tanh, identity, batchnorm, rmsnorm, "
    "layernorm or layernorm(affine=0, eps=0)";
constexpr std::string_view kIdentity = "identity";
constexpr const char* kOfNorm = "affine=0|1 or eps=value";

// All but dense, whose option is its width.
constexpr struct {
  LayerKind kind;
  const char* name;
  const char* options;  // none: nullptr
} kNames[] = {
    {LayerKind::relu, "relu", nullptr},       {LayerKind::leakyrelu, "leakyrelu", "slope=value"},
    {LayerKind::gelu, "gelu", nullptr},       {LayerKind::silu, "silu", nullptr},
    {LayerKind::tanh, "tanh", nullptr},       {LayerKind::layernorm, "layernorm", kOfNorm},
    {LayerKind::rmsnorm, "rmsnorm", kOfNorm}, {LayerKind::batchnorm, "batchnorm", kOfNorm}};

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

/// A word as written, "layernorm(eps=0)", taken apart; `at` places it in messages.
struct Word {
  std::string_view text, name, inside;
  bool has_parentheses = false;
  int position = 0;
  std::string at() const { return fmt::format("'{}' (word {})", shown(text), position); }
};

// Blanks within parentheses belong to the word.
Word next_word(std::string_view& rest, int position) {
  std::size_t end = 0;
  for (int depth = 0; end < rest.size(); ++end) {
    if (depth <= 0 && kBlanks.find(rest[end]) != kBlanks.npos) break;
    depth += (rest[end] == '(') - (rest[end] == ')');
  }
  Word word;
  word.position = position;
  word.text = trim(rest.substr(0, end));
  rest = trim(rest.substr(end));

  const std::size_t open = word.text.find('('), close = word.text.find(')');
  word.name = word.text.substr(0, std::min(open, close));
  word.has_parentheses = open != word.text.npos;
  if (!word.has_parentheses) {
    check(close == word.text.npos, "spec", "got {}, wanted no ')' without '('", word.at());
    return word;
  }
  check(close != word.text.npos, "spec", "got {}, wanted a closing ')'", word.at());
  check(close > open && close + 1 == word.text.size(), "spec",
        "got '{}' after ')' in {}, wanted a blank", shown(word.text.substr(close + 1)), word.at());
  word.inside = word.text.substr(open + 1, close - open - 1);
  return word;
}

template <class T>
bool parse_whole(std::string_view text, T& value) {
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && stop == text.data() + text.size();
}

LayerSpec parse_dense(const Word& word) {
  LayerSpec layer{.kind = LayerKind::dense};
  check(parse_whole(trim(word.inside), layer.width) && layer.width >= 1 &&
            layer.width <= std::numeric_limits<std::int32_t>::max(),
        "spec", "got {}, wanted dense(width) with a width from 1 to 2147483647", word.at());
  return layer;
}

// `wanted`: those there are; `seen`: the options of this word so far.
void parse_option(const Word& word, std::string_view option, const char* wanted, LayerSpec& layer,
                  std::vector<std::string_view>& seen) {
  const std::size_t equals = option.find('=');
  const std::string_view name = trim(option.substr(0, equals));
  const std::string_view value =
      equals == option.npos ? std::string_view() : trim(option.substr(equals + 1));
  const bool leaky = layer.kind == LayerKind::leakyrelu;
  if (name == "affine" && !leaky) {
    check(value == "0" || value == "1", "spec",
          "got affine '{}' in {}, wanted affine=0 or affine=1", shown(value), word.at());
    layer.affine = value == "1";
  } else if (name == "slope" && leaky) {
    check(parse_whole(value, layer.slope) && layer.slope >= 0 && layer.slope <= 1, "spec",
          "got slope '{}' in {}, wanted a number from 0 to 1", shown(value), word.at());
  } else if (name == "eps" && !leaky) {
    check(parse_whole(value, layer.eps) && std::isfinite(layer.eps) && layer.eps >= 0, "spec",
          "got eps '{}' in {}, wanted a number >= 0", shown(value), word.at());
  } else {
    fail("spec", "unknown option '{}' in {}, wanted {}", shown(trim(option)), word.at(), wanted);
  }
  check(std::find(seen.begin(), seen.end(), name) == seen.end(), "spec",
        "got {} twice in {}, wanted it once", name, word.at());
  seen.push_back(name);
}

LayerSpec parse_options(const Word& word, LayerKind kind, const char* wanted) {
  LayerSpec layer{.kind = kind, .eps = default_eps(kind)};
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

bool is_identity(const Word& word) {
  if (word.name != kIdentity) return false;
  check(!word.has_parentheses, "spec", "got {}, wanted {} without parentheses", word.at(),
        word.name);
  return true;
}

LayerSpec parse_layer(const Word& word) {
  if (word.name == "dense") return parse_dense(word);
  for (const auto& [kind, name, options] : kNames) {
    if (word.name != name) continue;
    check(options || !word.has_parentheses, "spec", "got {}, wanted {} without parentheses",
          word.at(), name);
    return parse_options(word, kind, options);
  }
  fail("spec", "unknown layer {}, wanted {}", word.at(), kKnown);
}

std::string layer_text(const LayerSpec& layer) {
  if (layer.kind == LayerKind::dense) return fmt::format("dense({})", layer.width);
  std::string options;
  const auto add = [&](const std::string& option) {
    options += (options.empty() ? "" : ", ") + option;
  };
  if (!layer.affine) add("affine=0");
  if (layer.eps != default_eps(layer.kind)) add(fmt::format("eps={}", layer.eps));
  if (layer.slope != LayerSpec().slope) add(fmt::format("slope={}", layer.slope));
  return options.empty() ? name_of(layer.kind)
                         : fmt::format("{}({})", name_of(layer.kind), options);
}

}  // namespace

const char* name_of(LayerKind kind) {
  for (const auto& known : kNames)
    if (known.kind == kind) return known.name;
  return "dense";
}

bool normalises_rows(LayerKind kind) {
  return kind == LayerKind::layernorm || kind == LayerKind::rmsnorm;
}

bool bounds_rows(LayerKind kind) { return normalises_rows(kind) || kind == LayerKind::tanh; }

double default_eps(LayerKind kind) {
  return kind == LayerKind::rmsnorm ? kRmsEps : LayerSpec().eps;
}

Spec parse_spec(std::string_view text) {
  std::string_view rest = trim(text);
  check(!rest.empty(), "spec", "got no layers, wanted some, as in \"dense(128) relu dense(1)\"");
  Spec spec;
  Word word;
  std::int64_t identities = 0;
  bool begun = false;  // with a dense layer
  for (int position = 1; !rest.empty(); ++position) {
    word = next_word(rest, position);
    if (is_identity(word)) {
      ++identities;
      continue;
    }
    spec.push_back(parse_layer(word));
    spec.back().identities = std::exchange(identities, 0);
    begun = begun || spec.back().kind == LayerKind::dense;
    check(begun || spec.back().kind == LayerKind::batchnorm, "spec",
          "got {} as the first layer, wanted dense(width)", word.at());
  }
  check(identities == 0 && spec.back().kind == LayerKind::dense, "spec",
        "got {} as the last layer, wanted dense(k) for k outputs", word.at());
  return spec;
}

std::string spec_text(const Spec& spec) {
  std::string text;
  for (const LayerSpec& layer : spec) {
    for (std::int64_t i = 0; i < layer.identities; ++i) text += std::string(kIdentity) + " ";
    text += layer_text(layer) + " ";
  }
  if (!text.empty()) text.pop_back();
  return text;
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
  for (std::size_t i = 0; i <= layer; ++i) word += spec[i].identities + 1;
  return word;
}

}  // namespace keel
