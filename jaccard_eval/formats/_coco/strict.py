"""The quick reader of COCO JSON: a typed decoder that either takes a file as it should be, or leaves it alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from jaccard_eval.formats._coco.columns import (
    NOT_GIVEN,
    CategoryRecord,
    Content,
    ImageRecord,
    Layout,
    PlainRecord,
    ResultColumns,
    ResultRecord,
    TruthColumns,
    TruthRecord,
    count_given,
    count_texts,
    plain_columns,
    result_columns,
    truth_columns,
)
from jaccard_eval.reading.json import count_quotes, may_repeat_keys, record_keys

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


class _ResultDocument(msgspec.Struct):
    annotations: list[ResultRecord]
    images: list[ImageRecord] | None = None
    categories: list[CategoryRecord] | None = None
    info: msgspec.Raw = _ABSENT
    licenses: msgspec.Raw = _ABSENT


_TRUTH = msgspec.json.Decoder(_TruthDocument)
_RESULTS = msgspec.json.Decoder(_ResultDocument)
_RESULT_LIST = msgspec.json.Decoder(list[ResultRecord])
_PLAIN_LIST = msgspec.json.Decoder(list[PlainRecord])
_RESULT_LINE = msgspec.json.Decoder(ResultRecord)


def decode_truth(data: bytes) -> tuple[Content[TruthRecord], TruthColumns] | None:
    """Decode ground truth; None when the file is anything but plain, valid COCO JSON."""
    try:
        document = _TRUTH.decode(data)
    except _REFUSALS:
        return None
    columns = truth_columns(document.annotations)
    content = Content(
        layout=Layout.OBJECT,
        boxes=document.annotations,
        images=document.images,
        categories=document.categories,
    )
    explained = _section_keys(content) + _truth_keys(columns)
    return None if may_repeat_keys(data, explained, set_aside=_set_aside(document)) else (content, columns)


def decode_plain_results(data: bytes) -> ResultColumns | None:
    """Decode a results list whose records have four numeric fields and no others; None when it is anything else."""
    if not data.startswith(b"[") or record_keys(data[:_HEAD_BYTES])[1] != _PLAIN_KEYS:
        return None
    try:
        columns = plain_columns(map(_PLAIN_LIST.decode, _pieces(data)))
    except (*_REFUSALS, OverflowError, ValueError):
        return None
    # Every record has each of its four keys; when there are no more quotes than that, it has each once and no other.
    return columns if count_quotes(data) == 2 * len(_PLAIN_KEYS) * len(columns.score) else None


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut a JSON array of objects into arrays of the same objects; valid and not empty, they make a valid whole."""
    content = memoryview(data)
    start, end = 1, data.rfind(b"]")
    if data[end + 1 :].strip(_JSON_BLANKS):
        raise msgspec.DecodeError("trailing characters")
    while start <= end:  # at the end itself after a comma: the piece is empty, which its reader refuses
        cut = data.find(b"},", min(start + _PIECE_BYTES, end), end)
        stop = end if cut < 0 else cut + 1
        yield b"".join((b"[", content[start:stop], b"]"))
        start = stop + 1


def decode_results(data: bytes, *, scores_optional: bool) -> tuple[Content[ResultRecord], ResultColumns] | None:
    """Decode detections; None when the file is anything but plain, valid COCO JSON, or lacks scores it should have."""
    try:
        content, set_aside = _decode_layout(data)
    except _REFUSALS:
        return None
    if content.layout is Layout.LINES and not content.boxes:
        return None
    columns = result_columns(content.boxes)
    n_scores = int(np.count_nonzero(~np.isnan(columns.score)))
    if n_scores < len(columns.score) and (n_scores or not scores_optional):
        return None
    explained = _section_keys(content) + _result_keys(columns, n_scores)
    if content.layout is Layout.OBJECT:  # elsewhere no id but those of detections, which do not matter
        explained["id"] += count_given([record.id for record in content.boxes])
    texts = sum(map(count_texts, (columns.image, columns.category, columns.file_names, columns.category_names)))
    return None if may_repeat_keys(data, explained, texts=texts, set_aside=set_aside) else (content, columns)


def _decode_layout(data: bytes) -> tuple[Content[ResultRecord], tuple[bytes, ...]]:
    """Decode detections of any layout; with them, the parts of the file that are not looked into."""
    if data[:_LEADING_BLANKS].lstrip().startswith(b"["):
        return Content(layout=Layout.ARRAY, boxes=_RESULT_LIST.decode(data)), ()
    try:
        document = _RESULTS.decode(data)
    except _REFUSALS:
        records = _RESULT_LINE.decode_lines(data)
        return Content(layout=Layout.LINES, boxes=records, lines=_line_numbers(data, len(records))), ()
    content = Content(
        layout=Layout.OBJECT,
        boxes=document.annotations,
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


def _set_aside(document: _TruthDocument | _ResultDocument) -> tuple[bytes, ...]:
    return bytes(document.info), bytes(document.licenses)


def _truth_keys(columns: TruthColumns) -> Counter[str]:
    n = len(columns.ids)
    return Counter(
        image_id=n,
        category_id=n,
        bbox=n,
        area=int(np.count_nonzero(~np.isnan(columns.area))),
        iscrowd=int(np.count_nonzero(columns.iscrowd != NOT_GIVEN)),
        ignore=int(np.count_nonzero(columns.ignore != NOT_GIVEN)),
        id=count_given(columns.ids),
    )


def _result_keys(columns: ResultColumns, n_scores: int) -> Counter[str]:
    n = len(columns.score)
    return Counter(
        image_id=n,
        category_id=n,
        bbox=n,
        score=n_scores,
        file_name=count_given(columns.file_names),
        category_name=count_given(columns.category_names),
    )


def _section_keys(content: Content[TruthRecord] | Content[ResultRecord]) -> Counter[str]:
    """Count the keys that images, categories and the outermost object explain."""
    keys = Counter(annotations=1) if content.layout is Layout.OBJECT else Counter[str]()
    if content.images is not None:
        keys += Counter(images=1, id=len(content.images))
        for name in ("file_name", "width", "height"):
            keys[name] += count_given([getattr(image, name) for image in content.images])
    if content.categories is not None:
        keys += Counter(categories=1, id=len(content.categories))
        keys["name"] += count_given([category.name for category in content.categories])
    return keys
