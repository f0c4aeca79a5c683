"""GeForce RTX 3090 (GA102, sm_86): what an SM holds of a kernel, and how long work takes at best.

Sizes: NVIDIA, Ampere GA102 whitepaper, and CUDA C++ Programming Guide, compute capability 8.6.
"""
import math
from dataclasses import dataclass

SMS = 82
THREADS, WARPS, BLOCKS, REGISTERS = 1536, 48, 16, 65536  # of an SM
REGISTER_STEP, WARP_STEP = 256, 4  # registers are given out so to a warp, warps to four schedulers
SHARED, SHARED_BLOCK = 100 << 10, 99 << 10  # of an SM; most a block
SHARED_RESERVED, SHARED_STEP = 1 << 10, 128  # of each block

BANDWIDTH = 936e9
LINK = 64 * 1.7e9  # from the L2 to one SM: 64 bytes a cycle
FLOAT32, FLOAT64 = 35.6e12, 0.556e12
MEMORY, L2 = 24e9, 6e6


def round_up(value, step):
    return -(-value // step) * step


@dataclass
class Occupancy:
    blocks: int  # of an SM
    warps: int
    limit: str  # what allows no further block

    @property
    def share(self):
        return self.warps / WARPS


def occupancy(threads, registers, shared):
    """Of blocks of so many threads, registers a thread, and bytes of shared memory."""
    warps = round_up(threads, 32) // 32
    per_warp = round_up(32 * registers, REGISTER_STEP)
    limits = {
        "threads": min(THREADS // threads, WARPS // warps),
        "blocks": BLOCKS,
        "registers": REGISTERS // per_warp // WARP_STEP * WARP_STEP // warps,
        "shared": SHARED // round_up(shared + SHARED_RESERVED, SHARED_STEP),
    }
    if shared > SHARED_BLOCK:
        limits["shared"] = 0
    blocks = min(limits.values())
    return Occupancy(blocks, blocks * warps, ", ".join(l for l in limits if limits[l] == blocks))


@dataclass
class Roof:
    """Work on bytes of memory, flop of float32, and flop of float64."""
    bytes: float = 0
    flop: float = 0
    flop64: float = 0

    def times(self):
        return {"memory": self.bytes / BANDWIDTH, "float32": self.flop / FLOAT32,
                "float64": self.flop64 / FLOAT64}

    def bound(self, efficiency):
        """What binds at these shares of the roofs."""
        times = {bound: t / efficiency[bound] for bound, t in self.times().items()}
        return max(times, key=times.get)

    @property
    def seconds(self):
        """At 100% of what binds."""
        return max(self.times().values())

    def expected(self, efficiency, floor):
        """efficiency {bound: share of its roof}; no kernel ends before `floor` seconds."""
        parts = (t / efficiency[bound] for bound, t in self.times().items())
        return max(floor, *parts)

    def __add__(self, other):
        return Roof(self.bytes + other.bytes, self.flop + other.flop, self.flop64 + other.flop64)


def balance(blocks):
    """The mean SM's number of blocks over the fullest one's."""
    return blocks / SMS / math.ceil(blocks / SMS)


def in_units(value, units):
    """1234 -> `1.23 k` by [(size, name)], largest first: three digits."""
    for size, name in units:
        if abs(value) >= size * 0.9995 or (size, name) == units[-1]:
            digits = max(0, 2 - math.floor(math.log10(max(abs(value) / size, 1e-9)) + 1e-9))
            return f"{value / size:.{min(digits, 2)}f} {name}"


def seconds_text(value):
    return in_units(value, [(1, "s"), (1e-3, "ms"), (1e-6, "µs")])


def bytes_text(value):
    units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")]
    return "-" if value == 0 else in_units(value, units)


def flop_text(value):
    return "-" if value == 0 else in_units(value, [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")])
