"""Hugging Face: outputs of the object-detection pipeline, and rows of data sets that hold objects in lists.

Rows are JSON or JSON Lines, or the metadata.jsonl of an image folder; the four numbers of a bbox are read as left,
top, width and height, as in COCO and the library's own examples.
"""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import looks_like_json_lines, parse_json
from jaccard_eval.reading.peek import Likeness, Peek, rate_keys
from jaccard_eval.reading.records import Record, RecordCollector, line_records, read_object_lists

FORMAT = Format(
    name="hf",
    summary="Hugging Face JSON: pipeline outputs for one or many images; rows with objects, metadata.jsonl",
    source="https://huggingface.co/docs/transformers/main_classes/pipelines#transformers.ObjectDetectionPipeline",
    example="""[
  {"score": 0.9, "label": "dog", "box": {"xmin": 10, "ymin": 20, "xmax": 110, "ymax": 220}}
]
""",
    carries=("images", "sizes", "scores", "crowd", "area"),
    member=".json",
)
READS_SPLITS = True

METADATA = "metadata.jsonl"
_ROWS = pattern(rb'"objects"\s*:\s*(?:\{|\[\s*\{[^{}]*"bbox)')
_BOXES = pattern(rb'"(?:bbox|bboxes|boxes)"\s*:')
_OUTPUT = ("label", "box")  # and a score
_OUTPUT_BOX = pattern(rb'"box"\s*:\s*\{')
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def looks_like(peek: Peek) -> Likeness | None:
    """Rate outputs of the pipeline by their keys, rows by their objects, and an image folder by its metadata.jsonl."""
    if _holds_rows(peek):
        return Likeness.NAMED if peek.is_folder else Likeness.STRUCTURE
    return peek.rate_documents(_rate_outputs)


def reads_name(name: str) -> bool:
    """Whether a file in a folder is read with it: the rows of an image folder, or outputs of an image."""
    return name == METADATA or name.lower().endswith(FORMAT.member)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of outputs, or of rows, to the draft."""
    if _holds_rows(Peek(path)):
        _read_rows(path, draft)
    else:
        read_object_lists(path, draft, _add_object)


def _rate_outputs(document: Peek) -> Likeness | None:
    if not document.item_keys:
        is_marked = b'"box"' in document.head and b'"xmin"' in document.head
        return Likeness.CONTENT if document.maps_images and is_marked else None
    likeness = rate_keys(document.item_keys, _OUTPUT, ("score",))
    # With further keys of their own, objects are outputs only if the box is an object too.
    is_output = likeness is Likeness.STRUCTURE or _OUTPUT_BOX.search(document.head)
    return likeness if is_output else None


def _holds_rows(peek: Peek) -> bool:
    """Whether a file, or a metadata.jsonl of a folder, has rows with objects."""

    def are_rows(file: Peek) -> bool:
        has_objects = "objects" in file.top_keys | file.item_keys
        return bool(has_objects and _ROWS.search(file.head) and _BOXES.search(file.head))

    return any(map(are_rows, map(peek.at, _find_metadata(peek.path).values()) if peek.is_folder else [peek]))


def _find_metadata(folder: Path) -> dict[str, Path]:
    """Return the files of rows in an image folder by split, "" where it has one for all."""
    if (folder / METADATA).is_file():
        return {"": folder / METADATA}
    found = {name: folder / name / METADATA for name in files.SPLIT_NAMES}
    return {files.split_of(name): file for name, file in found.items() if file.is_file()}


def _add_object(collector: RecordCollector, image: str, entry: Record) -> None:
    box = entry.record("box")
    coords = [box.number(corner) for corner in _CORNERS]
    score = entry.optional("score")
    collector.add_box(image, entry.text("label"), coords, entry.where, score=score)


def _read_rows(path: Path, draft: Draft) -> None:
    from jaccard_eval.reading.tabular.table import add_object_rows  # not needed to look for a format

    file = path
    if files.is_folder(path):
        found = _find_metadata(path)
        split = "" if "" in found else files.choose_split(draft.options.split, found, Where(str(path)), draft.findings)
        file = found[split]
        if split:
            draft.has_splits = True
            draft.details.append(f"split {split}")
    text = files.read_text(file)
    if file.suffix.lower() == ".jsonl" or looks_like_json_lines(text):
        records = list(line_records(file, text, draft))
    else:
        document = parse_json(file, text)
        rows = document if isinstance(document, list) else [document]
        places = (Where(str(file), record=f"[{number}]") for number in range(len(rows)))
        records = [Record.of(row, where, draft.findings) for row, where in zip(rows, places, strict=True)]
    draft.findings.raise_errors()
    add_object_rows([record.values for record in records], lambda row: records[row].where, draft)
