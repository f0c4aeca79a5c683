"""Reads what ptxas said of each kernel in the log of a build with -Xptxas=-v."""
import re
import subprocess


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
    """{mangled: as C++ writes it}"""
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


def kernels_by_name(log):
    """{short name: {arch: numbers}} of our kernels; the toolkit's own are left out."""
    kernels = read(log)
    names = demangle(sorted({mangled for mangled, _ in kernels}))
    rows = {}
    for (mangled, arch), numbers in kernels.items():
        if not re.match(r"(void )?(cub|thrust)::", names[mangled]):
            rows.setdefault(shorten(names[mangled]), {})[arch] = numbers
    return rows
