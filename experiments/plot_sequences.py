"""What `keel reproduce fig7` and `prenorm` wrote: drawn by plot.py."""

import os

import matplotlib.pyplot as plt
import numpy
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plot_grid import data_grid, row_limits
from plot_input import from_summary, rows_of
from plot_style import BAND, CURVE, POINTS, SHADE

CONTINUED = [(("standard", "one_step"), "Standard, one step"),
             (("ln_embedding", "one_step"), "LN, one step"),
             (("standard", "rollout"), "Standard, rollout"),
             (("ln_embedding", "rollout"), "LN, rollout")]
PRENORM = {"ln_blocks": "LN within the blocks", "ln_blocks_last": "and one behind them",
           "rms_blocks_last": "RMSNorm in their places"}


def line_formula(a, b):
    """"$x_i=1-i/2$" of a = 1 and b = -1/2."""
    size = {0.5: "i/2", 1: "i"}.get(abs(b), f"{abs(b):g}i")
    return f"$x_i={f'{a:g}' if a else ''}{'-' if b < 0 else '+' if a else ''}{size}$"


def draw_sequences(_, folder):
    """Figure 7: sequences continued by transformers, one value at a time and by themselves."""
    sequences, trained_to, seeds = from_summary(folder, lambda summary: (
        {s["name"]: (s["a"], s["b"]) for s in summary["sequences"]}, summary["trained_to"],
        summary["seeds"]))
    numbers = ["i", "true", "mean", "ci_low", "ci_high"]
    curves = {}
    for row in rows_of(os.path.join(folder, "curves.csv"),
                       ["sequence", "net", "continuation", *numbers]):
        curve = curves.setdefault((row["sequence"], row["net"], row["continuation"]),
                                  {name: [] for name in numbers})
        for name in numbers:
            curve[name].append(float(row[name]))
    figure, grid = data_grid([title for _, title in CONTINUED],
                             {name: line_formula(*line) for name, line in sequences.items()},
                             "$i$")
    for row, name in zip(grid, sequences):
        limits = row_limits(curves[name, *CONTINUED[0][0]]["true"], reach=1)
        for axes, (key, _) in zip(row, CONTINUED):
            curve = curves[name, *key]
            first, last, end = curve["i"][0] - 1, curve["i"][-1], curve["mean"][-1]
            axes.axvspan(first, trained_to, color=SHADE, lw=0, zorder=0)
            axes.plot(curve["i"], curve["true"], color=POINTS, ls="--", lw=0.9, zorder=4)
            axes.fill_between(curve["i"], curve["ci_low"], curve["ci_high"], color=BAND, lw=0,
                              zorder=2)
            axes.plot(curve["i"], curve["mean"], color=CURVE, zorder=3)
            axes.set_xlim(first, last)
            axes.set_xticks([30, 60, 90])
            if not limits[0] < end < limits[1]:
                axes.text(0.97, 0.05, f"ends at {float(f'{end:.2g}'):,.0f}", ha="right",
                          va="bottom", transform=axes.transAxes, fontsize=7, color="#444444",
                          zorder=5)
        row[0].set_ylim(*limits)
    figure.subplots_adjust(left=0.1)  # for numbers of three digits and a sign
    mean = "prediction of 1 seed" if seeds == 1 else f"mean of {seeds} seeds"
    figure.legend(handles=[Line2D([], [], color=CURVE, label=mean),
                           Patch(color=BAND, label="95% interval of the mean"),
                           Line2D([], [], color=POINTS, ls="--", lw=0.9, label="the sequence"),
                           Patch(color=SHADE, label="trained on")],
                  loc="lower center", ncol=4, frameon=False, handlelength=1.6, columnspacing=1.8)
    return figure


def draw_growth(_, folder):
    """How large predictions get as a sequence gets steeper, and what is proved of them."""
    bounds, wanted_at, names = from_summary(folder, lambda summary: (
        {net["net"]: net["bound_by_seed"] for net in summary["nets"]}, summary["trained_to"],
        [f"seed_{summary['first_seed'] + s}" for s in range(summary["seeds"])]))
    rows = rows_of(os.path.join(folder, "far.csv"), ["net", "slope", *names])
    figure, grid = plt.subplots(1, len(PRENORM), figsize=(7.0, 2.7), sharex=True, sharey=True)
    for axes, (net, title) in zip(grid, PRENORM.items()):
        slopes = [float(row["slope"]) for row in rows if row["net"] == net]
        axes.plot(slopes, [wanted_at * slope for slope in slopes], color=POINTS, ls="--", lw=0.9)
        for name in names:
            axes.plot(slopes, [float(row[name]) for row in rows if row["net"] == net], color=CURVE,
                      lw=0.8)
        for bound in bounds[net] or []:
            axes.axhline(bound, color="#444444", ls=":", lw=0.8)
        axes.set(title=title, xscale="log", yscale="log", xlim=(slopes[0], slopes[-1]),
                 xticks=[10, 100, 1000])
        said = (f"proved: at most {numpy.ceil(max(bounds[net])):,.0f}" if bounds[net] else
                "nothing is proved")
        axes.text(0.04, 0.94, said, va="top", transform=axes.transAxes, fontsize=7, color="#444444")
        axes.set_xlabel("slope $b$ of $x_i=bi$", labelpad=1)
    grid[0].set_ylabel("$|f|$, larger of $b$ and $-b$")
    figure.legend(handles=[Line2D([], [], color=CURVE, lw=0.8, label="a net"),
                           Line2D([], [], color="#444444", ls=":", lw=0.8, label="proved of it"),
                           Line2D([], [], color=POINTS, ls="--", lw=0.9, label="the sequence")],
                  loc="lower center", ncol=3, frameon=False, handlelength=1.6, columnspacing=1.8)
    figure.subplots_adjust(left=0.08, right=0.985, top=0.91, bottom=0.27, wspace=0.08)
    return figure
