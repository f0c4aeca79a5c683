"""kernels/fused_mlp.cu on an RTX 3090: its kernels, their work, and trainings by it."""
import rtx3090_kernels as hot
import rtx3090_paths as paths
import rtx3090_sources as sources
from rtx3090_card import Roof

FUSED = 0.6  # of what its loads of shared memory allow: eight warps an SM, and barriers. Assumed

FORMULAS = [("fused_mlp; its sums and Adam",
             "4n(d + s) + 4bS; 4bS + 24sp: b blocks, slices of S, s nets of p parameters",
             "6n a weight, 4n one of the first layer; bS + 13sp")]

# Nets at once, rows, features; bytes of dynamic shared memory a block. Four ensembles share the GPU.
CASES = {"ensemble": (15, 100, 1, 93568), "protein": (1, hot.ROWS, 9, 95616)}


def kernels(constants):
    """As FusedTask::plan chooses them for the CASES."""
    sources.wanted("kernels/fused_mlp.cu", r"task\.at\.total \* static_cast<int>\(sizeof\(float")
    found = {}
    for case, (_, _, _, dynamic) in CASES.items():
        rows, keep = constants[f"{case}_tile"], "true" if constants[f"{case}_keep"] else "false"
        found[case] = hot.Kernel(f"fused_mlp, {case}: tiles of {rows} rows", "", 0, 256,
                                 dynamic=dynamic, name=f"gradient_kernel<{rows}, {keep}, true>")
        found[case].confirm(constants["fused_threads"], constants[f"{case}_shared"])
    rows, (*_, dynamic) = constants["ensemble_tile"], CASES["ensemble"]
    keep = "true" if constants["ensemble_keep"] else "false"
    found["any fused"] = hot.Kernel(f"fused_mlp, any net: tiles of {rows} rows", "", 0, 256,
                                    dynamic=dynamic, name=f"gradient_kernel<{rows}, {keep}, false>")
    found["any fused"].confirm(constants["fused_threads"], constants["ensemble_shared"])
    found["fused sum"] = hot.Kernel("fused_mlp: sums and Adam", "", 0, 256, name="sum_kernel")
    found["fused sum"].confirm(constants["sum_threads"], 0)
    return found


def flop(s, n, features, width=128):
    """Of the products forth and back; none for the derivative by the inputs."""
    shapes = ((features, width), (width, width), (width, 1))
    return s * (6 * n * sum(i * o for i, o in shapes) - 2 * n * features * width)


def works(constants):
    found = []
    for case, (s, n, d, _) in CASES.items():
        slots, slices = constants[f"{case}_slots"], 4 * constants[f"{case}_slice"]
        # A thread has tile / 8 x 4 entries of a product; loads as in the contraction of factors.
        r, c = constants[f"{case}_tile"] // 8, 4
        share = {"memory": 0.85, "float32": FUSED * min(1, r * c / 4 / (r + c)), "float64": 1}
        label = f"fused_mlp, {s} x {n} x {d}, LN every"
        step = Roof(4 * n * (d + s) + slots * slices, flop(s, n, d))
        found += [hot.Work(label, case, slots, step, share),
                  hot.Work(f"{label}: its sums, Adam", "fused sum", constants[f"{case}_sums"],
                           Roof(slots * slices + 24 * s * constants[f"{case}_parameters"],
                                slots * slices / 4 + 13 * s * constants[f"{case}_parameters"]),
                           hot.STREAM)]
    return found


def end_to_end(constants, epochs1=3000, epochs2=2500):
    """The trainings where fused_mlp takes a step; every net as large as LN every."""
    ours = works(constants)

    def step(case):
        at = next(i for i, w in enumerate(ours) if w.kernel == case)
        return ours[at:at + 2]
    one, many = step("protein"), step("ensemble")
    return [paths.total("Figure 1 by fused_mlp", "the same nets", [(4 * epochs1, many)]),
            paths.total("protein data by fused_mlp: one epoch", f"1 net on {hot.ROWS} points",
                        [(1, one)]),
            paths.total("Table 1 by fused_mlp", "the same nets", [(40 * epochs2, one)])]
