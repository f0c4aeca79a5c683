#!/usr/bin/env python3
"""Registers, shared memory and spills of every kernel, from the log of a build with -Xptxas=-v.

kernel_report.py build.log      Prints a table; exits 1 if a kernel spills that is not allowed to.
"""
import re
import sys

from ptxas_log import kernels_by_name

# Kernels that may spill: {pattern of the short name: reason}.
ALLOWED_SPILLS = {}


def main():
    with open(sys.argv[1], errors="replace") as log:
        rows = kernels_by_name(log)  # One row per kernel, one group of columns per generation.
    archs = sorted({arch for by_arch in rows.values() for arch in by_arch})

    columns = ("registers", "shared", "spill")
    heads = [f"{arch + ' regs':>10} {'shared':>6} {'spill':>5}" for arch in archs]
    print(" | ".join(heads) + "  kernel")
    spilling, refused = 0, 0
    for name, by_arch in sorted(rows.items()):
        numbers = [[by_arch.get(arch, {}).get(c, "-") for c in columns] for arch in archs]
        spills = any(n["spill"] for n in by_arch.values())
        bad = spills and not any(re.search(pattern, name) for pattern in ALLOWED_SPILLS)
        spilling, refused = spilling + spills, refused + bad
        print(" | ".join(f"{r:>10} {s:>6} {p:>5}" for r, s, p in numbers) + f"  {name}"
              + ("   <- SPILLS" if bad else ""))
    print(f"kernel report: {len(rows)} kernels, {spilling} spill, {refused} of them not allowed to")
    if not rows:
        print("kernel report: the log holds no kernel of ours; was it built with -Xptxas=-v?")
    return 1 if refused or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
