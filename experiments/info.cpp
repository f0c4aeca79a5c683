// keel info: devices, memory, versions, backends.
#include <CLI/CLI.hpp>
#include <ostream>

#include "../core/version.h"
#include "command.h"
#include "output.h"
#include "text_table.h"

namespace keel {
namespace {

std::vector<Device> visible_devices() {
  std::vector<Device> devices = {Device::cpu()};
  for (int i = 0; i < cuda_device_count(); ++i) devices.push_back(Device::cuda(i));
  return devices;
}

Json device_json(Device device) {
  const DeviceInfo info = describe(device);
  return {{"device", device.str()},
          {"name", info.name},
          {"architecture", info.architecture},
          {"units", info.units},
          {"total_bytes", info.total_bytes},
          {"free_bytes", info.free_bytes}};
}

std::string device_table(Device chosen) {
  std::vector<std::vector<std::string>> rows = {
      {"device", "name", "architecture", "units", "memory", "free"}};
  for (Device device : visible_devices()) {
    const DeviceInfo info = describe(device);
    rows.push_back({device.str() + (device == chosen ? " *" : ""), info.name, info.architecture,
                    fmt::format("{} {}", info.units,
                                !device.is_cpu()  ? "SMs"
                                : info.units == 1 ? "thread"
                                                  : "threads"),
                    human_bytes(info.total_bytes), human_bytes(info.free_bytes)});
  }
  std::string text = text_table(rows, 3);
  if (cuda_device_count() == 0) text += "no GPU: " + why_no_cuda() + "\n";
  return text;
}

int run_info(Context& context) {
  Json numbers = {{"devices", Json::array()}};
  for (Device device : visible_devices()) numbers["devices"].push_back(device_json(device));
  const int gpus = cuda_device_count();
  numbers["cuda"] = {{"devices", gpus},
                     {"why_none", gpus > 0 ? Json(nullptr) : Json(why_no_cuda())}};
  const Json summary = summarise(context, numbers);
  if (!context.options.out.empty())
    OutputFolder(context.options.out).write("summary.json", json_text(summary));
  if (context.options.json) {
    context.out << json_text(summary);
  } else if (!context.options.quiet) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, what] : backends()) rows.push_back({name, what});
    context.out << fmt::format("keel {} (commit {})\n\n{}\n{}", version(), git_commit(),
                               device_table(context.device), text_table(rows, 2));
  }
  return 0;
}

}  // namespace

Run declare_info(CLI::App&) { return run_info; }

}  // namespace keel
