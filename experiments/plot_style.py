"""Colours and sizes of all pictures."""

CURVE, BAND, POINTS, HELD_OUT, SHADE = "#1f4e9c", "#9db8e6", "#d62728", "#e69f00", "#f0f0f0"
PROVED = {"color": "#444444", "ls": "--", "lw": 0.8}  # of a line
STYLE = {
    "font.size": 8, "axes.titlesize": 9, "axes.labelsize": 8, "xtick.labelsize": 7,
    "ytick.labelsize": 7, "legend.fontsize": 8, "axes.linewidth": 0.6, "lines.linewidth": 1.3,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2.5,
    "ytick.major.size": 2.5, "svg.fonttype": "none", "svg.hashsalt": "keel",
    "mathtext.fontset": "dejavusans",
}
