"""Figure 3, of what `keel reproduce table1` wrote: drawn by plot.py. Needs statsmodels."""

import os
import sys

import matplotlib.pyplot as plt
import numpy
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plot_input import from_summary, rows_of

METHODS = {  # rows of Table 1: title and colour
    "standard": ("Standard", "#d62728"), "ln_first": ("LN first", "#2ca02c"),
    "ln_second": ("LN second", "#9467bd"), "ln_every": ("LN every", "#1f4e9c"),
    "xgboost": ("XGBoost", "#ff7f0e"), "ntk_standard": ("NTK, Standard", "#d62728"),
    "ntk_ln_first": ("NTK, LN first", "#2ca02c"), "ntk_ln_second": ("NTK, LN second", "#9467bd"),
    "ntk_ln_every": ("NTK, LN every", "#1f4e9c"),
}


def lowess_with_interval(x, y, at, resamples=200):
    """LOWESS of y over x at the points `at`, and a 95% interval from resampled rows."""
    try:
        from statsmodels.nonparametric.smoothers_lowess import lowess
    except ImportError:
        sys.exit("plot.py: fig3 needs statsmodels (Debian: apt install python3-statsmodels)")
    generator = numpy.random.default_rng(0)
    curves = []
    for _ in range(resamples):
        rows = generator.integers(0, len(x), len(x))
        curves.append(lowess(y[rows], x[rows], frac=0.6, it=1, xvals=at))
    low, high = numpy.nanpercentile(curves, [2.5, 97.5], axis=0)
    return lowess(y, x, frac=0.6, it=1, xvals=at), low, high


def load_table1(folder):
    """By method: area, target and mean prediction of every row out of distribution, and R^2."""
    found = from_summary(folder, lambda summary: {
        row["method"]: row["ood_r2"] for row in summary["rows"]})
    methods = {}
    for method in (method for method in METHODS if method in found):
        rows = rows_of(os.path.join(folder, f"predictions_{method}.csv"),
                       ["area", "target", "prediction"])
        methods[method] = {name: numpy.array([float(row[name]) for row in rows])
                           for name in ("area", "target", "prediction")} | {"r2": found[method]}
    if not methods:
        sys.exit(f"plot.py: {folder} has predictions of no method")
    return methods


def draw_histogram(axes, method, data, limits):
    """Predictions of one method over the targets; those beyond the limits are counted."""
    bins = numpy.linspace(*limits, 41)
    inside = numpy.clip(data["prediction"], *limits)
    axes.hist(data["target"], bins=bins, color="#cccccc")
    axes.hist(inside, bins=bins, histtype="step", color=METHODS[method][1], lw=1.1)
    axes.set_title(METHODS[method][0], pad=3)
    axes.set_xlim(*limits)
    axes.set_yticks([])
    axes.set_xlabel("RMSD", labelpad=1)
    beyond = int(numpy.sum(inside != data["prediction"]))
    text = "" if data["r2"] is None else f"$R^2$ {data['r2']:.2f}"
    axes.text(0.96, 0.93, text + (f"\n{beyond} beyond" if beyond else ""), ha="right", va="top",
              transform=axes.transAxes, fontsize=7, color="#444444")


def draw_smooth(axes, methods, names, what):
    """LOWESS over surface area of the predictions, or of their absolute errors."""
    any_data = next(iter(methods.values()))
    at = numpy.linspace(any_data["area"].min(), numpy.percentile(any_data["area"], 99), 60)
    curves = [(METHODS[name][1], what(methods[name]), methods[name]["area"]) for name in names]
    if what is prediction_of:
        curves.append(("#222222", any_data["target"], any_data["area"]))
    for colour, y, area in curves:
        middle, low, high = lowess_with_interval(area, y, at)
        axes.fill_between(at, low, high, color=colour, alpha=0.2, lw=0)
        axes.plot(at, middle, color=colour, ls="--" if colour == "#222222" else "-")
    axes.set_xlim(at[0], at[-1])
    axes.set_xlabel("surface area", labelpad=1)


def prediction_of(data):
    return data["prediction"]


def error_of(data):
    return numpy.abs(data["prediction"] - data["target"])


def draw_protein(_, folder):
    """Figure 3: predictions for proteins larger than any in training, by method."""
    methods = load_table1(folder)
    trained = [name for name in methods if not name.startswith("ntk_")]
    kernels = [name for name in methods if name.startswith("ntk_")]
    groups = [(names, title) for names, title in
              ((trained, "trained"), (kernels, "infinite width, exact")) if names]
    targets = next(iter(methods.values()))["target"]
    span = targets.max() - targets.min()
    limits = targets.min() - 0.5 * span, targets.max() + 0.5 * span
    figure = plt.figure(figsize=(7.0, 1.35 * len(groups) + 4.4))
    outer = figure.add_gridspec(2, 1, height_ratios=[1.35 * len(groups), 4.0], hspace=0.22,
                                left=0.075, right=0.99, top=0.965, bottom=0.115)
    bars = outer[0].subgridspec(len(groups), 1, hspace=0.75)
    for (names, _), place in zip(groups, bars):
        cells = place.subgridspec(1, max(len(trained), len(kernels)), wspace=0.08)
        for column, name in enumerate(names):
            draw_histogram(figure.add_subplot(cells[column]), name, methods[name], limits)
    smooth = outer[1].subgridspec(2, len(groups), wspace=0.16, hspace=0.3)
    first = [None, None]
    for column, (names, title) in enumerate(groups):
        for row, (what, label) in enumerate(((prediction_of, "prediction"),
                                             (error_of, "absolute error"))):
            axes = figure.add_subplot(smooth[row, column], sharey=first[row] if column else None)
            first[row] = axes if column == 0 else first[row]
            draw_smooth(axes, methods, names, what)
            if row == 0:
                axes.set_title(title, pad=4)
            if column == 0:
                axes.set_ylabel(f"LOWESS of {label}")
    shown = {METHODS[name][0].replace("NTK, ", ""): METHODS[name][1] for name in methods}
    handles = [Line2D([], [], color=colour, label=label) for label, colour in shown.items()]
    handles += [Line2D([], [], color="#222222", ls="--", label="target"),
                Patch(color="#aaaaaa", alpha=0.4, label="95%, rows resampled")]
    figure.legend(handles=handles, loc="lower center", ncol=min(len(handles), 7), frameon=False,
                  handlelength=1.5, columnspacing=1.2)
    return figure
