"""Intervals for a result that is there: the groups of its images, the resamples on all processors, what is odd."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from jaccard_eval.analysis.resample import intervals, resample
from jaccard_eval.data.bootstrap import Bootstrap, Interval, Resamples
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import qualified
from jaccard_eval.data.result import ClassRow, EvaluationResult
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import Finding, FindingLog, UsageError, Where
from jaccard_eval.formats._files import read_text
from jaccard_eval.metrics.detection import DetectionMetrics

BY_FOLDER = "folder"
FEW_UNITS = 30  # fewer images make percentile intervals too narrow; docs/noise.md has the measured coverage


def with_intervals(
    result: EvaluationResult, settings: Bootstrap, *, group_by: str | None = None, workers: int | None = None
) -> EvaluationResult:
    """Return a result whose summary and classes have intervals, by resampling its images.

    Parameters
    ----------
    result : EvaluationResult
    settings : Bootstrap
    group_by : str, optional
        "folder", or the path of a CSV file with the rows ``image,group``: groups are drawn as a whole, as the frames of
        a video have to be.
    workers : int, optional
        Threads; as many as there are processors when left out. The result does not depend on it.

    Returns
    -------
    EvaluationResult

    Raises
    ------
    DataError
        When the file of groups lacks images.
    UsageError
        When there are fewer than two images or groups.
    """
    metrics = result.measured
    if not isinstance(metrics, DetectionMetrics):
        raise UsageError("intervals need the match table of the evaluation, which saved results lack")
    resamples = resample(
        metrics,
        settings,
        groups=None if group_by is None else image_groups(metrics.image_names, group_by),
        unit="image" if group_by is None else "group",
        run=partial(map_in_order, workers=workers),
    )
    found = intervals(resamples)
    return replace(
        result,
        metrics={name: replace(one, interval=found.get(one.ref)) for name, one in result.metrics.items()},
        per_class=tuple(_with_interval(row, found) for row in result.per_class),
        findings=(*result.findings, *_remarks(resamples, result.pred.path)),
        bootstrap=resamples,
    )


def image_groups(names: Sequence[str], group_by: str) -> list[str]:
    """Return the group of each image: its folder, or what a file of ``image,group`` rows says.

    Raises
    ------
    DataError
        With the images that the file lacks.
    """
    if group_by == BY_FOLDER:
        return [str(PurePosixPath(name).parent) for name in names]
    path = Path(group_by)
    groups = _read_groups(path)
    missing = [name for name in names if name not in groups]
    if missing:
        findings = FindingLog()
        for name in missing:
            findings.error("group-missing", Where(str(path), record=name), "this image has no group", fix=_GROUP_FIX)
        findings.raise_errors()
    return [groups[name] for name in names]


_GROUP_FIX = "Give every image a row of its name and its group, such as a/001.jpg,video-a."


def _read_groups(path: Path) -> Mapping[str, str]:
    """Read rows of image and group; blank lines are left out, any other row is refused."""
    rows = [(number, row) for number, row in enumerate(csv.reader(read_text(path).splitlines()), start=1) if row]
    findings = FindingLog()
    groups: dict[str, str] = {}
    for number, row in rows:
        cells = [cell.strip() for cell in row]
        if len(cells) != 2 or not all(cells) or groups.get(cells[0], cells[1]) != cells[1]:
            what = "expected an image and its group, and one group per image"
            findings.error("group-row", Where(str(path), line=number), f"{what}, got {','.join(row)}", fix=_GROUP_FIX)
        else:
            groups[cells[0]] = cells[1]
    findings.raise_errors()
    return groups


def _with_interval(row: ClassRow, found: Mapping[str, Interval | None]) -> ClassRow:
    values: dict[str, MetricValue] = {}
    for name, one in row.values.items():
        values[name] = replace(one, interval=found.get(qualified(one.ref, {"class": row.name})))
    return replace(row, values=values)


def _remarks(resamples: Resamples, path: str) -> tuple[Finding, ...]:
    """Say what makes intervals doubtful."""
    findings = FindingLog()
    if resamples.n_units < FEW_UNITS:
        findings.warning(
            "bootstrap-few",
            Where(path),
            f"intervals rest on {resamples.n_units} {resamples.unit}s: with fewer than {FEW_UNITS} they are too narrow",
        )
    absent = np.isnan(resamples.values).any(axis=0) & ~np.isnan(resamples.estimate)
    if absent.any():
        names = [ref for ref, gone in zip(resamples.refs, absent, strict=True) if gone]
        findings.note(
            "bootstrap-undefined",
            Where(path),
            f"{len(names):,} of {len(absent):,} metrics are undefined in some resamples, such as {names[0]}: their"
            " intervals rest on the others",
        )
    return findings.findings()
