"""The page of a suite: how models stand, and a heat map of sets and models whose cells lead to their pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jaccard_eval.features.suite import SuiteResult, is_plain
from jaccard_eval.features.suite.report import SETS, build_charts, build_report
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Block, Live, Report
from jaccard_eval.report.outputs.html import linked_pages


def build_page(result: SuiteResult, options: ReportOptions) -> Report:
    """Return the report with all sets as a heat map, and means as bars."""
    report = build_report(result, replace(options, verbose=True))
    places = {(cell.model, cell.set_name): cell.place for cell in reversed(result.cells) if is_plain(cell)}
    links = [[places.get((model, name), "") for model in result.models] for name in result.sets]
    known = [value for model in result.models for value in result.values(model).values() if not math.isnan(value)]
    added: dict[str, Sequence[Block]] = {
        "models": build_charts(result),
        SETS: [Live("sets", (links, min(known, default=0.0), max(known, default=0.0)))],
    }
    sections = (replace(section, blocks=(*section.blocks, *added.get(section.key, ()))) for section in report.sections)
    return replace(report, sections=tuple(sections))


def build_folder(result: SuiteResult, options: ReportOptions) -> Mapping[str, bytes]:
    """Return the page of the suite, and one for each pair, which the heat map leads to."""
    return linked_pages(result, "cells", options)
