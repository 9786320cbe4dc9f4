"""The records and columns of COCO JSON, and its quick reader: a typed decoder that takes a file as it should be.

Anything else it leaves alone, for the tolerant reader.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from io import BufferedIOBase, BytesIO
from itertools import chain
from operator import attrgetter, index
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET, UnsetType

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.known_protocols import ORIENTED
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.findings import Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.native.calls import (
    LISTS,
    RecordColumns,
    ScannedTruth,
    find_list,
    scan_results,
    scan_truth,
    scan_truth_file,
)
from jaccard_eval.progress import BYTES, Stage
from jaccard_eval.reading.json import count_quotes, may_repeat_keys, record_keys

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
NOT_GIVEN = -1  # of a flag; files can only hold 0 or 1

GROUP_KEYS = ("is_group_of", "isgroupof", "IsGroupOf")
VERIFIED = ("neg_category_ids", "not_exhaustive_category_ids")  # of an image of LVIS, and of no other
LVIS = "lvis"  # the protocol of files that have these

Id = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)] | str
Flag = Annotated[int, msgspec.Meta(ge=0, le=1)] | bool
Box = tuple[float, float, float, float]  # left, top, width, height in pixels


class ImageRecord(msgspec.Struct, gc=False):
    """One entry of ``images``."""

    id: Id
    file_name: str | UnsetType | None = UNSET
    width: float | UnsetType | None = UNSET
    height: float | UnsetType | None = UNSET
    # LVIS: classes that are verified to be absent, and those with objects that have no annotation.
    neg_category_ids: list[Id] | UnsetType = UNSET
    not_exhaustive_category_ids: list[Id] | UnsetType = UNSET
    crowd_index: Any = msgspec.field(name="crowdIndex", default=None)  # CrowdPose: how crowded it is


class CategoryRecord(msgspec.Struct, gc=False):
    """One entry of ``categories``."""

    id: Id
    name: str | UnsetType | None = UNSET
    supercategory: Any = None
    keypoints: Any = None  # the names of its points
    frequency: Any = None  # LVIS: "r", "c" or "f"; a protocol that uses it checks it


class TruthRecord(msgspec.Struct, gc=False):
    """One entry of ``annotations`` in ground truth; `area` NaN and flags -1 mean: not given. `score` is not used.

    Only records of shapes can do without a box.
    """

    image_id: Id
    category_id: Id
    bbox: Box | UnsetType = UNSET
    area: float = float("nan")
    iscrowd: Flag = NOT_GIVEN
    ignore: Flag = NOT_GIVEN
    id: int | float | str | UnsetType | None = UNSET
    score: Any = UNSET
    # Open Images: a group of objects that nobody separated, as converters spell it.
    is_group_of: Flag = NOT_GIVEN
    isgroupof: Flag = NOT_GIVEN
    IsGroupOf: Flag = NOT_GIVEN
    vis_ratio: Any = UNSET  # CityPersons: the share of it that is visible


class ResultRecord(msgspec.Struct, gc=False):
    """One detection; `score` NaN means: not given. Ultralytics adds `file_name`, SAHI `category_name`."""

    image_id: Id
    category_id: Id
    bbox: Box | UnsetType = UNSET
    score: float = float("nan")
    file_name: str | UnsetType | None = UNSET
    category_name: str | UnsetType | None = UNSET
    id: Any = UNSET


class OrientedTruth(TruthRecord, gc=False):
    """One entry of ``annotations`` whose box has an angle, or four corners."""

    bbox: Any = UNSET


class OrientedResult(ResultRecord, gc=False):
    """One detection whose box has an angle, or four corners."""

    bbox: Any = UNSET


class PlainRecord(msgspec.Struct, gc=False):
    """One detection as almost every tool writes it: these four fields, numbers throughout."""

    image_id: int
    category_id: int
    bbox: Box
    score: float


class Boxes(enum.Enum):
    """What ``bbox`` has to be."""

    NEEDED = enum.auto()  # four numbers
    OPTIONAL = enum.auto()  # or absent, where there are shapes
    ORIENTED = enum.auto()  # anything: `shapes` reads it, and columns have no box


def boxes_for(iou_type: str) -> Boxes:
    """Return what ``bbox`` has to be where an `iou_type` is compared."""
    if iou_type in ORIENTED:
        return Boxes.ORIENTED
    return Boxes.NEEDED if iou_type == BOXES else Boxes.OPTIONAL


class Layout(enum.StrEnum):
    """How a file arranges its records; the text is used in reports."""

    OBJECT = "one object with"
    ARRAY = "results list"
    LINES = "JSON Lines of results"


Record = TypeVar("Record", TruthRecord, ResultRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content(Generic[Record]):
    """Everything a file holds, as records in the order of the file."""

    layout: Layout
    boxes: list[Record]
    section: str = ""  # the key of their list in an object
    images: list[ImageRecord] | None = None  # None where the file has no such section
    categories: list[CategoryRecord] | None = None
    lines: Sequence[int] = ()  # of each box, for JSON Lines

    @property
    def described(self) -> str:
        """The layout, as reports have it."""
        return f"{self.layout} {self.section}".rstrip()

    def places(self, path: str) -> Callable[[int], Where]:
        """Return the function from a box's row to its place in the file."""
        if self.layout is Layout.LINES:
            return lambda row: Where(path, line=self.lines[row])
        return lambda row: Where(path, record=f"{self.section}[{row}]")


def content_of_list(key: str) -> Content[ResultRecord]:
    """Return what a file has besides the columns of its list, by itself or under the key of an object."""
    return Content(layout=Layout.OBJECT if key else Layout.ARRAY, boxes=[], section=key)


def truth_columns(records: Sequence[TruthRecord], *, oriented: bool = False) -> RecordColumns:
    """Make columns of ground truth; of what is `oriented` without boxes."""
    n = len(records)
    groups = [np.fromiter(map(attrgetter(key), records), np.int8, n) for key in GROUP_KEYS]
    visible = list(map(attrgetter("vis_ratio"), records))
    return RecordColumns(
        image=_keys("image_id", records),
        category=_keys("category_id", records),
        coords=np.full((n, 4), np.nan) if oriented else _coords(records),
        area=np.fromiter(map(attrgetter("area"), records), np.float64, n),
        iscrowd=np.fromiter(map(attrgetter("iscrowd"), records), np.int8, n),
        ignore=np.fromiter(map(attrgetter("ignore"), records), np.int8, n),
        groups=groups if any((flags != NOT_GIVEN).any() for flags in groups) else [],
        ids=list(map(attrgetter("id"), records)),
        n_scored=count_given(list(map(attrgetter("score"), records))),
        visible=visible if count_given(visible) else [],
    )


def result_columns(records: Sequence[ResultRecord], *, oriented: bool = False) -> RecordColumns:
    """Make columns of detections; of what is `oriented` without boxes."""
    n = len(records)
    return RecordColumns(
        image=_keys("image_id", records),
        category=_keys("category_id", records),
        coords=np.full((n, 4), np.nan) if oriented else _coords(records),
        score=np.fromiter(map(attrgetter("score"), records), np.float64, n),
        file_names=_texts("file_name", records),
        category_names=_texts("category_name", records),
    )


def plain_columns(pieces: Iterable[list[PlainRecord]]) -> RecordColumns:
    """Make columns of detections that come a piece at a time.

    An id that does not fit 64 bits is an OverflowError; no piece, or one without records, is a ValueError.
    """
    columns: list[tuple[npt.NDArray[np.generic], ...]] = []
    for records in pieces:
        n = len(records)
        if n == 0:
            raise ValueError("a piece without records")
        columns.append(
            (
                np.fromiter(map(attrgetter("image_id"), records), np.int64, n),
                np.fromiter(map(attrgetter("category_id"), records), np.int64, n),
                np.fromiter(chain.from_iterable(map(attrgetter("bbox"), records)), np.float64, 4 * n),
                np.fromiter(map(attrgetter("score"), records), np.float64, n),
            )
        )
    image, category, coords, score = (np.concatenate(column) for column in zip(*columns, strict=True))
    return RecordColumns(image=image, category=category, coords=coords.reshape(-1, 4), score=score)


def count_given(values: npt.NDArray[np.int64] | Sequence[object]) -> int:
    """How many records have an optional key, null included."""
    return len(values) - (0 if isinstance(values, np.ndarray) else values.count(UNSET))


def count_texts(values: npt.NDArray[np.int64] | list[Any]) -> int:
    """How many of the values are texts."""
    return 0 if isinstance(values, np.ndarray) else sum(isinstance(value, str) for value in values)


def _texts(field: str, records: Sequence[ResultRecord]) -> list[Any]:
    texts = list(map(attrgetter(field), records))
    return texts if count_given(texts) else []


def _coords(records: Sequence[TruthRecord | ResultRecord]) -> FloatArray:
    """Return coordinates, NaN where a record has no box."""
    boxes: Any = map(attrgetter("bbox"), records)
    try:
        return np.fromiter(chain.from_iterable(boxes), np.float64, 4 * len(records)).reshape(-1, 4)
    except TypeError:
        rows = [record.bbox if isinstance(record.bbox, tuple) else (float("nan"),) * 4 for record in records]
        return np.array(rows, dtype=np.float64).reshape(-1, 4)


def _keys(field: str, records: Sequence[TruthRecord | ResultRecord]) -> npt.NDArray[np.int64] | list[int | str]:
    """Return integers as an array; a list when any key is a text."""
    values = attrgetter(field)
    # `index` refuses texts, which `int` would take for the numbers that they spell.
    try:
        return np.fromiter(map(index, map(values, records)), np.int64, len(records))
    except TypeError:
        return list(map(values, records))


_PLAIN_KEYS = frozenset(PlainRecord.__struct_fields__)
_PIECE_BYTES = 1 << 18  # of a results list decoded at a time: its records stay in the cache, and memory is reused
_ABSENT = msgspec.Raw(b"")
_REFUSALS = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_LEADING_BLANKS = 256  # bytes searched for the first bracket
_JSON_BLANKS = b" \t\r\n"
_HEAD_BYTES = 1024  # bytes searched for the keys of the first records


class _TruthDocument(msgspec.Struct):
    images: list[ImageRecord]
    annotations: list[TruthRecord]
    categories: list[CategoryRecord]
    info: msgspec.Raw = _ABSENT
    licenses: msgspec.Raw = _ABSENT


_Row = TypeVar("_Row")


class _ResultDocument(msgspec.Struct, Generic[_Row]):
    annotations: list[_Row] | UnsetType = UNSET
    results: list[_Row] | UnsetType = UNSET
    predictions: list[_Row] | UnsetType = UNSET
    detections: list[_Row] | UnsetType = UNSET
    images: list[ImageRecord] | None = None
    categories: list[CategoryRecord] | None = None
    info: msgspec.Raw = _ABSENT
    licenses: msgspec.Raw = _ABSENT


class _OrientedTruthDocument(_TruthDocument):
    annotations: list[OrientedTruth]  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decoders:
    """What decodes ground truth, and results as a whole object, as a list and line by line."""

    truth: msgspec.json.Decoder[Any]
    results: msgspec.json.Decoder[Any]
    result_list: msgspec.json.Decoder[Any]
    result_line: msgspec.json.Decoder[Any]


@cache
def _decoders(*, oriented: bool) -> _Decoders:
    """Make them where they are asked for: plain files are read without."""
    if oriented:
        return _Decoders(
            truth=msgspec.json.Decoder(_OrientedTruthDocument),
            results=msgspec.json.Decoder(_ResultDocument[OrientedResult]),
            result_list=msgspec.json.Decoder(list[OrientedResult]),
            result_line=msgspec.json.Decoder(OrientedResult),
        )
    return _Decoders(
        truth=msgspec.json.Decoder(_TruthDocument),
        results=msgspec.json.Decoder(_ResultDocument[ResultRecord]),
        result_list=msgspec.json.Decoder(list[ResultRecord]),
        result_line=msgspec.json.Decoder(ResultRecord),
    )


_PLAIN_LIST = msgspec.json.Decoder(list[PlainRecord])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_IMAGES = msgspec.json.Decoder(list[ImageRecord])
_CATEGORIES = msgspec.json.Decoder(list[CategoryRecord])


def decode_truth(data: bytes, *, boxes: Boxes = Boxes.NEEDED) -> tuple[Content[TruthRecord], RecordColumns] | None:
    """Decode ground truth; None when the file is anything but plain, valid COCO JSON, or lacks boxes it should have."""
    oriented = boxes is Boxes.ORIENTED
    plain = None if oriented else _decode_lists(scan_truth(data))
    if plain is not None:
        return plain
    try:
        document = _decoders(oriented=oriented).truth.decode(data)
    except _REFUSALS:
        return None
    columns = truth_columns(document.annotations, oriented=oriented)
    if boxes is Boxes.NEEDED and np.isnan(columns.coords).any():
        return None
    content = Content(
        layout=Layout.OBJECT,
        boxes=document.annotations,
        section="annotations",
        images=document.images,
        categories=document.categories,
    )
    explained = _section_keys(content) + _truth_keys(columns)
    explained["bbox"] = _count_boxes(document.annotations)
    return None if may_repeat_keys(data, explained, set_aside=_set_aside(document)) else (content, columns)


def scan_plain_truth(file: BufferedIOBase, size: int) -> tuple[Content[TruthRecord], RecordColumns] | None:
    """Decode ground truth from a file by the compiled core; None without one, or when it is not plain ASCII."""
    return _decode_lists(scan_truth_file(file, size))


def _decode_lists(scanned: ScannedTruth | None) -> tuple[Content[TruthRecord], RecordColumns] | None:
    """Decode images and categories of what the compiled core has read; there are no records of annotations."""
    if scanned is None:
        return None
    try:
        images, categories = _IMAGES.decode(scanned.images), _CATEGORIES.decode(scanned.categories)
    except _REFUSALS:
        return None
    content: Content[TruthRecord] = Content(
        layout=Layout.OBJECT, boxes=[], section="annotations", images=images, categories=categories
    )
    columns = scanned.columns
    return content, columns if len(columns.ids) else replace(columns, ids=[UNSET] * len(columns))


def count_list(data: bytes) -> int | None:
    """Count the values of a JSON array without looking into them; None when the document is anything else."""
    try:
        return len(_LIST.decode(data))
    except _REFUSALS:
        return None


def scan_plain_results(file: BufferedIOBase, size: int) -> tuple[Content[ResultRecord], RecordColumns] | None:
    """Decode such a list from a file by the compiled core; None without one, or when it is anything else."""
    scanned = scan_results(file, size)
    if scanned is None:
        return None
    return content_of_list(scanned.key), scanned.columns


def decode_plain_results(data: bytes) -> tuple[Content[ResultRecord], RecordColumns] | None:
    """Decode a results list whose records have four numeric fields and no others; None when it is anything else."""
    found = scan_plain_results(BytesIO(data), len(data))
    if found is not None:
        return found
    place = find_list(BytesIO(data), len(data))
    if place is None:
        return None
    data = data[place.start : place.end]
    # Four keys in the first records are a good sign; whether all others have the same is seen at the end.
    if not data.startswith(b"[") or record_keys(data[:_HEAD_BYTES])[1] != _PLAIN_KEYS:
        return None
    try:
        columns = plain_columns(map(_PLAIN_LIST.decode, _pieces(data)))
    except (*_REFUSALS, OverflowError, ValueError):
        return None
    # Every record has each of its four keys; when there are no more quotes than that, it has each once and no other.
    is_plain = count_quotes(data) == 2 * len(_PLAIN_KEYS) * len(columns.score)
    return (content_of_list(place.key), columns) if is_plain else None


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut a JSON array of objects into arrays of the same objects; valid and not empty, they make a valid whole."""
    content = memoryview(data)
    start, end = 1, data.rfind(b"]")
    if data[end + 1 :].strip(_JSON_BLANKS):
        raise msgspec.DecodeError("trailing characters")
    with Stage("decoding", max(end, 0), unit=BYTES) as stage:
        # A piece that begins at the end itself follows a comma: it is empty, which its reader refuses.
        while start <= end:
            cut = data.find(b"},", min(start + _PIECE_BYTES, end), end)
            stop = end if cut < 0 else cut + 1
            yield b"".join((b"[", content[start:stop], b"]"))
            stage.advance(stop + 1 - start)
            start = stop + 1


def decode_results(
    data: bytes, *, scores_optional: bool, boxes: Boxes = Boxes.NEEDED
) -> tuple[Content[ResultRecord], RecordColumns] | None:
    """Decode detections; None when the file is anything but plain, valid COCO JSON, or lacks scores it should have."""
    oriented = boxes is Boxes.ORIENTED
    try:
        content, set_aside = _decode_layout(data, _decoders(oriented=oriented))
    except _REFUSALS:
        return None
    if content.layout is Layout.LINES and not content.boxes:
        return None
    columns = result_columns(content.boxes, oriented=oriented)
    if boxes is Boxes.NEEDED and np.isnan(columns.coords).any():
        return None
    # JSON has no NaN, so that a NaN means a missing score.
    n_scores = int(np.count_nonzero(~np.isnan(columns.score)))
    if n_scores < len(columns.score) and (n_scores or not scores_optional):
        return None
    explained = _section_keys(content) + _result_keys(columns, n_scores)
    explained["bbox"] = _count_boxes(content.boxes)
    if content.layout is Layout.OBJECT:  # elsewhere no id but those of detections, which do not matter
        explained["id"] += count_given([record.id for record in content.boxes])
    texts = sum(map(count_texts, (columns.image, columns.category, columns.file_names, columns.category_names)))
    return None if may_repeat_keys(data, explained, texts=texts, set_aside=set_aside) else (content, columns)


def _decode_layout(data: bytes, decoders: _Decoders) -> tuple[Content[ResultRecord], tuple[bytes, ...]]:
    """Decode detections of any layout; with them, the parts of the file that are not looked into."""
    if data[:_LEADING_BLANKS].lstrip().startswith(b"["):
        return Content(layout=Layout.ARRAY, boxes=decoders.result_list.decode(data)), ()
    try:
        document = decoders.results.decode(data)
        found = [name for name in LISTS if getattr(document, name) is not UNSET]
    except _REFUSALS:
        found = []
    if not found:
        records = decoders.result_line.decode_lines(data)
        return Content(layout=Layout.LINES, boxes=records, lines=_line_numbers(data, len(records))), ()
    if len(found) > 1:
        raise msgspec.ValidationError("several lists")
    content = Content(
        layout=Layout.OBJECT,
        boxes=getattr(document, found[0]),
        section=found[0],
        images=document.images,
        categories=document.categories,
    )
    return content, _set_aside(document)


def _line_numbers(data: bytes, n_records: int) -> Sequence[int]:
    """Line of each record, counted from 1; lines may be blank."""
    body = data.rstrip()
    if body.count(b"\n") + 1 == n_records:
        return range(1, n_records + 1)
    return [number for number, line in enumerate(body.split(b"\n"), start=1) if line.strip()]


def _set_aside(document: _TruthDocument | _ResultDocument[Any]) -> tuple[bytes, ...]:
    return bytes(document.info), bytes(document.licenses)


def _truth_keys(columns: RecordColumns) -> Counter[str]:
    n = len(columns.ids)
    return Counter(
        image_id=n,
        category_id=n,
        area=int(np.count_nonzero(~np.isnan(columns.area))),
        iscrowd=int(np.count_nonzero(columns.iscrowd != NOT_GIVEN)),
        ignore=int(np.count_nonzero(columns.ignore != NOT_GIVEN)),
        id=count_given(columns.ids),
        **{
            key: int(np.count_nonzero(flags != NOT_GIVEN))
            for key, flags in zip(GROUP_KEYS, columns.groups, strict=False)
        },
    )


def _result_keys(columns: RecordColumns, n_scores: int) -> Counter[str]:
    n = len(columns.score)
    return Counter(
        image_id=n,
        category_id=n,
        score=n_scores,
        file_name=count_given(columns.file_names),
        category_name=count_given(columns.category_names),
    )


def _count_boxes(records: Sequence[TruthRecord | ResultRecord]) -> int:
    return count_given([record.bbox for record in records])


def _section_keys(content: Content[TruthRecord] | Content[ResultRecord]) -> Counter[str]:
    """Count the keys that images, categories and the outermost object explain."""
    keys = Counter({content.section: 1}) if content.section else Counter[str]()
    if content.images is not None:
        keys += Counter(images=1, id=len(content.images))
        for name in ("file_name", "width", "height", *VERIFIED):
            keys[name] += count_given([getattr(image, name) for image in content.images])
    if content.categories is not None:
        keys += Counter(categories=1, id=len(content.categories))
        keys["name"] += count_given([category.name for category in content.categories])
    return keys
