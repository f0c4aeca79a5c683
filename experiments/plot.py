#!/usr/bin/env python3
"""Draws what `keel reproduce` wrote: plot.py fig1|fig5 DIR reads curves.csv, training.csv and
summary.json of DIR and writes FIGURE.png and FIGURE.svg beside them. Needs matplotlib only."""

import csv
import json
import os
import sys
import tempfile

try:
    import matplotlib
except ImportError:
    sys.exit("plot.py: this python3 has no matplotlib (Debian: apt install python3-matplotlib)")

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402

DATASETS = {"sinusoid": r"$y=\sin x$", "linear": r"$y=x/2$", "quadratic": r"$y=x^2/5$"}
COLUMNS = {
    "fig1": [(("standard", "relu"), "Standard"), (("ln_first", "relu"), "LN first"),
             (("ln_second", "relu"), "LN second"), (("ln_every", "relu"), "LN every")],
    "fig5": [(("standard", "gelu"), "GELU, no LN"), (("ln_every", "gelu"), "GELU, LN every"),
             (("standard", "silu"), "SiLU, no LN"), (("ln_every", "silu"), "SiLU, LN every")],
}
CURVE, BAND, POINTS, SHADE = "#1f4e9c", "#9db8e6", "#d62728", "#f0f0f0"
STYLE = {
    "font.size": 8, "axes.titlesize": 9, "axes.labelsize": 8, "xtick.labelsize": 7,
    "ytick.labelsize": 7, "legend.fontsize": 8, "axes.linewidth": 0.6, "lines.linewidth": 1.3,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2.5,
    "ytick.major.size": 2.5, "svg.fonttype": "none", "svg.hashsalt": "keel",
    "mathtext.fontset": "dejavusans",
}


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


def load(folder):
    """Curves and exponents by (dataset, net, activation); training points by data set."""
    path = os.path.join(folder, "summary.json")
    try:
        with open(path, encoding="utf-8") as file:
            summary = json.load(file)
        exponents = {(p["dataset"], p["net"], p["activation"]): p["far_field_exponent"]
                     for p in summary["panels"]}
    except OSError as problem:
        sys.exit(f"plot.py: cannot read {path}: {problem.strerror}")
    except (ValueError, KeyError, TypeError) as problem:
        sys.exit(f"plot.py: {path} is no summary of this figure: {problem!r}")
    curves, points = {}, {}
    numbers = ["x", "mean", "ci_low", "ci_high"]
    for row in rows_of(os.path.join(folder, "curves.csv"),
                       ["dataset", "net", "activation", *numbers]):
        panel = curves.setdefault((row["dataset"], row["net"], row["activation"]),
                                  {name: [] for name in numbers})
        for name in numbers:
            panel[name].append(float(row[name]))
    # Every other point: a fifth of a unit is finer than the print, and halves the SVG.
    curves = {key: {name: panel[name][::2] for name in numbers} for key, panel in curves.items()}
    for row in rows_of(os.path.join(folder, "training.csv"), ["dataset", "x", "y"]):
        x, y = points.setdefault(row["dataset"], ([], []))
        x.append(float(row["x"]))
        y.append(float(row["y"]))
    return curves, points, exponents, summary


def row_limits(y, reach=1.5):
    """One scale for a row: the data's range and `reach` ranges more on both sides. Wide enough for
    the nets that saturate; a net that does not is seen to leave."""
    low, high = min(y), max(y)
    return low - reach * (high - low), high + reach * (high - low)


def label_corner(panels, limits):
    """Height and alignment of the right-hand corner that a row's bands stay out of."""
    corner = limits[0] + 0.22 * (limits[1] - limits[0])
    crossed = any(x > 0.3 * panel["x"][-1] and min(mean, low) < corner for panel in panels
                  for x, mean, low in zip(panel["x"], panel["mean"], panel["ci_low"]))
    return (0.94, "top") if crossed else (0.05, "bottom")


def draw_panel(axes, curve, points, exponent, corner):
    """Mean, 95% interval, training points and growth exponent of one net on one data set."""
    x, y = points
    axes.axvspan(min(x), max(x), color=SHADE, lw=0, zorder=0)
    axes.fill_between(curve["x"], curve["ci_low"], curve["ci_high"], color=BAND, lw=0, zorder=2)
    axes.plot(curve["x"], curve["mean"], color=CURVE, zorder=3)
    axes.plot(x, y, ".", color=POINTS, ms=2.2, mew=0, zorder=4)
    axes.set_xlim(curve["x"][0], curve["x"][-1])
    if exponent is not None:
        axes.text(0.97, corner[0], rf"$|f|\sim|x|^{{{abs(round(exponent, 2)):.2f}}}$", ha="right",
                  va=corner[1], transform=axes.transAxes, fontsize=7, color="#444444", zorder=5)


def draw(figure_name, folder):
    curves, points, exponents, summary = load(folder)
    columns = COLUMNS[figure_name]
    figure, grid = plt.subplots(len(DATASETS), len(columns), figsize=(7.0, 4.9), sharex=True,
                                sharey="row", squeeze=False)
    for row, (dataset, formula) in zip(grid, DATASETS.items()):
        keys = [(dataset, *net) for net, _ in columns]
        for key in keys:
            if key not in curves or dataset not in points:
                sys.exit(f"plot.py: {folder} has no curve of {', '.join(key)}")
        limits = row_limits(points[dataset][1])
        corner = label_corner([curves[key] for key in keys], limits)
        for axes, key in zip(row, keys):
            draw_panel(axes, curves[key], points[dataset], exponents.get(key), corner)
        row[0].set_ylim(*limits)
        row[0].set_ylabel(f"{dataset}, {formula}")
    for axes, (_, title) in zip(grid[0], columns):
        axes.set_title(title, pad=4)
    for axes in grid[-1]:
        axes.set_xlabel("$x$", labelpad=1)
    figure.align_ylabels(grid[:, 0])
    seeds = summary.get("seeds", "?")
    mean = "prediction of 1 seed" if seeds == 1 else f"mean of {seeds} seeds"
    figure.legend(
        handles=[Line2D([], [], color=CURVE, label=mean),
                 Patch(color=BAND, label="95% interval of the mean"),
                 Line2D([], [], color=POINTS, marker=".", ls="", ms=5, mew=0,
                        label="training points"),
                 Patch(color=SHADE, label="training range")],
        loc="lower center", ncol=4, frameon=False, handlelength=1.6, columnspacing=1.8)
    figure.subplots_adjust(left=0.075, right=0.99, top=0.95, bottom=0.125, wspace=0.08, hspace=0.1)
    return figure


def save(figure, path):
    """Under a temporary name first, so that no half-drawn picture is ever left."""
    kind = os.path.splitext(path)[1]
    handle, temporary = tempfile.mkstemp(suffix=kind, dir=os.path.dirname(path) or ".")
    os.close(handle)
    try:
        # No date inside: the same numbers give the same bytes.
        figure.savefig(temporary, dpi=220, metadata={"Date": None} if kind == ".svg" else None)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in COLUMNS:
        sys.exit(f"plot.py: usage: plot.py {'|'.join(COLUMNS)} DIR")
    name, folder = arguments
    with plt.rc_context(STYLE):
        figure = draw(name, folder)
        try:
            for kind in (".png", ".svg"):
                save(figure, os.path.join(folder, name + kind))
        except OSError as problem:
            sys.exit(f"plot.py: cannot write to {folder}: {problem.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
