#include "names.h"

#include <charconv>

namespace keel::emulated::ptx {
namespace {

std::size_t up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

void Names::fail(const std::string& why) const {
  ptx::fail(file_, now_.line, why + ": " + now_.text);
}

void Names::add_parameter(const Declaration& declared) {
  const std::size_t offset = up(kernel_.parameter_bytes, declared.align);
  symbols_[declared.name] = {Space::parameter, offset, false};
  kernel_.parameters.emplace_back(offset, declared.bytes);
  kernel_.parameter_bytes = offset + declared.bytes;
}

void Names::add_registers(Scope& scope, const Declaration& declared) {
  const int width = static_cast<int>(declared.bytes);
  if (declared.numbered > 0)
    scope.widths[declared.name] = width;
  else
    scope.registers[declared.name] = {fresh(), width};
}

const Named* Names::find(Scope& scope, const std::string& name) {
  const auto known = scope.registers.find(name);
  if (known != scope.registers.end()) return &known->second;
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  const auto width = scope.widths.find(name.substr(0, digits));
  if (width == scope.widths.end() || digits == name.size()) return nullptr;
  return &(scope.registers[name] = {fresh(), width->second});
}

int Names::operand(Scope& scope, const std::string& text, int width) {
  if (const Named* found = find(scope, text))
    return found->width == width ? found->at : lower_part(*found, width);
  if (text[0] == '%') return special(text);
  if (begins(text, "0f") || begins(text, "0d")) {
    std::uint64_t bits = 0;
    std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    if (width != (text[1] == 'f' ? 4 : 8)) fail("a number of another width");
    return constant(bits, width);
  }
  if (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) return constant(integer(text), width);
  const Symbol* found = symbol(text);
  if (!found) fail("not known: " + text);
  if (!found->dynamic) return constant(found->offset, width);
  dynamic_constants_.push_back(kernel_.constants.size());
  kernel_.constants.push_back({fresh(), width, found->offset});
  return kernel_.constants.back().at;
}

int Names::lower_part(Named whole, int width) {
  const auto bits = [](int bytes) { return std::to_string(8 * bytes); };
  const Operation* operation =
      begins(now_.text, "cvt.") ? find_operation("cvt.u" + bits(width) + ".u" + bits(whole.width))
                                : nullptr;
  if (!operation || width > whole.width) fail("a register of another width");
  Instruction in;
  in.action = operation->action;
  in.line = now_.line;
  in.at[0] = fresh();
  in.at[1] = whole.at;
  kernel_.code.push_back(in);
  return in.at[0];
}

int Names::special(const std::string& name) {
  int* at = name == "%tid.x"      ? &kernel_.thread
            : name == "%ctaid.x"  ? &kernel_.block
            : name == "%ntid.x"   ? &kernel_.threads
            : name == "%nctaid.x" ? &kernel_.blocks
                                  : nullptr;
  if (!at) fail("not known: " + name);
  if (*at < 0) *at = fresh();
  return *at;
}

int Names::constant(std::uint64_t bits, int width) {
  const auto [place, is_new] = constants_.try_emplace({bits, width}, kernel_.registers);
  if (is_new) kernel_.constants.push_back({fresh(), width, bits});
  return place->second;
}

const Names::Symbol* Names::symbol(std::string_view name) {
  const auto known = symbols_.find(name);
  if (known != symbols_.end()) return &known->second;
  const auto variable = variables_.find(name);
  if (variable == variables_.end()) return nullptr;
  const Declaration declared = declaration(variable->second);
  Symbol& result = symbols_[declared.name];
  if (declared.bytes == 0) {
    result.dynamic = true;
  } else {
    result.offset = up(kernel_.shared_bytes, declared.align);
    kernel_.shared_bytes = result.offset + declared.bytes;
  }
  return &result;
}

std::uint64_t Names::integer(std::string_view text) const {
  const bool minus = text[0] == '-';
  if (minus) text.remove_prefix(1);
  const bool hexadecimal = begins(text, "0x");
  if (hexadecimal) text.remove_prefix(2);
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
  const std::string_view rest(read.ptr, static_cast<std::size_t>(end - read.ptr));
  if (read.ec != std::errc() || (rest != "" && rest != "U")) fail("no number");
  return minus ? 0 - value : value;
}

void Names::address(Scope& scope, std::string_view text, Instruction& in) {
  text = trimmed(text.substr(1, text.size() - 2));
  const std::size_t plus = text.find('+');
  const std::string base(trimmed(text.substr(0, plus)));
  if (plus != text.npos)
    in.number = static_cast<std::int64_t>(integer(trimmed(text.substr(plus + 1))));
  if (const Named* found = find(scope, base)) {
    in.address = found->at;
    in.wide = found->width == 8;
    return;
  }
  const Symbol* found = symbol(base);
  if (!found || found->space != in.space) fail("not known: " + base);
  in.address = constant(0, 8);
  in.wide = true;
  in.number += static_cast<std::int64_t>(found->offset);
  if (found->dynamic) dynamic_addresses_.push_back(kernel_.code.size());
}

void Names::place_dynamic() {
  kernel_.shared_bytes = up(kernel_.shared_bytes, 16);
  for (const std::size_t at : dynamic_constants_)
    kernel_.constants[at].bits += kernel_.shared_bytes;
  for (const std::size_t at : dynamic_addresses_)
    kernel_.code[at].number += static_cast<std::int64_t>(kernel_.shared_bytes);
}

}  // namespace keel::emulated::ptx
