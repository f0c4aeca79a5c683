#!/usr/bin/env python3
"""The table of docs/certificate.md: trains each of its nets by keel, certifies it, prints a row.

    python3 bench/certificates.py --uci FOLDER [--protein CASP.csv] [--keel build/keel]
                                  [--activations relu,tanh]

FOLDER holds yacht/data.txt and concrete/data.txt of the UCI archive, CASP.csv is its protein data, with
RMSD in a column of that name or in --protein-target. Without --protein its six rows are left out.
tanh and sigmoid bound a net by themselves: they have rows without a norm. Residual nets have rows of
yacht and concrete. --activations leaves only rows of those named. Ends are rounded outward, what was
found inward.
"""
import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = {"first": "dense(128) {norm} {phi} dense(128) {phi} dense(1)",
          "second": "dense(128) {phi} dense(128) {norm} {phi} dense(1)",
          "every": "dense(128) {norm} {phi} dense(128) {norm} {phi} dense(1)"}
NO_NORM = "dense(128) {phi} dense(128) {phi} dense(1)"
RESIDUAL = {"residual, first": "dense(128) {norm} " + 2 * "residual({phi} dense(128)) " + "dense(1)",
            "residual, last": "dense(128) " + 2 * "residual({norm} {phi} dense(128)) " +
                              "{norm} dense(1)",
            "residual, every": "dense(128) {norm} " + 2 * "residual({norm} {phi} dense(128)) " +
                               "dense(1)",
            "residual, every, φ": "dense(128) {norm} " + 2 * "residual({norm} {phi} dense(128)) " +
                                  "{phi} dense(1)"}
HEAD = ("data", "φ", "LN", "proved: f in", "bound", "found", "found/bound", "s")


def keel(command, *arguments):
    done = subprocess.run([command, *map(str, arguments), "--quiet", "--json"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"certificates: {arguments[0]} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def rounded(value, digits, towards):
    scale = 10 ** digits
    return f"{towards(value * scale) / scale:.{digits}f}"


def some_of(every):
    """An argparse type: words of these, with commas between."""
    def words(text):
        given = text.split(",")
        for word in given:
            if word not in every:
                raise argparse.ArgumentTypeError(f"got {word}, wanted some of {','.join(every)}")
        return given
    return words


def row(command, name, table, target, activation, norm, place, training):
    net = (PLACES | RESIDUAL).get(place, NO_NORM).format(norm=norm, phi=activation)
    data = ["--net", net, "--data", table, "--target", target, "--standardise", "xy"]
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "w.safetensors"
        keel(command, "train", *data, *training, "--save-weights", weights, "--out", folder)
        found = keel(command, "certify", "--mode", "trained", "--weights", weights, *data,
                     "--out", folder)
    low, high = found["interval"]
    return (name, activation, place if norm == "layernorm" else f"RMSNorm {place}",
            f"[{rounded(low, 1, math.floor)}, {rounded(high, 1, math.ceil)}]",
            rounded(found["bound"], 1, math.ceil), rounded(found["largest_found"], 1, math.floor),
            rounded(found["found_over_bound"], 2, math.floor), f"{found['bound_seconds']:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--uci", type=Path, required=True, help="folder of yacht and concrete")
    parser.add_argument("--protein", type=Path, help="the CASP table")
    parser.add_argument("--protein-target", default="RMSD", help="its column, by name or from 0")
    parser.add_argument("--keel", type=Path, default=ROOT / "build/keel", help="the command")
    every = ("relu", "gelu", "gelu(tanh=1)", "silu", "leakyrelu", "tanh", "sigmoid", "softplus",
             "elu", "selu", "prelu(per_unit=1)")
    parser.add_argument("--activations", type=some_of(every), default=every,
                        help="rows of these alone")
    given = parser.parse_args()
    full, batches = ("--epochs", 1000), ("--epochs", 200, "--batch", 1024)
    sets = [("yacht", given.uci / "yacht/data.txt", 6, every, full),
            ("concrete", given.uci / "concrete/data.txt", 8, every, full)]
    if given.protein:
        sets.append(("casp", given.protein, given.protein_target, ("relu",), batches))
    for name, table, *_ in sets:
        if not table.is_file():
            sys.exit(f"certificates: got no {table}, wanted the table of {name}")
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|")
    for name, table, target, activations, training in sets:
        runs = [(activation, "layernorm", PLACES) for activation in activations]
        runs += [("relu", "rmsnorm", PLACES)]
        if training == full:
            runs += [("relu", "layernorm", RESIDUAL)]
        runs = [run for run in runs if run[0] in given.activations]
        for activation, norm, places in runs:
            for place in [*places, "none"] if activation in ("tanh", "sigmoid") else places:
                cells = row(given.keel, name, table, target, activation, norm, place, training)
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
