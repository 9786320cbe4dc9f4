"""What results do when asked: write reports, draw, become tables, show themselves in a notebook."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaccard_eval import frames
from jaccard_eval.atomic import FolderPath
from jaccard_eval.data.document import PANOPTIC, PIXELS, MetricValue
from jaccard_eval.data.protocol import COCO
from jaccard_eval.data.result import EvaluationResult, Result
from jaccard_eval.engine import Place, path_of
from jaccard_eval.errors import UsageError
from jaccard_eval.features.images import count_images
from jaccard_eval.features.images.gallery import worst_gallery
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.patterns import pattern
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.fragment import ShownImages, render
from jaccard_eval.report.outputs.figure import build_figure
from jaccard_eval.report.write import options_for, plan_outputs, write_outputs
from jaccard_eval.text import did_you_mean, quoted_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from matplotlib.figure import Figure

    from jaccard_eval.features.compare import ComparisonResult
    from jaccard_eval.features.panoptic import PanopticResult
    from jaccard_eval.features.pixels import PixelsResult


# Trackers draw a chart for each name: beyond the first number, only as many classes as the second get one.
MAX_CLASSES, WORST_CLASSES = 100, 10
# Of a class or a file's name, in characters. MLflow keeps names of 250, of which prefix, metric and two of these fit.
MAX_LABEL = 80

_NOT_IN_NAMES = pattern(r"[^A-Za-z0-9_\-. /]")  # what MLflow refuses in the name of a metric
# A slash would make a group of a class; dots and blanks at an end make paths that are others, or none.
_NOT_IN_LABELS = pattern(r"[^A-Za-z0-9_\-. ]")
_AVERAGE = pattern(r"(?P<average>AP|AR)(?P<number>\d+)?(?:_(?P<area>.+))?")


@dataclass(frozen=True, slots=True)
class _Entry:
    """One number, of a class by its row, and what stands before it in its name."""

    metric: str
    value: float
    row: int | None = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """The numbers of a result, the names of its classes, and by what the worst classes are found, lowest first."""

    entries: Sequence[_Entry]
    class_names: Sequence[str]
    rank: Sequence[float]


def log_metrics(
    result: EvaluationResult | ComparisonResult | PixelsResult | PanopticResult,
    *,
    style: str = "plain",
    prefix: str = "val/",
    classes: bool = True,
) -> dict[str, float]:
    """Return the numbers of a result as a flat dictionary, ready for an experiment tracker.

    Undefined values are omitted, because charts break at NaN. Names consist of letters, digits and ``_ - . /`` and
    blanks, which is what MLflow takes; other characters of class names become ``_``, and names that would then be
    equal are numbered: ``a_b``, ``a_b-2``.

    Parameters
    ----------
    result : EvaluationResult, ComparisonResult, PixelsResult or PanopticResult
        An evaluation gives its summary, the values of each class, and, at IoU 0.5 or the protocol's lowest, precision,
        recall, F1, counts and the score at the operating point, where a score was asked for, and the numbers of the
        errors, where these were. A comparison gives the
        values of each side under its name, and how far they are above the first side's under ``delta``.
    style : {"plain", "ultralytics", "torchmetrics", "lightning"}
        Whose names: ``AP50`` and, of a class, ``AP50/dog``; ``metrics/mAP50(B)`` as Ultralytics writes it, parentheses
        included, which MLflow refuses; ``map_50`` and ``map_50_per_class/dog``; these with ``_`` for
        ``/``, so that Lightning can write a name, with the prefix ``val_``, into that of a checkpoint. Metrics that a
        library does not have keep our names.
    prefix : str
        What every name begins with.
    classes : bool
        Whether to include the values of each class. Of more than 100 classes only the ten worst are included: the
        lowest, or those that lost most; which ones these are can change from epoch to epoch.

    Returns
    -------
    dict of str to float
        Finite values. The name of a class does not depend on which values are defined.

    Raises
    ------
    UsageError
        When the style or the kind of result is unknown.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate
    >>> gt = BoxTable.from_arrays(["a.jpg"], ["dog"], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays(["a.jpg"], ["dog"], [[0, 0, 10, 8]], score=[0.9])
    >>> logged = log_metrics(evaluate(gt, pred), style="torchmetrics")
    >>> [(name, round(logged[name], 3)) for name in ("val/map", "val/map_50", "val/map_per_class/dog")]
    [('val/map', 0.7), ('val/map_50', 1.0), ('val/map_per_class/dog', 0.7)]
    """
    if style not in STYLES:
        known = ", ".join(STYLES)
        raise UsageError(f"unknown style {quoted_value(style)}; choose from {known}.{did_you_mean(str(style), STYLES)}")
    if not isinstance(prefix, str):
        raise UsageError(f"prefix must be a str, got {type(prefix).__name__}")
    table = _table(result)
    # Only COCO's thresholds make what Ultralytics names by their range.
    by_range = not isinstance(result, EvaluationResult) or result.protocol.iou_thresholds == COCO.iou_thresholds
    name = _plain if getattr(result, "kind", None) in (PIXELS, PANOPTIC) else STYLES[style]
    separator, start = SEPARATORS.get(style, "/"), _NOT_IN_NAMES.sub("_", prefix)
    labels, kept = _labels(table.class_names, "class"), frozenset(_worst(table.rank)) if classes else frozenset()
    logged, taken = {}, set[str]()
    for entry in table.entries:
        metric = name(entry.metric, entry.row is not None, by_range)
        parts = (*entry.path, metric) if entry.row is None else (*entry.path, metric, labels[entry.row])
        # Named before anything is dropped: a class keeps its name from epoch to epoch.
        key = start + _unused(separator.join(parts), taken)
        if math.isfinite(entry.value) and (entry.row is None or entry.row in kept):
            logged[key] = float(entry.value)
    return logged


def _plain(metric: str, of_class: bool, by_range: bool) -> str:
    return _NOT_IN_NAMES.sub("_", metric)


def _ultralytics(metric: str, of_class: bool, by_range: bool) -> str:
    name, is_average = _plain(metric, of_class, by_range), _AVERAGE.fullmatch(metric) is not None
    if not is_average and metric not in ("precision", "recall"):
        return name
    # The letter is for boxes; masks have (M) and poses (P) there.
    return f"metrics/{'m' if is_average else ''}{name}{'50-95' if metric == 'AP' and by_range else ''}(B)"


def _torchmetrics(metric: str, of_class: bool, by_range: bool) -> str:
    found = _AVERAGE.fullmatch(metric)
    if found is None:
        return _plain(metric, of_class, by_range)
    parts = [f"m{found['average'].lower()}", found["number"], found["area"], "per_class" if of_class else None]
    return _plain("_".join(part for part in parts if part), of_class, by_range)


# How each names a metric.
STYLES: dict[str, Callable[[str, bool, bool], str]] = {
    "plain": _plain,
    "ultralytics": _ultralytics,
    "torchmetrics": _torchmetrics,
    "lightning": _torchmetrics,
}
SEPARATORS = {"lightning": "_"}  # between metric and class; a slash elsewhere


def _table(result: Any) -> _Table:
    """Return the numbers of a result, undefined ones included."""
    kind = getattr(result, "kind", None)
    if kind in (EvaluationResult.kind, PIXELS, PANOPTIC):
        return _measured(result)
    if kind == "comparison":
        return _compared(result)
    raise UsageError(
        f"log_metrics() cannot read {type(result).__name__}. Pass the result of evaluate, compare, pixels or panoptic."
    )


def _measured(result: EvaluationResult | PixelsResult | PanopticResult) -> _Table:
    values: list[Mapping[str, MetricValue]] = [row.values for row in result.per_class]
    entries = [_Entry(metric, value.value) for metric, value in result.metrics.items()]
    entries += [_Entry(metric, value.value, row) for row, found in enumerate(values) for metric, value in found.items()]
    if isinstance(result, EvaluationResult):
        entries += [_Entry(name, value, row) for row, found in result.further.items() for name, value in found.items()]
    # By the first metric of the table of classes: AP, or IoU.
    rank = [next((value.value for value in found.values()), math.nan) for found in values]
    return _Table(entries=entries, class_names=[row.name for row in result.per_class], rank=rank)


def _compared(result: ComparisonResult) -> _Table:
    first, *_ = result.others
    names = list(dict.fromkeys(delta.class_name for delta in first.deltas if delta.class_name is not None))
    rows: dict[str | None, int | None] = {None: None, **{name: row for row, name in enumerate(names)}}
    baseline, *sides = _labels([result.baseline.name, *(other.contender.name for other in result.others)], "side")
    entries = [_Entry(delta.metric, delta.baseline, rows[delta.class_name], (baseline,)) for delta in first.deltas]
    # By its largest loss to any side, in the first metric.
    rank = [math.nan] * len(names)
    for side, other in zip(sides, result.others, strict=True):
        for delta in other.deltas:
            row = rows[delta.class_name]
            entries.append(_Entry(delta.metric, delta.value, row, (side,)))
            entries.append(_Entry(delta.metric, delta.delta, row, (side, "delta")))
            if row is not None and delta.metric == first.deltas[0].metric:
                rank[row] = min((rank[row], delta.delta), key=_nan_last)
    return _Table(entries=entries, class_names=names, rank=rank)


def _worst(rank: Sequence[float]) -> list[int]:
    """Return the rows of the classes to show: all, or where these are too many, the lowest."""
    rows = sorted(range(len(rank)), key=lambda row: _nan_last(rank[row]))
    return rows if len(rows) <= MAX_CLASSES else rows[:WORST_CLASSES]


def _nan_last(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _labels(names: Sequence[str], kind: str) -> list[str]:
    """Return names without characters that trackers refuse, all different; those that need no change keep theirs."""
    cleaned = [_NOT_IN_LABELS.sub("_", name).strip(" .")[:MAX_LABEL] for name in names]
    # Of a name in another script nothing is left that could be read.
    cleaned = [text if re.search("[A-Za-z0-9]", text) else f"{kind}-{row}" for row, text in enumerate(cleaned)]
    taken: set[str] = set()
    labels = dict.fromkeys(range(len(names)), "")
    for row in sorted(labels, key=lambda row: cleaned[row] != names[row]):
        labels[row] = _unused(cleaned[row], taken)
    return list(labels.values())


def _unused(name: str, taken: set[str]) -> str:
    """Return a name, numbered where it is taken, and take it."""
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    unused = name if name not in taken else next(text for text in numbered if text not in taken)
    taken.add(unused)
    return unused


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
        written.append((output, reporter.render(whole, options_for(output, ReportOptions()))))
    write_outputs(written)


def with_parts(result: Result, *, errors: bool = False, images: bool = False) -> Result:
    """Return a result with the analyses that a report has without being asked: those that are there stay."""
    if not isinstance(result, EvaluationResult) or not isinstance(result.measured, DetectionMetrics):
        return result
    metrics, score, whole = result.measured, result.options.get("score"), result
    if errors and result.part("errors") is None and result.boxes is not None:
        whole = whole.with_part(metrics.errors_at(metrics.protocol.judged_threshold))
    if images and result.part("worst_images") is None:
        whole = whole.with_part(count_images(metrics, score, LISTED_IMAGES))
    return whole


def found_now(result: EvaluationResult, kind: str) -> Any:
    """Return an analysis that nobody had asked for; None where the result cannot be asked any more."""
    whole = with_parts(result, errors=kind == "errors", images=kind == "worst_images")
    return whole.part(kind) if isinstance(whole, EvaluationResult) else None


def to_frame(result: Result) -> pd.DataFrame:
    """Return the rows of a result as a table."""
    return frames.to_frame(result)


def plot(result: Result) -> Figure:
    """Return the charts of a result as a figure."""
    return build_figure(with_parts(result, errors=True))


def to_html(result: Result) -> str:
    """Return the report of a result as a piece of HTML, that of an evaluation with its classes."""
    return render(result, ReportOptions(is_file=False, per_class=isinstance(result, EvaluationResult)))


def show_images(result: EvaluationResult, class_: str | None, n: int) -> ShownImages:
    """Return the worst images of a result, of one class or of all, as a cell of a notebook shows them."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise UsageError(f"n must be a whole number of at least 1, got {quoted_value(n)}")
    if not isinstance(class_, str | None):
        raise UsageError(f"class_ must be the name of a class, got {quoted_value(class_)}")
    return ShownImages(worst_gallery(result, class_, n), class_)


def _sources(result: Result) -> Iterator[str]:
    """Yield the paths that a result was read from."""
    for name in ("gt", "pred", "baseline", "path"):
        source = getattr(result, name, None)
        path = getattr(source, "path", source)
        if isinstance(path, str):
            yield path
    for other in getattr(result, "others", ()):
        yield other.contender.path
