// A SPEC's text, word by word.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

namespace keel {

/// Without blanks at its ends.
std::string_view trim(std::string_view text);

/// Whether all of `text` is a number, which `value` becomes.
template <class T>
bool parse_whole(std::string_view text, T& value) {
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && stop == text.data() + text.size();
}

/// A word as written, "layernorm(eps=0)", taken apart: its name, and what stands between its
/// parentheses, which are the outermost where it `nests` other words.
struct SpecWord {
  std::string_view text, name, inside;
  bool has_parentheses = false;
  int position = 0;
  std::string at() const;  ///< for messages: the word, quoted, and its place
};

/// Takes the first word, `position` in the SPEC, off `rest`; blanks within parentheses belong to
/// it. `nests`: the name of the word that holds others. Throws keel::Error where parentheses do not
/// fit.
SpecWord next_word(std::string_view& rest, int position, std::string_view nests);

}  // namespace keel
