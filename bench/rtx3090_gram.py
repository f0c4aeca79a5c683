"""factor_gram on an RTX 3090: its tiles, what they move and compute."""
import math

import rtx3090_card as card
import rtx3090_kernels as hot
from rtx3090_card import Roof

LAYERS = ((9, 128), (128, 128), (128, 1))  # 9 - 128 - 128 - 1


class Gram:
    """The lower triangle of the Gram matrix of the net LAYERS without LN, n inputs."""

    def __init__(self, n, constants):
        self.n, self.constants = n, constants
        # u and v of every layer; on a GPU each is padded to whole chunks.
        sides = [o for _, o in LAYERS] + [i for i, _ in LAYERS]
        self.columns = sum(sides)
        self.depth = sum(card.round_up(side, constants["chunk"]) for side in sides)
        self.pieces = len(sides) + sum(side % constants["chunk"] > 0 for side in sides)
        self.tile_rows = math.ceil(n / constants["tile_rows"])
        self.tiles = constants["row_panels"] * self.tile_rows * (self.tile_rows + 1) // 2

    @property
    def roof(self):
        c, n = self.constants, self.n
        entries = self.tiles * c["tile_rows"] * c["tile_cols"]
        # A band of rows of tiles streams the panels up to its diagonal, which the L2 does not keep,
        # unless all panels fit in it.
        panels = 4 * n * self.depth
        bands = math.ceil(self.tile_rows / c["band"])
        passes = 1 if panels < card.L2 else (bands + 1) / 2 + 1
        return Roof(2 * n * (n + 1) + panels * passes, 2 * self.depth * entries)

    @property
    def efficiency(self):
        # Of four steps of r x c entries, a quarter of r + c loads of 16 bytes, four cycles each,
        # beside r c / 4 cycles of arithmetic; then nine tenths of that.
        r, c = self.constants["rows"], self.constants["cols"]
        return {"memory": 0.85, "float32": 0.9 * min(1, r * c / 4 / (r + c)), "float64": 1}

    def works(self, kernels):
        panel, n = self.constants["panel"], self.n
        count = card.round_up(math.ceil(n / panel), self.constants["row_panels"])
        pack = Roof(4 * n * self.columns + 4 * count * panel * self.depth)
        return [hot.Work(f"factor_gram, n = {n}: contraction", "gram", self.tiles, self.roof,
                     self.efficiency),
                hot.Work(f"factor_gram, n = {n}: its panels", "pack",
                     kernels["pack"].blocks(count * self.depth / self.pieces), pack, hot.STRIDED,
                     self.pieces)]
