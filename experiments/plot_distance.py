"""How far a net can go within a distance: plot.py's `distance`."""

import os

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from plot_input import from_summary, rows_of
from plot_style import BAND, CURVE, SHADE

TITLES = {"standard": "Standard", "ln_first": "LN first", "ln_second": "LN second",
          "tanh": "tanh, no LN"}
ENDS = ["proved_low", "proved_high", "found_low", "found_high"]
LINEAR = 1  # |f| up to which the axis is linear, and logarithmic beyond


def draw_distance(_, folder):
    """A panel a net: what is proved of f for |x| <= R, and what was found, over R."""
    farthest_row, rows = from_summary(folder, lambda summary: (summary["farthest_row"],
                                                               summary["train_rows"]))
    curves = {}
    for row in rows_of(os.path.join(folder, "curves.csv"), ["net", "seed", "within", *ENDS]):
        curve = curves.setdefault((row["net"], row["seed"]), {name: [] for name in ["within", *ENDS]})
        for name, values in curve.items():
            values.append(float(row[name]))
    figure, grid = plt.subplots(1, len(TITLES), figsize=(7.0, 2.5), sharex=True, sharey=True)
    for axes, (net, title) in zip(grid, TITLES.items()):
        axes.set_title(title)
        of_net = [curve for (name, _), curve in curves.items() if name == net]
        for curve in of_net:
            axes.fill_between(curve["within"], curve["proved_low"], curve["proved_high"], color=BAND,
                              lw=0, zorder=2, alpha=1 if len(of_net) == 1 else 0.5)
            for end in ENDS[2:]:
                axes.plot(curve["within"], curve[end], color=CURVE, zorder=3)
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=LINEAR)
        axes.set_xlabel("$R$")
        axes.axvspan(min(of_net[0]["within"]), farthest_row, color=SHADE, lw=0, zorder=0)
        axes.set_xlim(min(of_net[0]["within"]), max(of_net[0]["within"]))
    grid[0].set_ylabel(r"$f(x)$ where $|x|\leq R$")
    figure.legend(handles=[Patch(color=BAND, label="proved: never outside"),
                           Line2D([], [], color=CURVE, label="least and largest found"),
                           Patch(color=SHADE, label=f"as far as the {rows} training rows")],
                  loc="lower center", ncol=3, frameon=False, handlelength=1.6, columnspacing=1.8)
    figure.subplots_adjust(left=0.075, right=0.985, top=0.9, bottom=0.3, wspace=0.1)
    return figure
