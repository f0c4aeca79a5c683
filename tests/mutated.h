// Mutated copies of sound files and texts, the same in every run: what a reader may be given.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "../core/error.h"

namespace keel::test {

/// Changes bytes, repeats, removes and moves parts, and puts in words that the format knows.
class Mutator {
 public:
  Mutator(std::uint64_t seed, std::vector<std::string> words)
      : random_(seed), words_(std::move(words)) {}

  std::string operator()(std::string bytes) {
    for (std::size_t times = 1 + below(3); times > 0; --times) change(bytes);
    return bytes;
  }

  /// From 0 to n - 1. Not by a distribution, which each standard library has its own of.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

 private:
  void change(std::string& bytes) {
    const std::size_t at = below(bytes.size() + 1), some = 1 + below(8);
    const std::string& word = words_[below(words_.size())];
    switch (below(8)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random_());
        return;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
        return;
      case 2:
        bytes.insert(at, word);
        return;
      case 3:
        bytes.replace(at, some, word);
        return;
      case 4:
        bytes.erase(at, some);
        return;
      case 5:
        bytes.insert(at, bytes.substr(below(bytes.size() + 1), some));
        return;
      case 6:  // the same word in the place of a number
        if (const std::size_t digit = bytes.find_first_of("0123456789", at); digit != bytes.npos)
          bytes.replace(digit, 1, word);
        return;
      default:
        if (below(4) == 0) bytes.resize(at);
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> words_;
};

struct Verdicts {
  int accepted = 0, refused = 0;
};

inline bool is_one_line(const std::string& text) {
  return !text.empty() && text.size() < 9000 &&
         std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 127; });
}

/// Calls read(bytes), which checks what it was given, on `count` mutated copies of `sound` in turn.
/// It may throw an Error of one line, and nothing else.
template <class Read>
Verdicts read_mutated(Mutator mutate, const std::vector<std::string>& sound, int count, Read read) {
  Verdicts verdicts;
  for (int i = 0; i < count; ++i) {
    const std::string bytes = mutate(sound[static_cast<std::size_t>(i) % sound.size()]);
    CAPTURE(i);
    CAPTURE(shown(bytes, 400));
    try {
      read(bytes);
      ++verdicts.accepted;
    } catch (const Error& error) {
      ++verdicts.refused;
      if (!is_one_line(error.what())) FAIL_CHECK("not one line: ", shown(error.what(), 400));
    } catch (const std::exception& error) {
      FAIL_CHECK("no keel::Error: ", error.what());
    }
  }
  return verdicts;
}

}  // namespace keel::test
