"""What a folder of all images has of segments: each with what became of it, and the nearest one of the other side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.features.images.columns import (
    NOBODY,
    MapImages,
    Outlines,
    Regions,
    class_values,
    map_model,
    next_of,
    outlined,
    wrong_of,
)
from jaccard_eval.features.panoptic import VOID, IntArray, PanopticMetrics, PanopticResult
from jaccard_eval.features.panoptic.counting import MatchedImage, names_of
from jaccard_eval.features.panoptic.report import MOST_SHOWN
from jaccard_eval.progress import tracked
from jaccard_eval.reading.images import silent_pillow
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Explorer
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.panels import LARGE, Panel
from jaccard_eval.report.sections import default_page
from jaccard_eval.text import pluralise

MATCHES, NEAR = 0.5, 0.1  # IoU above which segments match, and from which one is near another: as of boxes
LISTS = (
    ("missed", (("nothing", "Nothing near"), ("off", "Poor overlap"), ("taken", "Other class"))),
    (
        "false",
        (
            *(("background", "On nothing"), ("box", "Poor overlap")),
            *(("class", "Wrong class"), ("both", "Class, overlap")),
        ),
    ),
)
HEAD = ("PQ", "SQ", "RQ", "PQ_things", "PQ_stuff")
NOT_DRAWN = "Of {} images that differ, the {} with the lowest PQ are drawn; all are counted."


def build_explorer(result: PanopticResult, options: ReportOptions) -> Explorer | None:
    """Return the segments of all images; None of a result that was read back, which has no files."""
    metrics, worst = result.measured, result.images
    if metrics is None or worst is None:
        return None
    n_drawn = len(worst.shown(MOST_SHOWN))

    def read(row: int) -> tuple[tuple[Regions, Regions], list[Outlines], list[Panel], tuple[int, int]]:
        """Return an image: its segments, where they lie, and its panels where it is drawn."""
        pair = worst.reader.match(worst.counts[row].pair)
        height, width = pair.maps[0].shape
        rows = worst.rows(pair, LARGE)
        drawn = [
            outlined(numbers, len(segments.ids), (width, height))
            for numbers, segments in zip(rows, pair.segments, strict=True)
        ]
        if row >= n_drawn:  # boxes will do
            return _sides(pair), [replace(side, cells=[b""] * len(side.cells)) for side in drawn], [], (width, height)
        return _sides(pair), drawn, worst.panels(row, pair, rows), (width, height)

    names = names_of([count.pair for count in worst.counts])
    order = sorted(range(len(names)), key=names.__getitem__)
    # What silences warnings of a file is a global: of all threads at once.
    with silent_pillow():
        done = [*tracked(map_in_order(read, order), "segments", len(order))]
    pairs, places, panels, sizes = zip(*done, strict=True)
    sides = tuple(Regions.joined([pair[side] for pair in pairs], [pair[1 - side] for pair in pairs]) for side in (0, 1))
    images = MapImages(
        names=metrics.image_names,
        captions=[worst.caption(worst.counts[row]) for row in order],
        sizes=np.array(sizes),
        panels={row: drawn for row, drawn in enumerate(panels) if drawn},
    )
    differ = sum(1 for count in worst.counts if count.wrong)
    model = map_model(
        images,
        (sides[0], sides[1]),
        [Outlines.joined([drawn[side] for drawn in places]) for side in (0, 1)],
        metrics.class_names,
        [part for part in result.slices if part.rows],
        lists=LISTS,
        unit=("segment", "segments"),
        nothing="nothing near",
        nobody="nothing",
        off="poor overlap",
        value="PQ",
        about=f"{pluralise(len(order), 'image')}, {pluralise(result.gt.segments, 'segment')},"
        f" {result.pred.segments:,} predicted",
        metrics=[[name, metric_text(metric.value), ""] for name, metric in result.metrics.items() if name in HEAD],
        colours=[worst.colours.text(row) for row in range(len(metrics.class_names))],
        next=next_of(_gains(metrics, sides[0], sides[1]), "PQ"),
        **class_values([row.values["PQ"] for row in result.per_class], [row.gt for row in result.per_class]),
    )
    return Explorer(
        title=options.title or " on ".join(PurePath(side.path).name for side in (result.pred, result.gt)),
        models={"a": model},
        images=None,
        numbers=default_page(result, replace(options, gallery=0)),
        pictures=images.pictures,
        files=images.files,
        note=NOT_DRAWN.format(f"{differ:,}", f"{n_drawn:,}") if n_drawn < differ else "",
    )


def _sides(image: MatchedImage) -> tuple[Regions, Regions]:
    """Return the segments of both sides, each with the one of the other side that it lies on or near."""
    (gt, pred), matches = image.segments, image.matches
    n_gt, n_pred = len(gt.ids), len(pred.ids)
    overlaps = image.pixels.overlaps(gt, pred)
    gt_area, pred_area, on_void = overlaps.areas(n_gt, n_pred)
    both = (overlaps.gt != VOID) & (overlaps.pred != VOID)
    i, j, shared = overlaps.gt[both], overlaps.pred[both], overlaps.pixels[both]
    # With a column and a row of zeros, so that there is a largest one.
    iou = np.zeros((n_gt + 1, n_pred + 1))
    iou[i, j] = shared / (gt_area[i] + pred_area[j] - shared - on_void[j])
    found, false, ignored = (np.zeros(n, dtype=np.bool_) for n in (n_gt, n_pred, n_pred))
    found[matches.tp_gt], false[matches.fp], ignored[matches.ignored] = True, True, True
    # Crowds and what is ignored explain nothing.
    iou[:-1][gt.crowd], iou[:, :-1][:, ignored] = 0, 0
    alike = np.pad(gt.label[:, None] == pred.label, (0, 1))

    def side(iou: FloatArray, alike: BoolArray, label: IntArray, found: BoolArray, ignored: BoolArray) -> Regions:
        rows, partner = np.arange(len(label)), iou.argmax(axis=1)[:-1]
        overlap, same = iou[rows, partner], alike[rows, partner]
        return Regions(
            image=np.zeros(len(label), dtype=np.int64),
            label=label,
            found=found,
            ignored=ignored,
            partner=np.where(overlap >= NEAR, partner, NOBODY),
            overlap=overlap,
            is_seen=~found & ~same & (overlap > MATCHES),
        )

    # An object is explained by what lies on it, else by one of its class; a prediction by whatever is nearest.
    near = np.where(alike | (iou > MATCHES), iou, 0)
    return side(near, alike, gt.label, found, gt.crowd), side(iou.T, alike.T, pred.label, ~(false | ignored), ignored)


def _gains(metrics: PanopticMetrics, gt: Regions, pred: Regions) -> list[tuple[float, str, str, dict[str, str]]]:
    """Return what PQ would gain without the errors of a kind and class, if what is missed were found as others are."""
    label, names = metrics.tp[1], metrics.class_names
    tp, fp, fn = metrics.counts
    total = np.bincount(label, metrics.iou, len(names))
    quality = metrics.qualities
    n_classes = max(int(np.count_nonzero(tp + fp + fn)), 1)
    overall = float(metrics.iou.mean()) if len(metrics.iou) else 1.0
    rows: list[tuple[float, str, str, dict[str, str]]] = []
    for (side, kinds), of in zip(LISTS, wrong_of(gt, pred), strict=True):
        for kind, title in kinds:
            for k, n in enumerate(np.bincount(of[kind], minlength=len(names)).tolist()):
                if not n:
                    continue
                more, less = (n, 0) if side == "missed" else (0, n)
                each = float(total[k] / tp[k]) if tp[k] else overall
                whole = tp[k] + more + (fp[k] - less + fn[k] - more) / 2
                fixed = (total[k] + more * each) / whole if whole else 1.0
                every = pluralise(int(tp[k] + (fn if more else fp)[k]), f"{names[k]} segment")
                what = f"{n:,} of {every} {'is' if n == 1 else 'are'} {side}: {title.lower()}"
                share = f"{100 * n / int((fn if more else fp).sum()):.0f} % of all that is {side}"
                rows.append((float(fixed - quality[0, k]) / n_classes, what, share, {"class": names[k], "error": kind}))
    return rows
