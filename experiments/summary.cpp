#include "../core/threads.h"
#include "../core/version.h"
#include "command.h"

namespace keel {

Json summarise(const Context& context, const Json& numbers) {
  Json backend = Json::object();
  for (const auto& [name, what] : backends()) backend[name] = what;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - context.started;
  Json summary = {{"command", context.command_line},
                  {"date", context.date},
                  {"seconds", seconds.count()},
                  {"version", version()},
                  {"commit", git_commit()},
                  {"device", context.device.str()},
                  {"device_name", describe(context.device).name},
                  {"threads", thread_count()},
                  {"backends", backend}};
  summary.update(numbers);
  return summary;
}

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace keel
