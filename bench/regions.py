#!/usr/bin/env python3
"""The tables of docs/certificate.md that are of a region, or of few features.

    python3 bench/regions.py [--uci FOLDER] [--keel build/keel] [--only few,ranges,within,many]

few: nets of one, two and three features, on made-up tables. The others are of UCI's yacht, ranges of
its concrete, too, which --uci holds as yacht/data.txt and concrete/data.txt; without it they are left
out. many: more boxes than by default, of nets with norms.
Ends are rounded outward, what was found inward.
"""
import argparse
import math
import random
import sys
import tempfile
from pathlib import Path

from certificates import ROOT, keel, rounded, some_of

NETS = {"relu, no norm": "dense(128) relu dense(128) relu dense(1)",
        "LN first": "dense(128) layernorm relu dense(128) relu dense(1)",
        "LN second": "dense(128) relu dense(128) layernorm relu dense(1)",
        "LN every": "dense(128) layernorm relu dense(128) layernorm relu dense(1)",
        "LN within a residual, and last":
            "dense(128) residual(layernorm relu dense(128)) layernorm relu dense(1)",
        "silu, LN second": "dense(128) silu dense(128) layernorm silu dense(1)",
        "silu": "dense(128) silu dense(128) silu dense(1)",
        "tanh": "dense(128) tanh dense(128) tanh dense(1)",
        "RMSNorm first": "dense(128) rmsnorm relu dense(128) relu dense(1)",
        "gelu, LN first": "dense(128) layernorm gelu dense(128) gelu dense(1)",
        "relu, one layer": "dense(128) relu dense(1)"}
DISTANCES = (0.3, 1, 3, 10, 100, 10000)
MANY = 800000
SETS = {"yacht": 6, "concrete": 8}  # and their targets


class Trained:
    """A net that keel trains on a table; its weights stay in the folder."""

    def __init__(self, command, folder, name, table, target):
        self.command, self.folder = command, folder
        self.data = ["--data", table, "--target", target, "--standardise", "xy"]
        set_name = f"{Path(table).parent.name}-{Path(table).stem}"
        self.weights = Path(folder) / f"{set_name}-{name}.safetensors"
        if not self.weights.exists():
            keel(command, "train", "--net", NETS[name], *self.data, "--epochs", 1000,
                 "--save-weights", self.weights, "--out", folder)

    def certify(self, *more):
        return keel(self.command, "certify", "--mode", "trained", "--weights", self.weights,
                    *self.data, *more, "--out", self.folder)


def made_up(folder, features):
    """300 rows: sin(2a), sin(2a) b, sin(2a) b + c^2."""
    draw = random.Random(features)
    rows = []
    for _ in range(300):
        x = [draw.uniform(-2, 2) for _ in range(features)]
        y = math.sin(2 * x[0]) * (x[1] if features > 1 else 1) + (x[2] ** 2 if features > 2 else 0)
        rows.append(" ".join(map(repr, [*x, y])))
    path = Path(folder) / f"features{features}.txt"
    path.write_text("\n".join(rows) + "\n")
    return path


def interval(found, digits):
    low, high = found["interval"]
    return f"[{rounded(low, digits, math.floor)}, {rounded(high, digits, math.ceil)}]"


def of_interval(found):
    closed = ", closed" if found["closed"] else ""
    return rounded(found["found_of_interval"], 2, math.floor) + closed


def table(*head):
    print("\n| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


FEW = {"relu, no norm": (3, 100), "silu": (3, 100), "LN first": (None,), "LN second": (None,),
       "silu, LN second": (None,), "LN within a residual, and last": (3, None), "tanh": (3, None)}


def few(command, folder):
    table("net", "region", "1 feature: `--boxes 0`, by default", "2", "3")
    data = [made_up(folder, features) for features in (1, 2, 3)]
    found = []
    for name, regions in FEW.items():
        nets = [Trained(command, folder, name, path, f) for f, path in enumerate(data, 1)]
        for region in regions:
            cells = []
            for net in nets:
                options = ["--within", region] if region else []
                dual, by_default = net.certify(*options, "--boxes", 0), net.certify(*options)
                bold = "**" if by_default["closed"] else ""
                cells.append(f"{interval(dual, 2)}, {bold}{interval(by_default, 2)}{bold}")
                found.append(by_default)
            row(name, f"R = {region}" if region else "all x", *cells)
    print(f"\n{sum(one['closed'] for one in found)} of {len(found)} closed, with up to "
          f"{max(one['boxes'] for one in found):,} boxes, in "
          f"{min(one['bound_seconds'] for one in found):.2f} to "
          f"{max(one['bound_seconds'] for one in found):.1f} s; of the others' intervals found:",
          *(of_interval(one) for one in found if not one["closed"]))


def ranges(command, folder, uci):
    table("data", "net", "`--boxes 0`: f in", "of it", "by default: f in", "of it", "boxes", "s")
    for name, target in SETS.items():
        data = uci / name / "data.txt"
        for of in ("relu, one layer", "relu, no norm", "silu", "tanh", "LN first"):
            net = Trained(command, folder, of, data, target)
            dual, found = (net.certify("--ranges", data, *boxes) for boxes in (["--boxes", 0], []))
            row(name, of, interval(dual, 1), of_interval(dual), interval(found, 1),
                of_interval(found), f"{found['boxes']:,}", f"{found['bound_seconds']:.1f}")


def within(command, folder, uci):
    table("net", "boxes", *(f"R = {distance:,}" for distance in DISTANCES))
    for name in ("relu, no norm", "LN first", "LN second", "tanh"):
        net = Trained(command, folder, name, uci / "yacht" / "data.txt", SETS["yacht"])
        for boxes in ("none", "by default"):
            options = ["--boxes", 0] if boxes == "none" else []
            at = [net.certify("--within", distance, *options) for distance in DISTANCES]
            row(name, boxes, *(f"{rounded(found['bound'], 1, math.ceil)}, "
                               f"{rounded(found['largest_found'], 1, math.floor)}" for found in at))


def proved(found):
    return interval(found, 1), rounded(found["bound"], 1, math.ceil)


def many(command, folder, uci):
    table("net", "x", "by default: f in", "bound", f"`--boxes {MANY}`: f in", "bound", "found",
          "boxes")
    data = uci / "yacht" / "data.txt"
    for name, x in (("LN first", "all"), ("RMSNorm first", "all"), ("gelu, LN first", "all"),
                    ("LN second", "all"), ("LN every", "all"), ("LN first", "in ranges"),
                    ("LN second", "in ranges"), ("LN every", "in ranges")):
        net = Trained(command, folder, name, data, SETS["yacht"])
        region = [] if x == "all" else ["--ranges", data]
        more = net.certify(*region, "--boxes", MANY)
        row(name, x, *proved(net.certify(*region)), *proved(more),
            rounded(more["largest_found"], 1, math.floor), f"{more['boxes']:,}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--uci", type=Path, help="folder of yacht and concrete")
    parser.add_argument("--keel", type=Path, default=ROOT / "build/keel", help="the command")
    every = ["few", "ranges", "within", "many"]
    parser.add_argument("--only", type=some_of(every), default=every,
                        help="some of few, ranges, within, many")
    given = parser.parse_args()
    for name in SETS if given.uci else ():
        if not (given.uci / name / "data.txt").is_file():
            sys.exit(f"regions: got no {given.uci / name}/data.txt, wanted the table of {name}")
    with tempfile.TemporaryDirectory() as folder:
        if "few" in given.only:
            few(given.keel, folder)
        if "ranges" in given.only and given.uci:
            ranges(given.keel, folder, given.uci)
        if "within" in given.only and given.uci:
            within(given.keel, folder, given.uci)
        if "many" in given.only and given.uci:
            many(given.keel, folder, given.uci)


if __name__ == "__main__":
    main()
