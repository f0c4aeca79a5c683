#include "helpers.h"

namespace keel {

nlohmann::json json_of(const std::string& path) { return nlohmann::json::parse(content_of(path)); }

}  // namespace keel
