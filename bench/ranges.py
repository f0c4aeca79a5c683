#!/usr/bin/env python3
"""What moves from run to run: one report's ratios to its peers beside those of other reports.

    bench/ranges.py REPORT OTHER...      a line for each row and peer: the report's time in ms, its
                                         ratio (the peer's time over keel's), the others' range
    bench/ranges.py --behind REPORT...   the rows where a peer is faster, report by report
"""
import argparse
import json
import os
import sys


def rows_of(path):
    """{(row, peer): (keel's median in seconds, the peer's time over it)}, of a GPU's own clock beside it"""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        return {(row["name"].strip(), peer["name"] + clock): (row[ours], peer[ratio])
                for row in report["rows"] for peer in row.get("peers", [])
                for clock, ours, ratio in (("", "median_s", "ratio"),
                                           (", GPU's clock", "gpu_s", "gpu_ratio"))
                if peer.get(ratio)}
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"ranges.py: {path}: no report of keel_bench: {error!r}")


def print_ranges(path, others):
    here, elsewhere = rows_of(path), []
    for other in others:
        rows = rows_of(other)
        if not os.path.samefile(other, path):
            elsewhere.append(rows)
    for (row, peer), (seconds, ratio) in here.items():
        ratios = sorted(other[row, peer][1] for other in elsewhere if (row, peer) in other)
        spread = f"  [{ratios[0]:.2f}, {ratios[-1]:.2f}] of {len(ratios)}" if ratios else ""
        print(f"{row:60} {seconds * 1e3:10.4g} ms  {peer:40} {ratio:8.2f}{spread}")


def print_behind(paths):
    for path in paths:
        for (row, peer), (_, ratio) in rows_of(path).items():
            if ratio < 1:
                print(f"{os.path.basename(path):45} {row:50} {peer:40} {ratio:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--behind", action="store_true", help="where a peer is faster")
    parser.add_argument("reports", nargs="+", metavar="REPORT")
    arguments = parser.parse_args()
    if arguments.behind:
        print_behind(arguments.reports)
    else:
        print_ranges(arguments.reports[0], arguments.reports[1:])


if __name__ == "__main__":
    main()
