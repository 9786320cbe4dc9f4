"""The page of a result: its feature's own, else the report for people in the order that all pages have."""

from __future__ import annotations

from dataclasses import replace

from jaccard_eval.registry import provided
from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.model import Report, Section, build_report, feature_of
from jaccard_eval.report.sections import FINDINGS, GATES, NOTES, PROVENANCE, remarks_sections

MADE = ("Inputs", "Rules")  # titles of what a page has at its end
PLACES = {GATES: 0, FINDINGS: 1, NOTES: 2, PROVENANCE: 4}  # of sections; all others stand between, as they came


def build_page(result: Reportable, options: ReportOptions) -> Report:
    """Return the report of `result` as a page has it: by the `build_page` of its feature, else that for people."""
    build = getattr(provided("features").page_of(result.reported_by), "build_page", default_page)
    report: Report = build(result, options)
    return report


def default_page(result: Reportable, options: ReportOptions) -> Report:
    """Return the report of `result` with what is broken first and its inputs last."""
    report = build_report(result, options)
    feature = feature_of(result)
    made = [section for section in report.sections if section.title in MADE]
    sections = [section for section in report.sections if section.key != FINDINGS and section not in made]
    sections += remarks_sections(getattr(result, "findings", ()))
    # What only a page has, such as images.
    sections += feature.page_sections(result, options) if hasattr(feature, "page_sections") else []
    blocks = tuple(block for section in made for block in section.blocks)
    sections.append(Section("How it was made", blocks, key=PROVENANCE))
    return replace(report, sections=tuple(sorted(sections, key=lambda section: PLACES.get(section.key, 3))))
