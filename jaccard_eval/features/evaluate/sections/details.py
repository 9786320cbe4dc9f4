"""What few readers open: slices, operating points, errors by class, oLRP, calibration."""

from __future__ import annotations

from dataclasses import replace

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.features.bootstrap.report import slices_section
from jaccard_eval.features.evaluate.report import operating_points_section
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Section

PLACE = 110


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the sections that there is something for, slices open and the others folded."""
    found = [replace(slices_section(result.slices), key="slices")] if result.slices else []
    folded = []
    if result.operating_points:
        measure = overlap_name(result.protocol)
        folded.append(replace(operating_points_section(result.operating_points, measure, per_class=True), key="points"))
    if result.errors is not None:
        from jaccard_eval.features.errors.report import detail_sections

        folded += [replace(section, key=key) for key, section in detail_sections(result.errors).items()]
    return [*found, *(replace(section, folded=True) for section in folded)]
