#include "text.h"

#include <algorithm>
#include <charconv>

namespace keel::emulated::ptx {

namespace {

bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

// Statements, without what they end with; labels keep their colon. Scopes are left out: no name
// stands for two things at once but for those that each scope declares anew.
std::vector<Statement> statements(std::string_view body, int line) {
  std::vector<Statement> result;
  std::string text;
  int first = line;
  while (!body.empty()) {
    const std::size_t end = std::min(body.find('\n'), body.size());
    std::string_view row = body.substr(0, end);
    row = row.substr(0, row.find("//"));
    if (!begins(trimmed(row), ".loc") && !begins(trimmed(row), ".file")) {
      for (const char c : row) {
        const bool fresh = trimmed(text).empty();
        if (fresh) first = line;
        if (fresh && (c == '{' || c == '}')) continue;
        if (c != ';') text += c;
        if (c == ';' || (c == ':' && trimmed(text).find_first_of(" \t") == text.npos)) {
          if (!trimmed(text).empty()) result.push_back({std::string(trimmed(text)), first});
          text.clear();
        }
      }
      text += ' ';
    }
    body.remove_prefix(std::min(end + 1, body.size()));
    ++line;
  }
  return result;
}

std::vector<std::string> operands(std::string_view text) {
  std::vector<std::string> result;
  std::string now;
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' || c == '[' || c == '(';
    depth -= c == '}' || c == ']' || c == ')';
    if ((c == ',' && depth == 0) || (c == '|' && depth == 0)) {
      result.emplace_back(trimmed(now));
      now.clear();
    } else {
      now += c;
    }
  }
  if (!trimmed(now).empty()) result.emplace_back(trimmed(now));
  return result;
}

std::vector<std::string> in_brackets(std::string_view text) {
  return operands(text.substr(1, text.size() - 2));
}

Declaration declaration(std::string_view text) {
  Declaration result;
  std::size_t element = 1;
  while (!text.empty()) {
    text = trimmed(text);
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    if (word == ".align") {
      text = trimmed(text);
      std::from_chars(text.data(), text.data() + text.size(), result.align);
      text.remove_prefix(std::min(text.find_first_of(" \t"), text.size()));
    } else if (word == ".pred") {
      element = 1;
    } else if (word.size() > 2 && word[0] == '.' && word[2] >= '0' && word[2] <= '9') {
      std::from_chars(word.data() + 2, word.data() + word.size(), element);
      element /= 8;
    } else if (word[0] != '.') {
      const std::size_t open = word.find_first_of("[<");
      result.name = word.substr(0, open);
      result.bytes = element;
      if (open == word.npos) continue;
      std::size_t number = 0;
      std::from_chars(word.data() + open + 1, word.data() + word.size(), number);
      if (word[open] == '<')
        result.numbered = static_cast<int>(number);
      else
        result.bytes = element * number;
    }
  }
  result.align = std::max(result.align, element);
  return result;
}

}  // namespace keel::emulated::ptx
