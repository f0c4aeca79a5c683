"""What `keel forecast` wrote: drawn by plot.py."""

import os
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plot_input import from_summary, rows_of
from plot_style import BAND, CURVE, HELD_OUT, POINTS, SHADE

PANELS = "one_step", "rollout"


def load(folder):
    """The series; and by kind of prediction its rows, means, and deviations over seeds."""
    series = [float(row["value"]) for row in rows_of(os.path.join(folder, "series.csv"), ["value"])]
    kinds = {kind: ([], [], []) for kind in (*PANELS, "forecast")}
    for row in rows_of(os.path.join(folder, "forecast.csv"), ["row", "kind", "prediction"]):
        rows, means, deviations = kinds[row["kind"]]
        rows.append(int(row["row"]))
        means.append(float(row["prediction"]))
        deviations.append(float(row.get("std") or 0))
    return series, kinds


def draw(axes, rows, means, deviations):
    low = [mean - deviation for mean, deviation in zip(means, deviations)]
    high = [mean + deviation for mean, deviation in zip(means, deviations)]
    axes.fill_between(rows, low, high, color=BAND, lw=0, zorder=2)
    axes.plot(rows, means, color=CURVE, marker="." if len(rows) == 1 else None, zorder=3)


def outward(value, side):
    """Five digits as the command's table has them: rounded down where `side` is -1, up where it is 1."""
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - 4)
    return f"{float(exact.quantize(unit, ROUND_FLOOR if side < 0 else ROUND_CEILING)):,.5g}"


def proved_text(interval):
    if interval is None:
        return "nothing is proved:\nno norm that nothing passes by"
    return f"proved: never outside\n[{outward(interval[0], -1)}, {outward(interval[1], 1)}]"


def outside_text(means, limits):
    """How many of the predictions the panel does not show; none where it shows them all."""
    outside = sum(not limits[0] <= mean <= limits[1] for mean in means)
    return f"{outside} of {len(means)} predictions are\noutside this picture" if outside else ""


def draw_forecast(_, folder):
    """A panel of what was held out one step ahead, and one of it and what follows by rollout."""
    trained, seeds, target, interval, known = from_summary(folder, lambda summary: (
        summary["rows"] - summary["held_out_rows"], len(summary["seeds"]), summary["target"],
        summary["interval"], "gone on from" if "weights" in summary else "trained on"))
    series, kinds = load(folder)
    end = len(series) + len(kinds["forecast"][0])
    begin = max(0, trained - 2 * (end - trained) - 1)
    panels = [kind for kind in PANELS if kinds[kind][0] or kind == "rollout"]
    titles = {"one_step": "one step ahead", "rollout": f"by rollout, from row {trained}"}
    if trained < len(series) < end:
        titles["rollout"] += f" and from row {len(series)}"
    figure, grid = plt.subplots(1, len(panels), figsize=(7.0, 2.6), sharey=True, squeeze=False)
    shown = series[begin:]
    reach = 0.6 * (max(shown) - min(shown)) or 1
    for axes, kind in zip(grid[0], panels):
        axes.axvspan(begin, trained - 0.5, color=SHADE, lw=0, zorder=0)
        axes.plot(range(begin, trained), series[begin:trained], color=POINTS, lw=0.9, zorder=4)
        # From the row before, so that the line does not break.
        axes.plot(range(trained - 1, len(series)), series[trained - 1:], color=HELD_OUT, lw=0.9, zorder=4)
        draw(axes, *kinds[kind])
        if kind == "rollout":
            draw(axes, *kinds["forecast"])
        axes.set_title(titles[kind], pad=4)
        axes.set_xlim(begin, end - 1)
        axes.set_xlabel("row", labelpad=1)
    limits = min(shown) - reach, max(shown) + reach
    grid[0, 0].set_ylim(limits)
    for axes, kind in zip(grid[0], panels):
        means = kinds[kind][1] + (kinds["forecast"][1] if kind == "rollout" else [])
        axes.text(0.03, 0.04, outside_text(means, limits), va="bottom", transform=axes.transAxes,
                  fontsize=7, color="#444444", zorder=5)
    grid[0, 0].set_ylabel(target)
    grid[0, -1].text(0.03, 0.95, proved_text(interval), ha="left", va="top",
                     transform=grid[0, -1].transAxes, fontsize=7, color="#444444", zorder=5)
    figure.subplots_adjust(left=0.09, right=0.99, top=0.92, bottom=0.255, wspace=0.06)
    mean = "prediction of 1 seed" if seeds == 1 else f"mean of {seeds} seeds"
    handles = [Line2D([], [], color=CURVE, label=mean)]
    if seeds > 1:
        handles.append(Patch(color=BAND, label="± their standard deviation"))
    handles.append(Line2D([], [], color=POINTS, lw=0.9, label="the series"))
    if trained < len(series):
        handles.append(Line2D([], [], color=HELD_OUT, lw=0.9, label="held out"))
    handles.append(Patch(color=SHADE, label=known))
    figure.legend(handles=handles, loc="lower center", ncol=len(handles), frameon=False, handlelength=1.6,
                  columnspacing=1.8)
    return figure
