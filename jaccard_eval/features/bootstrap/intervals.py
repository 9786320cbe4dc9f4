"""Intervals for a result that is there: the groups of its images, the resamples on all processors, warnings."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np

from jaccard_eval.data.document import MetricValue, Rows
from jaccard_eval.data.metricref import METRICS, MetricRef, split_ref
from jaccard_eval.data.result import Estimate, EvaluationResult, Resamples, RestDifference, SliceRow
from jaccard_eval.data.signature import quoted, with_choices
from jaccard_eval.engine import path_of
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap import (
    HALVES,
    MIN_UNITS,
    Resampled,
    Run,
    estimates,
    holm,
    resample,
    t_probability,
    t_quantile,
)
from jaccard_eval.findings import DataError, Finding, FindingLog, Where, as_settings
from jaccard_eval.metrics.detection import (
    UNRANKED,
    DetectionMetrics,
    chosen_images,
    measure_slices,
    slice_digest,
    slice_refs,
)
from jaccard_eval.options import BY_FOLDER, Bootstrap, Slice
from jaccard_eval.progress import Stage, tracked
from jaccard_eval.reading.files import read_lines
from jaccard_eval.text import pluralise, quoted_value

FEW_UNITS = 30  # differences of models on fewer images are called significant too often, as docs/noise.md measures
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
    # Where predictions have no scores, what counts at one of them comes before the summary.
    of_boxes = isinstance(metrics, DetectionMetrics)
    also = [MetricRef(name=name) for name in UNRANKED if of_boxes and name in given.metrics]
    drawn = resample_alike([metrics], settings, run=partial(map_in_order, workers=workers), also=also)[0]
    found = estimates(drawn)
    drawn = replace(drawn, estimates=found)
    bounded_result: Measured = given.with_part(
        drawn,
        metrics=bounded(given.metrics, None, found),
        per_class=tuple(replace(row, values=bounded(row.values, row.name, found)) for row in given.per_class),
        signature=with_choices(given.signature, drawn.choice),
        findings=(*given.findings, *interval_remarks(drawn, given.pred.path, metrics.image_names)),
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
    rows = measure_slices(given.measured, slices, refs)
    if settings is not None:
        draw = partial(resample_alike, refs=refs, run=partial(map_in_order, workers=workers))
        parts = (chosen_images(images, given.measured.image_names) for images in tracked(slices, "resampling slices"))
        paired = zip(rows, parts, strict=True)
        rows = with_verdicts([beside_rest(row, given.measured, part, settings, draw) for row, part in paired], settings)
    findings = FindingLog()
    refused = {row.name: metric.refused for row in rows for metric in row.values.values() if metric.refused}
    if refused:
        more = f"; and {len(refused) - SHOWN_SLICES:,} more" if len(refused) > SHOWN_SLICES else ""
        listed = "; ".join(f"{quoted_value(name)} ({reason})" for name, reason in [*refused.items()][:SHOWN_SLICES])
        findings.warning("bootstrap-few", Where(given.pred.path), f"slices without intervals: {listed}{more}")
    sliced_result: Measured = given.with_part(
        Rows("slices", rows),
        signature=with_choices(given.signature, slices_choice(slices)),
        findings=(*given.findings, *findings.findings()),
    )
    return sliced_result


N_SUBSETS = 60  # draws of the larger part, whose mean is its value at the size of the smaller one


def beside_rest(
    row: SliceRow, measured: Any, rows: Sequence[int], settings: Bootstrap, draw: Callable[..., list[Resamples]]
) -> SliceRow:
    """Return a slice with intervals, and with its differences from the rest of the images at equal size."""
    others = sorted(set(range(len(measured.image_names))) - set(rows))
    parts = [measured.restrict(chosen) for chosen in (rows, others)]
    drawn = [draw([part], settings)[0] for part in parts]
    found, of_rest = map(estimates, drawn)
    row = replace(row, values=bounded(row.values, None, found))
    # AP is higher on fewer images: the larger part is drawn down to as many as the other one has.
    larger, size = int(drawn[1].n_units > drawn[0].n_units), min(part.n_units for part in drawn)
    values = [part.estimate.tolist() for part in drawn]
    if size >= MIN_UNITS and drawn[0].n_units != drawn[1].n_units:
        subsets = draw([parts[larger]], replace(settings, n_resamples=N_SUBSETS), size=size)[0].values
        values[larger] = [float(np.mean(column[~np.isnan(column)])) for column in subsets.T]
    freedom = max(min(size - 1, settings.n_resamples // 2), 1)
    quantile = t_quantile((1 + settings.confidence_level) / 2, freedom)
    rest = {}
    for ref, value, other in zip(found, *values, strict=True):
        sides = {row.name: found[ref], "rest": of_rest[ref]}
        refused = next((f"{name}: {side.refused}" for name, side in sides.items() if side.refused), None)
        error = math.hypot(*(side.error for side in sides.values()))
        delta, wide = value - other, quantile * error
        tested = refused is None and error > 0
        rest[ref] = RestDifference(
            n_units=size,
            value=value,
            rest=other,
            interval=(delta - wide, delta + wide) if tested else None,
            p_value=1 - t_probability(delta / error, freedom) if tested else math.nan,
            refused=refused,
        )
    return replace(row, unit=drawn[0].unit, n_units=drawn[0].n_units, rest=rest)


def with_verdicts(rows: Sequence[SliceRow], settings: Bootstrap) -> tuple[SliceRow, ...]:
    """Return slices with verdicts, by p-values that allow for how many slices are looked at (Holm 1979)."""
    tested = [dict(row.rest) for row in rows]
    for ref in dict.fromkeys(ref for row in tested for ref in row):
        having = [row for row in tested if not math.isnan(row[ref].p_value)]
        for row, p_value in zip(having, holm([row[ref].p_value for row in having]), strict=True):
            known = METRICS.get(split_ref(ref)[0])
            is_better = (row[ref].delta > 0) == (known is None or known.higher_is_better)
            direction = "better" if is_better else "worse"
            verdict = direction if p_value <= 1 - settings.confidence_level else "no different"
            row[ref] = replace(row[ref], p_value=p_value, verdict=verdict)
    return tuple(replace(row, rest=rest) for row, rest in zip(rows, tested, strict=True))


def slices_choice(slices: Sequence[Slice]) -> str:
    """Name slices as a signature does, each with a digest of what it is made of."""
    return f"slices={','.join(f'{quoted(images.name)}[{slice_digest(images)}]' for images in slices)}"


def resample_alike(
    runs: Sequence[DetectionMetrics | Resampled],
    settings: Bootstrap,
    *,
    refs: Sequence[MetricRef] | None = None,
    run: Run = map,
    method: str | None = HALVES,
    size: int | None = None,
    least: int | None = None,
    also: Sequence[MetricRef] = (),
) -> list[Resamples]:
    """Resample the images of all runs in the same way, or their groups; the runs have the same images, in any order.

    The summary and every class are measured, or the averages `refs` alone. See `resample` for the other options.
    """
    how = partial(resample, refs=refs, method=method, size=size, least=least, also=also)
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
            return [how(metrics, settings, order=names, run=advancing) for metrics in runs]
        groups = ([group[name] for name in metrics.image_names] for metrics in runs)
        return [
            how(metrics, settings, groups=drawn, unit="group", run=advancing)
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
    values: Mapping[str, MetricValue], class_name: str | None, found: Mapping[str, Estimate]
) -> dict[str, MetricValue]:
    """Return the values of a class, or those over all classes, with their intervals."""
    bounds = {}
    for name, metric in values.items():
        # Rows of classes name their metrics without the class, resamples name them with it; neither has the score that
        # the evaluation chose.
        estimate = found.get(name if class_name is None else str(replace(metric.ref, class_name=class_name)))
        if estimate is None or math.isnan(metric.value):
            estimate = Estimate()
        bounds[name] = replace(metric, interval=estimate.interval, refused=estimate.refused)
    return bounds


def interval_remarks(drawn: Resamples, path: str, names: Sequence[str]) -> tuple[Finding, ...]:
    """Report what has no interval and why, and which metric depends on how many images there are."""
    findings = FindingLog()
    findings.extend(group_remarks(drawn, names))
    if drawn.n_units < MIN_UNITS:
        detail = f"no intervals: {pluralise(drawn.n_units, drawn.unit)}; an interval needs {MIN_UNITS}"
        findings.warning("bootstrap-few", Where(path), detail)
        return findings.findings()
    found = drawn.estimates
    values = dict(zip(drawn.refs, drawn.estimate.tolist(), strict=True))
    refused = [ref for ref, row in found.items() if row.refused is not None and not math.isnan(values[ref])]
    if refused:
        detail = f"{len(refused):,} of {len(found):,} metrics have no interval, such as {refused[0]}"
        findings.note("bootstrap-undefined", Where(path), f"{detail}: {found[refused[0]].refused}")
    biased = [ref for ref, row in found.items() if row.biased and "class=" not in ref]
    for ref in biased[:1]:
        row, value = found[ref], values[ref]
        more = f" So do {pluralise(len(biased) - 1, 'more metric')}." if len(biased) > 1 else ""
        end = f"{row.unknown}: how far it lies above its value for all such images is not known"
        if row.population is not None:
            low, high = row.population
            end = f"with more such images it would fall, at most to between {low:.4f} and {high:.4f}"
        findings.note(
            "bootstrap-biased",
            Where(path),
            f"{ref} depends on the size of the set: halves of it have {row.halves:.4f}, it has {value:.4f};"
            f" {end}.{more}",
            fix=f"Compare {ref} on the same images only, or on as many.",
        )
    return findings.findings()


def group_remarks(drawn: Resamples, names: Sequence[str]) -> tuple[Finding, ...]:
    """Report which rows of the group file match no image."""
    findings = FindingLog()
    if drawn.settings.group_by not in (None, BY_FOLDER):
        table = path_of(str(drawn.settings.group_by))
        unused = sorted(set(_read_groups(table)) - set(names))
        if unused:
            images = pluralise(len(unused), "image")
            detail = f"ignored {images} not in the evaluation, such as {quoted_value(unused[0])}"
            findings.note("group-unused", Where(str(table)), detail)
    return findings.findings()


def remarks(resamples: Resamples, names: Sequence[str], path: str) -> tuple[Finding, ...]:
    """Report what makes intervals of differences doubtful, and which rows of the group file match no image."""
    findings = FindingLog()
    findings.extend(group_remarks(resamples, names))
    warn_if_few(resamples.n_units, resamples.unit, Where(path), findings)
    # A class that few images show is in some draws not there at all.
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
