"""The draft of one side: what formats add in the keys of their files, encoding and units: converted, checked.

Records and lines that cannot be used end a run, or are skipped where the user asked for that: see `SkippingLog`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import (
    FLAGS,
    BoolArray,
    BoxTable,
    FloatArray,
    RowArray,
    Shapes,
    freeze,
    to_xywh,
)
from jaccard_eval.data.dataset import (
    FACTS,
    ClassFacts,
    Dataset,
    ImageLabels,
    ImageTable,
    IntegerKeys,
    Key,
    LabelMap,
    Reading,
    unknown_sizes,
)
from jaccard_eval.data.known_protocols import MASKS
from jaccard_eval.data.resizing import Resizing
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Example, Finding, FindingLog, Group, Severity, SizedRows, Where
from jaccard_eval.fixes import NO_MASK_SCORES, NO_SCORES, ON, Fix
from jaccard_eval.options import AS_WRITTEN, MASK_AXES, ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.rawboxes import (
    MOST_INVERTED,
    Keys,
    RawBoxes,
    are_corners_alone,
    as_integers,
    check_areas,
    check_numbers,
    check_sizes,
    count_distinct,
    distinct_keys,
    index_integers,
    index_keys,
    inverted,
)
from jaccard_eval.text import pluralise, quoted_value

if TYPE_CHECKING:
    from jaccard_eval.reading.images import ImageFolder

PLACEHOLDER_SIDE = 8.0  # pixels; no image with objects is smaller, and COCO requires a size of every image


# Reasons for which records with objects are ignored. A side that has nothing else lost its content; it is not empty.
_LOST = {
    "shape": "shapes of another kind",
    "unjudged_class": "boxes of classes that do not count",
    "class-unlisted": "boxes of unlisted classes",
    "image-unlisted": "boxes of unlisted images",
}

_Universe = tuple[Sequence[Key], RowArray]  # keys in their order, and the row of each box among them
# What can be wrong with one record while all others are sound. What a class or an image is called is not among it, nor
# what is the same mistake in all records: boxes of another encoding, a column that is missing, scores that none has.
FAULTS = frozenset(
    {"bbox-length", "bbox-type", "box-too-large", "class-invalid", "class-unknown", "columns", "coordinate-range"}
    | {
        "csv-bbox",
        "csv-box-partial",
        "csv-cell-empty",
        "csv-flag",
        "csv-number",
        "csv-prediction-string",
        "element-repeated",
    }
    | {"field-missing", "flag-value", "id-range", "id-type", "keypoints-invalid", "number-invalid"}
    | {"number-not-finite", "number-type", "record-type", "score-missing", "segmentation-invalid", "units-mixed"}
)
# Objects of a file that are not boxes: without them boxes would lose their image or their class.
_OTHERS = pattern(r"(images|categories|licenses)(\[\d+\])?")
_DEEPEST = 99  # while no box is known
_STEPS = pattern(r"[.\[]")
Place = tuple[str, int | None, str | None]


class Draft:
    """Collects what a format reads; `build` makes the dataset of it."""

    def __init__(self, path: str, format_name: str, options: ReadOptions) -> None:
        self.path = path
        self.format_name = format_name
        self.options = options
        self.pictures: ImageFolder | None = None
        if options.images is not None:
            from jaccard_eval.reading.images import ImageFolder  # most inputs come without images

            # One that was listed already is kept: both sides share it.
            given = options.images
            self.pictures = given if isinstance(given, ImageFolder) else ImageFolder(given)
        # That which was named, or else is found next to the labels.
        self.image_folder: PathLike[str] | None = self.pictures
        self.findings: FindingLog = SkippingLog() if options.skip_invalid else FindingLog()
        self.listed_names: tuple[str, ...] = ()  # of classes, in the order in which the file itself lists them
        self.n_shapeless = 0  # of the ignored shapes, those that are none: tags and answers about a whole image
        self.ignored: Counter[str] = Counter()
        self.details: list[str] = []
        self.has_no_class = False  # the one that boxes have stands in for none
        self.has_splits = False  # of which one is read
        self.angle = ""  # how angles of oriented boxes were read, one of `options.ANGLES`
        self.zero_id: int | None = None
        self.annotation_ids: Sequence[object] | npt.NDArray[np.int64] = ()  # of its boxes, where the file has any
        self.image_names: list[str] = []  # those of a table, in its order, where they are compared
        self._images: _Images | None = None
        self._classes: tuple[list[Key], list[str], bool] | None = None
        self._boxes: list[RawBoxes] = []
        # What is known of classes besides boxes, by their keys.
        self.class_frequency: Mapping[Key, str] = {}
        self.class_parents: Mapping[Key, Sequence[Key]] = {}  # classes directly above; without circles
        self.point_names: tuple[str, ...] = ()  # of poses, where the file has them
        # Of the first box, where it has a mask of pixels: its image, and width and height of the mask.
        self.first_mask: tuple[Key, tuple[float, float]] | None = None
        self.of_images: dict[str, Mapping[Key, float]] = {}  # quantities of images, by their keys
        self.usual_protocol = ""  # that judges by what is known besides boxes
        self._labels: list[_Labels] | None = None

    def fill_sizes(self, sizes: FloatArray, names: Sequence[str]) -> None:
        """Set the sizes (n, 2) that are not known (NaN) from the folder of images, if there is one."""
        if self.pictures is not None:
            self.pictures.fill_sizes(sizes, names, self.findings)

    def set_images(
        self,
        keys: Sequence[Key],
        *,
        file_names: Sequence[str | None] | None = None,
        sizes: FloatArray | None = None,
        listed: bool = True,
    ) -> None:
        """Name the images; `listed` when these are all of them. Keys must be unique; their order does not matter."""
        names: list[str | None] = [None] * len(keys) if file_names is None else list(file_names)
        self._images = _Images(list(keys), names, unknown_sizes(len(keys)) if sizes is None else sizes, listed)

    def add_images(self, keys: Sequence[Key]) -> None:
        """Name further images besides those that were named; known ones stay as they are."""
        given = self._images or _Images([], [], unknown_sizes(0), False)
        known = set(given.keys)
        new = [key for key in keys if key not in known]
        sizes = unknown_sizes(len(new))
        self.fill_sizes(sizes, list(map(str, new)))
        names = [*given.file_names, *(None for _ in new)]
        self._images = _Images([*given.keys, *new], names, np.concatenate((given.sizes, sizes)), given.listed)

    @property
    def image_keys(self) -> Sequence[Key]:
        """The images that were named."""
        return self._images.keys if self._images is not None else ()

    def take_images(self, other: Draft, rows: Sequence[int]) -> None:
        """Name some of the images of another draft, by their place in it, in its folder."""
        self.image_folder = other.image_folder
        if other._images is not None:
            given = other._images
            names = [given.file_names[row] for row in rows]
            self.set_images([given.keys[row] for row in rows], file_names=names, sizes=given.sizes[list(rows)])
            self._images = replace(self._images or given, listed=given.listed)

    def set_classes(self, keys: Sequence[Key], names: Sequence[str], *, named: bool = True) -> None:
        """Name the classes, in the order that reports use; keys must be unique."""
        self._classes = (list(keys), list(names), named)

    @property
    def has_classes(self) -> bool:
        """Whether classes were named."""
        return self._classes is not None

    def add_image_labels(self, fact: int, images: Keys, classes: Keys, place: Callable[[int], Where]) -> None:
        """Add what is known of classes on whole images (`data.imagelabels`), any number of times; no rows count, too.

        `images` and `classes` are as long; `place` is where the file has it.
        """
        self._labels = [*(self._labels or []), _Labels(fact, images, classes, place)]

    def mention_scores(self, count: int, where: Where | None = None) -> None:
        """Report that ground truth has scores, and count them: a lone input that has some may be predictions."""
        self.ignored["score"] += count
        self.findings.note("gt-scores", where or Where(self.path), "scores of ground truth are ignored")

    def add_boxes(self, boxes: RawBoxes) -> None:
        """Add boxes, any number of times; all are of one encoding, in the same units, and have shapes or have none."""
        self._boxes.append(boxes)

    @property
    def n_boxes(self) -> int:
        """How many boxes were added."""
        return sum(len(boxes.coords) for boxes in self._boxes)

    def mention_uncounted(self, counts: Mapping[str, int]) -> None:
        """Report how many boxes, by what they are, the benchmark's own tool does not judge."""
        given = {what: count for what, count in counts.items() if count}
        if given:
            total = pluralise(sum(given.values()), "box does", "boxes do")
            kinds = ", ".join(f"{count:,} {what}" for what, count in given.items())
            detail = f"{total} not count, as in the benchmark: {kinds}"
            self.findings.note("benchmark-ignored", Where(self.path), detail)

    def build(self) -> Dataset:
        """Index, convert and check what was added.

        Raises
        ------
        DataError
            With every problem of the input, in one pass.
        """
        self.findings.raise_errors()
        options = self.options
        as_written = raw = self._ordered(self._sound(_joined(self._boxes, self.path)))
        axes = options.mask_axes or AS_WRITTEN
        if axes != AS_WRITTEN:
            from jaccard_eval.reading.outlines import with_axes, with_new_sizes  # most inputs are boxes

            raw = with_axes(raw, axes, options.role, self.path, self.findings)
        check_numbers(raw, self.findings)
        if raw is as_written:  # else its rows are those of the other
            raw = as_written = self._sound(raw)
        self._check_scores(raw)
        images, image_rows = self._build_images(raw)
        if raw is not as_written:
            self.details.append(f"masks {MASK_AXES[axes]}")
            images = with_new_sizes(images, image_rows, as_written, raw)
        labels, label_rows = self._build_labels(raw)
        # What follows computes with the numbers, and would report again what is wrong with them; it needs no scores.
        self.findings.raise_errors(but=("score-missing",))
        reading = self._reading(raw, labels)
        xywh = self._from_origin(to_xywh(raw.coords, reading.encoding), reading)
        if reading.units == "px" and self.pictures is None:
            images = self._without_placeholders(images, xywh)
        xywh = self._sorted_corners(raw, reading, xywh, lambda: images.sizes[image_rows])
        # Fractions of images with exchanged sides become pixels when they are turned back.
        units = reading.units
        if reading.resized is None or not reading.resized.swaps:
            xywh, units = self._to_pixels(xywh, units, images, image_rows)
        shapes = None if raw.shapes is None else self._converted(raw.shapes, reading, units, images.sizes[image_rows])
        with np.errstate(over="ignore", invalid="ignore"):
            if shapes is None:
                area = xywh[:, 2] * xywh[:, 3]
            else:
                from jaccard_eval.similarity.obb import areas_of  # boxes alone are read without

                area = areas_of(shapes, xywh)
        if raw.area is not None and reading.units == "px":
            area = np.where(np.isnan(raw.area), area, raw.area)
        check_sizes(raw, xywh, options, self.findings)
        if raw.area is not None:
            check_areas(raw.area, raw.place, self.findings)
        lost = self._lost()
        # The format may have reported that in its own words.
        if not len(raw.coords) and not lost and not self.findings.has("gt-empty", "pred-empty"):
            is_gt = options.role == "gt"
            code, detail = ("gt-empty", "no ground truth boxes") if is_gt else ("pred-empty", "no predictions")
            self.findings.warning(code, Where(self.path), detail)
        self.findings.raise_errors()
        boxes = _make_table(raw, options, image_rows, label_rows, xywh=xywh, area=area, shapes=shapes)
        # Rows without an image or class belong to ground truth that was ignored, with a warning.
        kept = (image_rows >= 0) & (label_rows >= 0) & ~self._dropped(xywh)
        self._settle_skipped(raw, kept)
        self._refuse_lost(lost, kept)
        facts = self._build_facts(images, labels, raw)  # which may find something
        return Dataset(
            path=self.path,
            format=self.format_name,
            role=options.role,
            images=images,
            labels=labels,
            boxes=boxes if kept.all() else boxes.take(kept),
            units=units,
            units_guessed=raw.units_guessed and options.units is None,
            reading=reading,
            details=tuple(self.details),
            has_no_class=self.has_no_class,
            has_splits=self.has_splits,
            zero_id=self.zero_id,
            annotation_ids=self.annotation_ids if len(self.annotation_ids) == len(kept) else (),
            ignored=dict(sorted(self.ignored.items())),
            findings=self.findings.findings(),
            image_folder=self.image_folder,
            facts=facts,
            point_names=self.point_names,
            first_mask=self.first_mask,
        )

    def _lost(self) -> str:
        """Describe the records with objects that are ignored; tags and answers about an image are none."""
        counts = Counter(self.ignored)
        counts["shape"] -= self.n_shapeless
        return " and ".join(f"{what} ({counts[reason]:,})" for reason, what in _LOST.items() if counts[reason] > 0)

    def _refuse_lost(self, lost: str, kept: BoolArray) -> None:
        if lost and not kept.any():
            detail = f"nothing is left to evaluate: it only has {lost}"
            fix = "Export the objects as that warning describes, or pass another file."
            self.findings.error("content-lost", Where(self.path), detail, fix=fix)
            self.findings.raise_errors()

    def _build_facts(self, images: ImageTable, labels: LabelMap, raw: RawBoxes) -> ClassFacts:
        """Index what was added besides boxes; what names no known image or class is ignored, with a warning."""
        at = {key: row for row, key in enumerate(labels.keys)}
        frequency = tuple(self.class_frequency.get(key, "") for key in at) if self.class_frequency else ()
        above = tuple(sorted({at[parent] for parent in self._above(key) if parent in at}) for key in at)
        ancestors = tuple(map(tuple, above)) if self.class_parents else ()
        of_images = {
            name: np.array([values.get(key, np.nan) for key in images.keys], dtype=np.float64)
            for name, values in self.of_images.items()
        }
        if self._labels is None:
            return ClassFacts(None, frequency, ancestors, of_images, raw.of_boxes, self.usual_protocol)
        columns = []
        for given in self._labels:
            _, image = index_keys(given.images, images.keys)
            _, label = index_keys(given.classes, labels.keys)
            for kind, keys, rows in (("image", given.images, image), ("class", given.classes, label)):
                self.findings.add_rows(
                    Severity.WARNING,
                    "image-label-unknown",
                    np.flatnonzero(rows < 0),
                    lambda row, kind=kind, keys=keys, given=given: (  # type: ignore[misc]
                        given.place(row),
                        f"{FACTS[given.fact]}: {kind} {quoted_value(keys[row])} is not listed: ignored",
                    ),
                )
            known = (image >= 0) & (label >= 0)
            columns.append((image[known], label[known], np.full(int(known.sum()), given.fact, dtype=np.int8)))
        known_labels = ImageLabels.ordered(*map(np.concatenate, zip(*columns, strict=True)))
        return ClassFacts(known_labels, frequency, ancestors, of_images, raw.of_boxes, self.usual_protocol)

    def _above(self, key: Key) -> set[Key]:
        """Return the keys of all classes above one."""
        found: set[Key] = set()
        waiting = list(self.class_parents.get(key, ()))
        while waiting:
            parent = waiting.pop()
            if parent not in found:
                found.add(parent)
                waiting += self.class_parents.get(parent, ())
        return found

    def _dropped(self, xywh: FloatArray) -> BoolArray:
        """Return which boxes are dropped for their negative size, and count them."""
        dropped = inverted(xywh) & self.options.drop_inverted
        if dropped.any():
            self.ignored["inverted"] += int(np.count_nonzero(dropped))
        return dropped

    def _settle_skipped(self, raw: RawBoxes, kept: BoolArray) -> None:
        """Take boxes that the last checks found faulty out of `kept` (n,), and count all that is skipped."""
        if isinstance(self.findings, SkippingLog):
            kept[self.findings.faulty([raw.place(row) for row in range(len(kept))])] = False
            if n_skipped := self.findings.settle(int(kept.sum()), self.path):
                self.ignored["invalid"] += n_skipped

    def _sorted_corners(
        self, raw: RawBoxes, reading: Reading, xywh: FloatArray, sizes: Callable[[], FloatArray]
    ) -> FloatArray:
        """Return boxes with their corners in order, where that of some can only be the way they were drawn."""
        n = int(np.count_nonzero(inverted(xywh)))
        is_many = n > MOST_INVERTED * len(xywh)
        if not n or self.options.box or self.options.drop_inverted or raw.shapes is not None:
            return xywh
        # A few inverted boxes of a detector match nothing, as in pycocotools.
        is_hand_made = self.options.role == "gt" or is_many
        known = reading.encoding == "xyxy" and reading.units == "px" and is_hand_made
        if not raw.drawn and not (known and are_corners_alone(raw.coords, sizes())):
            return xywh
        has = "box has its corners" if n == 1 else "boxes have their corners"
        detail = f"{n:,} of {len(xywh):,} {has} in another order, as they were drawn: sorted"
        self.findings.note("corners-sorted", Where(self.path, field="bbox"), detail)
        self.details.append(f"corners of {n:,} boxes sorted")
        with np.errstate(invalid="ignore"):  # what is not finite is reported later
            low = np.minimum(xywh[:, :2], xywh[:, :2] + xywh[:, 2:])
        return np.concatenate((low, np.abs(xywh[:, 2:])), axis=1)

    def _sound(self, raw: RawBoxes) -> RawBoxes:
        """Return boxes without those whose records cannot be used, where these may be skipped."""
        if not isinstance(self.findings, SkippingLog) or not self.findings.places:
            return raw
        faulty = self.findings.faulty([raw.place(row) for row in range(len(raw.coords))])
        return raw.take(np.delete(np.arange(len(raw.coords)), faulty)) if faulty else raw

    def _from_origin(self, xywh: FloatArray, reading: Reading) -> FloatArray:
        """Count pixels from 0."""
        if not reading.origin or not len(xywh):
            return xywh
        if reading.units != "px":
            detail = "boxes are fractions of their image, without a first pixel: no box is moved"
            words = "Remove {origin}, or pass {units} if they are pixels."
            fix = Fix.of_side(self.options.role, words, origin=None, units="px")
            self.findings.warning("origin-unused", Where(self.path, field="box"), detail, fix=fix)
            return xywh
        self.details.append(f"pixels counted from {reading.origin}")
        return xywh - np.array([reading.origin, reading.origin, 0, 0], dtype=np.float64)

    @staticmethod
    def _converted(shapes: Shapes, reading: Reading, units: str, sizes: FloatArray) -> Shapes:
        """Return shapes in `units`, with pixels counted from 0; `sizes` (n, 2) are those of their images."""
        if reading.origin and reading.units == "px":
            shapes = shapes.shifted(np.full((len(sizes), 2), -float(reading.origin)))
        return shapes.scaled(sizes) if (reading.units, units) == ("norm", "px") else shapes

    def _ordered(self, raw: RawBoxes) -> RawBoxes:
        """Put the points of poses in the order that the options name."""
        order = self.options.keypoint_order
        if order is None:
            return raw
        from jaccard_eval.similarity.keypoints import Keypoints  # most inputs are boxes

        poses: object = raw.shapes
        if not isinstance(poses, Keypoints) or not len(poses):
            return raw
        n = poses.points.shape[1]
        if sorted(order) != list(range(n)):
            given = ",".join(map(str, order))
            words = f"{{keypoint_order}}: poses have {n} keypoints. Name each of 0 to {n - 1} once."
            raise UsageError(fix=Fix.of_side(self.options.role, words, keypoint_order=given))
        self.details.append(f"keypoints in the order {','.join(map(str, order))}")
        self.point_names = ()  # what was named decides
        return replace(raw, shapes=Keypoints(poses.points[:, list(order)]))

    def _reading(self, raw: RawBoxes, labels: LabelMap) -> Reading:
        """Return how the numbers of the file are read."""
        options = self.options
        if options.origin not in (0, 1):
            raise UsageError(f"origin must be 0 or 1, got {quoted_value(options.origin)}")
        named = tuple(name for name in ("box", "units", "resized", "angle") if getattr(options, name) is not None)
        if options.names and (not labels.names or not {*options.names}.isdisjoint(labels.names)):
            named += ("names",)  # else the file has names of its own
        units = options.units or raw.units
        # These boxes are mapped back later, where the sizes that both sides know have come together.
        resized = options.resized and Resizing.for_side(
            options.resized, options.role, units if len(raw.coords) else "px"
        )
        if resized and not resized.is_turn:  # whose numbers are fractions of what the images were resized to, at most
            units = "px"
        return Reading(
            encoding=options.box or raw.encoding,
            units=units,
            origin=options.origin,
            resized=resized or None,
            angle=self.angle,
            mask_axes=options.mask_axes or AS_WRITTEN,
            named=named,
        )

    def _check_scores(self, raw: RawBoxes) -> None:
        if self.options.role != "pred":
            n_given = 0 if raw.score is None else int(np.count_nonzero(~np.isnan(raw.score)))
            if n_given and not self.ignored["score"]:  # the reader has not mentioned them
                self.mention_scores(n_given)
            return
        if raw.score is not None or not len(raw.coords):
            return
        assumed = self.options.assume_score
        if assumed is None:
            why, fix = raw.no_score or ("", NO_MASK_SCORES if self.options.iou_type in MASKS else NO_SCORES)
            detail = "predictions have no score; average precision ranks boxes by their score" + why
            found = DataError.single("score-missing", raw.place(0), detail, fix=fix).findings
            # What none has is not a fault of a record.
            log = self.findings
            (log.extend_as_they_are if isinstance(log, SkippingLog) else log.extend)(found)
        else:
            detail = f"none of the {len(raw.coords):,} predictions has one; all rank equally with {assumed:g}"
            detail += ", and AP depends on their order"
            self.findings.note("score-assumed", Where(self.path, field="score"), detail)

    def _build_images(self, raw: RawBoxes) -> tuple[ImageTable, RowArray]:
        given = self._images or _Images([], [], unknown_sizes(0), False)
        closed = self._images is not None and given.listed
        integers = as_integers(given.keys)
        listed = given.keys if integers is None else IntegerKeys(integers)
        keys, rows = self._universe("image", raw.image, listed, raw.place, closed=closed)
        # Images are sorted by key, and those that only boxes name are among them: their row in the list is -1, which
        # finds what is put behind its end.
        if integers is not None and isinstance(keys, IntegerKeys):
            order = np.argsort(integers, kind="stable")
            sources = np.append(order, -1)[index_integers(keys.values, integers[order])]
        else:
            at = {key: row for row, key in enumerate(given.keys)}
            keys, sources = tuple(keys), np.array([at.get(key, -1) for key in keys], dtype=np.int64)
        names = map([*given.file_names, None].__getitem__, sources.tolist())
        sizes = np.concatenate((given.sizes, unknown_sizes(1)))[sources]
        return ImageTable(keys, tuple(names), sizes, given.listed), rows

    def _without_placeholders(self, images: ImageTable, xywh: FloatArray) -> ImageTable:
        """Take sizes that some exporter wrote because it had to, such as 1 x 1 for all images, for unknown."""
        if not len(images) or not len(xywh):
            return images
        width, height = images.sizes[0]
        is_alike = bool((images.sizes == images.sizes[0]).all()) and max(width, height) <= PLACEHOLDER_SIDE
        if not is_alike or (xywh[:, 2:].max(axis=1) <= max(width, height)).any():
            return images
        detail = (
            f"{pluralise(len(images), 'image is', 'images are')} {width:g} x {height:g} pixels, "
            "smaller than every box: sizes are treated as unknown"
        )
        self.findings.note("size-placeholder", Where(self.path, field="size"), detail)
        return replace(images, sizes=unknown_sizes(len(images)))

    def _build_labels(self, raw: RawBoxes) -> tuple[LabelMap, RowArray]:
        given, names, named = self._classes or ([], [], False)
        keys, rows = self._universe("class", raw.label, given, raw.place, closed=self._classes is not None)
        if not named and self.options.names and all(isinstance(key, int) for key in keys):
            return LabelMap(tuple(keys), self._names_of(keys, self.options.names), named=True), rows
        at = dict(zip(given, names, strict=True))
        texts = tuple(at.get(key, str(key)) for key in keys)
        for text in texts:
            plain = text[1:-1]
            if plain and text[0] == text[-1] and text[0] in "'\"" and plain in texts:
                counts = (pluralise(int((rows == texts.index(name)).sum()), "box", "boxes") for name in (text, plain))
                detail = "{0} ({2}) and {1} ({3}) are two classes".format(text, plain, *counts)
                fix = "Delete the quotes if they are the same class."
                self.findings.warning("class-quoted", Where(self.path, field="class"), detail, fix=fix)
        row_of = {text: row for row, text in enumerate(texts)}
        listed = self.listed_names if row_of.keys() <= {*self.listed_names} else ()
        order = tuple(row_of.get(name, -1) for name in listed)
        return LabelMap(tuple(keys), texts, named, order), rows

    def _names_of(self, keys: Sequence[Key], names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of classes that the input only numbers."""
        outside = [key for key in keys if not (isinstance(key, int) and 0 <= key < len(names))]
        detail = f"has no name: the {len(names)} given names are for classes 0 to {len(names) - 1}"
        advice = Fix.of_side(self.options.role, "Give a name for every index with {names}.", names=None)
        for key in outside:
            where = Where(self.path, field="class")
            self.findings.error("class-index", where, f"class {quoted_value(key)} {detail}", fix=advice)
        return tuple(str(key) if key in outside else names[int(key)] for key in keys)

    def _universe(
        self, kind: str, box_keys: Keys, given: Sequence[Key], place: Callable[[int], Where], *, closed: bool
    ) -> _Universe:
        """Index the boxes' keys in the union of given and used; ground truth outside a closed list is ignored."""
        what = "images" if kind == "image" else "categories"
        if count_distinct(given) != len(given):
            repeated = [key for key, count in Counter(given).items() if count > 1]
            where = Where(self.path, record=what, field="id")
            self.findings.add_rows(
                Severity.ERROR,
                "image-duplicate" if kind == "image" else "class-duplicate",
                range(len(repeated)),
                lambda row: (where, f"duplicate {kind} id {quoted_value(repeated[row])}"),
                fix="Ids must be unique; drop or renumber the repeated entries.",
            )
            self.findings.raise_errors()
        known, rows = index_keys(box_keys, given)
        orphans = np.flatnonzero(rows < 0)
        if not len(orphans):
            return known, rows
        if closed and self.options.role == "gt":
            code = "image-unlisted" if kind == "image" else "class-unlisted"
            summary = f"ignored {pluralise(len(orphans), 'box', 'boxes')}: their {kind} is not among the file's {what}"

            def describe(row: int) -> tuple[Where, str]:
                return place(row), f"{kind} {quoted_value(box_keys[row])}"

            shifted = _shifted_list(distinct_keys(box_keys, np.arange(len(box_keys))), given) if kind == "class" else ""
            if shifted:
                summary += f"; boxes use {shifted}. The list seems shifted by one: check every class name"
            fix = "Subtract 1 from the category ids." if shifted else ""
            self.findings.add_rows(Severity.WARNING, code, orphans, describe, summary=summary, fix=fix)
            self.ignored[code] += len(orphans)
            return known, rows
        # Predictions keep what the list lacks: whether that is an error is decided with the ground truth.
        lacking = distinct_keys(box_keys, orphans)
        return index_keys(box_keys, [*given, *lacking] if len(given) else lacking)

    def _to_pixels(
        self, xywh: FloatArray, units: str, images: ImageTable, image_rows: RowArray
    ) -> tuple[FloatArray, str]:
        """Return fractions as pixels where the sizes of all images with boxes are known, and the units then."""
        used = image_rows[image_rows >= 0]
        if units != "norm" or not len(images) or not np.isfinite(images.sizes[used]).all():
            return xywh, units
        width, height = images.sizes[image_rows, 0], images.sizes[image_rows, 1]
        with np.errstate(over="ignore"):
            return xywh * np.stack((width, height, width, height), axis=1), "px"


def _shifted_list(used: Sequence[Key], listed: Sequence[Key]) -> str:
    """Describe which ids boxes use and which are listed if the former are one below the latter; empty if not."""
    numbers = [key for key in used if isinstance(key, int)]
    ids = [key for key in listed if isinstance(key, int)]
    # Ids that end with the list's last belong to the list, and one below them is another class, such as background.
    is_shifted = len(numbers) == len(used) and len(ids) == len(listed) and {key + 1 for key in numbers} <= {*ids}
    if not is_shifted or min(numbers) != min(ids) - 1:
        return ""
    return f"{min(numbers)} to {max(numbers)}, the categories are {min(ids)} to {max(ids)}"


@dataclass(slots=True)
class _Labels:
    """What is known of classes on images, by their keys; see `ImageLabels`."""

    fact: int
    images: Keys
    classes: Keys
    place: Callable[[int], Where]


@dataclass(slots=True)
class _Images:
    keys: list[Key]
    file_names: list[str | None]
    sizes: FloatArray
    listed: bool


def _joined(parts: Sequence[RawBoxes], path: str) -> RawBoxes:
    """Return the boxes of all parts as one."""
    if len(parts) < 2:
        empty = {"image": [], "label": [], "coords": np.zeros((0, 4)), "encoding": "xywh", "units": "px"}
        return parts[0] if parts else RawBoxes(**empty, place=lambda _: Where(path))  # type: ignore[arg-type]
    first = parts[0]
    for name in ("encoding", "units", "units_guessed", "negative_size"):
        if any(getattr(part, name) != getattr(first, name) for part in parts):
            raise ValueError(f"boxes were added with more than one {name}")
    shapes = [part.shapes for part in parts if part.shapes is not None]
    if shapes and len(shapes) < len(parts):
        raise ValueError("boxes were added with shapes and without")
    sizes = [len(part.coords) for part in parts]
    starts = np.cumsum([0, *sizes])

    def place(row: int) -> Where:
        part = int(np.searchsorted(starts, row, "right")) - 1
        return parts[part].place(row - int(starts[part]))

    def column(name: str, filler: float | bool) -> npt.NDArray[Any] | None:
        columns = [getattr(part, name) for part in parts]
        if all(values is None for values in columns):
            return None
        filled = (np.full(n, filler) if values is None else values for n, values in zip(sizes, columns, strict=True))
        return np.concatenate(list(filled))

    columns: dict[str, Any] = {name: column(name, np.nan) for name in ("score", "area")}
    columns |= {name: column(name, False) for name in (*FLAGS, "of_box")}
    quantities = sorted({name for part in parts for name in part.of_boxes})
    of_boxes = {
        name: np.concatenate(
            [part.of_boxes.get(name, np.full(n, np.nan)) for n, part in zip(sizes, parts, strict=True)]
        )
        for name in quantities
    }
    return replace(
        first,
        image=_joined_keys([part.image for part in parts]),
        label=_joined_keys([part.label for part in parts]),
        coords=np.concatenate([part.coords for part in parts]),
        place=place,
        shapes=shapes[0].joined(shapes[1:]) if shapes else None,
        of_boxes=of_boxes,
        **columns,
    )


def _joined_keys(parts: Sequence[Keys]) -> Keys:
    if all(isinstance(keys, np.ndarray) for keys in parts):
        return np.concatenate(parts)  # type: ignore[arg-type]
    return [key for keys in parts for key in (keys.tolist() if isinstance(keys, np.ndarray) else keys)]


def _make_table(
    raw: RawBoxes,
    options: ReadOptions,
    image: RowArray,
    label: RowArray,
    *,
    xywh: FloatArray,
    area: FloatArray,
    shapes: Shapes | None,
) -> BoxTable:
    n = len(xywh)
    score = None
    if options.role == "pred":  # ground truth has none, whatever the file carries
        score = np.full(n, options.assume_score or 0.0) if raw.score is None else raw.score
    flags = {flag: getattr(raw, flag) for flag in FLAGS}
    given: dict[str, Any] = {
        # One byte for all rows, as columns are never written to.
        flag: np.broadcast_to(np.False_, n) if values is None else values
        for flag, values in flags.items()
    }
    table = BoxTable(
        image=image,
        label=label,
        xywh=np.ascontiguousarray(xywh),
        score=score,
        area=area,
        source=np.arange(n),
        shapes=shapes,
        **given,
    )
    return freeze(table)


def place_of(where: Where) -> Place:
    """Return the file, the line, and the way to the record and field in it."""
    return where.path, where.line, ".".join(filter(None, (where.record, where.field))) or None


def is_of_record(where: Where) -> bool:
    """Whether a place is a record or line that may hold a box."""
    return where.line is not None or (where.record is not None and not _OTHERS.fullmatch(where.record))


class SkippingLog(FindingLog):
    """Findings of a reader that skips records that cannot be used: errors about one record end nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = FindingLog()
        self.places: dict[Place, Where] = {}
        self._left_out: set[Place] = set()  # a record may have several boxes
        self._depth = _DEEPEST  # of the places of boxes
        self._around: set[Place] = set()  # what these lie in: a point of a polygon in its shape

    def add_rows(
        self,
        severity: Severity,
        code: str,
        rows: SizedRows,
        describe: Callable[[int], tuple[Where, str]],
        **more: Any,
    ) -> None:
        """Record one finding about many rows; of those that are skipped all are described."""
        if severity is Severity.ERROR and code in FAULTS:
            for row in rows:
                where, detail = describe(int(row))
                self.error(code, where, detail, fix=more.get("fix", ""))
        else:
            super().add_rows(severity, code, rows, describe, **more)

    def _add(self, severity: Severity, code: str, examples: list[Example], *rest: Any, **more: Any) -> Group:
        places = [example.where for example in examples]
        if severity is not Severity.ERROR or code not in FAULTS or not all(map(is_of_record, places)):
            return super()._add(severity, code, examples, *rest, **more)
        for where in places:
            self.places[place_of(where)] = where
            self._around.update(_places_around(where))
        return self.faults._add(severity, code, examples, *rest, **more)

    def faulty(self, places: Sequence[Where]) -> list[int]:
        """Return which boxes of these places are skipped: those of a record with a fault in it."""
        self._depth = min([self._depth, *(_depth(place_of(where)[2]) for where in places)])
        found = [row for row, where in enumerate(places) if place_of(where) in self._around]
        self._left_out.update(place_of(places[row]) for row in found)
        return found

    def settle(self, n_left: int, path: str) -> int:
        """Report how many records were skipped of a side, and return that; an error where nothing is left."""
        # What its reader added no box for is counted by its record.
        others = {
            (where.path, where.line, where.record)
            for where in self.places.values()
            if self._left_out.isdisjoint(_places_around(where))
        }
        # A fault of what holds boxes, such as an image, is not one of a box.
        if self._depth < _DEEPEST and any(_depth(record) < self._depth for _, _, record in others):
            self.refuse()
        n = len(self._left_out) + len(others)
        if n and not n_left:
            self.refuse()
        if n:
            found = self.faults.findings()
            kinds = ", ".join(f"{finding.count:,} {finding.code}" for finding in found)
            what = f"skipped {n:,} of {pluralise(n + n_left, 'record', 'records')} that cannot be used ({kinds})"
            self.warning("record-skipped", Where(path), f"{what}; first: {found[0].examples[0]}")
        return n

    def refuse(self) -> NoReturn:
        """Raise the errors about records, as if none might be skipped."""
        self.extend_as_they_are(self.faults.findings())
        raise DataError(self.findings())

    def extend_as_they_are(self, findings: Sequence[Finding]) -> None:
        """Take over errors that end the reading."""
        for finding in findings:
            super()._add(finding.severity, finding.code, [*finding.examples], finding.fix, finding.summary)


def _depth(record: str | None) -> int:
    return 0 if record is None else record.count("[")


def _places_around(where: Where) -> Iterator[Place]:
    """Yield the places that one lies in: shapes[0].points[1].x, shapes[0].points[1], shapes[0]."""
    path, line, full = place_of(where)
    yield path, line, full
    yield path, line, where.record
    for cut in _STEPS.finditer(full or ""):
        if (full or "")[: cut.start()].endswith("]"):
            yield path, line, (full or "")[: cut.start()]


def explained(error: DataError, read: Callable[[], FindingLog]) -> DataError:
    """Return an error about records with all of them, whatever stage found them, and with the way to go on without.

    `read` reads the input once more, without these records: its findings, or an error where that ends otherwise too.
    """
    errors = [finding for finding in error.findings if finding.severity is Severity.ERROR]
    if not any(finding.code in FAULTS and is_of_record(finding.examples[0].where) for finding in errors):
        return error
    try:
        log = read()
    except DataError:
        return error
    if not isinstance(log, SkippingLog) or not log.places:
        return error
    *faults, last = log.faults.findings()
    words, options = (last.fix.words, last.fix.options) if last.fix else ("", {})
    words = f"{words} To go on without such records, pass {{skip_invalid}}.".lstrip()
    last = replace(last, fix=Fix.missing(words, **options, skip_invalid=ON))
    rest = (finding for finding in log.findings() if finding.code != "record-skipped")
    return DataError((*faults, last, *rest))
