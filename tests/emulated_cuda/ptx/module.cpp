// Finds the functions of a PTX file.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "code.h"

namespace keel::emulated::ptx {
namespace {

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

}  // namespace

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
    const bool begins_function = row.find(".entry ") != row.npos || row.find(".func ") != row.npos;
    if (header.empty() && begins_function && !begins(row, "//")) {
      header = row;
    } else if (!header.empty() && begins(row, "{")) {
      const std::size_t close = text_.find("\n}\n", at);
      if (close == text_.npos) fail(path_, line, "a function without an end");
      Function function;
      function.line = line;
      function.body = std::string_view(text_).substr(at + 1, close - at - 1);
      // .func (results) name(parameters) or .entry name(parameters)
      std::string_view rest = std::string_view(header).substr(header.find_first_of('.'));
      rest.remove_prefix(std::min(rest.find(".func "), rest.find(".entry ")));
      rest.remove_prefix(rest.find(' ') + 1);
      while (begins(rest, " ")) rest.remove_prefix(1);
      if (begins(rest, "(")) {
        function.results = rest.substr(1, rest.find(')') - 1);
        rest.remove_prefix(rest.find(')') + 1);
      }
      const std::size_t open = rest.find('('), shut = rest.find(')');
      std::string_view name = rest.substr(0, open);
      while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
      function.name = name;
      if (open != rest.npos) function.parameters = rest.substr(open + 1, shut - open - 1);
      for (char c : function.body) line += c == '\n';
      functions_.emplace_back(function.name, function);
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

const Module::Function* Module::find(std::string_view name) const {
  for (const auto& [known, function] : functions_)
    if (known == name) return &function;
  return nullptr;
}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> names;
  for (const auto& [name, function] : functions_)
    if (function.results.empty()) names.push_back(name);
  return names;
}

}  // namespace keel::emulated::ptx
