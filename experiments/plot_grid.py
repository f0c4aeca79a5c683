"""A grid of panels: a row a data set, a column a net."""

import matplotlib.pyplot as plt


def row_limits(y, ends=(), reach=1.5):
    """One scale for a row: the data's range and `reach` ranges more on both sides, and `ends` with
    some room. Wide enough for the nets that saturate; a net that does not is seen to leave."""
    length = max(y) - min(y)
    return (min([min(y) - reach * length, *(end - 0.2 * length for end in ends)]),
            max([max(y) + reach * length, *(end + 0.2 * length for end in ends)]))


def data_grid(titles, rows, x_name="$x$"):
    """A row a data set (a name and its formula), a column a net: the figure and its axes."""
    width = max(7.0, 1.75 * len(titles))
    figure, grid = plt.subplots(len(rows), len(titles), figsize=(width, 4.9), sharex=True,
                                sharey="row", squeeze=False)
    for row, (name, formula) in zip(grid, rows.items()):
        row[0].set_ylabel(f"{name}, {formula}")
    for axes, title in zip(grid[0], titles):
        axes.set_title(title, pad=4)
    for axes in grid[-1]:
        axes.set_xlabel(x_name, labelpad=1)
    figure.align_ylabels(grid[:, 0])
    figure.subplots_adjust(left=0.525 / width, right=1 - 0.07 / width, top=0.95, bottom=0.125,
                           wspace=0.08, hspace=0.1)
    return figure, grid
