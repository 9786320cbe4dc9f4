"""The charts of a report as one figure, PNG, SVG or PDF: the same bytes for the same result; needs matplotlib.

What a chart shows is decided by the feature; here is how it looks.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jaccard_eval.errors import UsageError, require
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import Chart, Series, build_charts
from jaccard_eval.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIBRARY = "matplotlib"
PIXELS_PER_INCH = 150  # of PNG
NOTEBOOK_PIXELS_PER_INCH = 80  # of a figure in a cell
PANEL = 5.5, 4.25  # inches
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#999999", "#D55E00")  # apart for all sight (Okabe and Ito)
GUIDE = "#999999"
FAINT = "#cccccc"
SHADES = (0.35, 0.95)  # opacity of the first and the last series of a group
LINES = {
    "guide": ":",
    "dashes": "--",
    "steps": "-",
    "curve": "-",
    "points": "o",
    "line": "o-",
    "scatter": "o",
}  # by look or kind
LEGEND_COLUMNS = 3
FEW_NAMES = 30  # up to this many, the names of a matrix are written
NAMES_HEIGHT = 160  # points that the names of a matrix share
FEW_NUMBERS = 13  # and the counts in its cells
MAX_NAME = 20  # characters of a name at the matrix
DARK = 0.5  # share of a row from which a cell is dark, and its number white
_STYLE: dict[str, Any] = {
    "svg.hashsalt": "jaccard-eval",  # ids of SVG elements are random without it
    "svg.fonttype": "none",  # text stays text, to be found and read aloud
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_COMMANDS = {
    "comparison": "compare",
    "explanation": "explain",
    "inspection": "inspect",
    "suppression": "nms",
    "verification": "verify",
}
_UNDATED = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def render(result: Reportable, options: ReportOptions, file_format: str) -> bytes:
    """Return the figure of a result as "svg", "png" or "pdf"; `options` change nothing."""
    charts = build_charts(result)
    if not charts and result.kind == "evaluation":
        raise UsageError("the figure of an evaluation shows its curves, and there is no ground truth that counts")
    if not charts:
        command = _COMMANDS.get(result.kind, result.kind)
        raise UsageError(f"{command} cannot write images. Supported: .txt .md .json .csv .html")
    file = io.BytesIO()
    with _own_style():
        _drawn(charts).savefig(file, format=file_format, dpi=PIXELS_PER_INCH, metadata=_UNDATED[file_format])
    return file.getvalue()


def build_figure(result: Reportable) -> Figure:
    """Return the figure of a result, for a program to show or change."""
    charts = build_charts(result)
    if not charts:
        raise UsageError(f"{_COMMANDS.get(result.kind, result.kind)} has no charts to draw")
    with _own_style():
        return _drawn(charts)


@contextlib.contextmanager
def _own_style() -> Iterator[None]:
    matplotlib = require(LIBRARY, extra="plot")
    with matplotlib.rc_context(), warnings.catch_warnings():
        # It is drawn as a box, and names vary; matplotlib 3.8 has "current font".
        warnings.filterwarnings("ignore", "Glyph .* missing from (current )?font")
        matplotlib.rcdefaults()  # a user's matplotlibrc changes no figure
        matplotlib.rcParams.update(_STYLE)
        yield


def _drawn(charts: Sequence[Chart]) -> Figure:
    figure: Figure = require(f"{LIBRARY}.figure", extra="plot").Figure(layout="constrained")
    draw(figure, charts)
    # A notebook shows figures that pyplot made; this one shows itself, without a change to the backend of the user.
    # On the object, not in a class of ours: figures are pickled, and classes that need matplotlib cannot be imported.
    vars(figure)["_repr_png_"] = partial(_png_of, figure)
    return figure


def _png_of(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=NOTEBOOK_PIXELS_PER_INCH)
    return file.getvalue()


def draw(figure: Figure, charts: Sequence[Chart]) -> None:
    """Draw charts side by side on an empty figure, in as many rows as there are columns or one less."""
    n_columns = math.ceil(math.sqrt(len(charts)))
    n_rows = math.ceil(len(charts) / n_columns)
    figure.set_size_inches(PANEL[0] * n_columns, PANEL[1] * n_rows)
    for place, chart in enumerate(charts, start=1):
        axes = figure.add_subplot(n_rows, n_columns, place)
        if chart.kind == "matrix":
            _draw_matrix(axes, chart)
        else:
            _draw_series(axes, chart)
        axes.set(title=_plain(chart.title), xlabel=_plain(chart.x.title), ylabel=_plain(chart.y.title))


def _draw_series(axes: Axes, chart: Chart) -> None:
    groups: dict[str | None, list[Series]] = {}
    for series in chart.series:
        if series.look != "faint":
            groups.setdefault(None if series.look == "guide" else series.group or series.name, []).append(series)
    colours = dict(zip((group for group in groups if group is not None), itertools.cycle(COLOURS), strict=False))
    base: list[float] = []
    for series in chart.series:
        if series.look == "faint":  # one of many classes: what they have in common is shown, not which is which
            axes.plot(list(series.x), list(series.y), color=FAINT, linewidth=0.7, zorder=1)
            continue
        group = None if series.look == "guide" else series.group or series.name
        look: dict[str, Any] = {"color": GUIDE if group is None else colours[group]}
        if len(groups[group]) > 1:
            faint, full = SHADES
            look["alpha"] = faint + (full - faint) * groups[group].index(series) / (len(groups[group]) - 1)
        look |= {"label": _plain(series.name)} if series.name else {}
        places, values = list(series.x) or list(range(len(series.y))), list(series.y)
        if series.look or chart.kind != "bar":
            style = "steps-pre" if series.look == "steps" else "default"
            axes.plot(places, values, LINES.get(series.look) or LINES[chart.kind], drawstyle=style, **look)
            continue
        lengths = [0.0 if math.isnan(value) else float(value) for value in values]
        base = base or [0.0] * len(lengths)
        # Bars leave a gap to their neighbours, which are one step away.
        thickness = 0.8 * (places[1] - places[0]) if len(places) > 1 else 0.8
        if chart.y.names:
            axes.barh(places, lengths, thickness, left=base, **look)
        else:
            axes.bar(places, lengths, thickness, bottom=base, **look)
        base = [low + length for low, length in zip(base, lengths, strict=True)]
    _label_axes(axes, chart)


def _label_axes(axes: Axes, chart: Chart) -> None:
    if chart.x.names:
        axes.set_xticks(range(len(chart.x.names)), [_plain(name) for name in chart.x.names])
    if chart.y.names:
        axes.set_yticks(range(len(chart.y.names)), [_plain(name) for name in chart.y.names])
        axes.invert_yaxis()  # the first name stands on top
    if chart.x.ends:
        axes.set_xlim(*chart.x.ends)
    if chart.y.ends:
        axes.set_ylim(*chart.y.ends)
    if axes.get_legend_handles_labels()[0]:
        # Below the panel, where it hides nothing.
        place = (0.5, -0.2 if chart.x.names else -0.15)
        axes.legend(loc="upper center", bbox_to_anchor=place, ncols=LEGEND_COLUMNS, fontsize="small")


def _draw_matrix(axes: Axes, chart: Chart) -> None:
    counts = [list(series.y) for series in chart.series]
    shares = [[count / max(sum(row), 1) for count in row] for row in counts]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    if len(counts) <= FEW_NAMES:
        axes.set_xticks(range(len(counts)), [_plain(name, MAX_NAME) for name in chart.x.names], rotation=90)
        axes.set_yticks(range(len(counts)), [_plain(series.name, MAX_NAME) for series in chart.series])
        # Rows of a panel share its height.
        axes.tick_params(labelsize=min(_STYLE["font.size"], NAMES_HEIGHT / max(len(counts), 1)))
    if len(counts) <= FEW_NUMBERS:
        for i, row in enumerate(counts):
            for j, count in enumerate(row):
                colour = "white" if shares[i][j] > DARK else "black"
                axes.text(j, i, f"{count:,}", ha="center", va="center", color=colour, fontsize="small")


def _plain(name: str, longest: int = 200) -> str:
    """Return a name as text and nothing else: a dollar sign starts a formula in matplotlib."""
    text = printable(name)
    return (text if len(text) <= longest else f"{text[: longest - 1]}…").replace("$", r"\$")


# Literals: the help reads them without importing this.
REPORTERS = (
    Reporter(
        suffixes=(".png",),
        about="figure, if there are charts",
        render=partial(render, file_format="png"),
        requires=(LIBRARY,),
        errors=True,
    ),
    Reporter(
        suffixes=(".svg",),
        about="figure, if there are charts",
        render=partial(render, file_format="svg"),
        requires=(LIBRARY,),
        errors=True,
    ),
    Reporter(
        suffixes=(".pdf",),
        about="figure, if there are charts",
        render=partial(render, file_format="pdf"),
        requires=(LIBRARY,),
        errors=True,
    ),
)
