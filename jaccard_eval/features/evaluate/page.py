"""The page of an evaluation: its sections are found by listing the folder `sections`, each by its place on the page."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from types import ModuleType

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.evaluate import sections
from jaccard_eval.features.evaluate.report import headline, rules_title
from jaccard_eval.features.operating.page import with_steps
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Report, Section


def build_page(result: EvaluationResult, options: ReportOptions) -> Report:
    """Return the report of `result` as a page has it."""
    # Counted once for all sections that depend on the score.
    result = with_steps(result)
    found: list[Section] = []
    for module in section_modules():
        found += module.build_sections(result, options)
    return Report(rules_title(result), tuple(found), result.signature, headline=headline(result))


def section_modules() -> Sequence[ModuleType]:
    """Return the modules of sections by their places: each has a `PLACE` and a function `build_sections`."""
    names = [f"{sections.__name__}.{info.name}" for info in pkgutil.iter_modules(sections.__path__)]
    return sorted(map(importlib.import_module, names), key=lambda module: module.PLACE)
