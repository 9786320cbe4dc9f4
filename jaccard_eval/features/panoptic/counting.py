"""From two sides to a result: images paired, maps counted on all processors, scored, and what chance does."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.metricref import SEGMENT_METRICS, MetricRef
from jaccard_eval.data.signature import FINGERPRINT, FINGERPRINT_DIGITS, with_choices
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.features.bootstrap.intervals import sliced
from jaccard_eval.features.compare import Contender, Versus
from jaccard_eval.features.compare.comparison import metric_deltas, slice_deltas, with_noise
from jaccard_eval.features.panoptic import (
    QUALITIES,
    Against,
    Counted,
    IntArray,
    MapCounts,
    PanopticClassRow,
    PanopticMetrics,
    PanopticProtocol,
    PanopticResult,
    SegmentMatches,
    Segments,
    SegmentsSummary,
    match_segments,
)
from jaccard_eval.findings import DataError, Finding, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import Bootstrap, Slice
from jaccard_eval.progress import tracked
from jaccard_eval.reading.files import record_failures
from jaccard_eval.reading.labelmaps import Category, EncodedImage, LabelImage
from jaccard_eval.reading.segments import ListedSegments, SegmentedImage, SegmentedSide
from jaccard_eval.text import distinct_ends, pluralise, quoted_value

SLICE_REFS = tuple(MetricRef(name=name) for name in QUALITIES)


def with_slices(
    result: PanopticResult, slices: Sequence[Slice], settings: Bootstrap | None, *, workers: int | None = None
) -> PanopticResult:
    """Return a result with PQ, SQ and RQ of each slice, with intervals if there are settings."""
    return sliced(result, slices, SLICE_REFS, settings, workers=workers)


def with_differences(
    result: PanopticResult,
    other: PanopticResult,
    slices: Sequence[Slice],
    settings: Bootstrap | None,
    *,
    workers: int | None = None,
) -> PanopticResult:
    """Return a result with its differences from other predictions; of fewer than two images without intervals."""
    contender, baseline = (
        Contender(path=side.path, fingerprint=side.fingerprint, score=math.nan, name=name)
        for side, name in zip((result.pred, other.pred), distinct_ends(result.pred.path, other.pred.path), strict=True)
    )
    versus = Versus(
        contender=contender,
        deltas=metric_deltas(other, result),
        changes=(),
        slices=slice_deltas(other.measured, result.measured, slices, SLICE_REFS),
    )
    drawn, findings = None, other.findings
    if len(result.measured.image_names) > 1:
        (versus,), drawn, doubts = with_noise(
            [versus],
            [other.measured, result.measured],
            settings or Bootstrap(),
            path=other.pred.path,
            slices=slices,
            refs=SLICE_REFS,
            run=partial(map_in_order, workers=workers),
        )
        # Nobody asked for these intervals: --strict must not refuse what makes them doubtful.
        findings += doubts if settings else tuple(replace(doubt, severity=Severity.NOTE) for doubt in doubts)
    against = Against(baseline=baseline, versus=versus, resamples=drawn, measured=other.measured)
    # Those of the ground truth come with both.
    known = [*result.findings, *(finding for finding in findings if finding not in result.findings)]
    return result.with_part(
        against,
        signature=with_choices(result.signature, f"against={other.pred.fingerprint}"),
        findings=tuple(known),
    )


Map = npt.NDArray[Any]  # of ids, (h, w)

VOID_ID = 0  # of pixels that no segment has
SHOWN_IDS = 5  # of those that are wrong in one image
IGNORED, IMAGES_ELSEWHERE = "segments-on-void-or-crowd", "images-without-ground-truth"

_NOTHING: Mapping[str, int] = {}
_NO_SEGMENTS = ListedSegments(
    np.zeros(0, dtype=np.int64), (), np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.float64)
)
Run = Callable[[Callable[["ImagePair"], "ImageCount"], Iterable["ImagePair"]], Iterable["ImageCount"]]


@dataclass(frozen=True, slots=True, eq=False)
class ImagePair:
    """An image of the ground truth and what was predicted for it."""

    gt: SegmentedImage
    pred: SegmentedImage

    @property
    def name(self) -> str:
        """Name of the image."""
        return self.gt.name


@dataclass(frozen=True, slots=True, eq=False)
class MatchedImage:
    """A pair that was read: on either side the map of ids, and the segments as listed and with their classes."""

    maps: tuple[Map, Map]
    lists: tuple[ListedSegments, ListedSegments]
    segments: tuple[Segments, Segments]
    pixels: MapCounts
    matches: SegmentMatches


@dataclass(frozen=True, slots=True, eq=False)
class PanopticReader:
    """Reads the maps of a pair and matches their segments; it does so again where they are to be shown."""

    sides: tuple[SegmentedSide, SegmentedSide]
    protocol: PanopticProtocol
    label: dict[str, int]  # row of each class by its key

    def count(self, pair: ImagePair) -> ImageCount:
        """Count one image; what is wrong with it is in the errors of what is returned."""
        findings = FindingLog()
        opened = self._opened(pair, findings)
        if findings.has_errors or not self._is_known(pair):
            return ImageCount(pair=pair, errors=findings.findings())
        read = self._read(pair, opened, findings)
        if findings.has_errors:
            return ImageCount(pair=pair, errors=findings.findings())
        gt, pred = read.segments
        ids, matches = read.pixels.ids, read.matches
        digests = [_digest_of(pair.gt, *side) for side in zip(read.lists, (file for file, _ in opened), strict=True)]
        return ImageCount(
            pair=pair,
            counted=Counted.of(matches, gt, pred),
            segments=(len(gt.ids), len(pred.ids)),
            crowds=int(gt.crowd.sum()),
            ignored=len(matches.ignored),
            digests=(digests[0], digests[1]),
            doubts=_area_doubts(pair.gt, read.lists[0], ids.gt, ids.pixels),
        )

    def match(self, pair: ImagePair) -> MatchedImage:
        """Read a pair again that was counted without errors."""
        findings = FindingLog()
        opened = self._opened(pair, findings)
        findings.raise_errors()
        read = self._read(pair, opened, findings)
        findings.raise_errors()
        return read

    def _read(
        self, pair: ImagePair, opened: Sequence[tuple[EncodedImage, LabelImage]], findings: FindingLog
    ) -> MatchedImage:
        (_, gt_map), (_, pred_map) = opened
        maps = (gt_map.rows(0, gt_map.shape[0]), pred_map.rows(0, pred_map.shape[0]))
        pixels = MapCounts.of(*maps, self.protocol.dilation_ratio)
        ids = pixels.ids
        lists = (
            self._listed(0, pair.gt, (ids.gt, ids.pixels), gt_map, findings),
            self._listed(1, pair.pred, (ids.pred, ids.pixels), pred_map, findings),
        )
        gt, pred = map(self.segments, lists)
        matches = match_segments(gt, pred, pixels.overlaps(gt, pred), boundaries=pixels.boundaries(gt, pred))
        return MatchedImage(maps, lists, (gt, pred), pixels, matches)

    def _is_known(self, pair: ImagePair) -> bool:
        """Whether all segments that are listed can be looked up; those that cannot were reported."""
        for side, image in zip(self.sides, (pair.gt, pair.pred), strict=True):
            if side.list_of is not None:
                continue
            listed = image.segments
            if listed is None or any(key not in self.label for key in listed.categories):
                return False
            # A pixel with an id that is listed twice, or is that of no segment, belongs to nothing.
            if len({VOID_ID, *listed.ids.tolist()}) <= len(listed.ids):
                return False
        return True

    def segments(self, listed: ListedSegments) -> Segments:
        """Return segments with the rows of their classes."""
        labels = np.array([self.label[key] for key in listed.categories], dtype=np.int64)
        return Segments(listed.ids, labels, listed.crowd)

    def _opened(self, pair: ImagePair, findings: FindingLog) -> list[tuple[EncodedImage, LabelImage]]:
        """Open both maps; sizes are compared before any pixel is decoded."""
        files: list[EncodedImage] = []
        for image in (pair.gt, pair.pred):
            try:
                files.append(EncodedImage(image.map))
            except DataError as error:
                findings.extend(error.findings)
        for file, image in zip(files, (pair.gt, pair.pred), strict=False):
            if image.size is not None and image.size != file.shape[::-1]:
                here, listed = (f"{width} x {height}" for width, height in (file.shape[::-1], image.size))
                detail = f"is {here} pixels, but image {image.key} is listed with {listed}"
                findings.error("map-size", file.where, detail, fix=_RESIZE)
        if len(files) == 2 and not findings.has_errors and files[0].shape != files[1].shape:
            (gt_height, gt_width), (height, width) = files[0].shape, files[1].shape
            detail = f"is {width} x {height} pixels, but its ground truth {files[0].where} is {gt_width} x {gt_height}"
            findings.error("map-size", files[1].where, detail, fix=_RESIZE)
        opened = []
        for file, side in zip(files, self.sides, strict=False):
            try:
                opened.append((file, side.decode(file)))
            except DataError as error:
                findings.extend(error.findings)
        return opened

    def _listed(
        self,
        side: int,
        image: SegmentedImage,
        counts: tuple[IntArray, IntArray],
        map_: LabelImage,
        findings: FindingLog,
    ) -> ListedSegments:
        """Return the segments of an image; where they are listed, the list and the map are compared."""
        ids, pixels = counts
        list_of = self.sides[side].list_of
        if list_of is not None:
            return list_of(np.unique(ids))
        listed = image.segments or _NO_SEGMENTS
        in_map, in_list = set(ids.tolist()), set(listed.ids.tolist())
        unlisted = sorted(in_map - in_list - {VOID_ID})
        if unlisted:
            x, y = map_.first_place(unlisted[0])
            n = int(pixels[np.isin(ids, unlisted)].sum())
            detail = (
                f"{_ids_text(unlisted)} not in segments_info of {image.where.record or image.where}: "
                f"{pluralise(n, 'pixel')}, first at ({x}, {y})"
            )
            fix = "List every segment, and write 0 where there is none."
            findings.error("segment-unlisted", Where(str(image.map)), detail, fix=fix)
        absent = sorted(in_list - in_map)
        if absent:
            fix = "Remove it from the list, or export the map again."
            detail = f"{_ids_text(absent)} listed, but not in the map {image.map}"
            findings.error("segment-absent", image.where, detail, fix=fix)
        return listed


_RESIZE = "Write the map in the size of the image (nearest neighbour)."


def _ids_text(ids: list[int]) -> str:
    shown = ", ".join(map(str, ids[:SHOWN_IDS]))
    more = f" and {len(ids) - SHOWN_IDS:,} more" if len(ids) > SHOWN_IDS else ""
    return f"id {shown} is" if len(ids) == 1 else f"ids {shown}{more} are"


def _digest_of(image: SegmentedImage, listed: ListedSegments, file: EncodedImage) -> bytes:
    """Return a digest of an image of a side: by the key of the ground truth, which both sides share."""
    rows = sorted(zip(listed.ids.tolist(), listed.categories, listed.crowd.tolist(), strict=True))
    text = f"{image.key}\n" + "\n".join(f"{identifier} {key} {crowd:d}" for identifier, key, crowd in rows)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") + file.digest).digest()


def _area_doubts(
    image: SegmentedImage, listed: ListedSegments, ids: IntArray, pixels: IntArray
) -> tuple[tuple[Where, str], ...]:
    """Return which areas of the list are not those of the map; the first of them is described."""
    counted = dict.fromkeys(listed.ids.tolist(), 0)
    for identifier, n in zip(ids.tolist(), pixels.tolist(), strict=True):
        if identifier in counted:
            counted[identifier] += n
    areas = np.array([counted[identifier] for identifier in listed.ids.tolist()], dtype=np.float64)
    wrong = np.flatnonzero(~np.isnan(listed.area) & (listed.area != areas))
    return tuple(
        (
            image.where,
            f"area of segment {int(listed.ids[row])} is {listed.area[row]:.12g}, but the map has"
            f" {pluralise(int(areas[row]), 'pixel')} of it, which count here (in panopticapi: the area listed)",
        )
        for row in wrong.tolist()
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageCount:
    """What one image adds to the whole."""

    pair: ImagePair
    counted: Counted | None = None  # None where there are errors
    segments: tuple[int, int] = (0, 0)
    crowds: int = 0
    ignored: int = 0
    digests: tuple[bytes, bytes] = (b"", b"")
    errors: tuple[Finding, ...] = ()
    doubts: tuple[tuple[Where, str], ...] = ()

    @property
    def wrong(self) -> int:
        """Segments that are missed or false."""
        return 0 if self.counted is None else len(self.counted.fp) + len(self.counted.fn)

    @property
    def text(self) -> str:
        """How many segments were found, missed and false."""
        counted = self.counted
        found, missed, false = (0, 0, 0) if counted is None else map(len, (counted.tp, counted.fn, counted.fp))
        return f"{found:,} found, {missed:,} missed, {false:,} false"

    @property
    def quality(self) -> float:
        """PQ of the image as if all classes were one; 1 where there is nothing to find."""
        counted = self.counted
        whole = 0.0 if counted is None else len(counted.tp) + self.wrong / 2
        return 1.0 if counted is None or not whole else float(counted.iou.sum()) / whole


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedImages:
    """All images of a pair of sides, with what is odd about them."""

    metrics: PanopticMetrics
    rows: tuple[PanopticClassRow, ...]
    gt: SegmentsSummary
    pred: SegmentsSummary
    reader: PanopticReader
    worst: tuple[ImageCount, ...]  # all, the lowest PQ first
    findings: tuple[Finding, ...] = field(default=())


def count_images(
    gt: SegmentedSide, pred: SegmentedSide, protocol: PanopticProtocol, findings: FindingLog, *, run: Run = map
) -> CountedImages:
    """Match the segments of all images; everything that is wrong with any of them is an error in `findings`."""
    pairs, elsewhere = _pairs(gt, pred, findings)
    label = {category.key: row for row, category in enumerate(gt.categories)}
    _require_classes(pred, label, findings)
    if not label:
        findings.raise_errors()
    reader = PanopticReader((gt, pred), protocol, label)
    done = [*tracked(run(reader.count, pairs), "matching segments", len(pairs))]
    errors = [DataError([error]) for count in done for error in count.errors]
    record_failures(errors, findings)
    findings.raise_errors()
    doubts = [doubt for count in done for doubt in count.doubts]
    fix = "Write the number of pixels, or omit area."
    findings.add_rows(Severity.WARNING, "segment-area", range(len(doubts)), doubts.__getitem__, fix=fix)
    counted = [count.counted for count in done if count.counted is not None]
    metrics = PanopticMetrics.of(
        [category.name for category in gt.categories],
        [category.is_thing for category in gt.categories],
        names_of([count.pair for count in done]),
        counted,
    )
    ignored = sum(count.ignored for count in done)
    worst = sorted(done, key=lambda count: (not count.wrong, count.quality, count.pair.gt.key))
    return CountedImages(
        metrics=metrics,
        rows=class_rows(metrics),
        gt=_summary(gt, gt, done, 0),
        pred=_summary(pred, gt, done, 1, {IGNORED: ignored, IMAGES_ELSEWHERE: elsewhere}),
        reader=reader,
        worst=tuple(worst),
        findings=findings.findings(),
    )


def _summary(
    side: SegmentedSide, gt: SegmentedSide, done: Sequence[ImageCount], at: int, ignored: Mapping[str, int] = _NOTHING
) -> SegmentsSummary:
    """Return what was read on a side, the first or the second one."""
    return SegmentsSummary(
        path=side.path,
        masks=side.masks,
        format=side.format,
        images=len(done),
        segments=sum(count.segments[at] for count in done),
        crowds=0 if at else sum(count.crowds for count in done),
        classes=len(gt.categories),
        # What is a thing decides about means: the ground truth decides for both sides.
        fingerprint=_digest((count.digests[at] for count in done), () if at else gt.categories),
        ignored={reason: n for reason, n in ignored.items() if n},
    )


def class_rows(metrics: PanopticMetrics) -> tuple[PanopticClassRow, ...]:
    """Return a row for each class."""
    values = {name: metrics.class_values(name) for name in QUALITIES}
    tp, fp, fn = (counts.tolist() for counts in metrics.counts)
    return tuple(
        PanopticClassRow(
            name=name,
            is_thing=bool(metrics.is_thing[k]),
            tp=tp[k],
            fp=fp[k],
            fn=fn[k],
            values={metric: found[k] for metric, found in values.items()},
        )
        for k, name in enumerate(metrics.class_names)
    )


def panoptic_result(counted: CountedImages, protocol: PanopticProtocol, version: str) -> PanopticResult:
    """Score counted images, with their signature."""
    gt, pred = counted.gt, counted.pred
    parts = [*protocol.signature_parts(), f"gt={gt.fingerprint}", f"pred={pred.fingerprint}", f"v={version}"]
    return PanopticResult(
        protocol=protocol,
        signature="|".join(parts),
        version=version,
        gt=gt,
        pred=pred,
        metrics={name: counted.metrics.value(MetricRef(name=name)) for name in SEGMENT_METRICS},
        per_class=counted.rows,
        findings=counted.findings,
        measured=counted.metrics,
    )


def _pairs(gt: SegmentedSide, pred: SegmentedSide, findings: FindingLog) -> tuple[list[ImagePair], int]:
    """Pair the images by their ids; return also how many predictions belong to none."""
    predicted = pred.by_key
    missing = [image for image in gt.images if image.key not in predicted and image.key not in pred.failed]

    def describe(row: int) -> tuple[Where, str]:
        return Where(pred.path), f"there is no prediction for image {missing[row].key} of {missing[row].where}"

    fix = "Predict every image, with no segments where there is nothing to see."
    findings.add_rows(Severity.ERROR, "map-unpaired", range(len(missing)), describe, fix=fix)
    known = {image.key for image in gt.images} | gt.failed
    extra = [image for image in pred.images if image.key not in known]

    def describe_extra(row: int) -> tuple[Where, str]:
        return extra[row].where, f"image {extra[row].key} is not in the ground truth; its prediction is ignored"

    findings.add_rows(Severity.WARNING, "image-unknown", range(len(extra)), describe_extra)
    if not gt.images and not findings.has_errors:
        findings.error("gt-empty", Where(gt.path), "the ground truth has no images", fix="Pass another file.")
    return [ImagePair(image, predicted[image.key]) for image in gt.images if image.key in predicted], len(extra)


def _require_classes(pred: SegmentedSide, label: dict[str, int], findings: FindingLog) -> None:
    unknown = [
        (image.where, key)
        for image in pred.images
        for key in dict.fromkeys(() if image.segments is None else image.segments.categories)
        if key and key not in label
    ]
    if not label:
        return

    def describe(row: int) -> tuple[Where, str]:
        where, key = unknown[row]
        return where, f"category {quoted_value(key)} is not in the categories of the ground truth"

    fix = Fix.missing("Write the category ids of the ground truth, or map yours with {class_map}.", class_map=None)
    findings.add_rows(Severity.ERROR, "class-unknown", range(len(unknown)), describe, fix=fix)


def names_of(pairs: Sequence[ImagePair]) -> list[str]:
    """Return the names of images, with their ids where several have one name."""
    names = [pair.name for pair in pairs]
    if len(set(names)) == len(names):
        return names
    return [f"{pair.name}#{pair.gt.key}" for pair in pairs]


def _digest(images: Iterable[bytes], categories: Sequence[Category]) -> str:
    facts = sorted((category.key, category.name, category.is_thing) for category in categories)
    state = hashlib.sha256(json.dumps(facts).encode() + b"".join(sorted(images)))
    return f"{FINGERPRINT}{state.hexdigest()[:FINGERPRINT_DIGITS]}"
