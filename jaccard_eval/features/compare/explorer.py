"""What a folder of all images has of a comparison: both models, side by side."""

from __future__ import annotations

from jaccard_eval.errors import UsageError
from jaccard_eval.features.compare import ComparisonResult
from jaccard_eval.features.compare.page import build_page, sides_of, with_names_of_files
from jaccard_eval.features.evaluate.explorer import explorer_model
from jaccard_eval.features.evaluate.page import explained_of
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Explorer


def build_explorer(result: ComparisonResult, options: ReportOptions) -> Explorer:
    """Return the images of the baseline and the contender, and the page of the comparison without any."""
    if len(result.results) != 2:
        raise UsageError(
            f"a folder of all images shows two sets of predictions with their boxes, got {len(result.results)};"
            " compare two, or write a page (.html)"
        )
    named = with_names_of_files(result)
    first, second = (side.name for side in sides_of(named))
    base, model = explorer_model(result.results[0], first)
    found, _ = explained_of(base)
    _, second_model = explorer_model(result.results[1], second, found)
    report = build_page(result, options)
    return Explorer(
        title=options.title or report.name,
        models={"a": model, "b": second_model},
        images=base.images,
        numbers=report,
    )
