// Prints what the hot kernels make of sectors and banks, by traffic.h: keel_emulated_traffic
// [--lines] [PART OF A LABEL]. --lines: also the lines of the source whose requests cost more than
// the least. With KEEL_EMULATED_PTX it is nvcc's code that runs (ptx/README.md), and its
// instructions are counted, too; its lines are those of the PTX file.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "ptx/library.h"
#include "traffic.h"
#include "traffic_works.h"

// Of the linker: where the program begins.
extern "C" const char __executable_start[];

using namespace keel;
using emulated::KernelTraffic;
using emulated::Requests;
using emulated::Site;
using emulated::Space;
namespace ptx = emulated::ptx;

namespace {

// What addr2line says of an address in this program.
std::string ask(const char* options, const void* address) {
  const auto offset = static_cast<const char*>(address) - __executable_start;
  const std::string command =
      fmt::format("addr2line {} -C -e /proc/{}/exe {:#x}", options, getpid(), offset);
  std::string said;
  char part[512];
  FILE* pipe = popen(command.c_str(), "r");
  while (pipe && std::fgets(part, sizeof part, pipe)) said += part;
  if (pipe) pclose(pipe);
  return said;
}

void drop(std::string& text, std::string_view part) {
  for (std::size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
}

// The arguments of a template: what follows `opening`, without the bracket that closes it.
std::string inside(const std::string& name, std::size_t opening) {
  std::string text = name.substr(opening, name.rfind('>') - opening);
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

// `tile_kernel<CudaGroup<32, 4, float, false>, RowProgram<GatherRow<float> > >` ->
// `GatherRow<float>`
std::string name_of(const void* kernel) {
  std::string name = ask("-f", kernel);
  name = name.substr(0, name.find('\n'));
  for (const char* part :
       {"keel::", "(Runs)", "(anonymous namespace)::", "detail::", "emulated::", "void "})
    drop(name, part);
  name = name.substr(0, name.find('('));
  if (name.starts_with("tile_kernel<")) name = inside(name, name.find(">, ") + 3);
  for (const char* outer : {"RowProgram<", "ElementProgram<"})
    if (name.starts_with(outer)) name = inside(name, std::strlen(outer));
  return name;
}

void print_row(const std::string& what, const Requests& r, Space space, std::int64_t distinct) {
  if (r.requests == 0) return;
  const auto ratio = [&](std::int64_t cost) {
    return static_cast<double>(cost) / static_cast<double>(r.fewest);
  };
  fmt::print("  {:<14}{:>9}{:>7.1f}{:>9}{:>9}{:>8.2f}", what, r.requests,
             static_cast<double>(r.lanes) / static_cast<double>(r.requests), r.cost, r.fewest,
             ratio(r.cost));
  if (space == Space::device)
    fmt::print("{:>9.1f}{:>9}\n", static_cast<double>(r.cost) * 32e-3,
               fmt::format("{:.1f}", static_cast<double>(distinct) * 1e-3));
  else
    fmt::print("{:>27}\n", r.paired);
}

// What nvcc's code issued since it was last asked, and which units it kept busy.
void print_instructions(const ptx::Kernel& kernel) {
  const auto issued = std::exchange(kernel.issued, {});
  const std::int64_t all = std::accumulate(issued.begin(), issued.end(), std::int64_t{0});
  fmt::print("  {} instructions of warps:", all);
  const char* const units[] = {"float32", "float64", "tensor", "shared", "device", "other"};
  for (std::size_t unit = 0; unit < ptx::kUnits; ++unit)
    if (issued[unit] > 0)
      fmt::print(" {} {:.1f}%", units[unit],
                 100 * static_cast<double>(issued[unit]) / static_cast<double>(all));
  fmt::print("\n");
}

// `file:line` of an instruction, and of what it was inlined into.
std::string place_of(const void* instruction, const ptx::Kernel* by_nvcc) {
  if (by_nvcc)
    return fmt::format("{}:{}", by_nvcc->file.substr(by_nvcc->file.rfind('/') + 1),
                       static_cast<const ptx::Instruction*>(instruction)->line);
  const std::string said = ask("-i", instruction);
  std::string place;
  int frames = 0;
  for (std::size_t at = 0, end; (end = said.find('\n', at)) != std::string::npos && frames < 5;
       at = end + 1, ++frames) {
    const std::string line = said.substr(at, end - at);
    const std::string file = line.substr(line.rfind('/') + 1);
    place += (place.empty() ? "" : " < ") + file.substr(0, file.find(" ("));
  }
  return place;
}

void print_lines(const KernelTraffic& kernel, const ptx::Kernel* by_nvcc) {
  std::map<std::tuple<Space, bool, int, std::string>, Requests> of_line;
  for (const Site& site : kernel.sites)
    if (site.counted.cost > site.counted.fewest)
      of_line[{site.space, site.writes, site.bytes, place_of(site.instruction, by_nvcc)}] +=
          site.counted;
  for (const auto& [line, r] : of_line) {
    const auto& [space, writes, bytes, place] = line;
    fmt::print("    {} {} of {:>2} bytes: {} instead of {}, {} requests: {}\n",
               space == Space::device ? "device" : "shared", writes ? "stores" : "loads ", bytes,
               r.cost, r.fewest, r.requests, place);
  }
}

}  // namespace

int main(int count, char** arguments) {
  bool lines = false;
  std::string_view wanted;
  for (int i = 1; i < count; ++i)
    std::string_view(arguments[i]) == "--lines" ? void(lines = true) : void(wanted = arguments[i]);
  fmt::print("  {:<14}{:>9}{:>7}{:>9}{:>9}{:>8}{:>9}{:>9}{:>9}\n", "", "requests", "lanes", "cost",
             "least", "ratio", "kB", "once kB", "paired");
  for (const auto& work : traffic_works::all()) {
    if (work.label.find(wanted) == std::string::npos) continue;
    fmt::print("{}\n", work.label);
    for (const KernelTraffic& kernel : traffic_works::counted(work)) {
      fmt::print(" {} x {}\n", kernel.launches, name_of(kernel.kernel));
      const auto total = [&](Space space, bool writes) { return kernel.total(space, writes); };
      print_row("device loads", total(Space::device, false), Space::device, kernel.loaded);
      print_row("device stores", total(Space::device, true), Space::device, kernel.stored);
      print_row("shared loads", total(Space::shared, false), Space::shared, 0);
      print_row("shared stores", total(Space::shared, true), Space::shared, 0);
      const ptx::Kernel* by_nvcc = ptx::find_kernel(kernel.kernel);
      if (by_nvcc) print_instructions(*by_nvcc);
      if (lines) print_lines(kernel, by_nvcc);
    }
  }
}
