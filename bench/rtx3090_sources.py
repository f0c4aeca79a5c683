"""What the sources say of the launches: read from them or compiled against them, never repeated."""
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Stale(Exception):
    """The sources no longer say what bench/rtx3090*.py takes them to say."""


def text_of(path):
    """A source without its comments."""
    return re.sub(r"//.*", "", (ROOT / path).read_text())


def wanted(path, pattern):
    """The first match of pattern in a source."""
    found = re.search(pattern, text_of(path), re.DOTALL)
    if not found:
        raise Stale(f"{path} holds nothing like `{pattern}`")
    return found


def constant(path, name):
    """`constexpr int64_t kName = 32` -> 32"""
    return int(wanted(path, rf"constexpr [^;]*\b{name} = (\d+)")[1])


def arithmetic(expression, names):
    for name, value in names.items():
        expression = re.sub(rf"\b{name}\b", str(value), expression)
    if not re.fullmatch(r"[\d\s*/+()-]+", expression):
        raise Stale(f"kernels/launch.cuh: cannot read `{expression}`")
    return int(eval(expression.replace("/", "//")))


class Launchers:
    """Groups and widths as kernels/launch.cuh and kernels/tiling.h have them."""
    PATH = "kernels/launch.cuh"
    GROUP = (r"(?:if constexpr \((kBetween|kSteps)?[^\n]*\)\s+)?"
             r"(?:if \(tiling\.width <= (\w+)\)\s+(?:return )?)?"
             r"launch_with<CudaGroup<([^,<>]+), ([^,<>]+), Scalar, kRuns>>\(")

    def __init__(self):
        self.threads = int(wanted(self.PATH, r"kGroupsPerBlock = Group::kWarps > 1 \? 1 : (\d+) / "
                                             r"Group::kMembers;")[1])
        slots = wanted(self.PATH, r"kSlots = kLong \? (\d+) : (\d+) / kDoubled;")
        narrow = wanted(self.PATH, r"kNarrow = kPacked \? (\d+) : (\d+);")
        held = wanted("kernels/tiling.h", r"kWidestHeld =\s+kRereads<Program> \? (\d+) / "
                                          r"sizeof\(typename Program::Scalar\)\s*: (\d+);")
        wanted(self.PATH, r"kHeld = kWidestHeld<Program>;")
        wanted(self.PATH, r"kPacked = kLong && kRuns != Runs::none;")
        middle = wanted(self.PATH, r"kMiddle = kPacked \? (\d+) : (\d+) / kDoubled;")
        wanted(self.PATH, r"kBetween = kRereads<Program>;")
        wanted(self.PATH, r"kSteps = has_steps<Program>\(\);")
        wanted("kernels/tiling.h", r"return kRereads<Program> && widest<Program>\(\) > 1024;")
        self.widest_read_once = int(held[2])
        self.runs = wanted("kernels/group.h", r"enum class Runs \{ ([\w, ]+) \};")[1].split(", ")
        found = re.findall(self.GROUP, text_of(self.PATH))
        if len(found) != 8:
            raise Stale(f"{self.PATH}: wanted eight groups, got {found}")
        # {(scalar, long rows, packed): [(widest row, members, slots, what only some have)]}
        self.groups = {}
        for scalar, doubled in (("float", 1), ("double", 2)):
            for long_runs in (True, False):
                long_runs = long_runs and doubled == 1
                for packed in {long_runs, False}:
                    names = {"kDoubled": doubled, "kNarrow": narrow[1 if packed else 2],
                             "kMiddle": middle[1] if packed else int(middle[2]) // doubled,
                             "kSlots": slots[1] if long_runs else int(slots[2]) // doubled,
                             "kHeld": int(held[1]) // (4 * doubled)}
                    self.groups[scalar, long_runs, packed] = [
                        (arithmetic(widest, names) if widest else 1 << 62,
                         arithmetic(members, names), arithmetic(count, names), some)
                        for some, widest, members, count in found]
        self.run = int(wanted(self.PATH, r"launch_tiles<1024, 1024>\(device, \{1, n, (\d+)\}")[1])
        self.pairs = int(wanted(self.PATH, r"\bdevice\S*\) \? (\d+) : \w+\}")[1])
        no_dynamic_shared(self.PATH)
        wanted(self.PATH, r"kGroups = kGroupsPerBlock<Group>;.{0,160}"
                          r"blocks,\s+Group::kMembers \* kGroups,")

    def group(self, scalar, width, long_runs, rereads, steps, runs):
        """(its name, members, groups a block): who works on rows of this width. steps: whether its
        Program has the groups between."""
        held = 1 << 62 if rereads else self.widest_read_once
        long_runs = long_runs and scalar == "float"
        has = {"": True, "kBetween": rereads, "kSteps": steps}
        members, slots = next(
            g[1:3] for g in self.groups[scalar, long_runs, long_runs and runs != "none"]
            if width <= g[0] and (g[0] <= held or g[2] == 0) and has[g[3]])
        name = f"CudaGroup<{members}, {slots}, {scalar}, (Runs){self.runs.index(runs)}>"
        return name, members, 1 if members > 32 else self.threads // members


def no_dynamic_shared(path):
    """A source's launches ask for no dynamic shared memory."""
    if re.search(r"launch_kernel_shared\(|<<<", text_of(path)):
        raise Stale(f"{path}: has launches with dynamic shared memory, wanted launch_kernel alone")
    wanted(path, r"launch_kernel\(")
    wanted("core/cuda.cuh", r"launch_kernel_shared\(device, what, kernel, blocks, threads, 0, ")


PROGRAM = """
#include <cstdio>
#include "kernels/factor_gram.h"
#include "kernels/factor_gram_block.h"
#include "kernels/fused_mlp_sum.h"
#include "kernels/fused_mlp_products.h"
#include "kernels/mirror_tile.h"
#include "nn/fused_gradient.h"
#include "ntk/infinite_kernel.h"
#include "ntk/regression.h"
using namespace keel;

void fused(const char* name, int features, std::int64_t members, std::int64_t rows, int sharers) {
  const Net net("FUSED", features);
  const FusedMlp mlp = fused_description(net).value();
  const FusedTask task = FusedTask::plan(mlp, members, rows, 0, sharers);
  const long slots = task.slots(), sums = FusedSum::blocks(task);
  std::printf("%s_tile %d %s_slots %ld %s_shared %d %s_slice %d %s_sums %ld %s_keep %d "
              "%s_parameters %ld ", name, task.tile_rows, name, slots, name, task.at.total * 4,
              name, task.slice, name, sums, name, task.keep, name,
              static_cast<long>(net.parameters_per_member()));
}

int main() {
  using Block = GramBlock<float>;
  const InfiniteKernel kernel("NET", FEATURES);
  const MemoryPlan f32 = Regression::plan(kernel, ROWS, 1, {});
  const MemoryPlan f64 = Regression::plan(kernel, ROWS, 1, {.factor = DType::f64});
  std::printf("matrix %zu vectors %zu matrix64 %zu vectors64 %zu ", f32.matrix, f32.vectors,
              f64.matrix, f64.vectors);
  std::printf("threads %d shared %d tile_rows %d tile_cols %d row_panels %d panel %d chunk %d "
              "rows %d cols %d band %d ", Block::kThreads, Block::kShared * 4, Block::kTileRows,
              Block::kTileCols, Block::kRowPanels, Block::kPanel, Block::kChunk, Block::kRows,
              Block::kCols, static_cast<int>(Block::kBand));
  std::printf("tensor_product %d ", gram_product(8, 6) == GramProduct::tensor);
  using Tile = MirrorTile<float, Mirror::copy>;
  std::printf("mirror_threads %d mirror_blocks %ld ", Tile::kThreads,
              static_cast<long>(Tile::blocks(MIRRORED)));
  std::printf("fused_threads %d sum_threads %d ", FusedProducts::kThreads, FusedSum::kThreads);
  fused("ensemble", 1, 15, 100, 4);
  fused("protein", FEATURES, 1, ROWS, 1);
}
"""

PROBE = """
#include "kernels/kernel_map.h"
using namespace keel;
#define KEEL_PROBE(name, ...)                                                \\
  extern "C" __global__ void name(KernelMap map, const double* in, double* out) { \\
    const PairState s = __VA_ARGS__;                                         \\
    out[0] = s.k;                                                            \\
    out[1] = s.theta;                                                        \\
  }
KEEL_PROBE(dense, through_dense(map, {in[0], in[1]}))
KEEL_PROBE(relu, through_relu(false, map, {in[0], in[1]}, in[2], in[3]))
KEEL_PROBE(layer_norm, through_layer_norm<false>(map, {in[0], in[1]}, in[2], in[3]))
"""

# SASS instructions of the double pipe that one of PTX becomes where it is not one: Newton steps.
NEWTON = {"div": 8, "sqrt": 8}
FREE = {"ld", "st", "mov", "neg", "abs", "selp", "copysign", "cvt"}


class Build:
    """A folder that CMake configured for CUDA with Ninja, and built the library in."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.cache = (self.folder / "CMakeCache.txt").read_text()
        self.nvcc = self.cached("CMAKE_CUDA_COMPILER")

    def cached(self, name):
        found = re.search(rf"^{name}:\w+=(.+)$", self.cache, re.MULTILINE)
        if not found:
            raise Stale(f"{self.folder}/CMakeCache.txt has no {name}: wanted a CUDA build")
        return found[1]

    def run(self, command):
        ran = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        if ran.returncode:
            first = next(iter(ran.stderr.strip().splitlines()), "no message")
            raise Stale(f"{Path(command[0]).name} fails: {first}")
        return ran.stdout

    def compiler(self):
        """`nvcc 13.0, V13.0.88`"""
        return "nvcc " + re.search(r"release (.*)", self.run([self.nvcc, "--version"]))[1]

    def constants(self, net, features, rows, mirrored):
        """Of factor_gram's block, fused_mlp, mirror_lower and Regression::plan, by a program linked
        with keel."""
        ninja = (self.folder / "build.ninja").read_text()
        edge = re.search(r"^build keel_bench:.*?\n\n", ninja, re.MULTILINE | re.DOTALL)
        if not edge:
            raise Stale(f"{self.folder}/build.ninja has no keel_bench")
        libraries = [word for name in ("LINK_PATH", "LINK_LIBRARIES")
                     for word in re.findall(rf"^  {name} = (.*)$", edge[0], re.MULTILINE)]
        program = PROGRAM.replace("NET", net).replace("FEATURES", str(features))
        program = program.replace("FUSED", net.replace("(affine=0)", ""))
        program = program.replace("MIRRORED", str(mirrored))
        with tempfile.TemporaryDirectory() as scratch:
            source, binary = Path(scratch, "constants.cpp"), Path(scratch, "constants")
            source.write_text(program.replace("ROWS", str(rows)))
            self.run([self.cached("CMAKE_CXX_COMPILER"), "-std=c++20", f"-I{ROOT}", str(source),
                      "-o", str(binary), *" ".join(libraries).split()])
            words = self.run([str(binary)]).split()
        return {name: int(value) for name, value in zip(words[::2], words[1::2])}

    def double_instructions(self):
        """{map: instructions of the double pipe a pair takes}, counted in PTX."""
        with tempfile.TemporaryDirectory() as scratch:
            source, ptx = Path(scratch, "probe.cu"), Path(scratch, "probe.ptx")
            source.write_text(PROBE)
            self.run([self.nvcc, "-std=c++20", "--expt-relaxed-constexpr", "-arch=compute_86",
                      "-ptx", f"-I{ROOT}", str(source), "-o", str(ptx)])
            text = ptx.read_text()
        counts = {}
        for name, body in re.findall(r"\.entry (\w+)\((.*?)^\}", text, re.MULTILINE | re.DOTALL):
            found = re.findall(r"^\s+(?:@!?%p\d+\s+)?(\w+)\.[\w.]*f64\b", body, re.MULTILINE)
            counts[name] = sum(NEWTON.get(op, 1) for op in found if op not in FREE)
        return counts
