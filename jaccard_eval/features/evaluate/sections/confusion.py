"""Which classes are predicted as which."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.errors.result import BACKGROUND
from jaccard_eval.features.operating.page import most_confused
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Axis, Chart, Note, Section, Series

PLACE = 90


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section; none where confusions were not counted."""
    matrix = result.confusion
    if matrix is None:
        return []
    shown = most_confused(matrix.counts)
    places = [*shown.tolist(), len(matrix.names)]
    names = [*(matrix.names[k] for k in shown.tolist()), BACKGROUND]
    counts = matrix.counts[np.ix_(places, places)]
    rows = tuple(Series(name, row.tolist(), key=str(k)) for name, row, k in zip(names, counts, places, strict=True))
    chart = Chart("matrix", "Confusion", rows, x=Axis("predictions", names=tuple(names)), y=Axis("ground truth"))
    text = "Rows are ground truth, columns are predictions, matched whatever their classes"
    if len(shown) < len(matrix.names):
        text += f"; the {len(shown)} classes of {len(matrix.names):,} that are confused most"
    return [Section("Confusion", (chart, Note(f"{text}.")), key="confusion")]
