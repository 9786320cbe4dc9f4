"""Results of Ultralytics models as JSON, and data sets of the platform as JSON Lines (NDJSON).

Coordinates of results, as ``Results.to_json()`` returns them, are pixels, or fractions where ``normalize=True`` was
requested, which ``--pred-units norm`` declares; outlines, points of poses and oriented boxes are there as well. From a
dataset the images of a split are read.
"""

from __future__ import annotations

import ast
import contextlib
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn, drawn_by, kinds_in
from jaccard_eval.reading.peek import Likeness, Peek, rate_keys
from jaccard_eval.reading.records import Record, RecordCollector, line_records, read_object_lists
from jaccard_eval.text import is_numeral

FORMAT = Format(
    name="ultralytics",
    summary="Ultralytics Results.to_json() or to_csv(), of an image, a folder, many images; datasets as NDJSON",
    source="https://docs.ultralytics.com/reference/engine/results/#ultralytics.engine.results.Results.to_json",
    example="""[
  {"name": "dog", "class": 16, "confidence": 0.9, "box": {"x1": 10.0, "y1": 20.0, "x2": 110.0, "y2": 220.0}}
]
""",
    carries=("images", "sizes", "names", "scores"),
    member=".json",
    reads={"bbox": "box", "obb": "box of four corners", "segm": "segments", "keypoints": "keypoints"},
)
READS_SPLITS = True

_SET = pattern(rb'"type"\s*:\s*"dataset"')
_KEYS = ("name", "class", "confidence", "box")
_BESIDES = ("track_id", "segments", "keypoints")
_KINDS = {
    "obb": pattern(rb"""['"]x3['"]\s*:|\bbox\.x3\b"""),
    "segm": pattern(rb'"segments"\s*:\s*\{|\bsegments\b(?!")'),
    "keypoints": pattern(rb'"keypoints"\s*:\s*\{|\bkeypoints\b(?!")'),
}
# The columns of a table of one image, perhaps behind a number of the row.
_TABLE = pattern(r'(?:"?",?|,)?"?name"?,"?class"?,"?confidence"?,.*?\bbox\b')
_MARKS = (b'"confidence"', b'"box"', b'"x1"', b'"y1"')
_BOXES = "boxes"  # of annotations: class, centre and size in fractions
_DIGITS = 10  # of an index


def looks_like(peek: Peek) -> Likeness | None:
    """Rate results by their keys or the names of their columns, and a data set by its first line."""
    tables = _tables(peek)
    if tables and all(_TABLE.match(table.text) for table in tables):
        return Likeness.NAMED
    return Likeness.NAMED if _is_set(peek) else peek.rate_documents(_rate_results)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of results, or of a data set, to the draft."""
    if _is_set(Peek(path)):
        _read_set(path, draft)
    elif _tables(Peek(path)):
        _read_tables(path, draft)
    else:
        read_object_lists(path, draft, _add_object)


def iou_types(peek: Peek) -> set[str]:
    """Return what results have: oriented boxes alone, or boxes and perhaps outlines or poses; of a data set boxes."""
    if _is_set(peek):
        return {"bbox"}
    found = kinds_in(_tables(peek) or (peek.documents() if peek.is_folder else [peek]), _KINDS)
    return found if "obb" in found else found | {"bbox"}


def reads_name(name: str) -> bool:
    """Whether a file of this name in a folder holds results of an image."""
    return name.lower().endswith((".json", ".csv"))


def _is_set(peek: Peek) -> bool:
    """Whether the first of JSON lines describes a data set."""
    return "class_names" in peek.top_keys and _SET.search(peek.head.partition(b"\n")[0]) is not None


def _tables(peek: Peek) -> list[Peek]:
    """Return the first tables that `Results.to_csv()` may have written: the file, or those of a folder without JSON."""
    if not peek.is_folder:
        return [peek] if peek.suffix == ".csv" else []
    return peek.first_files(lambda name: name.lower().endswith(".csv"))


def _read_tables(path: Path, draft: Draft) -> None:
    """Add the objects of tables, one of each image, whose cells are objects as Python or JSON writes them."""
    import csv  # looks for formats do without it

    names = [path.name]
    folder = path.parent
    if files.is_folder(path):
        names, folder = [name for name in files.list_tree(path, draft.findings) if name.lower().endswith(".csv")], path
    collector = RecordCollector(draft)
    for name, file, text in files.read_each(
        {name[: -len(".csv")]: folder / name for name in sorted(names)}, files.read_text, draft.findings
    ):
        collector.add_image(name)
        rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        try:
            for row in rows:
                where = Where(str(file), line=rows.line_num)
                _add_object(collector, name, Record(_cells(row), where, draft.findings))
        except csv.Error as error:
            detail = f"not readable as CSV: {error}"
            draft.findings.error("csv-quote", Where(str(file), line=rows.line_num + 1), detail, fix="Export it again.")
    collector.to_draft(encoding="xyxy", listed=False)


def _cells(row: Mapping[str | None, Any]) -> dict[str, Any]:
    """Return the fields of a row; those of a name with a dot belong to the object before it."""
    values: dict[str, Any] = {}
    for name, text in row.items():
        value: Any = text
        if isinstance(text, str) and (is_numeral(text.strip()) or text.strip().startswith(("{", "["))):
            with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = ast.literal_eval(text.strip().replace("null", "None"))
        outer, _, inner = (name or "").partition(".")
        if inner:
            values.setdefault(outer, {})[inner] = value
        elif text:
            values[outer] = value
    return values


def _rate_results(document: Peek) -> Likeness | None:
    if document.item_keys:
        return rate_keys(document.item_keys, _KEYS, _BESIDES)
    is_marked = all(mark in document.head for mark in _MARKS)
    return Likeness.CONTENT if document.maps_images and is_marked else None


def _add_object(collector: RecordCollector, image: str, entry: Record) -> None:
    box = entry.record("box")
    drawn: Drawn | None
    if box.has("x3"):
        corners, drawn = [], Drawn(rings=[[box.number(f"{axis}{end}") for end in "1234" for axis in "xy"]])
    else:
        corners = [box.number(corner) for corner in ("x1", "y1", "x2", "y2")]
        drawn = None if collector.reads_boxes else drawn_by(entry, box=corners)
    number = entry.values.get("class")
    is_numbered = isinstance(number, int) and not isinstance(number, bool) and not entry.has("name")
    label = entry.key("class" if is_numbered else "name")
    score = entry.number("confidence")
    if drawn is None:
        collector.add_box(image, label, corners, entry.where, score=score)
    else:
        collector.add_drawn(image, label, drawn, entry.where, score=score)


def _read_set(path: Path, draft: Draft) -> None:
    """Add the images of the split that is asked for, with their classes and boxes, to the draft."""
    lines = list(line_records(path, files.read_text(path), draft))
    about = next((line for line in lines if line.values.get("type") == "dataset"), None)
    names = _class_names(about) if about is not None and about.has("class_names") else {}
    images = [line for line in lines if line.values.get("type") == "image"]
    splits = [files.split_of(image.text("split")) if image.has("split") else "" for image in images]
    # Images without a split are a set of their own: all are read.
    if any(splits):
        known = sorted({split for split in splits if split})
        chosen = files.choose_split(draft.options.split, known, Where(str(path), field="split"), draft.findings)
        draft.has_splits = True
        draft.details.append(f"split {chosen}: {splits.count(chosen):,} of {len(images):,} images")
        images = [image for image, split in zip(images, splits, strict=True) if split == chosen]
    collector = RecordCollector(draft)
    for line in images:
        _add_image(collector, line)
    collector.to_draft(encoding="cxcywh", units="norm", listed=True)
    if names:
        draft.set_classes(list(names), list(names.values()))


def _class_names(about: Record) -> dict[int, str]:
    """Return the names of classes by index, sorted."""
    names = about.record("class_names")
    odd = [key for key in names.values if not (key.isascii() and key.isdigit() and len(key) < _DIGITS)]
    for key in odd:
        names.error("names-invalid", key, "is not a class index", "Number the classes from 0.")
    return {int(key): names.text(key) for key in sorted(names.values.keys() - {*odd}, key=int)}


def _add_image(collector: RecordCollector, line: Record) -> None:
    image = line.text("file")
    collector.add_image(image, size=line.size())
    annotations = line.record("annotations") if line.has("annotations") else line
    boxes = annotations.entries(_BOXES) if annotations.has(_BOXES) else Record({}, line.where, line.findings)
    for name in boxes.values:
        number, *box = boxes.numbers(name, 5)
        # What is not a number was reported already; any class will do, for the run ends with that error.
        index = 0 if math.isnan(number) else int(number)
        if number != number // 1 and not math.isnan(number):
            boxes.error("class-index", name, f"has class {number:g}; expected a whole number")
        collector.add_box(image, index, box, boxes.at(name))
    for kind, shapes in annotations.values.items() if annotations is not line else ():
        for _ in shapes if kind != _BOXES and isinstance(shapes, list) else ():
            collector.count_shape(kind)
