"""Segmented images: which segments an image lists, of which class, and where the map of their ids lies."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.dataset import ImageTable, unknown_sizes
from jaccard_eval.data.imagekeys import NOWHERE, posix, without_suffix
from jaccard_eval.engine import bring, list_names, path_of
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.files import (
    head,
    is_folder,
    list_folder,
    list_tree,
    read_text,
    refuse_result,
    require_readable,
)
from jaccard_eval.reading.json import described_json, is_number, kind_of, parse_json
from jaccard_eval.reading.labelmaps import (
    CATEGORIES,
    POINT_SUFFIXES,
    ArrayMap,
    ArrayMaps,
    Category,
    EncodedImage,
    LabelImage,
    best_match,
)
from jaccard_eval.reading.records import Record
from jaccard_eval.text import pluralise, quoted_value, shown_json

MAX_ID = 2**24 - 1  # of three bytes


@dataclass(frozen=True, slots=True, eq=False)
class ListedSegments:
    """The segments that an image lists, shape (n,) each."""

    ids: npt.NDArray[np.int64]
    categories: tuple[str, ...]  # keys of their classes
    crowd: npt.NDArray[np.bool_]
    area: npt.NDArray[np.float64]  # as listed; NaN where it is not


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedImage:
    """One image of a side."""

    key: str
    name: str  # of the image that was segmented, where the side has it; else of the map
    map: Path | ArrayMap
    where: Where  # of the record that lists the segments, or of the map
    size: tuple[int, int] | None  # width and height as listed
    # None where the values of the map show it, see `SegmentedSide.list_of`; else where the list cannot be read
    segments: ListedSegments | None


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedSide:
    """The images of one side."""

    path: str
    masks: str  # folder of the maps
    format: str
    categories: tuple[Category, ...]  # none where the other side has them
    images: tuple[SegmentedImage, ...]
    decode: Callable[[EncodedImage], LabelImage]
    failed: frozenset[str] = frozenset()  # images whose records cannot be used, which was reported
    # Of a layout without lists: the segments that the values of a map are.
    list_of: Callable[[npt.NDArray[np.int64]], ListedSegments] | None = None
    has_labels: bool = False  # segments whose classes may be numbered by a model, see `_placed`

    @property
    def by_key(self) -> dict[str, SegmentedImage]:
        """The images by their keys."""
        return {image.key: image for image in self.images}

    def renamed(self, meaning: Mapping[str, str]) -> SegmentedSide:
        """Return the side with other categories for some of its own."""

        def meant(listed: ListedSegments) -> ListedSegments:
            return replace(listed, categories=tuple(meaning.get(key, key) for key in listed.categories))

        listed, list_of = (image.segments for image in self.images), self.list_of
        images = zip(self.images, listed, strict=True)
        return replace(
            self,
            images=tuple(replace(image, segments=None if own is None else meant(own)) for image, own in images),
            list_of=None if list_of is None else lambda values: meant(list_of(values)),
        )


COCO_PANOPTIC = "coco-panoptic"
_SUFFIXES = (".json.gz", ".json")
_MARKS = (b'"segments_info"', b'"label_id"', b'"segment_id"')
_OF_SEGMENT = b'"category_id"'  # which a list of classes has not
_SEGMENTS = frozenset({"segments_info", "segments"})  # fields of records
_ALONE = "segments_info.json"  # of the image that its folder is called after
_UNIQUE = "Ids must be unique; drop or renumber the repeated entries."
_BOXES_FIX = Fix.missing("These are boxes: evaluate them with {command}.", command="evaluate GT PRED")
_ID_FIX = "Ids of segments are whole numbers from 1 to 16777215, as three bytes of a PNG file can hold them."


def read_file(role: str, path: Path, masks: Path | ArrayMaps | None, findings: FindingLog) -> SegmentedSide | None:
    """Read a JSON file; its maps lie in the folder that is called like it, unless another one is given."""
    try:
        refuse_result(path, head(path))
        document = parse_json(path, read_text(path))
    except DataError as error:
        findings.extend(error.findings)
        return None
    if (records := _image_records(document, path.stem)) is not None:
        document = {"annotations": records}
        masks = masks or _maps_within(records, path, findings)
    elif isinstance(document, dict):
        document = _without_videos(document)
    if not isinstance(document, dict):
        detail = f"is {described_json(document)}; expected an object with annotations"
        is_boxes = isinstance(document, list) and document and isinstance(document[0], dict) and "bbox" in document[0]
        fix = _BOXES_FIX if is_boxes else 'Write {"annotations": [...]}, a record with segments_info for each image.'
        findings.error("record-type", Where(str(path)), detail, fix=fix)
        return None
    return read_document(role, document, str(path), masks or _maps_of(path, document), findings)


def _image_records(document: Any, stem: str) -> list[Any] | None:
    """Return the records of images that stand alone: one, a list, or by the names of images; None where there are none.

    So scripts write what transformers' ``post_process_panoptic_segmentation`` returns, or its list of segments alone; a
    map is called like its image.
    """
    rows = [row for row in document if isinstance(row, dict)] if isinstance(document, list) else []
    if any("label_id" in row or "segment_id" in row or {"isthing", "category_id"} <= row.keys() for row in rows):
        document = {"segments_info": document}
    if isinstance(document, dict) and not _SEGMENTS.isdisjoint(document):
        named = [(stem, document)]
    elif isinstance(document, dict) and "annotations" not in document:
        named = [*document.items()]
    else:
        named = [("", record) for record in document] if isinstance(document, list) else []
    if not named or any(not isinstance(record, dict) or _SEGMENTS.isdisjoint(record) for _, record in named):
        return None
    records = []
    for name, record in named:
        own = next((record[key] for key in ("file_name", "image", "image_id") if key in record), name)
        map_name = str(own) if str(own).endswith(".png") else f"{without_suffix(str(own))}.png"
        segments = record.get("segments_info", record.get("segments"))
        if isinstance(segments, list):
            renamed = [isinstance(row, dict) and "segment_id" in row for row in segments]
            pairs = zip(segments, renamed, strict=True)
            segments = [{"id": row["segment_id"], **row} if is_renamed else row for row, is_renamed in pairs]
        usual = {"image_id": without_suffix(str(own)), "file_name": map_name}
        records.append(usual | record | {"segments_info": segments})
    return records


def _maps_within(records: Iterable[dict[str, Any]], path: Path, findings: FindingLog) -> ArrayMaps | None:
    """Return the maps that records hold themselves, as rows of ids or as PNG in base64; None where none does."""
    maps: dict[str, Any] = {}
    for record in records:
        name, rows, packed = str(record["file_name"]), record.get("segmentation"), record.get("png_string")
        if isinstance(rows, list):
            maps[name] = rows
        elif isinstance(packed, str):
            where = Where(str(path), record=name, field="png_string")
            try:
                image = EncodedImage((base64.b64decode(packed, validate=True), where)).decode_ids(colored=None)
                maps[name] = image.rows(0, image.shape[0])
            except ValueError:
                findings.error("map-type", where, "is not base64", fix="Write the bytes of a PNG file.")
            except DataError as error:
                findings.extend(error.findings)
    return ArrayMaps(maps) if maps else None


def _without_videos(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document whose images are listed by video, as VIPSeg has them, with images that are called by both."""
    videos = document.get("annotations")
    if not isinstance(videos, list) or not all(isinstance(row, dict) and "annotations" in row for row in videos):
        return document
    found: dict[str, list[Any]] = {"annotations": [], "images": []}
    listed = document.get("videos")
    for field, rows in (("annotations", videos), ("images", listed if isinstance(listed, list) else [])):
        for video in rows:
            inner = video.get(field) if isinstance(video, dict) else None
            for row in inner if isinstance(inner, list) else []:
                name = f"{video.get('video_id')}/{row.get('file_name')}" if isinstance(row, dict) else ""
                key = {"annotations": "image_id", "images": "id"}[field]
                found[field].append({**row, key: without_suffix(name), "file_name": name} if name else row)
    return document | found


def _maps_of(path: Path, document: Mapping[str, Any]) -> Path:
    """Return the folder called like a JSON file, else the one that its first map is in: its own, or the one next to it.

    Where another JSON file lies next to it, maps may be of that one.
    """
    named = folder_of(path)
    records = document.get("annotations")
    first = records[0] if isinstance(records, list) and records else None
    name = first.get("file_name") if isinstance(first, dict) else None
    if is_folder(named) or not isinstance(name, str) or not name or _leads_out(name):
        return named
    name = _map_name(name)
    folders, names = list_folder(path.parent)
    if sum(name.lower().endswith(_SUFFIXES) for name in names) > 1:
        return named
    places = (path.parent, *(path.parent / folder for folder in folders))
    holding = [folder for folder in places if os.path.isfile(folder / name)]  # noqa: PTH113 - raises for odd names
    return holding[0] if len(holding) == 1 else named


def _leads_out(name: str) -> bool:
    """Whether a file may be anything that the user can read, and not one of the folder of maps."""
    parts = PurePosixPath(posix(name)).parts
    return ".." in parts or posix(name).startswith("/") or (bool(parts) and parts[0].endswith(":"))


def _map_name(name: str) -> str:
    """Return the name of a map: JPEG holds no ids, so that such a name is that of the image."""
    return f"{without_suffix(name)}.png" if name.lower().endswith((".jpg", ".jpeg")) else name


def folder_of(path: Path) -> Path:
    """Return the folder of the maps of a JSON file, as panopticapi has it: the path without its suffix."""
    for suffix in _SUFFIXES:
        if path.name.lower().endswith(suffix):
            return path.with_name(path.name[: -len(suffix)])
    return path.with_suffix("")


def read_document(
    role: str, document: Mapping[str, Any], path: str, masks: Path | ArrayMaps, findings: FindingLog
) -> SegmentedSide | None:
    """Read what a JSON file holds; of predictions, the annotations alone. None without classes to read them by."""
    record = Record.of(dict(document), Where(path), findings)
    annotations = document.get("annotations")
    first = annotations[0] if isinstance(annotations, list) and annotations else None
    if isinstance(first, dict) and "bbox" in first and "segments_info" not in first:
        record.error("layout", "annotations", "are of boxes: they have no segments_info", _BOXES_FIX)
        return None
    if "frames" in document and "annotations" not in document:  # Scalabel's, as BDD100K has them
        words = "Pass the folder of the bitmasks, or compare objects with {command} and {iou_type}."
        fix = Fix.missing(words, command="evaluate GT PRED", iou_type="segm")
        record.error("layout", "frames", "are labels of objects: they have no segments_info", fix)
        return None
    is_gt = role == "gt"
    if is_gt and "categories" not in document and "annotations" in document:
        order = "Pass the ground truth first, then the predictions: its JSON file has the categories."
        record.error("field-missing", "categories", "is missing", order)
        return None
    categories = _categories(record) if is_gt else ()
    listed = _images(record) if record.has("images") else {}
    if isinstance(masks, Path) and not is_folder(masks):
        fix = Fix.of_side(role, "Pass the folder of the PNG files with {masks}.", masks=None)
        findings.error("not-a-folder", Where(str(masks)), "there is no such folder of maps", fix=fix)
    reader = _Annotations(role, masks, {category.key for category in categories} if is_gt else None, listed)
    images = tuple(image for image in map(reader.read, record.records("annotations")) if image is not None)
    reader.add_remarks(findings, path)
    if isinstance(masks, Path):
        list_names(masks)
        bring(image.map for image in images if isinstance(image.map, Path))
    # What scripts write of a map in memory is grey as often as it is RGB.
    decode = partial(EncodedImage.decode_ids, colored=None if reader.n_labels else True)
    failed = reader.seen - {image.key for image in images}
    return SegmentedSide(
        path, str(masks), COCO_PANOPTIC, categories, images, decode, frozenset(failed), has_labels=reader.n_labels > 0
    )


def _categories(record: Record) -> tuple[Category, ...]:
    found: dict[str, Category] = {}
    for row in record.records("categories"):
        key = _key(row, "id")
        name = row.text("name") if row.has("name") else key
        is_thing = _flag(row, "isthing", required=True)
        color = row.values.get("color")
        colour = None
        if isinstance(color, list) and len(color) == 3 and all(type(part) is int for part in color):
            red, green, blue = (part & 255 for part in color)
            colour = red, green, blue
        if key in found:
            row.error("class-duplicate", "id", f"duplicate class id {key}", _UNIQUE)
        elif key:
            found[key] = Category(key, name, is_thing, colour)
    return tuple(found.values())


def _images(record: Record) -> dict[str, tuple[str, tuple[int, int] | None]]:
    """Return file name and size of each image by its id."""
    found: dict[str, tuple[str, tuple[int, int] | None]] = {}
    for row in record.records("images"):
        key = _key(row, "id")
        width, height = row.size()
        size = None if math.isnan(width) or math.isnan(height) else (int(width), int(height))
        if key in found:
            row.error("image-duplicate", "id", f"duplicate image id {key}", _UNIQUE)
        found[key] = (row.text("file_name") if row.has("file_name") else key, size)
    return found


def _key(record: Record, field: str) -> str:
    """Read an id as a text; empty where there is none."""
    value = record.values.get(field)
    if type(value) is int or (isinstance(value, str) and value):
        return str(value)
    if value is None:
        record.error("field-missing", field, "is null" if field in record.values else "is missing")
    else:
        detail = f"is {described_json(value)}; expected an integer or a string"
        record.error("id-type", field, detail, "Write ids as integers.")
    return ""


def _flag(record: Record, field: str, *, required: bool = False) -> bool:
    value = record.values.get(field)
    if value is None:
        if required:
            fix = "Write 1 for classes with instances, 0 for stuff."
            record.error("field-missing", field, "is missing: neither a thing nor stuff", fix)
        return False
    if value not in (0, 1):
        record.error("flag-value", field, f"is {described_json(value)}; expected 0 or 1", "Write 0 or 1.")
    return bool(value)


class _Annotations:
    """Reads the records of images, and counts what their segments lack."""

    def __init__(
        self,
        role: str,
        masks: Path | ArrayMaps,
        known: set[str] | None,
        listed: Mapping[str, tuple[str, tuple[int, int] | None]],
    ) -> None:
        self.role, self.masks, self.known, self.listed = role, masks, known, listed
        self.seen: set[str] = set()
        self._places: dict[str, str] = {}
        self._missing = dict.fromkeys(("iscrowd", "area"), 0)
        self._crowded: list[tuple[Where, str]] = []
        self._n_segments = 0
        self.n_labels = 0  # segments whose class is called as transformers calls it

    def read(self, record: Record) -> SegmentedImage | None:
        """Read one record; None where it cannot be used."""
        key, file_name = _key(record, "image_id"), record.text("file_name")
        self.seen.add(key)
        segments = self._segments(record)
        source = self._map(record, file_name) if file_name else None
        if not key or source is None:
            return None
        place = record.where.record or ""
        if self._places.setdefault(key, place) != place:
            detail = f"image {key} is annotated twice, first at {self._places[key]}"
            record.error("image-duplicate", "image_id", detail, "Keep one record for each image.")
            return None
        name, size = self.listed.get(key, (file_name, None))
        return SegmentedImage(key, name, source, record.where, size, segments)

    def add_remarks(self, findings: FindingLog, path: str) -> None:
        """Add what concerns all records."""
        uses = {"iscrowd": "read as 0", "area": "counted in the map"}
        for field, count in self._missing.items():
            if count and self.role == "gt":
                detail = f"{field} is missing in {count:,} of {self._n_segments:,} segments: {uses[field]}"
                findings.note("segment-fields", Where(path, field=field), detail)
        findings.add_rows(
            Severity.WARNING,
            "crowd-several",
            range(len(self._crowded)),
            self._crowded.__getitem__,
            fix="Merge the crowds of a class into one segment, as COCO has them.",
        )

    def _map(self, record: Record, file_name: str) -> Path | ArrayMap | None:
        if isinstance(self.masks, ArrayMaps):
            if file_name in self.masks.maps:
                return self.masks.map(file_name)
            detail = f"there is no map {quoted_value(file_name)} among the {len(self.masks.maps):,} given"
            record.error("map-unpaired", "file_name", detail, "Pass a map for each image.")
            return None
        if _leads_out(file_name):
            detail = f"file_name {quoted_value(file_name)} leads out of the folder of the maps"
            record.error("map-outside", "file_name", detail, "Write the name of a file in the folder.")
            return None
        return self.masks / posix(_map_name(file_name))

    def _segments(self, record: Record) -> ListedSegments | None:
        rows = [*record.records("segments_info")]
        ids, categories, crowd, area = [], [], [], []
        seen: dict[int, str] = {}
        for row in rows:
            identifier = self._id(row)
            field = "label_id" if row.has("label_id") and not row.has("category_id") else "category_id"
            # Of detectron2, which marks each that it is a thing, they are places as often as ids.
            self.n_labels += field == "label_id" or row.has("segment_id") or row.has("isthing")
            category = _key(row, field)
            if self.known is not None and category and category not in self.known:
                fix = "Add it to the categories, or fix the segment."
                row.error("class-unknown", field, f"category {category} is not in the categories", fix)
            place = row.where.record or ""
            if identifier is not None and seen.setdefault(identifier, place) != place:
                detail = f"id {identifier} is listed twice, first at {seen[identifier]}"
                row.error("segment-duplicate", "id", detail, "Give every segment of an image an id of its own.")
            listed = row.values.get("area")
            self._missing["iscrowd"] += "iscrowd" not in row.values
            self._missing["area"] += listed is None
            ids.append(identifier or 0)
            categories.append(category)
            crowd.append(_flag(row, "iscrowd"))
            area.append(float(listed) if listed is not None and is_number(listed) else math.nan)
        self._n_segments += len(rows)
        if not isinstance(record.values.get("segments_info"), list):
            return None
        self._note_crowds(record, categories, crowd)
        return ListedSegments(
            np.array(ids, dtype=np.int64), tuple(categories), np.array(crowd, dtype=np.bool_), np.array(area)
        )

    def _note_crowds(self, record: Record, categories: list[str], crowd: list[bool]) -> None:
        if self.role != "gt" or sum(crowd) < 2:
            return
        of_crowds = [category for category, is_crowd in zip(categories, crowd, strict=True) if is_crowd]
        several = sorted({category for category in of_crowds if of_crowds.count(category) > 1})
        if several:
            what = pluralise(of_crowds.count(several[0]), "crowd")
            detail = f"has {what} of class {several[0]}; as in panopticapi, predictions may lie on the last one alone"
            self._crowded.append((record.where, detail))

    def _id(self, row: Record) -> int | None:
        value = row.values.get("id")
        if type(value) is int and 0 < value <= MAX_ID:
            return value
        if value is None:
            row.error("field-missing", "id", "is null" if "id" in row.values else "is missing")
        elif value == 0 and type(value) is int:
            row.error("segment-id", "id", "is 0, which marks void: pixels of no segment", _ID_FIX)
        else:
            what = f"{shown_json(value)}, out of range" if type(value) is int else f"{kind_of(value)}, not an id"
            row.error("segment-id", "id", f"is {what}", _ID_FIX)
        return None


CITYSCAPES = "cityscapes"
ENDING = "_instanceIds.png"
PER_CLASS = 1_000  # values of one class of things
_DECORATION = "_gtFine"  # between the name of an image and the ending
_BY_TRAIN_ID = tuple(replace(category, key=str(row)) for row, category in enumerate(CATEGORIES))
_OF_STEP = tuple(replace(row, is_thing=row.name in ("person", "car")) for row in _BY_TRAIN_ID)
# Of BDD100K, by their ids from 1 on; those from person on have instances. Source: bdd100k/label/label.py.
_BDD100K = (
    "dynamic", "ego vehicle", "ground", "static", "parking", "rail track", "road", "sidewalk", "bridge", "building",
    "fence", "garage", "guard rail", "tunnel", "wall", "banner", "billboard", "lane divider", "parking sign", "pole",
    "polegroup", "street light", "traffic cone", "traffic device", "traffic light", "traffic sign",
    "traffic sign frame", "terrain", "vegetation", "sky", "person", "rider", "bicycle", "bus", "car", "caravan",
    "motorcycle", "trailer", "train", "truck",
)  # fmt: skip
_OF_BDD100K = tuple(
    Category(str(key), name, key >= _BDD100K.index("person") + 1) for key, name in enumerate(_BDD100K, start=1)
)

_Values = npt.NDArray[np.int64]
_NO_CLASS = -1


def _divided(values: _Values, *, by: int, below: int) -> tuple[_Values, _Values]:
    """Return class and number of values ``by * class + number``; those below a limit are classes without a number."""
    is_plain = values < below
    return np.where(is_plain, values, values // by), np.where(is_plain, _NO_CLASS, values % by)


def _of_channels(values: _Values) -> tuple[_Values, _Values]:
    """Return the class in red and the number in green and blue; 0 is none."""
    number = (values >> 8 & 255) << 8 | values >> 16
    return values & 255, np.where(number == 0, _NO_CLASS, number)


def _of_bitmasks(values: _Values) -> tuple[_Values, _Values]:
    """Return the class in red and the number in blue and alpha; what green flags as crowd or ignored is void."""
    is_void = values >> 8 & 3 != 0
    return np.where(is_void, _NO_CLASS, values & 255), (values >> 16 & 255) << 8 | values >> 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the values of maps name which class and segment a pixel is of.

    Parameters
    ----------
    name, words : str
    kind : str
        Of the PNG files: grey, RGB or RGBA.
    parts : callable
        Class and number of values; -1 is none.
    categories : tuple of Category
        None where a file next to the maps has them, or the other side.
    endings : str
        Of the files.
    least : int
        What the highest value must reach: those of another numbering are lower.
    note : str
        What the benchmark of such maps does in another way.
    has_crowds : bool
        Whether a thing without a number is a crowd.
    numbers_stuff : bool
        Whether stuff has numbers.
    """

    name: str
    words: str
    kind: str
    parts: Callable[[_Values], tuple[_Values, _Values]]
    categories: tuple[Category, ...] = ()
    ending: str = ".png"
    least: int = 0
    note: str = ""
    has_crowds: bool = False
    numbers_stuff: bool = False

    def decode(self, file: EncodedImage) -> LabelImage:
        """Decode a map."""
        if self.kind != "RGBA":
            return file.decode_ids(colored=self.kind == "RGB")
        channels = file.decode_channels().astype(np.int64)
        codes = channels @ np.array([1, 1 << 8, 1 << 16, 1 << 24])
        return LabelImage(file.shape, lambda top, bottom: codes[top:bottom])

    def listed(self, categories: tuple[Category, ...], values: _Values) -> ListedSegments:
        """Return the segments that distinct values are; what is of no class is void."""
        label, number = self.parts(values)
        is_thing = {category.key: category.is_thing for category in categories}
        keys = [str(key) for key in label.tolist()]
        rows = [row for row, key in enumerate(keys) if key in is_thing]
        things = np.array([is_thing[keys[row]] for row in rows], dtype=np.bool_)
        return ListedSegments(
            ids=values[rows],
            categories=tuple(keys[row] for row in rows),
            crowd=things & (number[rows] == _NO_CLASS) & self.has_crowds,
            area=np.full(len(rows), np.nan),
        )

    def fits(self, categories: tuple[Category, ...], values: _Values) -> bool:
        """Whether all values are of classes or void, and stuff has no numbers."""
        label, number = self.parts(values)
        is_thing = {int(category.key): category.is_thing for category in categories if category.key.isdecimal()}
        known = np.isin(label, [*is_thing])
        stuff = np.isin(label, [key for key, thing in is_thing.items() if not thing])
        is_void = np.isin(label, _VOID) | (values == 0)
        is_numbered = stuff & (number > 0) & (not self.numbers_stuff)
        is_high = values.max(initial=0) >= self.least
        return bool(is_high and known.any() and (known | is_void).all() and not is_numbered.any())


def _of_points(values: _Values, *, classes: Sequence[int], bits: int = 0) -> tuple[_Values, _Values]:
    """Return the class that others are merged into, and the number, which stands in the bits above or is the rest."""
    given, number = (values & (1 << bits) - 1, values >> bits) if bits else (values // PER_CLASS, values % PER_CLASS)
    table = np.array([*classes, _UNKNOWN], dtype=np.int64)
    return table[np.minimum(given, len(classes))], number


_UNKNOWN = 65534  # no class of any layout
# Of nuScenes' challenge, by their numbers from 1 on, the first ten with instances; and which of them each of its 32
# classes is a part of. Source: nuscenes-devkit, eval/lidarseg/utils.py and eval/panoptic/utils.py.
_NUSCENES = (
    "barrier", "bicycle", "bus", "car", "construction_vehicle", "motorcycle", "pedestrian", "traffic_cone", "trailer",
    "truck", "driveable_surface", "other_flat", "sidewalk", "terrain", "manmade", "vegetation",
)  # fmt: skip
_OF_NUSCENES = tuple(Category(str(key), name, key <= 10) for key, name in enumerate(_NUSCENES, start=1))
_GENERAL = (
    0, 0, 7, 7, 7, 0, 7, 0, 0, 1, 0, 0, 8, 0, 2, 3, 3, 4, 5, 0, 0, 6, 9, 10, 11, 12, 13, 14, 15, 0, 16, 0,
)  # fmt: skip
_CHALLENGE = tuple(range(len(_NUSCENES) + 1))
# Of SemanticKITTI, the first eight with instances, by the labels that are merged into each; 0, 1, 52 and 99 are void.
# Source: semantic-kitti-api, config/semantic-kitti.yaml.
_SEMANTIC_KITTI = {
    "car": (10, 252), "bicycle": (11,), "motorcycle": (15,), "truck": (18, 258),
    "other-vehicle": (13, 16, 20, 256, 257, 259), "person": (30, 254), "bicyclist": (31, 253),
    "motorcyclist": (32, 255), "road": (40, 60), "parking": (44,), "sidewalk": (48,), "other-ground": (49,),
    "building": (50,), "fence": (51,), "vegetation": (70,), "trunk": (71,), "terrain": (72,), "pole": (80,),
    "traffic-sign": (81,),
}  # fmt: skip
_OF_SEMANTIC_KITTI = tuple(Category(str(key), name, key <= 8) for key, name in enumerate(_SEMANTIC_KITTI, start=1))
_MERGED = {label: key for key, labels in enumerate(_SEMANTIC_KITTI.values(), start=1) for label in labels}
_BY_LABEL = tuple({**_MERGED, 0: 0, 1: 0, 52: 0, 99: 0}.get(label, _UNKNOWN) for label in range(260))
_SPARSE = (
    "segments of any number of points count, and classes that occur. The benchmark skips unmatched segments below"
    " {} points, and points of no class on both sides"
)
_ARRAYS = ((), (".npy", ".npz"))  # which hold what a grey PNG may hold
_VOID = (_NO_CLASS, 0, 255, 65535)
_THOUSANDS = partial(_divided, by=PER_CLASS, below=PER_CLASS)
_CITYSCAPES = Layout(
    name=CITYSCAPES, words="", kind="grey", parts=_THOUSANDS, categories=CATEGORIES, ending=ENDING, has_crowds=True
)
_JOINED = Layout(
    name="semantic-instance", words="a map of classes and one of numbers", kind="two folders",
    parts=partial(_divided, by=1 << 16, below=0),
)  # fmt: skip
# Those with the same names of files are distinguished by what is in them.
LAYOUTS = (
    replace(_CITYSCAPES, name="cityscapes-train-ids", categories=_BY_TRAIN_ID, ending="_instanceTrainIds.png"),
    Layout(
        name="nuscenes", words="", kind="grey", parts=partial(_of_points, classes=_GENERAL), categories=_OF_NUSCENES,
        ending="_panoptic.npz", least=len(_CHALLENGE) * PER_CLASS, note=_SPARSE.format(15),
    ),
    Layout(
        name="nuscenes-challenge", words="", kind="grey", parts=partial(_of_points, classes=_CHALLENGE),
        categories=_OF_NUSCENES, ending="_panoptic.npz", note=_SPARSE.format(15),
    ),
    Layout(
        name="semantic-kitti", words="", kind="grey", parts=partial(_of_points, classes=_BY_LABEL, bits=16),
        categories=_OF_SEMANTIC_KITTI, ending=".label", numbers_stuff=True, note=_SPARSE.format(50),
    ),
    Layout(name="bdd100k", words="", kind="RGBA", parts=_of_bitmasks, categories=_OF_BDD100K, numbers_stuff=True),
    Layout(name="kitti-step", words="", kind="RGB", parts=_of_channels, categories=_OF_STEP, has_crowds=True),
    Layout(name="two-channels", words="", kind="RGB", parts=_of_channels, categories=_BY_TRAIN_ID, has_crowds=True),
    Layout(name="class-number", words="red is the class", kind="RGB", parts=_of_channels),  # of panopticapi
    Layout(
        name="class-256", words="256 x class + number", kind="grey", parts=partial(_divided, by=256, below=0),
    ),
    _JOINED,
    Layout(name="class-1000", words="1000 x class + number", kind="grey", parts=_THOUSANDS),
    Layout(
        name="class-100", words="100 x class + number, stuff below 125", kind="grey",
        parts=partial(_divided, by=100, below=125),
    ),
)  # fmt: skip
_SAMPLE = 16  # maps that a layout is found by
_CATEGORY_FIX = (
    'Put a JSON file next to the folder that lists the classes: [{"id": 1, "name": "road", "isthing": 0}, ...], or'
    " pass a JSON file of COCO's panoptic format."
)


def read_folder(role: str, path: Path, findings: FindingLog, known: tuple[Category, ...] = ()) -> SegmentedSide | None:
    """Return the maps of a folder and below it, or what its JSON file of segments lists.

    Maps that do not name their classes have those that a file near them lists, or else those `known` of the other side.
    """
    require_readable(path)
    files = list_tree(path, findings)
    names = [name for name in files if name.endswith(ENDING)]
    listed = [name for name in files if not names and name.lower().endswith(_SUFFIXES)]
    listed = [name for name in listed if "panoptic" in name.lower() or _lists_segments(path / name)]
    if len(listed) > 1:  # in the root of COCO, objects and captions may have segments as well
        listed = [name for name in listed if is_folder(folder_of(path / name))] or listed
        listed = [name for name in listed if "panoptic" in name.rpartition("/")[2].lower()] or listed
    if listed and None not in [_map_of(path / name) for name in listed]:
        return _read_records(role, path, listed, findings)
    if len(listed) == 1:
        return read_file(role, path / listed[0], None, findings)
    if listed:
        detail = f"holds {len(listed):,} JSON files with segments_info: {', '.join(listed[:3])}"
        findings.error("input-ambiguous", Where(str(path)), detail, fix="Pass the one that is meant.")
        return None
    maps = _maps_in(path, names)
    if names:
        layout, categories = _CITYSCAPES, CATEGORIES
    else:
        names = [name for name in files if name.lower().endswith(".png")]
        names = names or [name for name in files if name.lower().endswith((".npy", *POINT_SUFFIXES))]
        for ending in (layout.ending for layout in LAYOUTS if layout.ending != ".png"):
            names = [name for name in names if name.endswith(ending)] or names
        maps = _maps_in(path, names)
        found = _layout_of(path, maps, known, findings) if maps else None
        if not names:
            detail = f"there is no map (*{ENDING}) among the {pluralise(len(files), 'file')} of the folder"
            fix = "Pass the JSON file of COCO's panoptic format, or the folder of Cityscapes' instance maps."
            findings.error("map-none", Where(str(path)), detail, fix=fix)
        if found is None:
            return None
        layout, categories = found
    bring(path / name for name in names)
    keys = [_image_key(name, layout.ending) for name in maps]
    images = tuple(
        SegmentedImage(key, key, maps[name], Where(str(path / name)), None, None)
        for key, name in zip(keys, maps, strict=True)
    )
    first: dict[str, Path | ArrayMap] = {}
    for image in images:
        if first.setdefault(image.key, image.map) != image.map:
            detail = f"is of image {image.key}, as is {first[image.key]}"
            findings.error("image-duplicate", image.where, detail, fix="Pass a folder with one map for each image.")
    list_of = partial(layout.listed, categories)
    return SegmentedSide(str(path), str(path), layout.name, categories, images, layout.decode, list_of=list_of)


@dataclass(frozen=True, slots=True)
class _Joined:
    """A map of classes, and one of the numbers of their instances."""

    classes: Path
    numbers: Path

    def __array__(self, dtype: object = None, copy: bool | None = None) -> _Values:
        files = [EncodedImage(path) for path in (self.classes, self.numbers)]
        if files[0].shape != files[1].shape:
            detail = "has {} x {} pixels, the map of classes {} x {}".format(
                *files[1].shape[::-1], *files[0].shape[::-1]
            )
            raise DataError.single("map-size", Where(str(self.numbers)), detail, fix="Export both of one image.")
        label, number = (_CITYSCAPES.decode(file).rows(0, file.shape[0]).astype(np.int64) for file in files)
        return label * (1 << 16) + number


def _maps_in(path: Path, names: Sequence[str]) -> Mapping[str, Path | ArrayMap]:
    """Return the maps of a folder by their names; those of classes and those of numbers, in a folder each, are one."""
    by_folder: dict[str, list[str]] = {}
    for name in names:
        folder, _, rest = name.partition("/")
        by_folder.setdefault(folder, []).append(rest)
    pair = [next((one for one in by_folder if one.lower().startswith(kind)), "") for kind in ("semantic", "instance")]
    if len(by_folder) != 2 or not all(pair) or {*by_folder[pair[0]]} != {*by_folder[pair[1]]}:
        return {name: path / name for name in names}
    return {
        name: ArrayMap(f"{pair[0]}/{name}", _Joined(*(path / folder / name for folder in pair)))
        for name in by_folder[pair[0]]
    }


def _lists_segments(path: Path) -> bool:
    """Whether JSON lists segments: by their usual words, or those of detectron2 next to a map that is called alike."""
    start = head(path)
    return any(map(start.__contains__, _MARKS)) or (_OF_SEGMENT in start and _map_of(path) is not None)


def _map_of(path: Path) -> Path | None:
    """Return the map next to a JSON file, which lists the segments of this one image then; None where there is none."""
    places = [Path(f"{folder_of(path)}{suffix}") for suffix in (".png", ".npy")]
    if path.name == _ALONE:
        # Drawings of the segments may lie there as well.
        names = list_folder(path.parent)[1]
        several = ([name for name in names if name.lower().endswith(suffix)] for suffix in (".npy", ".png"))
        places += [path.parent / found[0] for found in several if len(found) == 1]
    return next((place for place in places if os.path.isfile(place)), None)  # noqa: PTH113 - raises for odd names


def _read_records(role: str, path: Path, names: list[str], findings: FindingLog) -> SegmentedSide | None:
    """Read a file of segments for each image, with its map next to it."""
    records: list[Any] = []
    images: list[dict[str, str]] = []  # which are called like the file or its folder, and not like the map
    for name in names:
        try:
            document = parse_json(path / name, read_text(path / name))
        except DataError as error:
            findings.extend(error.findings)
            continue
        file, map_ = PurePosixPath(name), _map_of(path / name)
        stem = str(file.parent if file.name == _ALONE else folder_of(Path(name)))
        found = _image_records(document, stem) or [document]
        if len(found) == 1 and map_ is not None and isinstance(found[0], dict):
            found[0]["file_name"] = map_.relative_to(path).as_posix()
            images.append({"id": found[0].get("image_id", stem), "file_name": f"{stem}.png"})
        records += found
    return read_document(role, {"annotations": records, "images": images}, str(path), path, findings)


def _image_key(name: str, ending: str) -> str:
    """Return the name of an image: in Cityscapes' folders its last part, else its path."""
    if ending == ".png":
        return without_suffix(name.removesuffix(".npz").removesuffix(".npy"))
    if ending == ".label":  # scans of a sequence, which are numbered in each
        parts = PurePosixPath(name).with_suffix("").parts
        return "/".join(part for part in parts if part not in ("sequences", "labels", "predictions"))
    return name.rpartition("/")[2].removesuffix(ending).removesuffix(_DECORATION)


def _layout_of(
    path: Path, maps: Mapping[str, Path | ArrayMap], known: tuple[Category, ...], findings: FindingLog
) -> tuple[Layout, tuple[Category, ...]] | None:
    """Return the only layout that a sample of the maps fits, with its classes; else an error names the readings."""
    kind, values, names = "", np.zeros(0, dtype=np.int64), [*maps]
    try:
        for name in names[:: max(1, len(names) // _SAMPLE)][:_SAMPLE]:
            file = EncodedImage(maps[name])
            kind = kind or (file.kind if isinstance(maps[name], Path) else _JOINED.kind)
            layout = next((row for row in LAYOUTS if row.kind == kind), _CITYSCAPES)
            map_ = layout.decode(file)
            values = np.union1d(values, map_.rows(0, map_.shape[0]).astype(np.int64))
    except DataError as error:
        findings.extend(error.findings)
        return None
    near = _categories_near(path, findings)
    own = near or known
    candidates = [
        row for row in LAYOUTS if row.kind == kind and names[0].endswith((row.ending, *_ARRAYS[row.ending == ".png"]))
    ]
    candidates = [row for row in candidates if row.ending != ".png"] or candidates
    candidates = [row for row in candidates if near and not row.categories] or candidates
    rows = [(row, row.categories or own) for row in candidates]
    fitting = [(row, categories) for row, categories in rows if categories and row.fits(categories, values)]
    # Where both fit, nothing but person and car has a number.
    fitting = [found for found in fitting if found[0].name == "kitti-step"] or fitting
    # Of those that mean the same classes by the same numbers, the first.
    meanings = [{category.key: category.name for category in categories} for _, categories in fitting]
    fitting = [found for at, found in enumerate(fitting) if meanings[at] not in meanings[:at]]
    if len(fitting) == 1:
        layout, categories = fitting[0]
        if layout.name in ("kitti-step", "two-channels"):
            things = ", ".join(category.name for category in categories if category.is_thing)
            detail = f"red is read as the train id of Cityscapes, green and blue as a number; things are {things}"
            findings.note("names-found", Where(str(path)), detail)
        if layout.note:
            findings.note("protocol-unusual", Where(str(path)), f"labels of {layout.name}: {layout.note}")
        return layout, categories
    readings = "; ".join(
        f"{row.words or row.name}: classes {_shown_classes(row, values)}" for row, _ in (fitting or rows)
    )
    what = "several readings fit" if fitting else ("no reading fits the classes" if own else "classes are not named")
    detail = f"maps of {kind} have no list of segments, and {what}: {readings or 'none is known'}"
    findings.error("layout", Where(str(path)), detail, fix=_CATEGORY_FIX)
    return None


def _shown_classes(layout: Layout, values: _Values) -> str:
    keys = [key for key in dict.fromkeys(layout.parts(values)[0].tolist()) if key not in _VOID]
    return ", ".join(map(str, keys[:SHOWN_CLASSES])) + (", ..." if len(keys) > SHOWN_CLASSES else "")


SHOWN_CLASSES = 5


def _categories_near(path: Path, findings: FindingLog) -> tuple[Category, ...] | None:
    """Return the classes that a JSON file in a folder of maps, or next to it, lists with ``isthing``."""
    for folder in (path, path.parent):
        for name in list_folder(folder)[1]:
            file = folder / name
            start = head(file) if name.lower().endswith(".json") else b""
            if _OF_SEGMENT in start or not any(mark in start for mark in _OF_CLASSES):
                continue
            try:
                document = parse_json(file, read_text(file))
            except DataError:
                continue  # not what is read
            if isinstance(document, dict) and isinstance(listed := document.get("labels"), list):  # of Mapillary
                rows: Any = [
                    {"id": at, "name": row.get("readable") or row.get("name"), "isthing": int(row["instances"])}
                    for at, row in enumerate(listed)
                    if isinstance(row, dict) and row.get("evaluate", True) and isinstance(row.get("instances"), bool)
                ]
            else:
                rows = document.get("categories") if isinstance(document, dict) else document
            log = FindingLog()
            found = _categories(Record({"categories": rows}, Where(str(file)), log))
            if found and not log.has_errors:
                findings.note("names-found", Where(str(path)), f"classes are those of {file}")
                return found
    return None


_OF_CLASSES = (b'"isthing"', b'"instances"')


def open_pair(
    gt: tuple[object, object],
    pred: tuple[object, object],
    class_map: Iterable[tuple[str, str]],
    findings: FindingLog,
) -> tuple[SegmentedSide, SegmentedSide]:
    """Return both sides, each given with its maps; a DataError names what is wrong with either.

    The class map has categories of predictions with those of the ground truth that they mean, by id or name.
    """
    truth = open_side("gt", *gt, findings)
    found = open_side("pred", *pred, findings, () if truth is None else truth.categories)
    if truth is None or found is None:
        findings.raise_errors()
        raise AssertionError
    sides = truth, _paired(truth, found)
    keys = {category.name: category.key for category in sides[0].categories}
    keys |= {category.key: category.key for category in sides[0].categories}
    meaning = {category: keys.get(goal, goal) for category, goal in class_map} or _placed(*sides, findings)
    own = () if found.list_of is None else found.categories
    if not meaning and any(category.name in keys for category in own):
        # One number may be another class on either side.
        meaning = {category.key: keys.get(category.name, "") for category in own}
    unknown = [category.key for category in own if meaning.get(category.key, category.key) not in {*keys.values()}]
    if unknown:
        detail = f"maps of {found.format} have classes that the ground truth lacks, such as {unknown[0]}"
        fix = Fix.missing("Pass predictions of the same classes, or map them with {class_map}.", class_map=None)
        findings.error("class-unknown", Where(found.path), detail, fix=fix)
        findings.raise_errors()
    return sides[0], sides[1].renamed(meaning) if meaning else sides[1]


_BEYOND_DOUBT = 3  # segments that one reading puts on their class, with the other none, or five times as many


def _placed(gt: SegmentedSide, pred: SegmentedSide, findings: FindingLog) -> dict[str, str]:
    """Return what each ``label_id`` means where it is a place among ids of the ground truth, nothing where it is an id.

    Models of Hugging Face number their classes from 0, whose order is that of the ids that they were trained with:
    COCO's 133 classes have ids from 1 to 200. Where both readings are possible, the segments show which one is right.
    """
    ids = [category.key for category in gt.categories]
    ordered = sorted(ids, key=lambda key: int(key) if key.isdecimal() else 0)
    places = {str(place): key for place, key in enumerate(ordered)}
    listed = [image.segments.categories for image in pred.images if image.segments is not None]
    labels = {key for categories in listed for key in categories}
    if not pred.has_labels or not labels <= {*places} or all(places[key] == key for key in labels):
        return {}
    n_ids, n_places, n_segments = _agreements(gt, pred, places)
    if labels <= {*ids} and n_ids >= max(_BEYOND_DOUBT, 5 * n_places):
        return {}
    found = (
        f"of {pluralise(n_segments, 'segment')}, {n_ids:,} lie on their class where label_id is an id of the ground"
        f" truth, {n_places:,} where it is the place among these ids, as Hugging Face's models count"
    )
    if n_places >= max(_BEYOND_DOUBT, 5 * n_ids):
        findings.note("names-found", Where(pred.path, field="label_id"), f"read as a place: {found}")
        return places
    first = min(labels, key=int)
    words = (
        f"Name which with {{class_map}}: {first}={first} and so on where it is an id, {first}={places[first]} and so on"
        " where it is a place."
    )
    findings.error(
        "class-unknown",
        Where(pred.path, field="label_id"),
        f"{found}: neither is beyond doubt",
        fix=Fix.missing(words, class_map=None),
    )
    findings.raise_errors()
    return {}


def _agreements(gt: SegmentedSide, pred: SegmentedSide, places: Mapping[str, str]) -> tuple[int, int, int]:
    """Count segments of a sample that lie on their class by more than half, as ids and as places, and all of them."""
    truth, n_ids, n_places, n_segments = gt.by_key, 0, 0, 0
    for image in [image for image in pred.images if image.key in truth and image.segments][:_SAMPLE]:
        pair = (gt, truth[image.key]), (pred, image)
        try:
            maps = [side.decode(EncodedImage(of.map)) for side, of in pair]
        except DataError:
            continue  # reported where all maps are read
        if maps[0].shape != maps[1].shape:
            continue
        below, above = (map_.rows(0, map_.shape[0]).astype(np.int64) for map_ in maps)
        listed = gt.list_of(np.unique(below)) if gt.list_of else truth[image.key].segments
        if listed is None or image.segments is None:
            continue
        classes = np.array(listed.categories)
        for identifier, label in zip(image.segments.ids.tolist(), image.segments.categories, strict=True):
            values, counts = np.unique(below[above == identifier], return_counts=True)
            on = {
                key: counts[np.isin(values, listed.ids[classes == key])].sum() * 2 > counts.sum()
                for key in (label, places[label])
            }
            n_segments += 1
            n_ids, n_places = n_ids + on[label], n_places + on[places[label]]
    return int(n_ids), int(n_places), n_segments


def _paired(gt: SegmentedSide, pred: SegmentedSide) -> SegmentedSide:
    """Return predictions whose images have no id of the ground truth with the ids of those that are called alike."""
    if gt.by_key.keys() & pred.by_key.keys() or gt.failed or not (gt.images and pred.images):
        return pred
    tables = [
        ImageTable(keys, tuple(names), unknown_sizes(len(keys)), listed=True)
        for keys, names in (
            (tuple(range(len(side.images))), [image.name for image in side.images]) for side in (gt, pred)
        )
    ]
    rows = best_match(*tables).rows.tolist()
    images = zip(pred.images, rows, strict=True)
    return replace(
        pred, images=tuple(image if row == NOWHERE else replace(image, key=gt.images[row].key) for image, row in images)
    )


def open_side(
    role: str, source: object, masks: object, findings: FindingLog, known: tuple[Category, ...] = ()
) -> SegmentedSide | None:
    """Return a side from a JSON file or its contents with maps next to it, or a folder as Cityscapes has it.

    None where `findings` has why there is none.
    """
    given = _masks_of(role, masks)
    if isinstance(source, Mapping):
        if given is None:
            raise UsageError(f"{role}_masks is missing: a document has no folder of its own. Pass its maps.")
        return read_document(role, source, f"<{role}>", given, findings)
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise UsageError(
            f"panoptic() cannot read {'an' if kind[0] in 'aeiou' else 'a'} {kind}. Pass a path, or what a JSON file"
            " holds, with its maps."
        )
    path = path_of(source)
    # Of the two layouts, one is a folder.
    if is_folder(path):
        if given is not None:
            words = "{masks} belongs to a JSON file. Remove it."
            raise UsageError(f"{path} is a folder of maps.", fix=Fix.of_side(role, words, masks=None))
        return read_folder(role, path, findings, known)
    return read_file(role, path, given, findings)


def _masks_of(role: str, masks: object) -> Path | ArrayMaps | None:
    if masks is None:
        return None
    if isinstance(masks, str | os.PathLike):
        return path_of(masks)
    if isinstance(masks, Mapping):
        return ArrayMaps({str(key): values for key, values in masks.items()})
    raise UsageError(
        f"{role}_masks must be a folder, or arrays (height, width) of ids by file name; got {type(masks).__name__}"
    )
