"""The picture of a result as PNG or SVG: the same bytes for the same result; needs matplotlib."""

from __future__ import annotations

import io
import warnings

from jaccard_eval.errors import require
from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.model import draw

MODULES = ("matplotlib",)
EXTRA = "report"
PIXELS_PER_INCH = 150  # of PNG
_STYLE = {
    "svg.hashsalt": "jaccard-eval",  # ids of SVG elements are random without it
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_UNDATED = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}


def render_figure(result: Reportable, file_format: str) -> bytes:
    """Return the picture of a result as "svg" or "png".

    Raises
    ------
    UsageError
        When there is no picture of results of this kind.
    MachineError
        When matplotlib is not installed.
    """
    matplotlib = require("matplotlib", extra=EXTRA)
    figures = require("matplotlib.figure", extra=EXTRA)
    file = io.BytesIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        # It is drawn as a box, and names vary; matplotlib 3.8 says "current font".
        warnings.filterwarnings("ignore", "Glyph .* missing from (current )?font")
        matplotlib.rcdefaults()  # a user's matplotlibrc changes no picture
        matplotlib.rcParams.update(_STYLE)
        figure = figures.Figure(layout="constrained")
        draw(figure, result)
        figure.savefig(file, format=file_format, dpi=PIXELS_PER_INCH, metadata=_UNDATED[file_format])
    return file.getvalue()


SUFFIXES = (".png",)
REQUIRES = MODULES
ERRORS = True


def render(result: Reportable, options: ReportOptions) -> bytes:
    """Return the picture; `options` change nothing, for it shows every size."""
    return render_figure(result, "png")
