// The text of PTX: statements, operands, declarations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keel::emulated::ptx {

struct Statement {
  std::string text;  // without what ends it, but for a label's colon
  int line;
};

/// A variable's or register's: ".align 8 .b8 name[16]", ".u64 name", ".reg .b32 %r<10>".
struct Declaration {
  std::string name;
  std::size_t bytes = 0, align = 1;
  int numbered = 0;  // <10>
};

bool begins(std::string_view text, std::string_view with);
std::string_view trimmed(std::string_view text);
/// `line`: of the first.
std::vector<Statement> statements(std::string_view body, int line);
/// At commas that are in no brackets.
std::vector<std::string> operands(std::string_view text);
/// Of "{a, b}".
std::vector<std::string> in_brackets(std::string_view text);
Declaration declaration(std::string_view text);

}  // namespace keel::emulated::ptx
