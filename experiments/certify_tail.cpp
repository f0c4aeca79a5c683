#include "certify_tail.h"

#include <algorithm>

#include "../nn/parameter_names.h"
#include "trained_net.h"

namespace keel {
namespace {

bool is_of(const std::vector<std::string>& modules, const std::string& name) {
  return std::find(modules.begin(), modules.end(), module_of(name)) != modules.end();
}

// A matrix that is in no module, and so may be of a layer ahead of them.
bool has_layers_besides(const TrainedChoice& choice) {
  try {
    const SafeTensors all = read_weights(choice.weights);
    return std::any_of(all.tensors.begin(), all.tensors.end(), [&](const auto& tensor) {
      return tensor.second.rank() > 1 && !is_of(choice.modules, tensor.first);
    });
  } catch (const Error&) {
    return true;  // of dtypes that keel's nets do not have
  }
}

}  // namespace

SafeTensors read_choice(const TrainedChoice& choice) {
  if (!choice.tail) return read_weights(choice.weights);
  return read_safetensors(choice.weights,
                          [&](const std::string& name) { return is_of(choice.modules, name); });
}

std::string note_of_tail(const SafeTensors& file, const TrainedChoice& choice) {
  constexpr std::size_t kNamed = 6;
  if (file.left_out.empty()) return "";
  return fmt::format("note: {}: taken to stand ahead of '{}', and not read: {}", choice.weights,
                     choice.modules.front(), quoted(file.left_out, kNamed));
}

std::string tail_hint(const TrainedChoice& choice, const Context& context) {
  Context quiet = context;
  quiet.options.quiet = true;
  // Without modules, which an end needs to be read, SPEC alone tells.
  const auto works = [&](bool tail) {
    try {
      const Spec spec = tail ? parse_tail(choice.net) : parse_spec(choice.net);
      if (choice.modules.empty()) return true;
      TrainedChoice other = choice;
      other.tail = tail;
      trained_net(spec, read_choice(other), choice.weights, choice.modules, "", quiet);
      return spec.front().kind != LayerKind::dense || !tail || has_layers_besides(choice);
    } catch (const Error&) {
      return false;
    }
  };
  if (choice.tail || works(false) || !works(true)) return "";
  return choice.modules.empty()
             ? "; of the end of a larger net: --tail, with its --modules"
             : "; as the end of a larger net, whose other layers stand ahead of it: --tail";
}

}  // namespace keel
