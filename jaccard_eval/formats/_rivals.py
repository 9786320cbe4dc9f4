"""Other inputs in a folder than the one that was found in it: a second run, an older export, another format."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.files import SPLIT_NAMES, choose_split, split_of
from jaccard_eval.reading.peek import FIRST, LEVELS, PROJECT, Peek
from jaccard_eval.text import pluralise, quoted_value

if TYPE_CHECKING:
    Input = tuple[Path, str]
    Recognise = Callable[[Peek], list[str]]

# Files that can be an input by themselves; label files of an image each are one together.
_DOCUMENTS = (
    ".json",
    ".jsonl",
    ".ndjson",
    ".csv",
    ".tsv",
    ".parquet",
    ".pq",
    ".npz",
    ".arrow",
    ".feather",
    ".odgt",
    ".manifest",
)
# Where formats look for the labels of a folder that has none itself, and what lies next to these.
_OWN_FOLDERS = frozenset(
    {"labels", "labeltxt", "label_2", "annotations", "images", "image_2", "imagesets", "jpegimages"}
)
_SHOWN = 5
_PARTIAL = ("trainval", "minival", "minitrain", "testdev")  # splits of their own, next to those that they are made of
_FEW = 8  # texts of a folder, each of which may be an input by itself


def inputs_below(peek: Peek, recognise: Recognise, skipped: Sequence[Path] = ()) -> list[Input]:
    """Return the inputs in a folder, and in the folders in it, as far as the first entries of each show."""
    return [*_inputs(peek, recognise, {*skipped}, LEVELS)]


def _inputs(peek: Peek, recognise: Recognise, skipped: set[Path], levels: int) -> Iterator[Input]:
    texts = [name for name in peek.files if name.lower().endswith(".txt")]
    suffixes = (*_DOCUMENTS, *([".txt"] if len(texts) <= _FEW else ()))
    documents = [name for name in peek.files if name.lower().endswith(suffixes)][:FIRST]
    for name in documents:
        if peek.path / name not in skipped and (found := _recognised(peek.at(peek.path / name), recognise)):
            yield peek.path / name, found
    for name in [name for name in peek.folders if not name.startswith((".", "__"))][:FIRST] if levels else ():
        inner = peek.at(peek.path / name)
        if inner.path in skipped or any(path.is_relative_to(inner.path) for path in skipped):
            continue
        # What a folder holds may be recognised only together: a file for each image.
        if found := _recognised(inner, recognise):
            yield inner.path, found
        else:
            yield from _inputs(inner, recognise, skipped, levels - 1)


def _recognised(peek: Peek, recognise: Recognise) -> str:
    """Return the format of an input; nothing where only its name supports it."""
    from jaccard_eval.formats import format_module
    from jaccard_eval.reading.peek import Likeness

    # An image folder of a data set may have a hundred thousand members, and none of them is opened.
    if peek.is_folder and not peek.folders and all(map(is_image_name, peek.files[:FIRST])):
        return ""
    found = recognise(peek)
    is_sure = len(found) == 1 and (format_module(found[0]).looks_like(peek) or 0) > Likeness.SUFFIX
    return found[0] if is_sure else ""


def rivals_of(peek: Peek, found: Path, reads: Callable[[str], bool], recognise: Recognise) -> list[Input]:
    """Return the inputs of a folder besides the one that was found: one in it, or all that its format `reads`."""
    if found != peek.path:
        return inputs_below(peek, recognise, [found])
    own = [name for name in peek.files if reads(name)]
    if any(name.lower().endswith(_DOCUMENTS) for name in own):
        return []  # a document of each image, in any number of folders
    used = [name for name in peek.folders if name.lower() in _OWN_FOLDERS]
    # Folders below label files are read with these, as is a tree without any; a description names what is read.
    used = used if used and not own else [*peek.folders]
    return inputs_below(peek, recognise, [peek.path / name for name in (*own, *used)])


def are_splits(folder: Path, inputs: Sequence[Input]) -> bool:
    """Whether each of several inputs is of one split, by the names of its file and folders."""
    return len(inputs) > 1 and all(_split(folder, path) for path, _ in inputs)


def split_parts(peek: Peek, name: str, recognise: Recognise) -> list[Input]:
    """Return the files or folders of a folder that are splits of one data set in a format that reads them together.

    They lie in it, or in the only folder that is there at each level.
    """
    from jaccard_eval.formats import format_module, reads_name

    module = format_module(name)
    for _ in range(0 if getattr(module, "READS_SPLITS", False) else LEVELS):
        own = (peek.path / file for file in peek.files if file != PROJECT and reads_name(module, file))
        first = next(own, None)  # of a hundred thousand label files, one
        if first is None:
            parts = [inner for inner in map(peek.path.__truediv__, peek.folders) if _split(peek.path, inner)]
        else:
            parts = [first, *own] if _split(peek.path, first) else []
            parts = parts if all(_split(peek.path, path) for path in parts) else []
        if len({_split(peek.path, path) for path in parts}) > 1:
            found = [(path, name) for path in parts if recognise(peek.at(path)) == [name]]
            return found if len(found) == len(parts) else []
        if first is not None or len(peek.folders) != 1:
            break
        peek = peek.at(peek.path / peek.folders[0])
    return []


def _split(folder: Path, path: Path) -> str:
    """Return the split that an input is of, by the names of folders and file; none where these name several."""
    words = re.split("[^a-z]+", str(path.relative_to(folder)).lower())
    named = {split_of(word) for word in words if word in (*SPLIT_NAMES, *_PARTIAL)}
    return named.pop() if len(named) == 1 else ""


def of_split(peek: Peek, inputs: Sequence[Input], options: ReadOptions, findings: FindingLog) -> Input:
    """Return the input of the split that is asked for; of several such, the one that has what is compared.

    COCO's split has files of objects, persons and captions.
    """
    splits = {path: _split(peek.path, path) for path, _ in inputs}
    split = choose_split(split_of(options.split), dict.fromkeys(splits.values()), Where(str(peek.path)), findings)
    found = [given for given in inputs if splits[given[0]] == split]
    if len(found) > 1:
        # Rectangles drawn as polygons look like oriented boxes.
        found = [(path, name) for path, name in found if options.iou_type in _kinds(peek.at(path), name)] or found
    objects = [given for given in found if given[0].name.startswith("instances_")]
    found = objects if len(found) > 1 and objects else found
    if len(found) != 1:
        raise explain_several(peek.path, found or inputs)
    path, name = found[0]
    detail = f"split {quoted_value(split)} is read: {path} ({name})"
    others = list(dict.fromkeys(other for other in splits.values() if other != split))
    words = f"Choose another with {{split}}: {', '.join(others)}."
    fix = Fix.missing(words, split=None) if others else None
    findings.note("split-chosen", Where(str(peek.path)), detail, fix=fix)
    return path, name


def _kinds(peek: Peek, name: str) -> set[str]:
    from jaccard_eval.formats import format_module

    module = format_module(name)
    return set(module.iou_types(peek)) if hasattr(module, "iou_types") else {BOXES}


def explain_several(folder: Path, inputs: Sequence[Input]) -> DataError:
    """Return the error about a folder with several inputs, one of which may be the folder as a whole."""
    inner = [path for path in (folder / "labels",) if path.is_dir()]
    named = [(inner[0] if path == folder and inner else path, name) for path, name in inputs]
    # With the folder, so that it can be pasted from where the user stands.
    choices = [f"{shlex.quote(str(path))} ({name})" for path, name in named if path != folder]
    more = f" and {len(choices) - _SHOWN:,} more" if len(choices) > _SHOWN else ""
    detail = f"holds {pluralise(len(named), 'input', 'inputs')} with boxes, and any of them may be meant"
    words = f"Pass one: {', '.join(choices[:_SHOWN])}{more}."
    whole = next((name for path, name in named if path == folder), None)
    if whole is None:
        return DataError.single("input-ambiguous", Where(str(folder)), detail, fix=Fix.missing(words))
    words += " To read the folder as a whole, pass {gt_format} or {pred_format}."
    options = {"gt_format": whole, "pred_format": whole}
    return DataError.single("input-ambiguous", Where(str(folder)), detail, fix=Fix.missing(words, **options))
