// Writes .safetensors files; safetensors.cpp reads them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "../core/output_file.h"
#include "safetensors.h"

namespace keel {
namespace {

constexpr const char *kFormatTag = "safetensors", *kNotes = "__metadata__";

// One description after another: an object of JSON would look for each name among all before it.
std::string header_text(const std::string& path, const std::map<std::string, std::string>& metadata,
                        const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::string text = "{";
  if (!metadata.empty()) text += fmt::format("\"{}\":{}", kNotes, nlohmann::json(metadata).dump());
  std::set<std::string_view> names;
  std::uint64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    check(names.insert(name).second, kFormatTag, "{}: got two tensors named '{}'", path,
          shown(name));
    nlohmann::ordered_json entry;
    entry["dtype"] = tensor.dtype() == DType::f32 ? "F32" : "F64";
    entry["shape"] = nlohmann::json::array();
    for (int axis = 0; axis < tensor.rank(); ++axis) entry["shape"].push_back(tensor.size(axis));
    entry["data_offsets"] = {at, at + tensor.bytes()};
    text += fmt::format("{}{}:{}", text.size() > 1 ? "," : "", nlohmann::json(name).dump(),
                        entry.dump());
    at += tensor.bytes();
  }
  return text + "}";
}

}  // namespace

void write_safetensors(const std::string& path, const SafeTensors& content) {
  for (const auto& [name, tensor] : content.tensors) {
    check(name != kNotes, kFormatTag, "{}: got a tensor named '{}', which is what notes are called",
          path, name);
    check(tensor.defined(), kFormatTag,
          "{}: got a tensor '{}' that was never made or was moved from", path, shown(name));
  }
  // Wider elements first, as the reference implementation orders them: everything stays aligned.
  std::vector<std::pair<std::string, Tensor>> tensors = content.tensors;
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return size_of(a.second.dtype()) > size_of(b.second.dtype());
  });
  std::string text;
  try {
    text = header_text(path, content.metadata, tensors);
  } catch (const nlohmann::json::type_error&) {  // all that can be wrong with what was put there
    fail(kFormatTag, "{}: got a name or note that is no UTF-8", path);
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');

  OutputFile file(path);
  const std::uint64_t length = text.size();
  file.write({reinterpret_cast<const char*>(&length), 8});
  file.write(text);
  for (const auto& [name, tensor] : tensors) {
    const Tensor host = tensor.to(Device::cpu());
    dispatch(host.dtype(), [&](auto t) {
      file.write({reinterpret_cast<const char*>(host.data<decltype(t)>()), host.bytes()});
    });
  }
  file.commit();
}

}  // namespace keel
