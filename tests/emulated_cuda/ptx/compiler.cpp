// Makes of a kernel's text what can be run. Functions that it calls are written out where they are
// called.
#include "names.h"

namespace keel::emulated::ptx {

class Compiler {
 public:
  Compiler(const Module& module, Kernel& kernel)
      : module_(module), kernel_(kernel), names_(module.path(), kernel) {}

  void compile(const Module::Function& function) {
    for (const std::string& text : operands(function.parameters))
      names_.add_parameter(declaration(text));
    for (const std::string& text : module_.variables_) names_.add_variable(text);
    Scope scope;
    read(function, scope);
    guard_ = -1;
    unit_ = Unit::other;
    Instruction leave;
    leave.flow = Flow::leave;
    leave.results = 0;
    emit(leave);
    land(scope);
    fuse_products(kernel_);
    names_.place_dynamic();
  }

 private:
  using Arguments = std::vector<std::string>;

  static Unit unit_of(std::string_view opcode) {
    const auto has = [&](const char* part) { return opcode.find(part) != opcode.npos; };
    if (has("mma.")) return Unit::tensor;
    if (has(".global") || begins(opcode, "cp.async")) return Unit::device;
    if (has(".shared")) return Unit::shared;
    if (has("f64")) return Unit::float64;
    const bool moves = begins(opcode, "mov.") || begins(opcode, "ld.param");
    return has("f32") && !moves ? Unit::float32 : Unit::other;
  }

  void emit(Instruction in) {
    in.unit = unit_;
    in.line = line_;
    in.guard = guard_;
    in.unless = unless_;
    kernel_.code.push_back(in);
  }

  // Jumps without a label go behind all that is there.
  void land(const Scope& scope) {
    for (const auto& [at, label] : scope.jumps) {
      const auto found = scope.labels.find(label);
      if (!label.empty() && found == scope.labels.end())
        ptx::fail(module_.path(), kernel_.code[at].line, "no such label: " + label);
      const std::size_t to = label.empty() ? kernel_.code.size() : found->second;
      kernel_.code[at].number = static_cast<std::int64_t>(to);
    }
  }

  void read(const Module::Function& function, Scope& scope) {
    for (const Statement& statement : statements(function.body, function.line)) {
      names_.at(statement);
      line_ = statement.line;
      guard_ = -1;
      unless_ = false;
      std::string_view text = statement.text;
      if (text.back() == ':') {
        scope.labels[std::string(text.substr(0, text.size() - 1))] = kernel_.code.size();
      } else if (text[0] == '.') {
        declare(scope, text);
      } else {
        if (text[0] == '@') {
          unless_ = text[1] == '!';
          text.remove_prefix(unless_ ? 2 : 1);
          const std::size_t end = text.find_first_of(" \t");
          guard_ = names_.operand(scope, std::string(text.substr(0, end)), 1);
          text = trimmed(text.substr(end));
        }
        const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
        instruction(scope, std::string(text.substr(0, end)), operands(text.substr(end)));
      }
    }
  }

  void declare(Scope& scope, std::string_view text) {
    if (begins(text, ".pragma")) return;
    if (begins(text, ".shared"))
      names_.add_variable(text);
    else if (begins(text, ".reg") || begins(text, ".param"))  // parameters of calls are registers
      names_.add_registers(scope, declaration(text));
    else
      names_.fail("not known");
  }

  void instruction(Scope& scope, const std::string& opcode, const Arguments& args) {
    unit_ = unit_of(opcode);
    if (opcode == "call.uni" || opcode == "call") return call(scope, args);
    if (begins(opcode, "ld.param") || begins(opcode, "st.param"))
      if (const Named* found = call_parameter(scope, args.at(begins(opcode, "st") ? 0 : 1)))
        return move_parameter(scope, args, *found, begins(opcode, "st"));
    if (begins(opcode, "ld.") || begins(opcode, "st.")) return memory(scope, opcode, args);
    if (begins(opcode, "cp.async")) return copy(scope, opcode, args);
    if (begins(opcode, "mov.") && args.size() == 2 && (args[0][0] == '{' || args[1][0] == '{'))
      return vector_move(scope, opcode, args);
    const Operation* operation = find_operation(opcode);
    if (!operation) names_.fail("not known");
    Instruction in;
    in.action = operation->action;
    in.flow = operation->flow;
    in.results = operation->results;
    in.operation = operation;
    if (in.flow == Flow::barrier && (args.size() != 1 || args[0] != "0")) names_.fail("not known");
    Arguments flat;
    for (const std::string& arg : args) {
      const bool vector = arg[0] == '{';
      for (const std::string& part : vector ? in_brackets(arg) : Arguments{arg})
        flat.push_back(part);
    }
    if (!operation->widths.empty() && flat.size() != operation->widths.size())
      names_.fail("other operands than are known");
    for (std::size_t i = 0; i < operation->widths.size(); ++i)
      in.at[i] = names_.operand(scope, flat[i], operation->widths[i]);
    const bool back = in.flow == Flow::leave && called_;  // to behind the call
    if (back) in.flow = Flow::branch;
    if (in.flow == Flow::branch)
      scope.jumps.emplace_back(kernel_.code.size(), back ? std::string() : args.at(0));
    emit(in);
  }

  void memory(Scope& scope, const std::string& opcode, const Arguments& args) {
    const bool stores = begins(opcode, "st.");
    const std::string& values = args.at(stores ? 1 : 0);
    const Arguments parts = values[0] == '{' ? in_brackets(values) : Arguments{values};
    const Named* known = names_.find(scope, parts[0]);
    const int width = known ? known->width : opcode.back() == '4' ? 8 : 4;  // a number: b64 or b32
    Instruction in = memory_instruction(stores, std::string_view(opcode).substr(2), width);
    if (!in.action || parts.size() != in.count) names_.fail("not known");
    for (std::size_t i = 0; i < parts.size(); ++i)
      in.at[i] = names_.operand(scope, parts[i], width);
    names_.address(scope, args.at(stores ? 0 : 1), in);
    emit(in);
  }

  // cp.async [to], [from], bytes; cp.async.wait_group number; cp.async.commit_group
  void copy(Scope& scope, const std::string& opcode, const Arguments& args) {
    const std::int64_t number =
        args.empty() ? 0 : static_cast<std::int64_t>(names_.integer(args.back()));
    Instruction in = copy_instruction(opcode, number);
    if (!in.action || args.size() == 2 || args.size() > 3) names_.fail("not known");
    const auto inside = [](const std::string& text) { return text.substr(1, text.size() - 2); };
    if (args.size() == 3) {
      in.at[0] = names_.operand(scope, inside(args[0]), 4);
      in.at[1] = names_.operand(scope, inside(args[1]), 8);
    }
    emit(in);
  }

  void vector_move(Scope& scope, const std::string& opcode, const Arguments& args) {
    const bool packs = args[1][0] == '{';
    const Arguments parts = in_brackets(args[packs ? 1 : 0]);
    const int wide = opcode == "mov.b64" ? 8 : opcode == "mov.b32" ? 4 : 0;
    if (parts.size() != 2 || wide == 0) names_.fail("not known");
    Instruction in;
    in.action = packs ? pack_action(wide / 2) : unpack_action(wide / 2);
    in.results = packs ? 1 : 2;
    in.at[packs ? 0 : 2] = names_.operand(scope, args[packs ? 0 : 1], wide);
    for (std::size_t k = 0; k < 2; ++k)
      in.at[packs ? k + 1 : k] = names_.operand(scope, parts[k], wide / 2);
    emit(in);
  }

  // "[param0+0]" of a call, or of the function that is being written out.
  static const Named* call_parameter(const Scope& scope, std::string_view text) {
    const std::size_t end = text.find_first_of("+]");
    const auto found = scope.registers.find(text.substr(1, end - 1));
    const bool whole = text.substr(end) == "]" || text.substr(end) == "+0]";
    const bool is_one = found != scope.registers.end() && found->first[0] != '%' && whole;
    return is_one ? &found->second : nullptr;
  }

  void move_parameter(Scope& scope, const Arguments& args, Named parameter, bool stores) {
    const int other = names_.operand(scope, args.at(stores ? 1 : 0), parameter.width);
    Instruction in;
    in.action = find_operation(parameter.width == 8 ? "mov.b64" : "mov.b32")->action;
    in.at[0] = stores ? parameter.at : other;
    in.at[1] = stores ? other : parameter.at;
    emit(in);
  }

  // call (results), name, (parameters)
  void call(Scope& scope, const Arguments& args) {
    const Module::Function* function = args.size() == 3 ? module_.find(args[1]) : nullptr;
    if (!function || called_ || guard_ >= 0) names_.fail("not known");
    Scope inner;
    const auto bind = [&](const std::string& declared, const std::string& given) {
      const Arguments formal = operands(declared), actual = in_brackets(given);
      if (formal.size() != actual.size()) names_.fail("other parameters than the function's");
      for (std::size_t i = 0; i < formal.size(); ++i) {
        const Declaration d = declaration(formal[i]);
        const int width = static_cast<int>(d.bytes);
        inner.registers[d.name] = {names_.operand(scope, actual[i], width), width};
      }
    };
    bind(function->results, args[0]);
    bind(function->parameters, args[2]);
    called_ = true;
    read(*function, inner);
    called_ = false;
    land(inner);
  }

  const Module& module_;
  Kernel& kernel_;
  Names names_;
  Unit unit_ = Unit::other;
  int line_ = 0, guard_ = -1;
  bool unless_ = false, called_ = false;
};

Kernel Module::compile(const std::string& kernel) const {
  const Function* function = find(kernel);
  if (!function) fail(path_, 0, "has no " + kernel);
  Kernel result;
  result.file = path_;
  result.name = kernel;
  Compiler(*this, result).compile(*function);
  return result;
}

}  // namespace keel::emulated::ptx
