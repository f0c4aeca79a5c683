// Finds the functions of a PTX file.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "code.h"
#include "text.h"

namespace keel::emulated::ptx {
Module::Module(std::string path) : path_(std::move(path)) {
  std::ifstream file(path_);
  std::ostringstream all;
  all << file.rdbuf();
  if (!file) fail(path_, 0, "cannot be read");
  text_ = all.str();

  int line = 1;
  std::string header;  // of the function that is being read
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t end = std::min(text_.find('\n', at), text_.size());
    const std::string_view row = std::string_view(text_).substr(at, end - at);
    const bool heads = row.find(".entry ") != row.npos || row.find(".func ") != row.npos;
    if (header.empty() && heads && !begins(row, "//")) {
      header = row;
    } else if (!header.empty() && begins(row, "{")) {
      const std::size_t close = text_.find("\n}\n", at);
      if (close == text_.npos) fail(path_, line, "a function without an end");
      functions_.push_back(function_of(header));
      Function& function = functions_.back();
      function.line = line;
      function.body = std::string_view(text_).substr(at + 1, close - at - 1);
      line += 1 + static_cast<int>(std::count(function.body.begin(), function.body.end(), '\n'));
      header.clear();
      at = close + 1;
      continue;
    } else if (!header.empty()) {
      if (begins(row, ";"))
        header.clear();  // a declaration alone
      else
        header.append(" ").append(row);
    } else if (row.find(".shared ") != row.npos) {
      variables_.emplace_back(row.substr(0, row.find(';')));
    }
    at = end + 1;
    ++line;
  }
}

// ".func (results) name(parameters)", ".entry name(parameters)", whatever stands before and behind.
Module::Function Module::function_of(std::string_view header) {
  header.remove_prefix(std::min(header.find(".func "), header.find(".entry ")));
  header = trimmed(header.substr(header.find(' ')));
  const auto bracket = [&header] {  // takes it away
    const std::size_t end = header.find(')');
    const std::string inside(header.substr(1, end - 1));
    header = trimmed(header.substr(end + 1));
    return inside;
  };
  Function function;
  if (begins(header, "(")) function.results = bracket();
  function.name = trimmed(header.substr(0, header.find('(')));
  header.remove_prefix(std::min(header.find('('), header.size()));
  if (begins(header, "(")) function.parameters = bracket();
  return function;
}

const Module::Function* Module::find(std::string_view name) const {
  for (const Function& function : functions_)
    if (function.name == name) return &function;
  return nullptr;
}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> names;
  for (const Function& function : functions_)
    if (function.results.empty()) names.push_back(function.name);
  return names;
}

}  // namespace keel::emulated::ptx
