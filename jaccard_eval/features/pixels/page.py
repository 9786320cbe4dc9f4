"""What a folder of all images has of label maps: the pixels of each pair of classes in each image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.features.images.columns import (
    NOBODY,
    PLAIN_MAP,
    MapImages,
    Outlines,
    Regions,
    class_values,
    map_model,
    next_of,
    outlined,
)
from jaccard_eval.features.pixels import PixelMetrics, PixelsResult
from jaccard_eval.features.pixels.report import differing
from jaccard_eval.findings import DataError, Severity
from jaccard_eval.matching import IntArray
from jaccard_eval.metrics.pixel_counts import NO_CLASS
from jaccard_eval.progress import tracked
from jaccard_eval.reading.files import record_failures
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Explorer
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.panels import LARGE, ClassColours, Panel
from jaccard_eval.report.sections import default_page
from jaccard_eval.text import pluralise

LISTS = (("missed", (("taken", "Other class"), ("nothing", "No class"))), ("false", (("class", "Wrong class"),)))
CANDIDATES = 20  # pairs of classes with the largest gains, whose gains are then measured
NOT_DRAWN = "Of {} maps that differ, the {} that differ most are drawn; all are counted."


def build_explorer(result: PixelsResult, options: ReportOptions) -> Explorer | None:
    """Return the pixels of all images; None of a result that was read back, which has no files."""
    metrics, worst = result.measured, result.images
    if metrics is None or worst is None:
        return None
    counts, names = metrics.counts, metrics.class_names
    n, k = len(metrics.image_names), len(names)
    wrong = np.bincount(metrics.image, counts.pixels * (counts.gt != counts.pred), minlength=n).astype(np.int64)
    whole = np.bincount(metrics.image, counts.pixels, minlength=n).astype(np.int64)
    sizes, panels = np.full((n, 2), PLAIN_MAP), dict[int, list[Panel]]()
    bounds, cells = np.zeros((len(metrics.image), 4), dtype=np.int64), [b""] * len(metrics.image)
    numbers = np.arange(k) if result.protocol.classes is not None else np.array(list(map(int, names)), dtype=np.int64)
    colours = ClassColours(worst.reader.colours)
    rows = {name: row for row, name in enumerate(metrics.image_names)}
    for pair in tracked([pair for pair in worst.pairs if pair.wrong], "label maps"):
        row = rows[pair.pair.name]
        try:
            (width, height), shown, panels[row] = worst.panels(pair, colours, LARGE)
        except DataError as error:
            record_failures([error], worst.findings, severity=Severity.NOTE)
            continue
        sizes[row] = width, height
        first, last = np.searchsorted(metrics.image, [row, row + 1])
        gt, pred = (np.where(side == NO_CLASS, NO_CLASS, np.searchsorted(numbers, side)) for side in shown)
        # Pairs of classes ascend, as they were counted; those that are right are not drawn.
        known = counts.gt[first:last] * (k + 1) + counts.pred[first:last]
        place = np.searchsorted(known, gt * (k + 1) + pred).clip(0, max(last - first - 1, 0))
        is_wrong = (gt != NO_CLASS) & (gt != pred) & (known[place] == gt * (k + 1) + pred)
        drawn = outlined(np.where(is_wrong, place, -1), int(last - first), (width, height))
        bounds[first:last], cells[first:last] = drawn.bounds, drawn.cells
    images = MapImages(
        names=metrics.image_names,
        captions=[differing(*pair) for pair in zip(wrong.tolist(), whole.tolist(), strict=True)],
        sizes=sizes,
        panels=panels,
    )
    sides, outlines = _sides(metrics, Outlines(bounds=bounds, cells=cells))
    differ = int(np.count_nonzero(wrong))
    model = map_model(
        images,
        sides,
        outlines,
        names,
        [part for part in result.slices if part.rows],
        lists=LISTS,
        unit=("pixel", "pixels"),
        nothing="no class",
        nobody="no class",
        off="",
        value="IoU",
        about=f"{pluralise(n, 'image')}, {pluralise(int(whole.sum()), 'pixel')}",
        metrics=[[name, metric_text(metric.value), ""] for name, metric in result.metrics.items()],
        colours=[colours.text(number) for number in numbers.tolist()],
        next=next_of(_gains(metrics), "mIoU"),
        **class_values([row.values["IoU"] for row in result.per_class], [row.gt_pixels for row in result.per_class]),
    )
    return Explorer(
        title=options.title or " on ".join(PurePath(side.path).name for side in (result.pred, result.gt)),
        models={"a": model},
        images=None,
        numbers=default_page(result, replace(options, gallery=0)),
        pictures=images.pictures,
        files=images.files,
        note=NOT_DRAWN.format(f"{differ:,}", f"{len(panels):,}") if len(panels) < differ else "",
    )


def _sides(metrics: PixelMetrics, outlines: Outlines) -> tuple[tuple[Regions, Regions], tuple[Outlines, Outlines]]:
    """Return the pixels of each pair of classes as a region of the ground truth, and of predictions that name one."""
    counts = metrics.counts
    found, named = counts.gt == counts.pred, np.flatnonzero(counts.pred != NO_CLASS)
    rows = np.full(len(found), NOBODY, dtype=np.int64)
    rows[named] = np.arange(len(named))

    def side(label: IntArray, partner: IntArray, chosen: IntArray) -> Regions:
        nothing: BoolArray = np.zeros(len(chosen), dtype=np.bool_)
        return Regions(
            image=metrics.image[chosen],
            label=label[chosen],
            found=found[chosen],
            ignored=nothing,
            partner=partner[chosen],
            overlap=np.zeros(len(chosen)),
            is_seen=counts.pred[chosen] != NO_CLASS,
            pixels=counts.pixels[chosen],
        )

    every = np.arange(len(found))
    other = Outlines(bounds=outlines.bounds[named], cells=[outlines.cells[row] for row in named.tolist()])
    return (side(counts.gt, rows, every), side(counts.pred, every, named)), (outlines, other)


def _gains(metrics: PixelMetrics) -> list[tuple[float, str, str, dict[str, str]]]:
    """Return what mIoU would gain if the pixels of a pair of classes were right, of those that cost most."""
    counts, sums, names = metrics.counts, metrics.scores(), metrics.class_names
    k, given = len(names), sums.means["mIoU"]
    cells = np.bincount(
        counts.gt * (k + 1) + np.where(counts.pred == NO_CLASS, k, counts.pred), counts.pixels, k * (k + 1)
    )
    cells = cells.reshape(k, k + 1)
    np.fill_diagonal(cells, 0)
    union = np.maximum(sums.gt + sums.pred - sums.hits, 1)
    rough = cells / union[:, None]
    rough[:, :k] += sums.hits / np.maximum(union - cells[:, :k], 1) - sums.hits / union
    rows: list[tuple[float, str, str, dict[str, str]]] = []
    for cell in np.argsort(-rough, axis=None, kind="stable")[:CANDIDATES].tolist():
        (of, to), pixels = divmod(cell, k + 1), int(cells.flat[cell])
        if not pixels:
            continue
        change: Any = np.zeros((2, k), dtype=np.int64)
        change[:, of] = pixels
        if to < k:
            change[0, to] = -pixels
        fixed = replace(sums, pred=sums.pred + change[0], hits=sums.hits + np.where(np.arange(k) == of, pixels, 0))
        share = metric_text(100 * pixels / int(sums.gt[of]), 1)
        what = f"{names[of]} is predicted as {names[to]}" if to < k else f"{names[of]} gets no class"
        pick = {"object": names[of], "pred": names[to] if to < k else ""}
        text = f"{what} on {pluralise(pixels, 'pixel')}"
        rows.append((fixed.means["mIoU"] - given, text, f"{share} % of {names[of]}", pick))
    return rows
