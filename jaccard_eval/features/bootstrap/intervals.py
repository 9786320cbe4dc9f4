"""Intervals for a result that is there: the groups of its images, the resamples on all processors, warnings."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np

from jaccard_eval.data.document import Interval, MetricValue, Rows
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import EvaluationResult, Resamples, SliceRow
from jaccard_eval.data.signature import quoted, with_choices
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap.compute import Resampled, Run, intervals, resample
from jaccard_eval.findings import DataError, Finding, FindingLog, Where, as_settings
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.metrics.slices import measure_slices, slice_digest, slice_refs
from jaccard_eval.options import BY_FOLDER, Bootstrap, Slice
from jaccard_eval.progress import Stage
from jaccard_eval.reading.files import read_lines
from jaccard_eval.reading.remote import path_of
from jaccard_eval.text import pluralise, quoted_value

FEW_UNITS = 30  # 95 % intervals of fewer images hold the true AP in less than 91 of 100 sets, as docs/noise.md measures
SHOWN_SLICES = 3  # of those whose intervals are doubtful

_GROUP_FIX = "Add a row image,group for every image, such as a/001.jpg,video-a."
_GROUP_ROW = "expected image,group with one group per image"


def with_intervals(result: EvaluationResult, settings: Bootstrap, *, workers: int | None = None) -> EvaluationResult:
    """Return a result whose summary and classes have intervals, by resampling its images."""
    metrics = result.measured
    if not isinstance(metrics, DetectionMetrics):
        raise UsageError("intervals need the match table, which a saved result lacks. Use the saved run (.npz)")
    return resampled(result, settings, workers=workers)


Measured = TypeVar("Measured")


def resampled(result: Measured, settings: Bootstrap, *, workers: int | None = None) -> Measured:
    """Return a result of any feature that measures images, with intervals of its summary and classes."""
    given: Any = result
    metrics = given.measured
    resamples = resample_alike([metrics], settings, run=partial(map_in_order, workers=workers))[0]
    found = intervals(resamples)
    bounded_result: Measured = given.with_part(
        resamples,
        metrics=bounded(given.metrics, None, found),
        per_class=tuple(replace(row, values=bounded(row.values, row.name, found)) for row in given.per_class),
        signature=with_choices(given.signature, resamples.choice),
        findings=(*given.findings, *remarks(resamples, metrics.image_names, given.pred.path)),
    )
    return bounded_result


def with_slices(
    result: EvaluationResult, slices: Sequence[Slice], settings: Bootstrap | None = None, *, workers: int | None = None
) -> EvaluationResult:
    """Return a result with a row for each slice, with intervals if there are settings; see `with_intervals`."""
    return sliced(result, slices, slice_refs(result.protocol), settings, workers=workers)


def sliced(
    result: Measured,
    slices: Sequence[Slice],
    refs: Sequence[MetricRef],
    settings: Bootstrap | None,
    *,
    workers: int | None = None,
) -> Measured:
    """Return a result of any feature that measures images, with some metrics of each slice."""
    given: Any = result
    rows, n_units = slice_rows(given.measured, slices, refs, settings, workers=workers)
    findings = FindingLog()
    if settings is not None:
        warn_of_few([row.name for row in rows], n_units, findings, given.pred.path)
    sliced_result: Measured = given.with_part(
        Rows("slices", rows),
        signature=with_choices(given.signature, slices_choice(slices)),
        findings=(*given.findings, *findings.findings()),
    )
    return sliced_result


def slice_rows(
    measured: Any,
    slices: Sequence[Slice],
    refs: Sequence[MetricRef],
    settings: Bootstrap | None,
    *,
    workers: int | None,
) -> tuple[tuple[SliceRow, ...], list[int]]:
    """Measure every slice, with intervals if there are settings, and return how many images or groups each draws."""
    n_units: list[int] = []

    def intervals_of(part: Any, refs: Sequence[MetricRef]) -> dict[str, Interval | None]:
        if settings is None:
            return {}
        n_units.append(count_units(part.image_names, settings))
        # One image, or one group, leaves nothing to draw: such a slice has values and no intervals.
        if n_units[-1] < 2:
            return {}
        run = partial(map_in_order, workers=workers)
        return intervals(resample_alike([part], settings, refs=refs, run=run)[0])

    return measure_slices(measured, slices, refs, intervals=intervals_of), n_units


def slices_choice(slices: Sequence[Slice]) -> str:
    """Name slices as a signature does, each with a digest of what it is made of."""
    return f"slices={','.join(f'{quoted(images.name)}[{slice_digest(images)}]' for images in slices)}"


def resample_alike(
    runs: Sequence[DetectionMetrics | Resampled],
    settings: Bootstrap,
    *,
    refs: Sequence[MetricRef] | None = None,
    run: Run = map,
) -> list[Resamples]:
    """Resample the images of all runs in the same way, or their groups; the runs have the same images, in any order.

    The summary and every class are measured, or the averages `refs` alone.
    """
    names = runs[0].image_names
    odd = sorted({name for metrics in runs for name in set(names) ^ set(metrics.image_names)})
    if odd:
        raise UsageError(
            f"cannot pair resamples: {pluralise(len(odd), 'image')} not in all runs, such as {quoted_value(odd[0])}"
        )
    group: Mapping[str, str] = {}
    if settings.group_by is not None:
        # Frames of a video are alike: drawn one by one, they would pretend to be that many independent images.
        group = dict(zip(names, image_groups(names, settings.group_by), strict=True))
    # One stage for all runs: a share that starts over for each would mean little.
    with Stage("resampling", settings.n_resamples * len(runs)) as stage:

        def advancing(task: Callable[[Any], Any], weights: Iterable[Any]) -> Iterator[Any]:
            for values in run(task, weights):
                stage.advance()
                yield values

        if settings.group_by is None:
            # The first run's order is drawn from for all: each may list the images in another one.
            return [resample(metrics, settings, refs=refs, order=names, run=advancing) for metrics in runs]
        groups = ([group[name] for name in metrics.image_names] for metrics in runs)
        return [
            resample(metrics, settings, refs=refs, groups=drawn, unit="group", run=advancing)
            for metrics, drawn in zip(runs, groups, strict=True)
        ]


def count_units(names: Sequence[str], settings: Bootstrap) -> int:
    """Count the images, or the groups that they are in; see `image_groups` for the errors."""
    return len(names) if settings.group_by is None else len(set(image_groups(names, settings.group_by)))


@as_settings()
def image_groups(names: Sequence[str], group_by: str) -> list[str]:
    """Return the group of each image: its folder, or its row in an ``image,group`` file."""
    if group_by == BY_FOLDER:
        return [str(PurePosixPath(name).parent) for name in names]
    path = path_of(group_by)
    groups = _read_groups(path)
    findings = FindingLog()
    for name in names:
        if name not in groups:
            findings.error("group-missing", Where(str(path), record=name), "this image has no group", fix=_GROUP_FIX)
    findings.raise_errors()
    return [groups[name] for name in names]


def _read_groups(path: Path) -> Mapping[str, str]:
    """Read rows of image and group; blank lines are skipped, any other row is an error."""
    findings = FindingLog()
    groups: dict[str, str] = {}
    reader = csv.reader(read_lines(path))
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells) and len(cells) < 2:
                continue
            # A row may be repeated, as in lists that were joined; what it may not is contradict itself.
            if len(cells) != 2 or not all(cells) or groups.get(cells[0], cells[1]) != cells[1]:
                what = f"{_GROUP_ROW}, got {quoted_value(','.join(row))}"
                findings.error("group-row", Where(str(path), line=reader.line_num), what, fix=_GROUP_FIX)
            else:
                groups[cells[0]] = cells[1]
    except csv.Error as error:
        where = Where(str(path), line=reader.line_num)
        raise DataError.single("group-row", where, str(error), fix=_GROUP_FIX) from None
    findings.raise_errors()
    return groups


def warn_if_few(n_units: int, unit: str, where: Where, findings: FindingLog, *, of_what: str = "") -> None:
    """Warn of intervals that rest on few images or groups; `of_what` names whose intervals these are."""
    if n_units < FEW_UNITS:
        detail = f"intervals{of_what} are based on {n_units} {unit}s; with fewer than {FEW_UNITS} they are too narrow"
        findings.warning("bootstrap-few", where, detail)


def warn_of_few(names: Sequence[str], n_units: Sequence[int], findings: FindingLog, path: str) -> None:
    """Warn of slices with few images, or groups of them, to draw from."""
    few = [f"{quoted_value(name)} ({n})" for name, n in zip(names, n_units, strict=True) if n < FEW_UNITS]
    if few:
        more = f" and {len(few) - SHOWN_SLICES:,} more" if len(few) > SHOWN_SLICES else ""
        findings.warning(
            "bootstrap-few",
            Where(path),
            f"intervals of slices with fewer than {FEW_UNITS} images or groups are too narrow:"
            f" {', '.join(few[:SHOWN_SLICES])}{more}",
        )


def bounded(
    values: Mapping[str, MetricValue], class_name: str | None, found: Mapping[str, Interval | None]
) -> dict[str, MetricValue]:
    """Return the values of a class, or those over all classes, with their intervals."""
    # Rows of classes name their metrics without the class, resamples name them with it.
    return {
        name: replace(metric, interval=found.get(str(replace(metric.ref, class_name=class_name))))
        for name, metric in values.items()
    }


def remarks(resamples: Resamples, names: Sequence[str], path: str) -> tuple[Finding, ...]:
    """Report what makes intervals doubtful, and which rows of the group file match no image."""
    findings = FindingLog()
    if resamples.settings.group_by not in (None, BY_FOLDER):
        table = path_of(str(resamples.settings.group_by))
        unused = sorted(set(_read_groups(table)) - set(names))
        if unused:
            images = pluralise(len(unused), "image")
            detail = f"ignored {images} not in the evaluation, such as {quoted_value(unused[0])}"
            findings.note("group-unused", Where(str(table)), detail)
    warn_if_few(resamples.n_units, resamples.unit, Where(path), findings)
    # A class that few images show is in some resamples not drawn at all.
    absent = np.isnan(resamples.values).any(axis=0) & ~np.isnan(resamples.estimate)
    if absent.any():
        undefined = [ref for ref, gone in zip(resamples.refs, absent, strict=True) if gone]
        findings.note(
            "bootstrap-undefined",
            Where(path),
            f"{len(undefined):,} of {len(absent):,} metrics are undefined in some resamples, such as {undefined[0]}:"
            " their intervals use the other resamples",
        )
    return findings.findings()
