// What names and numbers stand for in a kernel that is being made.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "code.h"
#include "text.h"

namespace keel::emulated::ptx {

/// A register, and its width in bytes.
struct Named {
  int at, width;
};

/// The registers and labels of a function.
struct Scope {
  std::map<std::string, Named, std::less<>> registers;
  std::map<std::string, int, std::less<>> widths;  // of %r0, %r1, ...: of "%r"
  std::map<std::string, std::size_t, std::less<>> labels;
  std::vector<std::pair<std::size_t, std::string>> jumps;  // instructions and where they go
};

class Names {
 public:
  Names(const std::string& file, Kernel& kernel) : file_(file), kernel_(kernel) {}

  /// What is being read, for errors.
  void at(const Statement& statement) { now_ = statement; }
  [[noreturn]] void fail(const std::string& why) const;

  void add_parameter(const Declaration& declared);
  /// Shared memory; it gets its place where it is first named.
  void add_variable(std::string_view text) { variables_[declaration(text).name] = text; }
  void add_registers(Scope& scope, const Declaration& declared);
  int fresh() { return kernel_.registers++; }

  /// Null: no register.
  const Named* find(Scope& scope, const std::string& name);
  /// The register of a name or number that is as wide as its instruction wants it; a conversion
  /// may read the lower part of a wider one.
  int operand(Scope& scope, const std::string& text, int width);
  std::uint64_t integer(std::string_view text) const;
  /// "[%rd1+16]", "[name+16]": the instruction's register and offset. It is the next in the code.
  void address(Scope& scope, std::string_view text, Instruction& in);
  /// Once all is read: the launch's own shared memory lies behind the kernel's.
  void place_dynamic();

 private:
  struct Symbol {
    Space space = Space::shared;
    std::size_t offset = 0;
    bool dynamic = false;
  };

  int lower_part(Named whole, int width);
  int special(const std::string& name);
  int constant(std::uint64_t bits, int width);
  const Symbol* symbol(std::string_view name);

  const std::string& file_;
  Kernel& kernel_;
  Statement now_{"", 0};
  std::map<std::string, Symbol, std::less<>> symbols_;
  std::map<std::string, std::string, std::less<>> variables_;  // their declarations
  std::map<std::pair<std::uint64_t, int>, int> constants_;
  std::vector<std::size_t> dynamic_constants_, dynamic_addresses_;
};

}  // namespace keel::emulated::ptx
