#include "transformer_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace keel {
namespace {

constexpr const char* kPrefix = "transformer.";

// What the file says of each option, by name.
template <class Options, class F>
void each_size(Options& options, F f) {
  f("length", options.length);
  f("width", options.width);
  f("heads", options.heads);
  f("hidden", options.hidden);
  f("blocks", options.blocks);
}

/// The metadata of a file, number by number.
class Notes {
 public:
  Notes(const SafeTensors& file, const std::string& path) : file_(file), path_(path) {}

  const std::string& path() const { return path_; }
  bool has(const std::string& name) const { return file_.metadata.contains(kPrefix + name); }

  const std::string& text(const std::string& name) const {
    const auto found = file_.metadata.find(kPrefix + name);
    check(found != file_.metadata.end(), "load_transformer",
          "{}: got no '{}{}' in its metadata, wanted a file of save_transformer(), "
          "or of keel forecast --save-weights",
          path_, kPrefix, name);
    return found->second;
  }

  template <class T>
  T number(const std::string& name, std::string_view text) const {
    T value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    check(problem == std::errc() && end == text.data() + text.size(), "load_transformer",
          "{}: got '{}' for {}{}, wanted a whole number", path_, text, kPrefix, name);
    return value;
  }

 private:
  const SafeTensors& file_;
  const std::string& path_;
};

// Files of before there were several places have `layer_norm` alone: one behind the embedding.
TransformerNorms norms_of(const Notes& notes) {
  if (notes.has("layer_norm"))
    return {.embedding = notes.number<int>("layer_norm", notes.text("layer_norm")) != 0};
  const std::string &places = notes.text("norms"), &kind = notes.text("norm");
  const auto wanted = [&](bool is, const char* name, const std::string& got, const char* what) {
    check(is, "load_transformer", "{}: got '{}' for {}{}, wanted {}", notes.path(), got, kPrefix,
          name, what);
  };
  std::optional<TransformerNorms> norms = norms_at(places);
  wanted(norms.has_value(), "norms", places, kNormPlaces);
  norms->centred = kind != TransformerNorms{.centred = false}.kind();
  wanted(kind == norms->kind(), "norm", kind, "layernorm or rmsnorm");
  return *norms;
}

TransformerOptions options_of(const SafeTensors& file, const std::string& path) {
  const Notes notes(file, path);
  TransformerOptions options;
  each_size(options, [&](const char* name, std::int64_t& size) {
    constexpr std::int64_t kMost = 1 << 20;  // of what a file says no number overflows
    size = notes.number<std::int64_t>(name, notes.text(name));
    check(size <= kMost, "load_transformer", "{}: got {} {}, wanted at most {}", path, name, size,
          kMost);
  });
  check(options.blocks <= static_cast<std::int64_t>(file.tensors.size()), "load_transformer",
        "{}: got {} blocks and {} tensors", path, options.blocks, file.tensors.size());
  options.norms = norms_of(notes);
  options.seeds.clear();
  for (std::string_view rest = notes.text("seeds"); !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    options.seeds.push_back(notes.number<std::uint64_t>("seeds", rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return options;
}

}  // namespace

void save_transformer(const Transformer& net, const std::string& path,
                      const std::map<std::string, std::string>& notes) {
  SafeTensors file;
  file.metadata = {notes.begin(), notes.end()};
  const auto note = [&](const char* name, std::string text) {
    file.metadata[fmt::format("{}{}", kPrefix, name)] = std::move(text);
  };
  const TransformerOptions& options = net.options();
  each_size(options,
            [&](const char* name, std::int64_t size) { note(name, fmt::format("{}", size)); });
  note("norms", places_of(options.norms));
  note("norm", options.norms.kind());
  note("seeds", fmt::format("{}", fmt::join(options.seeds, ",")));
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
    file.tensors.emplace_back(net.layout().entries()[p].name, net.layout().view(net.flat(), p));
  write_safetensors(path, file);
}

bool is_transformer(const SafeTensors& file) {
  return std::any_of(file.metadata.begin(), file.metadata.end(),
                     [](const auto& note) { return note.first.starts_with(kPrefix); });
}

Transformer load_transformer(const std::string& path, Device device) {
  return load_transformer(read_safetensors(path), path, device);
}

Transformer load_transformer(const SafeTensors& file, const std::string& path, Device device) {
  TransformerOptions options = options_of(file, path);
  options.device = device;
  if (!file.tensors.empty()) options.dtype = file.tensors[0].second.dtype();
  // Before any memory is asked for, as a file may say that it is of any size.
  const ParameterLayout layout = Transformer::layout_of(options);
  for (std::size_t p = 0; p < layout.entries().size(); ++p) {
    const std::string& name = layout.entries()[p].name;
    const Shape shape = layout.shape(p);
    const Tensor* found = file.find(name);
    check(found, "load_transformer", "{}: got no tensor '{}'", path, name);
    check(found->shape() == shape && found->dtype() == options.dtype, "load_transformer",
          "{}: got {} {} for '{}', wanted {} {}", path, name_of(found->dtype()), found->shape(),
          name, name_of(options.dtype), shape);
    for (double value : found->to_vector<double>())
      check(std::isfinite(value), "load_transformer", "{}: got {} in '{}', wanted finite numbers",
            path, value, name);
  }
  check(file.tensors.size() == layout.entries().size(), "load_transformer",
        "{}: got {} tensors, wanted the {} of this transformer", path, file.tensors.size(),
        layout.entries().size());
  Transformer net = Transformer::zeros(std::move(options));
  for (std::size_t p = 0; p < layout.entries().size(); ++p)
    copy(layout.view(net.flat(), p), *file.find(layout.entries()[p].name));
  return net;
}

}  // namespace keel
