"""What results do when they are asked to: write reports, draw, become tables and show themselves in a notebook.

Results lie below all that writes and draws; the package provides this module to them (`registry`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from jaccard_eval.atomic import FolderPath
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.result_base import Result
from jaccard_eval.engine import Place, path_of
from jaccard_eval.errors import UsageError
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.write import plan_outputs, write_outputs
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from matplotlib.figure import Figure

LISTED_IMAGES = 10  # by files that hold a table of all images, where no other number was given


def save(result: Result, path: str | os.PathLike[str]) -> None:
    """Write a report of a result, with the bytes that the command line writes for the same call."""
    # A slash at the end means a folder of pages, as on the command line.
    named = path_of(path)
    if str(path).endswith(("/", os.sep)) and not isinstance(named, Place):
        named = FolderPath(path)
    outputs = plan_outputs([named], folders=isinstance(result, EvaluationResult))
    target = Path(os.path.realpath(outputs[0].target))
    for source in _sources(result):
        origin = Path(os.path.realpath(path_of(source)))
        if target.exists() and (target == origin or (origin.is_dir() and origin in target.parents)):
            raise UsageError(
                f"{quoted_value(str(path))} would overwrite the input {quoted_value(source)}; choose another path"
            )
    written = []
    for output in outputs:
        reporter = output.reporter
        whole = with_parts(result, errors=reporter.errors, images=reporter.images)
        written.append((output, reporter.render(whole, ReportOptions())))
    write_outputs(written)


def with_parts(result: Result, *, errors: bool = False, images: bool = False) -> Result:
    """Return a result with the analyses that a report has without being asked: those that are there stay."""
    if not isinstance(result, EvaluationResult) or not isinstance(result.measured, DetectionMetrics):
        return result
    metrics, score, whole = result.measured, result.options.get("score"), result
    if errors and result.errors is None and result.boxes is not None:
        whole = whole.with_part(metrics.errors_at(metrics.protocol.judged_threshold))
    if images and result.worst_images is None:
        from jaccard_eval.features.images.compute import count_images

        whole = whole.with_part(count_images(metrics, score, LISTED_IMAGES))
    return whole


def to_frame(result: Result) -> pd.DataFrame:
    """Return the rows of a result as a table."""
    from jaccard_eval import frames

    return frames.to_frame(result)


def plot(result: Result) -> Figure:
    """Return the charts of a result as a figure."""
    from jaccard_eval.report.outputs.figure import build_figure

    return build_figure(with_parts(result, errors=True))


def to_html(result: Result) -> str:
    """Return the report of a result as a piece of HTML."""
    from jaccard_eval.report.fragment import render

    return render(result, ReportOptions(is_file=False))


def _sources(result: Result) -> Iterator[str]:
    """Yield the paths that a result was read from."""
    for name in ("gt", "pred", "baseline", "path"):
        source = getattr(result, name, None)
        path = getattr(source, "path", source)
        if isinstance(path, str):
            yield path
    for other in getattr(result, "others", ()):
        yield other.contender.path
