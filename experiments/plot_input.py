"""What the pictures are drawn from: CSV tables and summary.json, refused in one line."""

import csv
import json
import os
import sys


def rows_of(path, wanted):
    """The rows of a CSV file as dictionaries; ends where the file or a column is missing."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except OSError as problem:
        sys.exit(f"plot.py: cannot read {path}: {problem.strerror}")
    missing = [name for name in wanted if not rows or name not in rows[0]]
    if missing:
        sys.exit(f"plot.py: {path} has no rows with column {', '.join(missing)}")
    return rows


def from_summary(folder, pick):
    """What `pick` takes from summary.json; ends where it is missing or of another figure."""
    path = os.path.join(folder, "summary.json")
    try:
        with open(path, encoding="utf-8") as file:
            return pick(json.load(file))
    except OSError as problem:
        sys.exit(f"plot.py: cannot read {path}: {problem.strerror}")
    except (ValueError, KeyError, TypeError) as problem:
        sys.exit(f"plot.py: {path} is no summary of this figure: {problem!r}")
