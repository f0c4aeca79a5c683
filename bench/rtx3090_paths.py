"""End to end on an RTX 3090: trainings op by op, as the tape runs them; exact regression."""
import math
from dataclasses import dataclass

import rtx3090_card as card
import rtx3090_kernels as hot
import rtx3090_sources as sources
from rtx3090_card import Roof

GEMM = {"memory": 0.85, "float32": 0.6, "float64": 0.8}  # cuBLAS: an assumption
CHOLESKY = {"memory": 0.85, "float32": 0.5, "float64": 0.5}  # cuSOLVER: an assumption


@dataclass
class Op:
    roof: Roof
    efficiency: dict
    launches: int = 1

    def expected(self):
        return self.roof.expected(self.efficiency, hot.FLOOR * self.launches)


@dataclass
class Path:
    label: str
    formula: str
    launches: int  # in all
    roof: Roof
    seconds: float  # at 100% of the roofs, op after op
    expected: float


def sum_rows(s, n, d, sums=1):
    bytes_, launches = hot.sum_rows(s, n, d, sums)
    return Op(Roof(bytes_), hot.STREAM, launches)


def gemm(s, m, n, k, reads_c=False):
    elements = m * k + k * n + m * n * (2 if reads_c else 1)
    return Op(Roof(4 * s * elements, 2 * s * m * n * k), GEMM)


def dense(s, n, i, o, first):
    forward = [Op(Roof(4 * s * n * o), hot.STREAM), gemm(s, n, o, i, reads_c=True)]
    backward = [gemm(s, o, i, n), sum_rows(s, n, o)]
    return forward, backward + ([] if first else [gemm(s, n, i, o)])


def layer_norm_relu(s, n, d):
    chunks = hot.layer_norm_chunks(n)
    forward = hot.layer_norm_roof("Forward", s * n, d)
    backward = hot.layer_norm_roof("Backward", s * n, d, s * chunks)
    return [Op(forward, hot.STREAM)], [Op(backward, hot.STREAM)] + [sum_rows(s, chunks, d, sums=2)]


def relu(s, n, d):
    return [Op(Roof(8 * s * n * d), hot.STREAM)], [Op(Roof(12 * s * n * d), hot.STREAM)]


def epoch(s, n, features, norms, width=128):
    """Ops of one full-batch epoch of s nets with LN behind the first or second dense layer."""
    shapes = [(features, width), (width, width), (width, 1)]
    parameters = sum(i * o + o for i, o in shapes) + 2 * width * sum(norms)
    tiny = Op(Roof(), hot.STREAM)
    ops = []
    for layer, (i, o) in enumerate(shapes):
        ops += [op for part in dense(s, n, i, o, layer == 0) for op in part]
        if layer < 2:
            parts = (layer_norm_relu if norms[layer] else relu)(s, n, o)
            ops += [op for part in parts for op in part]
    loss = [Op(Roof(8 * s * n), hot.STREAM), tiny, tiny, Op(Roof(12 * s * n), hot.STREAM)]
    adam = [tiny, Op(Roof(28 * s * parameters, 13 * s * parameters), hot.STREAM)]
    return ops + loss + adam + [tiny]  # and the loss kept


NETS = {"standard": (0, 0), "LN first": (1, 0), "LN second": (0, 1), "LN every": (1, 1)}


def total(label, formula, repeats_and_ops):
    """Of (times, ops of one)."""
    roof, launches, at_roof, expected = Roof(), 0, 0.0, 0.0
    for times, ops in repeats_and_ops:
        for op in ops:
            r = op.roof
            roof += Roof(times * r.bytes, times * r.flop, times * r.flop64)
            launches += times * op.launches
            at_roof += times * r.seconds
            expected += times * op.expected()
    return Path(label, formula, launches, roof, at_roof, expected)


def figure1(seeds=15, epochs=3000):
    return total(f"Figure 1: 60 nets x {epochs} epochs",
                 f"4 ensembles of {seeds} nets on 100 points",
                 [(epochs, epoch(seeds, 100, 1, norms)) for norms in NETS.values()])


def table1(seeds=10, epochs=2500):
    paths = [total(f"protein data, {name}: one epoch", f"1 net on {hot.ROWS} points",
                   [(1, epoch(1, hot.ROWS, 9, NETS[name]))]) for name in ("standard", "LN every")]
    return paths + [total(f"Table 1: 40 nets x {epochs} epochs", f"{seeds} of each of the four",
                          [(epochs * seeds, epoch(1, hot.ROWS, 9, n)) for n in NETS.values()])]


SWEEPS = 5  # what every regression of experiments/results/table1.json took


THETA = 8 * hot.ROWS ** 2  # bytes, in double


def keeps_theta(constants):
    """Whether Regression::plan keeps Theta in double beside a float32 factor, all memory free."""
    sources.wanted("ntk/regression.cpp", r"device\.is_cpu\(\) \? available / 2 : "
                                         r"available - available / 8;")
    return constants["matrix"] + constants["vectors"] + THETA <= card.MEMORY * 7 / 8


def regression(instructions, constants):
    """Parts of an exact regression of the infinitely wide net on all ROWS."""
    if not keeps_theta(constants):
        raise sources.Stale("ntk/regression.cpp: Theta is made again, the page takes it as kept")
    n, tile = hot.ROWS, sources.constant("ntk/infinite_kernel.cpp", "kGpuTile")
    across = math.ceil(n / tile)
    tiles, whole = across * (across + 1) // 2, across * (across + 1) // 2 * tile * tile
    # Whole tiles of inner products in double, of 9 features; then the pairs of the triangle.
    inner = Op(Roof(8 * whole, 0, 2 * 9 * whole), GEMM, tiles)
    matrix = Op(hot.pairs_roof(n * (n + 1) / 2, instructions, 8), hot.STREAM, tiles)
    times_v = Op(hot.symmetric_roof(n), hot.STREAM, 2)
    factor = Op(Roof(4 * n * n, n ** 3 / 3), CHOLESKY)
    # Both ways, block after block: its inverse, then the rows that are left.
    block = sources.constant("kernels/diagonal_inverses.cu", "kLargest")
    triangles = Op(Roof(2 * (2 * n * n + 4 * n * block), 2 * n * n), hot.STREAM,
                   4 * math.ceil(n / block))
    kernel = total("  kernel matrix, in double",
                   "{pair} + 9 double instructions a pair", [(1, [inner, matrix])])
    scaled = total("  scale and factor, float32", "n^3 / 3 flop",
                   [(1, [Op(hot.scale_roof(n), hot.STREAM), factor])])
    refined = total(f"  {SWEEPS} products with it, kept in double, and solves",
                    "symmetric_product; 4n^2 + 8192n bytes", [(SWEEPS, [times_v, triangles])])
    parts = [kernel, scaled, refined]
    whole_path = Path(f"exact regression, n = {n}, LN every", "the three below",
                      sum(p.launches for p in parts), sum((p.roof for p in parts), Roof()),
                      sum(p.seconds for p in parts), sum(p.expected for p in parts))
    factor64 = total("  (a float64 factor instead)", "n^3 / 3 flop of double",
                     [(1, [Op(Roof(8 * n * n, 0, n ** 3 / 3), CHOLESKY)])])
    return [whole_path, *parts, factor64]


def memory(constants):
    """Whether the regression fits, by Regression::plan."""
    total32 = constants["matrix"] + constants["vectors"]
    total64 = constants["matrix64"] + constants["vectors64"]

    def fits(size):
        return "fits" if size < card.MEMORY else "does NOT fit"
    return (f"Memory of the regression, from `Regression::plan`: float32 factor "
            f"{constants['matrix'] / 1e9:.2f} GB + vectors {constants['vectors'] / 1e9:.2f} GB = "
            f"{total32 / 1e9:.2f} GB: {fits(total32)} in 24 GB. With a float64 factor "
            f"{total64 / 1e9:.2f} GB: {fits(total64)}. Theta in double beside the float32 factor, "
            f"{THETA / 1e9:.1f} GB more, is kept where seven eighths of what is available hold both, "
            f"{(total32 + THETA) / 1e9:.1f} GB; otherwise every product makes it again. cuSOLVER's "
            f"work space comes on top.")
