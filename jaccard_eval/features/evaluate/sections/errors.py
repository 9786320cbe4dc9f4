"""What each type of error costs."""

from __future__ import annotations

import math
from dataclasses import replace

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Chart, Column, Drawn, Section, Table

PLACE = 80
LEAST = 0.01  # gain that a bar ends at, so that next to nothing looks like that


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section; none without an analysis of errors."""
    if result.errors is None:
        return []
    from jaccard_eval.features.errors.report import types_section

    section = types_section(result.errors, overlap_name(result.protocol))
    # Bars in the table show what the chart of a figure does.
    blocks = [_with_bars(block) if isinstance(block, Table) else block for block in section.blocks]
    return [Section("What errors cost", tuple(block for block in blocks if not isinstance(block, Chart)), key="errors")]


def _with_bars(table: Table) -> Table:
    gains = [float(str(row[-1])) for row in table.rows]
    top = max([LEAST, *(gain for gain in gains if not math.isnan(gain))])
    low = min([0.0, *(gain for gain in gains if not math.isnan(gain))])
    rows = tuple((*row, Drawn(gain, ends=(low, top))) for row, gain in zip(table.rows, gains, strict=True))
    return replace(table, columns=(*table.columns, Column("", "drawn")), rows=rows)
