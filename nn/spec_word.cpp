#include "spec_word.h"

#include <algorithm>

#include "../core/error.h"

namespace keel {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Of the parenthesis at `open`; npos where there is none.
std::size_t closing(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    depth += (text[at] == '(') - (text[at] == ')');
    if (depth == 0) return at;
  }
  return text.npos;
}

}  // namespace

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string SpecWord::at() const { return fmt::format("'{}' (word {})", shown(text), position); }

SpecWord next_word(std::string_view& rest, int position, std::string_view nests) {
  std::size_t end = 0;
  for (int depth = 0; end < rest.size(); ++end) {
    if (depth <= 0 && kBlanks.find(rest[end]) != kBlanks.npos) break;
    depth += (rest[end] == '(') - (rest[end] == ')');
  }
  SpecWord word;
  word.position = position;
  word.text = trim(rest.substr(0, end));
  rest = trim(rest.substr(end));

  const std::size_t open = word.text.find('(');
  std::size_t close = word.text.find(')');
  word.name = word.text.substr(0, std::min(open, close));
  if (word.name == nests && open != word.text.npos) close = closing(word.text, open);
  word.has_parentheses = open != word.text.npos;
  if (!word.has_parentheses) {
    check(close == word.text.npos, "spec", "got {}, wanted no ')' without '('", word.at());
    return word;
  }
  check(close != word.text.npos, "spec", "got {}, wanted a closing ')'", word.at());
  check(close > open && close + 1 == word.text.size(), "spec",
        "got '{}' after ')' in {}, wanted a blank", shown(word.text.substr(close + 1)), word.at());
  word.inside = word.text.substr(open + 1, close - open - 1);
  return word;
}

}  // namespace keel
