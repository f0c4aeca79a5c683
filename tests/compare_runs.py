#!/usr/bin/env python3
"""Compares what two runs of keel wrote, file by file: compare_runs.py A B [--exact | --tolerance KIND=VALUE ...].

--exact wants the same bytes, of safetensors but for a note of seconds; of json and csv the same text but for times, machine and
paths. Otherwise numbers may differ by the tolerance of their kind, relative to the largest number of their column in rows of the
same words (csv), of their array (npy, safetensors), or to themselves (json), and what feeds on itself is left out: rollouts.
Prints a line a file with the largest relative difference found; exit code 1 where a file is missing or differs by more.
Standard library only."""

import argparse
import csv
import json
import math
import struct
import sys
from array import array
from pathlib import Path

# Between devices. The runs of gpu_check.sh by a CPU and by an emulated GPU differ by 2e-7 (npy), 8e-13 (csv), 2e-7 (json), 4e-7
# (safetensors); where nets were trained by 2e-6 (csv) and 3e-3 (json, which has exponents fitted to predictions), Figure 7's
# transformers by 3e-5 (csv). Of 24 seeds of these, by a processor with fused multiply-add and by one without, one differed by 2e-4:
# Adam's first steps are as long where a gradient is rounding alone. An H100 differs from a CPU by 3e-7 (npy), 1e-12 (csv), 6e-8
# (json), 5e-7 (safetensors); where nets were trained by 6e-4 (csv, Batch Norm's; else 5e-5) and 1e-2 (json).
TOLERANCES = {"npy": 1e-5, "csv": 1e-6, "json": 1e-5, "safetensors": 1e-3, "trained.csv": 1e-3, "trained.json": 2e-2}
FLOOR = 1e-6  # of json: what is smaller than this is rounding, in both

MACHINE = {"command", "date", "seconds", "version", "commit", "device", "device_name", "threads", "backends", "saved", "saved_weights",
           "peak_bytes"}
# How a solver or a search went, not what it found, and results told in words, whose numbers stand beside them: these may differ
# between devices, not between runs.
COURSE = {"sweeps", "residual", "evaluations", "largest_found_at", "exceeds_at", "exceeded_at", "preconditioner_shift", "measured"}
# Words of rows and names of numbers that are of predictions from predictions, left out between devices: where two round
# differently, such a row is another one soon. Of the same 24 seeds, continuations of 80 values were 7e-6 of their largest apart
# in the median, and one by 0.5. What predicts them predicts the rows that are compared, too.
FEEDS_ON_ITSELF = {"rollout", "forecast", "largest_found_by_seed"}
# Ends of intervals are next to what is reached, by a part of their distance: one may be next to 0.
INTERVALS = {"proved", "proved_by_seed"}
TRAINED = {"epochs", "steps"}
NUMBERS = {"f4": "f", "f8": "d", "i4": "i", "i8": "q", "F32": "f", "F64": "d", "I32": "i", "I64": "q"}


class Different(Exception):
    """What differs other than by a small number."""


def apart(a, b, size):
    """|a - b| / size; 0 where both are the same, infinite where only one is a finite number."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / size if size else math.inf


def largest(values):
    return max((abs(v) for v in values if math.isfinite(v)), default=0.0)


def difference_of_arrays(a, b):
    if len(a) != len(b):
        raise Different(f"{len(a)} numbers and {len(b)}")
    size = max(largest(a), largest(b))
    return max((apart(x, y, size) for x, y in zip(a, b)), default=0.0)


def numbers(code, raw, path):
    if code not in NUMBERS:
        raise Different(f"{path.name} holds {code}, which this script does not read")
    values = array(NUMBERS[code], raw)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def read_npy(path):
    raw = path.read_bytes()
    if raw[:6] != b"\x93NUMPY":
        raise Different(f"{path.name} is no .npy file")
    size, start = (struct.unpack_from("<H", raw, 8)[0], 10) if raw[6] == 1 else (struct.unpack_from("<I", raw, 8)[0], 12)
    header = raw[start:start + size].decode("latin1")
    code = header.split("'descr':")[1].split("'")[1]
    return header.strip(), numbers(code.lstrip("<|"), raw[start + size:], path)


def compare_npy(first, second):
    (header, a), (other, b) = read_npy(first), read_npy(second)
    if header != other:
        raise Different(f"{header} and {other}")
    return difference_of_arrays(a, b)


def split_safetensors(path):
    """The header without how many seconds a training took, and the bytes behind it."""
    raw = path.read_bytes()
    size = struct.unpack_from("<Q", raw)[0]
    header = json.loads(raw[8:8 + size])
    header.get("__metadata__", {}).pop("seconds", None)
    return header, raw[8 + size:]


def read_safetensors(path):
    header, body = split_safetensors(path)
    header.pop("__metadata__", None)
    return {name: numbers(entry["dtype"], body[slice(*entry["data_offsets"])], path) for name, entry in header.items()}


def compare_safetensors(first, second):
    a, b = read_safetensors(first), read_safetensors(second)
    if a.keys() != b.keys():
        raise Different(f"tensors {sorted(a)} and {sorted(b)}")
    return max((difference_of_arrays(a[name], b[name]) for name in a), default=0.0)


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def read_csv(path):
    """Without the columns that tell of the machine."""
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    dropped = {i for i, name in enumerate(rows[0] if rows else []) if name in MACHINE}
    return [[cell for i, cell in enumerate(row) if i not in dropped] for row in rows]


def compare_csv(first, second):
    """Rows of the same words belong together: one net's curve, say, whose neighbour may be 1e40 times larger."""
    tables = [read_csv(first), read_csv(second)]
    if [len(row) for row in tables[0]] != [len(row) for row in tables[1]]:
        raise Different("the tables have different shapes")
    columns = {}  # (words, column): pairs of numbers
    for row, other in zip(*tables):
        values = [(number(a), number(b)) for a, b in zip(row, other)]
        for column, (pair, text, other_text) in enumerate(zip(values, row, other)):
            if None in pair and text != other_text:
                raise Different(f"column {column}: '{text}' and '{other_text}'")
        words = tuple(text for pair, text in zip(values, row) if None in pair)
        if not FEEDS_ON_ITSELF.intersection(words):
            for column, pair in enumerate(values):
                if None not in pair:
                    columns.setdefault((words, column), []).append(pair)
    worst = 0.0
    for pairs in columns.values():
        size = max(map(largest, pairs))
        worst = max(worst, *(apart(x, y, size) for x, y in pairs))
    return worst


def pruned(value, without, leave_out):
    """Without the keys named, without times, and without the objects of a list that hold one of the words to be left out."""
    if isinstance(value, dict):
        return {k: pruned(v, without, leave_out) for k, v in value.items() if k not in without and not k.endswith("_seconds")}
    if not isinstance(value, list):
        return value
    return [pruned(v, without, leave_out) for v in value
            if not (isinstance(v, dict) and any(word in leave_out for word in v.values() if isinstance(word, str)))]


def flat(value):
    return [number for item in value for number in flat(item)] if isinstance(value, list) else [value]


def difference_of_intervals(a, b, where):
    """Of one or of a list of them, relative to the farthest end."""
    a, b = flat(a), flat(b)
    if all(type(value) in (int, float) for value in (*a, *b)):
        return difference_of_arrays(a, b), where
    return difference_of_json(a, b, where)


def difference_of_json(a, b, where):
    """The largest difference of numbers, and where it is."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return max(((difference_of_intervals if k in INTERVALS else difference_of_json)(a[k], b[k], f"{where}.{k}") for k in a),
                   default=(0.0, where))
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return max((difference_of_json(x, y, f"{where}[{i}]") for i, (x, y) in enumerate(zip(a, b))), default=(0.0, where))
    if type(a) in (int, float) and type(b) in (int, float):
        return (0.0 if max(abs(a), abs(b)) < FLOOR else apart(a, b, max(abs(a), abs(b)))), where
    if a != b:
        raise Different(f"{where}: {json.dumps(a)[:60]} and {json.dumps(b)[:60]}")
    return 0.0, where


def read_json(path, without, leave_out=()):
    return pruned(json.loads(path.read_text()), without, leave_out)


def compare_json(first, second):
    a, b = (read_json(path, MACHINE | COURSE | FEEDS_ON_ITSELF, FEEDS_ON_ITSELF) for path in (first, second))
    return difference_of_json(a, b, "")


READERS = {".npy": compare_npy, ".csv": compare_csv, ".json": compare_json, ".safetensors": compare_safetensors}


def kind_of(path):
    """A key of TOLERANCES: nets were trained where the summary of a folder says for how many epochs, or steps."""
    summary = path.parent / "summary.json"
    trained = path.suffix in (".csv", ".json") and summary.is_file() and not TRAINED.isdisjoint(json.loads(summary.read_text()))
    return f"trained{path.suffix}" if trained else path.suffix[1:]


def same_bits(first, second):
    if first.suffix == ".json":
        if read_json(first, MACHINE) != read_json(second, MACHINE):
            raise Different(f"not the same: {describe(first, second)}")
    elif first.suffix == ".csv":
        if read_csv(first) != read_csv(second):
            raise Different(f"not the same bits: {describe(first, second)}")
    elif first.suffix == ".safetensors":
        if split_safetensors(first) != split_safetensors(second):
            raise Different(f"not the same bits: {describe(first, second)}")
    elif first.read_bytes() != second.read_bytes():
        raise Different(f"not the same bits: {describe(first, second)}")


def describe(first, second):
    compare = READERS.get(first.suffix)
    if not compare:
        return "the bytes differ"
    try:
        found = compare(first, second)
    except Different as difference:
        return str(difference)
    return f"numbers differ by {found if isinstance(found, float) else found[0]:.1e}"


def compare(first, second, exact, tolerances):
    """(the line, whether it is fine) of one file."""
    try:
        if exact:
            same_bits(first, second)
            return "the same", True
        if first.suffix not in READERS:
            if first.read_bytes() != second.read_bytes():
                raise Different("the bytes differ")
            return "the same", True
        kind = kind_of(first)
        found = READERS[first.suffix](first, second)
        worst, where = found if isinstance(found, tuple) else (found, "")
        place = f" at {where.lstrip('.')}" if where and worst > tolerances[kind] else ""
        return f"{worst:.1e} (may be {tolerances[kind]:.0e}){place}", worst <= tolerances[kind]
    except (Different, ValueError, KeyError, IndexError, struct.error) as problem:
        return str(problem) or type(problem).__name__, False


def files_of(folder):
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--tolerance", action="append", default=[], metavar="KIND=VALUE", help=f"kinds: {', '.join(TOLERANCES)}")
    options = parser.parse_args()
    tolerances = dict(TOLERANCES)
    for text in options.tolerance:
        kind, _, value = text.partition("=")
        if kind not in tolerances or number(value) is None:
            parser.error(f"--tolerance {text}: wanted one of {', '.join(TOLERANCES)}, and a number")
        tolerances[kind] = float(value)

    names = sorted(files_of(options.first) | files_of(options.second))
    lines, failures = [], 0
    for name in names:
        first, second = options.first / name, options.second / name
        if first.is_file() and second.is_file():
            line, fine = compare(first, second, options.exact, tolerances)
        else:
            line, fine = f"only in {options.first if first.is_file() else options.second}", False
        failures += not fine
        lines.append((not fine, f"{'ok  ' if fine else 'FAIL'} {str(name):<44} {line}"))
    for _, line in sorted(lines):  # what failed comes last
        print(line)
    if not names:
        print(f"FAIL no files in {options.first} and {options.second}")
    print(f"{len(names)} files, {failures} of them differ")
    sys.exit(bool(failures) or not names)


if __name__ == "__main__":
    main()
