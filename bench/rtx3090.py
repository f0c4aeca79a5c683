#!/usr/bin/env python3
"""Writes bench/RTX3090.md: what an RTX 3090 should do with keel's kernels, predicted from a build.

rtx3090.py BUILD.log [--check PAGE]      BUILD.log: of a build with -Xptxas=-v, in its build folder

Without --check it writes the page. With it, it compares: a page made by the same nvcc must be what
is generated now, one made by another may differ, with a note. Exits 1 if not, and if a hot kernel
is missing from the log, spills, or is launched differently from what rtx3090_kernels.py says.
"""
import argparse
import difflib
import math
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "cmake"))
sys.dont_write_bytecode = True

import ptxas_log  # noqa: E402
import rtx3090_card as card  # noqa: E402
import rtx3090_fused as fused  # noqa: E402
import rtx3090_kernels as hot  # noqa: E402
import rtx3090_paths as paths  # noqa: E402
import rtx3090_sources as sources  # noqa: E402
from rtx3090_gram import Gram  # noqa: E402

ARCH, PAGE = "sm_86", ROOT / "bench/RTX3090.md"


def found_in(log, kernels, constants):
    """{key: numbers} of the hot kernels. Raises for one that is missing, or spills."""
    with open(log, errors="replace") as lines:
        in_log = ptxas_log.kernels_by_name(lines)
    found = {}
    for key, kernel in kernels.items():
        numbers = in_log.get(kernel.name, {}).get(ARCH)
        if numbers is None:
            raise sources.Stale(f"{kernel.label}: {log} has no {ARCH} kernel {kernel.name}")
        if numbers["spill"]:
            raise sources.Stale(f"{kernel.label}: spills {numbers['spill']} bytes on {ARCH}")
        found[key] = numbers
    return found


def table(head, rows, left):
    """Markdown, aligned; the first `left` columns to the left."""
    widths = [max(len(str(row[c])) for row in [head, *rows]) for c in range(len(head))]

    def line(row):
        cells = [str(v).ljust(w) if c < left else str(v).rjust(w)
                 for c, (v, w) in enumerate(zip(row, widths))]
        return "| " + " | ".join(cells) + " |"
    rule = "|" + "|".join("-" * (w + 2) if c < left else "-" * (w + 1) + ":"
                          for c, w in enumerate(widths)) + "|"
    return [line(head), rule, *map(line, rows)]


def kernel_table(kernels, numbers):
    lines = {}  # a line for kernels that have the label and all numbers in common
    for key, kernel in kernels.items():
        n = numbers[key]
        o = card.occupancy(kernel.threads, n["registers"], n["shared"] + kernel.dynamic)
        row = (o.limit, n["registers"], f"{n['shared']} + {kernel.dynamic}", n["spill"],
               kernel.threads, o.blocks, f"{o.warps} ({o.share:.0%})")
        lines[(kernel.label, *row)] = None
    return table(("kernel", "limited by", "registers", "shared", "spills", "threads", "blocks / SM",
                  "warps / SM"), list(lines), 2)


def work_table(works, kernels, numbers):
    rows = []
    for w in works:
        n, kernel = numbers[w.kernel], kernels[w.kernel]
        o = card.occupancy(kernel.threads, n["registers"], n["shared"] + kernel.dynamic)
        expected, bound = w.expected(), w.roof.bound(w.efficiency)
        floor = expected == hot.FLOOR * w.launches
        rows.append((w.label, "launch" if floor else bound, card.bytes_text(w.roof.bytes),
                     card.flop_text(w.roof.flop), card.flop_text(w.roof.flop64),
                     f"{w.blocks / (card.SMS * o.blocks):.2f}", f"{card.balance(w.blocks):.0%}",
                     card.seconds_text(w.roof.seconds), card.seconds_text(expected),
                     "-" if floor else f"{w.efficiency[bound]:.0%}"))
    return table(("work", "bound", "bytes", "flop", "double", "waves", "balance", "at the roof",
                  "expected", "of roof"), rows, 2)


def path_table(all_paths):
    rows = [(p.label, p.formula, p.launches, card.bytes_text(p.roof.bytes),
             card.flop_text(p.roof.flop), card.flop_text(p.roof.flop64),
             card.seconds_text(p.seconds), card.seconds_text(p.expected)) for p in all_paths]
    return table(("path", "of", "kernels", "bytes", "flop", "double", "at the roofs", "expected"),
                 rows, 2)


HEAD = """No number on this page was measured on a GPU. Registers, shared memory and spills are what
ptxas reports for sm_86 ({compiler}); occupancy follows from them; times follow from the card's data
sheet and from assumptions that are named. `make rtx3090` builds and writes the page anew, CI
compares it. The card: 82 SMs of 48 warps, 65,536 registers and 100 KB of shared memory; 936 GB/s,
35.6 TFLOP/s in float32, 0.556 in float64; 24 GB, 6 MB of L2."""

FITS = """Shared memory in bytes, static + dynamic. No kernel here spills. The contraction's other
kernel, 3xTF32 on tensor cores, is left out: this card multiplies TF32 no faster than float32, so
`gram_product` (kernels/factor_gram.h) never chooses it here."""

TIMES = """At the roof: the longer of bytes / bandwidth and flop / peak. Expected: at the
efficiency of the last column, an **assumption**: {stream:.0%} of the bandwidth for what streams,
{strided:.0%} for strided and gathered reads, {double:.0%} of the double pipe, and no kernel below
{floor}. The contraction's {gram:.0%} is nine tenths of what shared memory allows a thread of
{rows} x {cols} entries: {loads} loads of 16 bytes, four cycles each, beside {cycles} cycles of
arithmetic; fused_mlp takes {fused:.0%} of the same rule. Balance: the mean SM's number of blocks
over the fullest one's, by which the time expected is divided too. Waves: blocks over what all SMs
hold at once. An instruction of the double pipe counts as two flop."""

PATHS = """Op by op, as the tape runs a step, unless fused_mlp is named: the sum over its ops, each
the longer of its roof and its launches ({floor} a kernel). cuBLAS at {gemm:.0%}, cuSOLVER at
{cholesky:.0%} of the float32 roof: assumptions too. Not counted: allocation, the host, and what the
L2 keeps between ops. Figure 1's four ensembles are counted one after another, though they run side
by side. The {sweeps} sweeps are what the CPU needed."""


def prose(text):
    """A paragraph, or a point that begins with `- `."""
    return textwrap.fill(" ".join(text.split()), 118, break_on_hyphens=False,
                         subsequent_indent="  " if text.startswith("- ") else "")


def notable(works, end_to_end):
    """What a reader should not have to find in the tables."""
    work = {w.label: w for w in works}
    path = {p.label.strip(): p for p in end_to_end}
    back = work["layer_norm(_relu) backward, 8192 x 768"]
    step = next(w for w in works if w.kernel == "protein")
    text = card.seconds_text

    def of(beginning):
        return next(p for label, p in path.items() if label.startswith(beginning))
    points = [
        f"Layer Norm backward leaves {back.blocks} blocks to {card.SMS} SMs for 8192 rows: the "
        f"fullest SM has more than its share (balance {card.balance(back.blocks):.0%}).",
        f"Double runs at 1/64 of float32. The exact regression takes "
        f"{text(of('exact regression').expected)}: {text(of('kernel matrix').expected)} make the "
        f"kernel, {text(of('scale and factor').expected)} factor it in float32, "
        f"{text(of('5 products').expected)} refine the answer with the kernel kept in double.",
        "The contraction of factors is bound by its loads of shared memory before its arithmetic, "
        "if a load of 16 bytes takes four cycles.",
        f"Figure 1 op by op is launches: {text(of('Figure 1:').expected)}, of which "
        f"{text(of('Figure 1:').seconds)} are work at the roofs. By fused_mlp: "
        f"{text(of('Figure 1 by').expected)}.",
        f"Table 1 op by op is bandwidth: {text(of('Table 1:').expected)}. By fused_mlp, which "
        f"keeps rows on chip: {text(of('Table 1 by').expected)}; its {step.blocks} blocks, one an "
        f"SM, make {math.ceil(step.blocks / card.SMS)} waves on {card.SMS} SMs (balance "
        f"{card.balance(step.blocks):.0%}).",
    ]
    return "\n".join(prose("- " + point) for point in points)


def page(build, kernels, numbers, works, constants, instructions):
    gram = Gram(hot.ROWS, constants)
    pair = hot.pair_instructions(instructions)
    floor = card.seconds_text(hot.FLOOR)
    rows, cols = constants["rows"], constants["cols"]
    times = TIMES.format(stream=hot.STREAM["memory"], strided=hot.STRIDED["memory"], rows=rows,
                         double=hot.STREAM["float64"], gram=gram.efficiency["float32"], cols=cols,
                         loads=(rows + cols) // 4, cycles=rows * cols // 4, floor=floor,
                         fused=fused.FUSED)
    formulas = [[cell.replace("{pair}", str(pair)) for cell in row]
                for row in [*hot.FORMULAS, *fused.FORMULAS]]
    end_to_end = [paths.figure1(), *paths.table1(), *fused.end_to_end(constants),
                  *paths.regression(instructions, constants)]
    for path in end_to_end:
        path.formula = path.formula.replace("{pair}", str(pair))
    return "\n".join([
        "# RTX 3090: predicted, not measured\n", prose(HEAD.format(compiler=build.compiler())),
        "\n## What stands out\n", notable(works, end_to_end),
        "\n## What fits on an SM\n", prose(FITS), "", *kernel_table(kernels, numbers),
        "\n## One kernel at one size\n", prose(times), "", *work_table(works, kernels, numbers),
        f"\nn rows, d columns, p parameters; C = {gram.columns} columns of factors of 9-128-128-1, "
        f"D = {gram.depth} padded.\n", *table(("work", "bytes", "flop"), formulas, 3),
        "\n## End to end\n",
        prose(PATHS.format(floor=floor, gemm=paths.GEMM["float32"], sweeps=paths.SWEEPS,
                           cholesky=paths.CHOLESKY["float32"])), "",
        *path_table(end_to_end), "", prose(paths.memory(constants))]) + "\n"


def compare(committed, generated, compiler):
    """Prints the lines that differ; the exit code."""
    differing = [line for line in difflib.unified_diff(committed.splitlines(),
                                                       generated.splitlines(), lineterm="", n=0)
                 if line[0] in "+-" and not line.startswith(("+++", "---"))]
    if not differing:
        print(f"RTX3090.md: as generated, {compiler}")
        return 0
    same = f"({compiler})" in committed
    print("RTX3090.md: - committed, + generated now"
          + ("" if same else f"; made by another nvcc than {compiler}, so this is a note only"))
    print("\n".join(differing))
    if same:
        print("RTX3090.md is stale: make rtx3090")
    return 1 if same else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("--check", type=Path, metavar="PAGE")
    arguments = parser.parse_args()
    try:
        build = sources.Build(arguments.log.resolve().parent)
        constants = build.constants(hot.NET, 9, hot.ROWS, hot.MIRRORED)
        instructions = build.double_instructions()
        launchers = sources.Launchers()
        kernels = hot.all_kernels(launchers, constants) | fused.kernels(constants)
        numbers = found_in(arguments.log, kernels, constants)
        works = [*hot.all_works(kernels, launchers, constants, instructions),
                 *(w for n in (4096, hot.ROWS) for w in Gram(n, constants).works(kernels)),
                 *fused.works(constants)]
        text = page(build, kernels, numbers, works, constants, instructions)
        if arguments.check:
            return compare(arguments.check.read_text(), text, build.compiler())
        PAGE.write_text(text)
        print(f"wrote {PAGE.relative_to(ROOT)}: {len(kernels)} kernels, {build.compiler()}")
    except (sources.Stale, OSError) as problem:
        print(f"rtx3090: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
