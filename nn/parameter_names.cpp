#include "parameter_names.h"

#include <algorithm>

namespace keel {
namespace {

bool separates(char c) { return c == '.' || c == '/'; }

// "net." of "net.0.weight"; none where no number stands ahead of the parameter.
std::string_view ahead_of_number(std::string_view name) {
  const std::size_t end = name.find_last_of("./");
  if (end == name.npos) return {};
  const std::size_t before = name.find_last_not_of("0123456789", end - 1);
  const std::size_t begin = before == name.npos ? 0 : before + 1;
  return begin < end && (begin == 0 || separates(name[before])) ? name.substr(0, begin)
                                                                : std::string_view();
}

// Without what all tensors' names begin with, in the notes on shared tensors too: within a residual
// a layer has two numbers.
void strip_common(SafeTensors& content) {
  if (content.tensors.empty()) return;
  std::string ahead(ahead_of_number(content.tensors[0].first));
  for (const auto& [name, tensor] : content.tensors)
    if (ahead_of_number(name).size() < ahead.size()) ahead = ahead_of_number(name);
  for (const auto& [name, tensor] : content.tensors)
    if (!ahead_of_number(name).starts_with(ahead)) return;
  for (auto& [name, tensor] : content.tensors) name.erase(0, ahead.size());
  std::map<std::string, std::string> notes;
  for (const auto& [key, text] : content.metadata) {
    const std::size_t cut = key.starts_with(ahead) && text.starts_with(ahead) ? ahead.size() : 0;
    notes[key.substr(cut)] = text.substr(cut);
  }
  content.metadata = std::move(notes);
}

// What other libraries call a parameter, behind a dot or a slash.
constexpr struct {
  std::string_view here, elsewhere;
  bool transposed = false;
} kElsewhere[] = {{"weight", "weight"},
                  {"weight", "kernel", true},
                  {"weight", "scale"},
                  {"weight", "gamma"},
                  {"weight", "negative_slope"},
                  {"weight", "alpha"},
                  {"bias", "bias"},
                  {"bias", "beta"},
                  {"running_mean", "mean"},
                  {"running_mean", "moving_mean"},
                  {"running_var", "var"},
                  {"running_var", "moving_variance"},
                  {"running_var", "variance"}};

// Of Flax's linen, whose running statistics are apart: "batch_stats.norm" of "params.norm".
std::string module_of_statistics(const std::string& module) {
  constexpr std::string_view kParameters = "params";
  const bool linen = module.starts_with(kParameters) && module.size() > kParameters.size() &&
                     separates(module[kParameters.size()]);
  return linen ? "batch_stats" + module.substr(kParameters.size()) : module;
}

// Digits that follow each other count as one number.
bool in_natural_order(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view text) {
    return std::min(text.find_first_not_of("0123456789"), text.size());
  };
  for (;;) {
    const std::size_t of_a = digits(a), of_b = digits(b);
    if (of_a > 0 && of_b > 0) {
      std::string_view first = a.substr(0, of_a), second = b.substr(0, of_b);
      first.remove_prefix(std::min(first.find_first_not_of('0'), first.size()));
      second.remove_prefix(std::min(second.find_first_not_of('0'), second.size()));
      if (first.size() != second.size()) return first.size() < second.size();
      if (first != second) return first < second;
      a.remove_prefix(of_a);
      b.remove_prefix(of_b);
    } else if (a.empty() || b.empty() || a[0] != b[0]) {
      return a < b;
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
}

// Integers of dtypes that no parameter has.
bool is_bookkeeping(std::string_view name) {
  const std::string_view own = own_name(name);
  return own == "count" || own == "seed_generator_state";
}

}  // namespace

Library library_of(const SafeTensors& content) {
  bool kernel = false, keras = false, flax = false;
  for (const auto& [name, tensor] : content.tensors) {
    const std::string_view own = own_name(name);
    kernel |= own == "kernel";
    keras |= own == "gamma" || own == "beta" || own.starts_with("moving_");
    flax |= name.starts_with("params.") || name.starts_with("params/");
  }
  if (!kernel) return Library::pytorch;
  return keras ? Library::keras : flax ? Library::flax : Library::flax_or_keras;
}

Shape ParameterInFile::shape_of(const Shape& shape) const {
  return transposed && shape.rank() == 2 ? Shape{shape[1], shape[0]} : shape;
}

ParameterInFile find_parameter(const SafeTensors& content, const std::string& name) {
  if (const Tensor* there = content.find(name)) return {name, there};
  // Of tensors that share their memory, save_model() writes one, and a note of its name for each
  // other. A matrix may be the other's transpose, so only vectors are taken.
  if (const auto shared = content.metadata.find(name); shared != content.metadata.end())
    if (const Tensor* there = content.find(shared->second); there && there->rank() == 1)
      return {shared->second, there};
  const std::string module = module_of(name);
  for (const auto& [here, elsewhere, transposed] : kElsewhere) {
    if (own_name(name) != here) continue;
    for (const std::string& place : {module, module_of_statistics(module)})
      for (const char separator : {'.', '/'}) {
        const std::string other = fmt::format("{}{}{}", place, separator, elsewhere);
        if (const Tensor* there = content.find(other)) return {other, there, transposed};
      }
  }
  return {name};
}

std::string_view own_name(std::string_view name) {
  return name.substr(std::min(name.find_last_of("./") + 1, name.size()));
}

std::string module_of(const std::string& name) { return name.substr(0, name.find_last_of("./")); }

std::string as_in_file(const SafeTensors& content, const std::string& name) {
  const std::string ahead = module_of(name) + "/";
  const bool slash =
      std::any_of(content.tensors.begin(), content.tensors.end(),
                  [&](const auto& tensor) { return tensor.first.starts_with(ahead); });
  return slash ? ahead + std::string(own_name(name)) : name;
}

std::string quoted(const std::set<std::string>& names, std::size_t listed) {
  std::vector<std::string> all(names.begin(), names.end());
  std::stable_sort(all.begin(), all.end(), in_natural_order);
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), listed); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", shown(all[i]));
  if (all.size() > listed) text += fmt::format(" and {} more", all.size() - listed);
  return all.empty() ? "none" : text;
}

SafeTensors read_weights(const std::string& path) {
  return read_safetensors(path, [](const std::string& name) { return !is_bookkeeping(name); });
}

SafeTensors by_layer_names(SafeTensors file, const std::string& path,
                           const std::vector<std::string>& modules) {
  check(modules.empty() || !file.metadata.contains(kNetKey), "weights",
        "{}: keel wrote it, by layers' numbers; wanted no names of modules", path);
  if (modules.empty()) strip_common(file);
  return file;
}

}  // namespace keel
