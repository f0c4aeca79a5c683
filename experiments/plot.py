#!/usr/bin/env python3
"""Draws what `keel reproduce` and `keel forecast` wrote: plot.py
fig1|fig2|fig3|fig5|fig6|fig7|activations|distance|prenorm|residual|rmsnorm|theory|forecast DIR
reads the numbers in DIR (.csv, .npy, summary.json) and writes FIGURE.png and FIGURE.svg beside
them. Needs matplotlib; fig3 statsmodels too."""

import os
import sys
import tempfile

try:
    import matplotlib
except ImportError:
    sys.exit("plot.py: this python3 has no matplotlib (Debian: apt install python3-matplotlib)")

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy  # noqa: E402  (matplotlib needs it too)
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402
from plot_distance import draw_distance  # noqa: E402
from plot_forecast import draw_forecast  # noqa: E402
from plot_grid import data_grid, row_limits  # noqa: E402
from plot_input import from_summary, rows_of  # noqa: E402
from plot_sequences import draw_growth, draw_sequences  # noqa: E402
from plot_style import BAND, CURVE, POINTS, PROVED, SHADE, STYLE  # noqa: E402
from plot_table1 import draw_protein  # noqa: E402

DATASETS = {"sinusoid": r"$y=\sin x$", "linear": r"$y=x/2$", "quadratic": r"$y=x^2/5$"}
COLUMNS = {
    "fig1": [(("standard", "relu"), "Standard"), (("ln_first", "relu"), "LN first"),
             (("ln_second", "relu"), "LN second"), (("ln_every", "relu"), "LN every")],
    "fig5": [(("standard", "gelu"), "GELU, no LN"), (("ln_every", "gelu"), "GELU, LN every"),
             (("standard", "silu"), "SiLU, no LN"), (("ln_every", "silu"), "SiLU, LN every")],
    "fig6": [(("standard", "relu"), "Standard"), (("bn_first", "relu"), "BN first"),
             (("bn_second", "relu"), "BN second"), (("bn_every", "relu"), "BN every")],
    "activations": [(("standard", "leakyrelu"), "Leaky ReLU, no LN"),
                    (("ln_every", "leakyrelu"), "Leaky ReLU, LN every"),
                    (("standard", "tanh"), "tanh, no LN"),
                    (("ln_every", "tanh"), "tanh, LN every"),
                    (("standard", "selu"), "SELU, no LN"), (("ln_every", "selu"), "SELU, LN every")],
    "residual": [(("standard", "relu"), "Residual, no LN"), (("ln_within", "relu"), "LN within each"),
                 (("ln_first", "relu"), "LN ahead of both"), (("ln_last", "relu"), "LN behind both")],
    "rmsnorm": [(("standard", "relu"), "Standard"), (("rms_first", "relu"), "RMSNorm first"),
                (("rms_second", "relu"), "RMSNorm second"),
                (("rms_every", "relu"), "RMSNorm every")],
}
NETS = {"standard": "Standard", "ln_first": "LN first", "ln_second": "LN second",
        "ln_every": "LN every"}
PARAMETERISATIONS = {"standard": "standard parameterisation", "ntk": "NTK parameterisation"}
CORNERS = {"bottom": 0.05, "top": 0.94}  # of a panel, on its right: the height of a label there
LABEL_WIDTH, LABEL_HEIGHT = 0.37, 0.18  # what a label takes of a panel's corner, with room around it


def training_points(folder):
    """(x, y) of each data set."""
    points = {}
    for row in rows_of(os.path.join(folder, "training.csv"), ["dataset", "x", "y"]):
        x, y = points.setdefault(row["dataset"], ([], []))
        x.append(float(row["x"]))
        y.append(float(row["y"]))
    return points


def load(folder):
    """Curves by (dataset, net, activation), training points by data set, and of each panel the
    exponent and what was proved of every x, if anything was."""
    panels, summary = from_summary(folder, lambda summary: (
        {(p["dataset"], p["net"], p["activation"]): (p["far_field_exponent"], p.get("proved"))
         for p in summary["panels"]}, summary))
    curves = {}
    numbers = ["x", "mean", "ci_low", "ci_high"]
    for row in rows_of(os.path.join(folder, "curves.csv"),
                       ["dataset", "net", "activation", *numbers]):
        panel = curves.setdefault((row["dataset"], row["net"], row["activation"]),
                                  {name: [] for name in numbers})
        for name in numbers:
            panel[name].append(float(row[name]))
    # Every other point: a fifth of a unit is finer than the print, and halves the SVG.
    curves = {key: {name: panel[name][::2] for name in numbers} for key, panel in curves.items()}
    return curves, training_points(folder), panels, summary


def points_beneath(curve, limits, corner):
    """How many points of a curve, or of its band, lie beneath a label in that corner."""
    left = curve["x"][-1] - LABEL_WIDTH * (curve["x"][-1] - curve["x"][0])
    height = LABEL_HEIGHT * (limits[1] - limits[0])
    low, high = ((limits[0], limits[0] + height) if corner == "bottom" else
                 (limits[1] - height, limits[1]))
    return sum(x > left and max(mean, above) > low and min(mean, below) < high for x, mean, below, above in
               zip(curve["x"], curve["mean"], curve["ci_low"], curve["ci_high"]))


def label_corners(row, limits):
    """The corner of each panel with the fewest points beneath its label; of equals the one that is best for the
    whole row, so that its labels are level where they can be."""
    beneath = [{corner: points_beneath(curve, limits, corner) for corner in CORNERS} for curve in row]
    of_row = {corner: sum(panel[corner] for panel in beneath) for corner in CORNERS}
    return [min(CORNERS, key=lambda corner: (panel[corner], of_row[corner])) for panel in beneath]


def draw_panel(axes, curve, points, exponent, proved, corner):
    """Mean, 95% interval, training points, growth exponent and proved ends of one net on one data set."""
    draw_data(axes, *points)
    axes.fill_between(curve["x"], curve["ci_low"], curve["ci_high"], color=BAND, lw=0, zorder=2)
    axes.plot(curve["x"], curve["mean"], color=CURVE, zorder=3)
    axes.set_xlim(curve["x"][0], curve["x"][-1])
    for end in proved or ():
        axes.axhline(end, **PROVED)
    if exponent is not None:
        axes.text(0.97, CORNERS[corner], rf"$|f|\sim|x|^{{{abs(round(exponent, 2)):.2f}}}$", ha="right",
                  va=corner, transform=axes.transAxes, fontsize=7, color="#444444", zorder=5,
                  bbox={"facecolor": "white", "pad": 1, "lw": 0} if proved else None)


def legend_below(figure, handles):
    """One line below the grid; the training points come third."""
    points = Line2D([], [], color=POINTS, marker=".", ls="", ms=5, mew=0, label="training points")
    figure.legend(handles=[*handles[:2], points, *handles[2:]], loc="lower center", ncol=5,
                  frameon=False, handlelength=1.6, columnspacing=1.8)


def draw_data(axes, x, y):
    axes.axvspan(min(x), max(x), color=SHADE, lw=0, zorder=0)
    axes.plot(x, y, ".", color=POINTS, ms=2.2, mew=0, zorder=4)


def draw_curves(figure_name, folder):
    """Figures 1, 5 and 6: curves of trained nets."""
    curves, points, panels, summary = load(folder)
    columns = COLUMNS[figure_name]
    figure, grid = data_grid([title for _, title in columns], DATASETS)
    for row, dataset in zip(grid, DATASETS):
        keys = [(dataset, *net) for net, _ in columns]
        for key in keys:
            if key not in curves or key not in panels or dataset not in points:
                sys.exit(f"plot.py: {folder} has no curve of {', '.join(key)}")
        ends = [end for key in keys for end in panels[key][1] or ()]
        limits = row_limits(points[dataset][1], ends)
        corners = label_corners([curves[key] for key in keys], limits)
        for axes, key, corner in zip(row, keys, corners):
            draw_panel(axes, curves[key], points[dataset], *panels[key], corner)
        row[0].set_ylim(*limits)
    seeds = summary.get("seeds", "?")
    mean = "prediction of 1 seed" if seeds == 1 else f"mean of {seeds} seeds"
    proved = [Line2D([], [], **PROVED, label="proved for every $x$")]
    legend_below(figure, [Line2D([], [], color=CURVE, label=mean),
                          Patch(color=BAND, label="its 95% interval"),
                          Patch(color=SHADE, label="training range"),
                          *(proved if any(proved for _, proved in panels.values()) else [])])
    return figure


def draw_kernels(_, folder):
    """Figure 2: a panel a net and kernel, each with a colour bar of its own."""
    seeds, end = from_summary(folder, lambda summary: (summary["seeds"], summary["grid_range"][1]))
    mean = "1 seed" if seeds == 1 else f"mean of {seeds} seeds"
    kinds = {"empirical": mean, "infinite": "infinite width"}
    rows = [(f"{name}_{kind}", label) for name in PARAMETERISATIONS for kind, label in kinds.items()]
    figure, grid = plt.subplots(len(rows), len(NETS), figsize=(7.0, 6.5), sharex=True, sharey=True)
    for axes, title in zip(grid[0], NETS.values()):
        axes.set_title(title, pad=11)
    for axes in grid[-1]:
        axes.set_xlabel("$x'$", labelpad=1)
    for axes_row, (kind, label) in zip(grid, rows):
        for axes, net in zip(axes_row, NETS):
            path = os.path.join(folder, f"{net}_{kind}.npy")
            try:
                kernel = numpy.load(path)
            except (OSError, ValueError) as problem:
                sys.exit(f"plot.py: cannot read {path}: {problem}")
            # A pixel at the origin may be twice all others: the colours end below it.
            most = numpy.percentile(kernel, 99.9)
            alone = kernel.max() > 1.3 * most
            image = axes.imshow(kernel, origin="lower", extent=(-end, end, -end, end),
                                cmap="viridis", interpolation="nearest", vmax=most if alone else kernel.max())
            bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.04,
                                  extend="max" if alone else "neither")
            bar.formatter.set_powerlimits((-2, 3))
            bar.outline.set_linewidth(0.4)
            bar.ax.yaxis.get_offset_text().set_fontsize(6)
            bar.ax.tick_params(labelsize=6, width=0.4, length=2)
            axes.set_xticks([-20, 0, 20])
            axes.set_yticks([-20, 0, 20])
        axes_row[0].set_ylabel(f"{label}\n$x$", labelpad=1)
    figure.align_ylabels(grid[:, 0])
    figure.subplots_adjust(left=0.125, right=0.95, top=0.95, bottom=0.055, wspace=0.42, hspace=0.2)
    for pair, name in zip(grid[:, 0].reshape(-1, len(kinds)), PARAMETERISATIONS.values()):
        middle = (pair[0].get_position().y1 + pair[-1].get_position().y0) / 2
        figure.text(0.006, middle, name, rotation=90, ha="left", va="center", fontsize=9)
    return figure


def draw_theory(_, folder):
    """Kernel regression far outside the data, with the certificate as a band."""
    from_summary(folder, lambda summary: summary["all_hold"])
    points, curves = training_points(folder), {}
    numbers = ["x", "mean", "bound_at_x", "bound"]
    for row in rows_of(os.path.join(folder, "curves.csv"), ["dataset", "net", *numbers]):
        curve = curves.setdefault((row["dataset"], row["net"]), {name: [] for name in numbers})
        for name in numbers:
            curve[name].append(float(row[name]))
    figure, grid = data_grid(NETS.values(), DATASETS)
    for row, dataset in zip(grid, DATASETS):
        bounds = [curves[dataset, net]["bound"][0] for net in NETS]
        highest = 1.15 * max(bound for bound in bounds if bound < float("inf"))
        for axes, net in zip(row, NETS):
            curve = curves[dataset, net]
            draw_data(axes, *points[dataset])
            axes.fill_between(curve["x"], [-at for at in curve["bound_at_x"]], curve["bound_at_x"],
                              color=BAND, lw=0, zorder=1)
            if curve["bound"][0] < float("inf"):
                for side in (-1, 1):
                    axes.axhline(side * curve["bound"][0], **PROVED)
            axes.plot(curve["x"], curve["mean"], color=CURVE, zorder=3)
            axes.set_xlim(curve["x"][0], curve["x"][-1])
        row[0].set_ylim(-highest, highest)
    legend_below(figure, [Line2D([], [], color=CURVE, label="kernel regression"),
                          Patch(color=BAND, label="bound at $x$"),
                          Line2D([], [], **PROVED, label="bound for all $x$")])
    return figure


DRAW = {"fig1": draw_curves, "fig2": draw_kernels, "fig3": draw_protein, "fig5": draw_curves,
        "fig6": draw_curves, "fig7": draw_sequences, "forecast": draw_forecast,
        "activations": draw_curves, "distance": draw_distance, "prenorm": draw_growth, "residual": draw_curves,
        "rmsnorm": draw_curves, "theory": draw_theory}


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
    if len(arguments) != 2 or arguments[0] not in DRAW:
        sys.exit(f"plot.py: usage: plot.py {'|'.join(DRAW)} DIR")
    name, folder = arguments
    with plt.rc_context(STYLE):
        figure = DRAW[name](name, folder)
        try:
            for kind in (".png", ".svg"):
                save(figure, os.path.join(folder, name + kind))
        except OSError as problem:
            sys.exit(f"plot.py: cannot write to {folder}: {problem.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
