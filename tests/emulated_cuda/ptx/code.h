// PTX, the code that nvcc makes for a GPU's threads, as it is run here: names are resolved to
// registers, opcodes to functions that do what they say for all lanes of a warp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keel::emulated::ptx {

inline constexpr unsigned kWarp = 32;

/// One register of a warp: 32 values, side by side and as wide as its type.
struct alignas(64) Register {
  unsigned char bytes[8 * kWarp];
};

struct Warp;
struct Instruction;
using Action = void (*)(Warp&, const Instruction&);

/// What an instruction does besides. Together: all lanes of the warp do it, or, of members, those
/// that each of them names by its last operand.
enum class Flow : std::uint8_t { next, branch, leave, barrier, together, members };
inline constexpr int kMembers = 5;  // that operand's place among them
enum class Space : std::uint8_t { global, shared, parameter };
/// Which part of a multiprocessor it keeps busy.
enum class Unit : std::uint8_t { float32, float64, tensor, shared, device, other };
inline constexpr std::size_t kUnits = 6;

/// What an opcode does, and how wide its result and operands are, in bytes.
struct Operation {
  Action action = nullptr;
  Flow flow = Flow::next;
  std::vector<int> widths;
  std::uint8_t results = 1;
  // Without a rounding in its name a product may be fused with the sum or difference that takes it.
  bool product = false;
  Action with_product[2] = {};  // a sum's or difference's, where its first or second operand is one
};

struct Instruction {
  Action action = nullptr;
  Flow flow = Flow::next;
  Unit unit = Unit::other;
  bool unless = false;  // the guard says when not
  Space space = Space::global;
  bool wide = false;         // the address is of 64 bits
  std::uint8_t count = 1;    // elements of a vector
  std::uint8_t results = 1;  // the first so many of `at`
  int guard = -1;            // a register of conditions
  int address = -1;          // a register
  std::int64_t number = 0;   // an address' offset, a branch's target, copies to be under way
  int line = 0;              // of the file
  int at[14] = {};           // registers: results first
  const Operation* operation = nullptr;  // null: a load, a store and the like
};

/// Arithmetic, comparisons, conversions by their full names, "fma.rn.f32"; null: not known.
const Operation* find_operation(std::string_view opcode);

/// Loads and stores, by the parts of their names behind "ld" or "st"; a null action: not known.
/// `width`: of the registers, in bytes.
Instruction memory_instruction(bool store, std::string_view parts, int width);
/// "cp.async...": its kind, source and destination are `at[0]` and `at[1]`.
Instruction copy_instruction(std::string_view opcode, std::int64_t number);
/// Packs registers into a wider one, and apart; of the narrow ones' width.
Action pack_action(int width);
Action unpack_action(int width);

/// A kernel, ready to run.
struct Kernel {
  struct Constant {
    int at;
    int width;
    std::uint64_t bits;
  };
  std::string file, name;
  std::vector<std::pair<std::size_t, std::size_t>> parameters;  // offset and size
  std::size_t parameter_bytes = 0;
  std::size_t shared_bytes = 0;  // the launch's own come behind, and begin at a sixteenth byte
  std::vector<Instruction> code;
  std::vector<Constant> constants;
  int registers = 0;
  mutable std::array<std::int64_t, kUnits> issued{};  // instructions of warps, while Traffic counts
  int thread = -1, block = -1, threads = -1, blocks = -1;  // registers of %tid.x and its like
};

/// A file that nvcc made.
class Module {
 public:
  /// Ends the program where the file cannot be read.
  explicit Module(std::string path);
  std::vector<std::string> kernels() const;
  /// Ends the program where the kernel's code has what is not known here.
  Kernel compile(const std::string& kernel) const;
  const std::string& path() const { return path_; }

 private:
  friend class Compiler;
  struct Function {
    std::string name, parameters, results;
    std::string_view body;
    int line = 0;  // of the body's first character
  };
  static Function function_of(std::string_view header);
  const Function* find(std::string_view name) const;

  std::string path_, text_;
  std::vector<Function> functions_;
  std::vector<std::string> variables_;  // declarations of shared memory, of all functions
};

[[noreturn]] void fail(const std::string& file, int line, const std::string& why);

/// Fuses what ptxas may fuse: as much as it could, as only a card's own code tells what it does.
void fuse_products(Kernel& kernel);

/// blocks of `threads` threads, one block after another. `parameters`: the bytes of each.
void run_grid(const Kernel& kernel, std::int64_t blocks, unsigned threads, std::size_t shared_bytes,
              const std::vector<std::string>& parameters);

}  // namespace keel::emulated::ptx
