#include "weights.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "safetensors.h"

namespace keel {
namespace {

std::string name_in_file(const Net& net, std::size_t p, std::int64_t s) {
  const std::string& name = net.layout().entries()[p].name;
  return net.members() > 1 ? fmt::format("member{}.{}", s, name) : name;
}

// x times `factor` in double, on the CPU, in the net's dtype.
Tensor scaled(const Tensor& x, double factor, DType dtype) {
  if (factor == 1) return x.to(Device::cpu()).to(dtype);
  std::vector<double> values = x.to_vector<double>();
  for (double& value : values) value *= factor;
  return Tensor::from(values, x.shape()).to(dtype);
}

// After conversion: a float64 may be too large for the net's float32.
void check_finite(const Tensor& values, const std::string& path, const std::string& name) {
  const std::vector<double> all = values.to_vector<double>();
  const auto bad =
      std::find_if_not(all.begin(), all.end(), [](double value) { return std::isfinite(value); });
  check(bad == all.end(), "weights", "{}: element {} of '{}' is {} in {}, wanted a finite number",
        path, bad - all.begin(), name, bad == all.end() ? 0 : *bad, name_of(values.dtype()));
}

}  // namespace

void save_weights(const Net& net, const std::string& path,
                  const std::map<std::string, std::string>& notes) {
  SafeTensors content;
  for (const auto& [key, text] : notes) content.metadata[key] = text;
  content.metadata["format"] = "pt";  // what PyTorch's own readers look for
  content.metadata["keel.net"] = spec_text(net.spec());
  for (std::int64_t s = 0; s < net.members(); ++s)
    for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
      content.tensors.emplace_back(name_in_file(net, p, s),
                                   scaled(net.layout().member_view(net.flat(), p, s),
                                          net.layout().entries()[p].scale, net.flat().dtype()));
  write_safetensors(path, content);
}

void load_weights(Net& net, const std::string& path) {
  const SafeTensors content = read_safetensors(path);
  std::set<std::string> left;
  for (const auto& [name, tensor] : content.tensors) left.insert(name);
  const auto left_text = [&] {
    constexpr std::size_t kListed = 30;
    std::string text;
    std::size_t listed = 0;
    for (const std::string& name : left)
      if (++listed <= kListed) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", shown(name));
    if (left.size() > kListed) text += fmt::format(" and {} more", left.size() - kListed);
    return left.empty() ? "none" : text;
  };

  Tensor flat = net.flat().to(Device::cpu()).clone();
  for (std::int64_t s = 0; s < net.members(); ++s)
    for (std::size_t p = 0; p < net.layout().entries().size(); ++p) {
      const auto& entry = net.layout().entries()[p];
      const std::string name = name_in_file(net, p, s);
      const Tensor* found = content.find(name);
      if (!found)
        fail("weights", "{}: '{}' {} is missing; not used so far: {}", path, name, entry.member,
             left_text());
      check<ShapeError>(found->shape() == entry.member, "weights",
                        "{}: '{}' has shape {}, wanted {}", path, name, found->shape(),
                        entry.member);
      check(entry.scale != 0, "weights",
            "{}: '{}' has no effect in the NTK parameterisation with sigma_b2 = 0, wanted > 0",
            path, name);
      const Tensor values = scaled(*found, 1 / entry.scale, net.flat().dtype());
      check_finite(values, path, name);
      copy(net.layout().member_view(flat, p, s), values);
      left.erase(name);
    }
  check(left.empty(), "weights", "{}: got {} too, which '{}' does not have", path, left_text(),
        spec_text(net.spec()));
  // Activations and eps have no tensors.
  const auto written = content.metadata.find("keel.net");
  check(written == content.metadata.end() || written->second == spec_text(net.spec()), "weights",
        "{} holds the weights of '{}', wanted those of '{}'", path,
        written == content.metadata.end() ? "" : shown(written->second), spec_text(net.spec()));
  copy(net.flat(), flat);
}

}  // namespace keel
