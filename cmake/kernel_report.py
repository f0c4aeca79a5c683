#!/usr/bin/env python3
"""Registers, shared memory and spills of every kernel, from the log of a build with -Xptxas=-v.

kernel_report.py build.log      Prints a table; exits 1 if a kernel spills that is not allowed to.
"""
import re
import subprocess
import sys

# Kernels that may spill: {pattern of the short name: reason}.
ALLOWED_SPILLS = {}


def read(log):
    """{(mangled, arch): numbers}; a template compiled in several files counts once."""
    kernels, current = {}, None
    for line in log:
        if m := re.search(r"Compiling entry function '(\S+)' for '(sm_\w+)'", line):
            empty = {"registers": 0, "shared": 0, "spill": 0}
            current, entry, owner = kernels.setdefault((m[1], m[2]), empty), m[1], m[1]
        elif m := re.search(r"Function properties for (\S+)", line):
            owner = m[1]  # A function that the kernel calls is listed too, and is not the kernel.
        elif current is not None:
            m = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)
            if m and owner == entry:
                current.update(spill=int(m[1]) + int(m[2]))
            elif m := re.search(r"Used (\d+) registers", line):
                shared = re.search(r"(\d+) bytes smem", line)
                current.update(registers=int(m[1]), shared=int(shared[1]) if shared else 0)
                current = None
    return kernels


def demangle(names):
    short = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True)
    return dict(zip(names, short.stdout.splitlines()))


def shorten(name):
    """`void keel::rows<keel::Relu<float> >(keel::Relu<float>, long)` -> `rows<Relu<float>>`"""
    name = name.replace("(anonymous namespace)::", "")
    depth = 0
    for i, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0:  # The argument list; one inside <> belongs to a lambda.
            name = name[:i]
            break
    name = re.sub(r"^(void|auto) ", "", name).replace(" >", ">")
    return re.sub(r"\b(keel|detail)::", "", name)


def main():
    with open(sys.argv[1], errors="replace") as log:
        kernels = read(log)
    names = demangle(sorted({mangled for mangled, _ in kernels}))
    archs = sorted({arch for _, arch in kernels})
    rows = {}  # One row per kernel, one group of columns per GPU generation.
    for (mangled, arch), numbers in kernels.items():
        if not re.match(r"(void )?(cub|thrust)::", names[mangled]):  # The toolkit's own.
            rows.setdefault(shorten(names[mangled]), {})[arch] = numbers

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
