"""The page of a result whose feature has none of its own: the report for people in the order that all pages have."""

from __future__ import annotations

from dataclasses import replace

from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.model import Report, Section, build_report
from jaccard_eval.report.sections import FINDINGS, GATES, NOTES, PROVENANCE, remarks_sections

PLACES = {GATES: 0, FINDINGS: 1, NOTES: 2, PROVENANCE: 4}  # of sections; all others stand between, as they came


def build_page(result: Reportable, options: ReportOptions) -> Report:
    """Return the report of `result` with what is broken first and its inputs last."""
    report = build_report(result, options)
    found = remarks_sections(getattr(result, "findings", ()))
    sections = [section for section in report.sections if section.key != FINDINGS] + found
    if not any(section.key == PROVENANCE for section in sections):
        sections.append(Section("How it was made", (), key=PROVENANCE))
    return replace(report, sections=tuple(sorted(sections, key=lambda section: PLACES.get(section.key, 3))))
