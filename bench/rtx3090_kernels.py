"""Our hot kernels: how they are launched, what they move and compute, at which sizes."""
import math
from dataclasses import dataclass

import rtx3090_card as card
import rtx3090_sources as sources
from rtx3090_card import Roof

# Assumptions, all of them: shares of a roof. Nothing here was measured on this card.
STREAM = {"memory": 0.85, "float32": 0.5, "float64": 0.8}
STRIDED = {"memory": 0.5, "float32": 0.5, "float64": 0.8}
FLOOR = 3e-6  # seconds that the smallest kernel takes in a recorded graph

ROWS = 40132  # of the protein data, 9 features
MIRRORED = 4096  # rows of a matrix that is mirrored
NET = "dense(128) layernorm(affine=0) relu dense(128) layernorm(affine=0) relu dense(1)"


@dataclass
class Kernel:
    """program: as the log has it. width: of the rows its launcher was told. threads: of a block,
    which the sources must confirm, as they must `dynamic` bytes of shared memory. long_runs, rereads,
    steps, runs: what the Program says of itself."""
    label: str
    program: str
    width: int
    threads: int
    scalar: str = "float"
    dynamic: int = 0
    name: str = ""  # set from the sources
    per_block: int = 1  # groups
    long_runs: bool = False
    rereads: bool = False
    steps: bool = False
    runs: str = "some"

    def locate(self, launchers):
        group, members, self.per_block = launchers.group(
            self.scalar, self.width, self.long_runs, self.rereads, self.steps, self.runs)
        self.name = f"tile_kernel<{group}, {self.program}>"
        self.confirm(members * self.per_block, 0)

    def confirm(self, threads, dynamic):
        for what, mine, theirs in (("threads", self.threads, threads),
                                   ("bytes of dynamic shared memory", self.dynamic, dynamic)):
            if mine != theirs:
                raise sources.Stale(f"{self.label}: the table has {mine} {what} a block, the "
                                    f"sources launch it with {theirs}")

    def blocks(self, tiles):
        return math.ceil(tiles / self.per_block)


@dataclass
class Work:
    """A kernel at a size. launches > 1: that many of them, one after another."""
    label: str
    kernel: str
    blocks: int
    roof: Roof
    efficiency: dict
    launches: int = 1
    even: bool = True  # blocks share the memory's bandwidth evenly

    def expected(self):
        even = card.balance(self.blocks) if self.even else 1
        return self.roof.expected({bound: share * even for bound, share in
                                   self.efficiency.items()}, FLOOR * self.launches)


def row_program(program):
    return f"RowProgram<{program}>"


def layer_norm_kernels():
    kernels = {}
    for width, *threads_of in ((64, 128, 128), (128, 128, 128), (256, 128, 128), (768, 64, 128), (4096, 256, 512)):
        for op, threads in zip(("Forward", "Backward"), threads_of):
            for relu in (False, True):
                program = f"LayerNorm{op}<float, true, true, {'true' if relu else 'false'}>"
                label = f"layer_norm{'_relu' * relu} {op.lower()}, {width} columns"
                kernels[f"ln{'r' * relu} {op} {width}"] = Kernel(
                    label, row_program(program), width, threads, runs="whole",
                    long_runs=op == "Forward", rereads=True, steps=True)
    return kernels


# Figure 7: 5 members, 32 sequences of 29 values, 4 heads of 16.
TOKENS, SEQUENCE, HEADS, HEAD = 5 * 32 * 29, 29, 4, 16


def attention_kernels():
    return {program: Kernel(f"attention {label}", row_program(f"{program}<float>"), width, 128,
                            long_runs=width == HEAD, rereads=True, runs="none")
            for program, label, width in (
                ("AttentionWeights", f"weights, {SEQUENCE} long", SEQUENCE),
                ("MixValues", f"values, {HEAD} wide", HEAD),
                ("PullWeights", f"weights backward, {SEQUENCE} long", SEQUENCE),
                ("PullTokens", f"q, k, v backward, {HEAD} wide", HEAD))}


def attention_works(kernels):
    rows, seen = TOKENS * HEADS, (SEQUENCE + 1) / 2  # of j <= t
    heads = 4 * rows * HEAD  # bytes of all queries, say
    pairs = rows * seen
    return [Work(f"{kernels[key].label}, {TOKENS} x {HEADS}", key,
                 kernels[key].blocks(rows), Roof(bytes_, flop * pairs), STRIDED)
            for key, bytes_, flop in (
                ("AttentionWeights", 2 * heads + 4 * pairs, 2 * HEAD + 12),
                ("MixValues", 2 * heads + 4 * pairs, 2 * HEAD),
                ("PullWeights", 2 * heads + 8 * pairs, 2 * HEAD + 4),
                ("PullTokens", 6 * heads + 8 * pairs, 6 * HEAD))]


def all_kernels(launchers, constants):
    """{key: Kernel}, each located in the sources."""
    run, pairs = launchers.run, launchers.pairs
    mse_run = sources.constant("kernels/mse.cu", "kRun")
    element, relu = "ElementProgram<{}>".format, "activations::Relu"
    kernels = layer_norm_kernels() | attention_kernels() | {
        "adam": Kernel("adam", element("AdamUpdate<float>"), run, 128),
        "relu": Kernel("relu", element(f"MapElements<float, {relu}>"), run, 128),
        "relu back": Kernel("relu backward", element(f"PullElements<float, {relu}>"), run, 128),
        "mse": Kernel("mse", row_program("SquaredError<float>"), mse_run, 128),
        "gather": Kernel("gather_rows, 9 columns", row_program("GatherRow<float>"), 9, 128,
                         runs="none"),
        "pack": Kernel("factor_gram: pack panels", row_program("PackPanels<float>"),
                       constants["panel"], 128),
        "pairs": Kernel("kernel_pairs", "Pairs<double, false>", pairs, 128, "double", runs="none"),
        "pair sums": Kernel("kernel_pairs: sums of Gaussians", "Pairs<double, true>", pairs, 128,
                            "double", runs="none"),
        "symmetric": Kernel("symmetric_product", "SymmetricTile", 128, 128, "double", runs="none"),
        "scale": Kernel("scale_lower", row_program("ScaleLower<double, float>"), ROWS, 512,
                        "double", runs="none"),
    }
    for kernel in kernels.values():
        kernel.locate(launchers)
    if constants["tensor_product"]:
        raise sources.Stale("factor_gram: gram_product gives this card tensor cores, the page has "
                            "the kernel of multiply-adds")
    sources.wanted("kernels/factor_gram.cu", r"Block::kShared \* static_cast<int>\(sizeof\(T\)\)")
    gram = Kernel("factor_gram: contraction", "", 0, 256, dynamic=45056,
                  name="gram_kernel<float, FmaProduct<float>>")
    gram.confirm(constants["threads"], constants["shared"])
    sums = Kernel("sum_rows of up to 8192 rows", "", 0, 1024, name="sum_few_rows<float>")
    sums.confirm(sources.constant("kernels/sum.cu", "kThreads"), 0)
    mirror = Kernel("mirror_lower", "", 0, 256, name="mirror_kernel<float, (Mirror)0>")
    mirror.confirm(constants["mirror_threads"], 0)
    return kernels | {"gram": gram, "sums": sums, "mirror": mirror}


def layer_norm_limits():
    """(rows of the smallest chunk, most chunks)"""
    return [sources.constant("kernels/row_chunks.h", name) for name in ("kSmallest", "kMostChunks")]


def layer_norm_chunks(n):
    smallest, most = layer_norm_limits()
    return math.ceil(n / max(smallest, math.ceil(n / most)))


def layer_norm_works(kernels):
    works = []
    for op in ("Forward", "Backward"):
        for n, d in ((65536, 128), (1 << 20, 128), (8192, 768), (8192, 4096)):
            key = f"lnr {op} {d}"
            chunks = layer_norm_chunks(n)
            roof, tiles = layer_norm_roof(op, n, d, chunks), n if op == "Forward" else chunks
            label = f"layer_norm(_relu) {op.lower()}, {n} x {d}"
            works.append(Work(label, key, kernels[key].blocks(tiles), roof, STREAM))
            if op == "Backward":
                works.append(parameter_sums(f"{label}: its sums", kernels["sums"], chunks, d))
    return works


def sum_limits():
    """(rows of a chunk, most rows of one launch)"""
    chunk = sources.constant("kernels/sum.cu", "kChunk")
    turns = sources.wanted("kernels/sum.cu", r"kFewRows = (\d+) \* kChunk \* kChunk;")
    return chunk, int(turns[1]) * chunk * chunk


def sum_rows(s, n, d, sums=1):
    """(bytes, launches) of so many sums of s members, n rows: levels of kChunk, the last ones of
    them, and of all sums, at once."""
    (chunk, few), bytes_, launches = sum_limits(), 0, 1
    while n > few:
        chunks = math.ceil(n / chunk)
        bytes_, launches = bytes_ + 4 * s * d * (n + chunks), launches + sums
        n = chunks
    return sums * (bytes_ + 4 * s * d * (n + 1)), launches


def parameter_sums(label, kernel, chunks, d):
    """Of d_gain and of d_bias: few blocks, each of which gets what an SM's own link delivers."""
    bytes_, launches = sum_rows(1, chunks, d, sums=2)
    chunk, few = sum_limits()
    while chunks > few:
        chunks = math.ceil(chunks / chunk)
    width = min(128, 2 ** int(math.log2(kernel.threads / math.ceil(chunks / chunk))))
    limits = [sources.constant("kernels/sum.cu", name)
              for name in ("kNarrowest", "kFewThreads", "kManyBlocks")]
    while width > limits[0] and width * math.ceil(chunks / chunk) > limits[1] and (
            2 * math.ceil(d / width) < limits[2]):
        width //= 2
    blocks = 2 * math.ceil(d / width)
    link = blocks * card.LINK / card.BANDWIDTH
    return Work(label, "sums", blocks, Roof(bytes_), {**STREAM, "memory": min(0.85, link)},
                launches, even=False)


def layer_norm_roof(op, n, d, chunks=0):
    if op == "Forward":
        return Roof(8 * n * d + 8 * n, 12 * n * d)
    return Roof(12 * n * d + 8 * n + 8 * chunks * d, 26 * n * d)


def pair_instructions(instructions):
    """Of the double pipe, of a pair through the net NET, and four at its end."""
    words = [layer.split("(")[0] for layer in NET.split(" ")]
    names = {"dense": "dense", "relu": "relu", "layernorm": "layer_norm"}
    return sum(instructions[names[word]] for word in words) + 4


def pairs_roof(pairs, instructions, bytes_out):
    return Roof((8 + bytes_out) * pairs, 0, 2 * pair_instructions(instructions) * pairs)


def scale_roof(n):
    # Two products and a conversion to float32, which runs at the rate of double.
    return Roof(6 * n * (n + 1), 0, 2 * 3 * n * (n + 1) / 2)


def symmetric_tile():
    """(rows, columns) of a warp's work in symmetric_product"""
    return [sources.constant("kernels/symmetric_product.cu", name) for name in ("kChunk", "kCols")]


def symmetric_roof(n):
    # A triangle in double, and its partial sums, written and read. A lane has four entries of eight
    # rows at a time: 64 multiply-adds, and 40 additions to sum along a warp.
    parts = 2 * 8 * n * sum(n / size for size in symmetric_tile())
    return Roof(4 * n * (n + 1) + parts, 0, 2 * n * (n + 1) * (64 + 40) / 64)


def other_works(kernels, launchers, instructions, mirror_blocks):
    n, d = ROWS, 128
    works = [Work(f"adam, {p} parameters", "adam", kernels["adam"].blocks(
        math.ceil(p / launchers.run)), Roof(28 * p, 13 * p), STREAM) for p in (17921, 10 ** 7)]

    def add(label, key, tiles, roof, efficiency=STREAM):
        works.append(Work(label, key, kernels[key].blocks(tiles), roof, efficiency))
    elements = math.ceil(n * d / launchers.run)
    add(f"relu, {n} x {d}", "relu", elements, Roof(8 * n * d, n * d))
    add(f"relu backward, {n} x {d}", "relu back", elements, Roof(12 * n * d, 2 * n * d))
    add(f"mse, {n} x 1", "mse", math.ceil(n / kernels["mse"].width), Roof(8 * n, 3 * n))
    sectors = 32 * math.ceil((4 * 9 + 28) / 32)
    add(f"gather_rows, {n} x 9", "gather", n, Roof((sectors + 4 * 9 + 8) * n), STRIDED)
    m = MIRRORED
    add(f"mirror_lower, {m} x {m}", "mirror", mirror_blocks, Roof(4 * m * m))
    chunks, tiles = (math.ceil(n / size) for size in symmetric_tile())
    add(f"symmetric_product, {n} x {n}", "symmetric", chunks * tiles / 2, symmetric_roof(n))
    add(f"scale_lower, {n} x {n}, to float32", "scale", math.ceil(n / 2), scale_roof(n))
    for m in (8192, n):
        add(f"kernel_pairs, n = {m}, lower triangle", "pairs",
            m * math.ceil(m / launchers.pairs) / 2, pairs_roof(m * (m + 1) / 2, instructions, 8))
    return works


def all_works(kernels, launchers, constants, instructions):
    """But those of the Gram matrix and of fused_mlp, which have files of their own."""
    return (layer_norm_works(kernels) + attention_works(kernels)
            + other_works(kernels, launchers, instructions, constants["mirror_blocks"]))


# What the times are computed from, one line a kind of work.
FORMULAS = [
    ("layer_norm(_relu) forward", "8nd + 8n", "12nd"),
    ("layer_norm(_relu) backward", "12nd + 8n + 8cd, c = ceil(n / max({}, ceil(n / {})))".format(
        *layer_norm_limits()), "26nd"),
    ("its sums", "8d(c + 1), above 4096 chunks 8d(c + c / 64) more; twice", "-"),
    ("attention weights; values", "8q + 4 a pair of places, q elements of all queries",
     f"{2 * HEAD + 12}; {2 * HEAD} a pair"),
    ("its weights; q, k, v backward", "8q + 8; 24q + 8 a pair",
     f"{2 * HEAD + 4}; {6 * HEAD} a pair"),
    ("adam", "28p", "13p"),
    ("relu; backward", "8nd; 12nd", "nd; 2nd"),
    ("mse", "8n", "3n"),
    ("gather_rows", "n(64 + 4d + 8): two sectors of 32 bytes a row", "-"),
    ("factor_gram: contraction", "2n(n + 1) + 4nD((b + 1) / 2 + 1), b = ceil(n / 2048)",
     "2D of 128 x 64 entries in t(t + 1) tiles, t = ceil(n / 128)"),
    ("factor_gram: its panels", "4n(C + D)", "-"),
    ("mirror_lower; scale_lower", "4nn; 6n(n + 1)", "scale: 3 double instructions an entry"),
    ("symmetric_product", "4n(n + 1) + 16n(n / {} + n / {})".format(*symmetric_tile()),
     "3.25 double instructions an entry of the triangle"),
    ("kernel_pairs", "16 a pair, n(n + 1) / 2 pairs", "{pair} double instructions a pair"),
]
