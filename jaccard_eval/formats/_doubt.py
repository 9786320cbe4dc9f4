"""Inputs in doubt: other inputs in a folder than the one that was found, and what no format recognises."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.findings import DataError, FindingLog, Where, reason_of
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._listed import format_module, format_names, reads_name
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.files import (
    SNIFF_BYTES,
    SPLIT_NAMES,
    choose_split,
    decode,
    is_label_name,
    list_folder,
    read_bytes,
    record_failures,
    split_of,
)
from jaccard_eval.reading.peek import FIRST, LEVELS, PROJECT, Kind, Likeness, Peek
from jaccard_eval.reading.tabular.columns import is_header
from jaccard_eval.text import is_numeral, pluralise, printable, quoted_value

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
    # Texts are inputs by themselves where they are few.
    texts = islice((name for name in own if name.lower().endswith(".txt")), _FEW)
    return inputs_below(peek, recognise, [peek.path / name for name in (*texts, *used)])


def are_splits(folder: Path, inputs: Sequence[Input]) -> bool:
    """Whether each of several inputs is of one split, by the names of its file and folders."""
    return len(inputs) > 1 and all(_split(folder, path) for path, _ in inputs)


def split_parts(peek: Peek, name: str, recognise: Recognise) -> list[Input]:
    """Return the files or folders of a folder that are splits of one data set in a format that reads them together.

    They lie in it, or in the only folder that is there at each level.
    """
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


MAX_ENTRIES = 20  # of a folder that are looked into
MAX_KINDS = 5  # of files and folders that a message lists
_OF_ARCHIVES = frozenset({"__MACOSX"})  # which macOS adds to what it packs
_UNKNOWN = "not recognised as any known format"
_NEAREST = 3
_KEY = pattern(r'"([A-Za-z_][\w-]*)"\s*:')
_ELEMENT = pattern(r"<([A-Za-z_][\w-]*)")
_JOINS = "json.dump(sum(map(json.load, map(open, sys.argv[2:])), []), open(sys.argv[1], 'w'))"
_JOIN = f'python -c "import json, sys; {_JOINS}" joined.json'
_LIST = "'jaccard-eval formats' lists what can be read."
_TABLE = "a table that starts with the line image,class,score,xmin,ymin,xmax,ymax (ground truth has no score)"
_LABELS = "'class score x1 y1 x2 y2' in every line (ground truth has no score)"


def look_inside(peek: Peek, recognise: Callable[[Peek], list[str]]) -> tuple[list[tuple[Path, str]], bool]:
    """Return what of a folder is an input by itself, with its format, and whether all that it holds was looked at.

    `recognise` names the formats that a file or folder looks like. Never raises.
    """
    files = [name for name in peek.files if not is_image_name(name)]
    # Files go before folders: where a project holds both, the file with all boxes is likelier meant.
    entries = [*files[:MAX_ENTRIES], *peek.folders]
    rated = [(peek.path / name, recognise(peek.at(peek.path / name))) for name in entries[:MAX_ENTRIES]]
    is_all = len(files) + len(peek.folders) <= MAX_ENTRIES and all(len(formats) < 2 for _, formats in rated)
    return [(path, formats[0]) for path, formats in rated if len(formats) == 1], is_all


def unwrapped(peek: Peek) -> Peek:
    """Return the folder in a folder that holds nothing else, as archives are unpacked to; else the folder itself."""
    for _ in range(LEVELS):  # links may lead in circles
        files = [name for name in peek.files if not name.startswith(".")]
        folders = [name for name in peek.folders if name not in _OF_ARCHIVES]
        if files or len(folders) != 1:
            break
        peek = peek.at(peek.path / folders[0])
    return peek


def explain_unknown(peek: Peek, inputs: Sequence[tuple[Path, str]]) -> DataError:
    """Return the most helpful error about an input that no format recognises; `inputs` is what it holds of such."""
    path = peek.path
    if peek.is_folder:
        return _explain_folder(peek, inputs)
    detail, choices = _UNKNOWN, "if each image has its own file, pass their folder"
    if peek.kind is Kind.TEXT and peek.lines:
        detail = f"{detail}; it starts with {quoted_value(peek.lines[0])}"
        choices = f"{choices}; else write {_TABLE}"
    detail += _seen_in(peek)
    fix = _named(f"Name it with {{gt_format}} or {{pred_format}}; {choices}. {_nearest(peek)}{_LIST}")
    return _foreign(path) or DataError.single("format-unknown", Where(str(path)), detail, fix=fix)


def _explain_folder(peek: Peek, inputs: Sequence[tuple[Path, str]]) -> DataError:
    folder = peek.path
    try:
        folders, names = list_folder(folder)
    except OSError as error:
        return DataError.single("folder-unreadable", Where(str(folder)), f"cannot be listed: {reason_of(error)}")
    entries = sorted(folder / name for name in names)
    where, detail = Where(str(folder)), f"{_UNKNOWN}; {_contents(folders, names)}"
    first = peek.at(inputs[0][0]) if inputs else peek
    is_one_each = len(inputs) > 1 and len({path.suffix for path, _ in inputs}) == 1 and first.kind is Kind.TEXT
    if is_one_each and not is_header(first.lines[0].split(",")):
        detail = f"{detail}; {quoted_value(first.path.name)} starts with {quoted_value(first.lines[0])}"
        how = f"If each file is of one image, join them to {_TABLE}, or write {_LABELS}. Otherwise pass one of them."
        return DataError.single("format-unknown", where, detail, fix=how)
    if inputs:
        # With the folder, so that it can be pasted from where the user stands.
        choices = [f"{shlex.quote(str(path))} ({name})" for path, name in inputs]
        more = f" and {len(choices) - MAX_KINDS} more" if len(choices) > MAX_KINDS else ""
        how = f"Pass the one with the boxes: {', '.join(choices[:MAX_KINDS])}{more}."
        if len(inputs) > 1 and all(name == "coco" and _is_list(peek.at(path)) for path, name in inputs):
            how += f" If they are parts of one run, join them: {_JOIN} {shlex.quote(str(folder))}/*.json"
        return DataError.single("format-unknown", where, detail, fix=how)
    files = [entry for entry in entries if not is_image_name(entry.name)][:MAX_ENTRIES]
    foreign = [found for file in files if (found := _foreign(file)) is not None]
    if foreign and len(foreign) == len(files):
        log = FindingLog()
        record_failures(foreign, log)
        return DataError(log.findings())
    words = "Pass the file or folder that holds the boxes, or name its format with {gt_format} or {pred_format}."
    document = next((peek.at(file) for file in files if peek.at(file).is_json or peek.at(file).kind is Kind.XML), None)
    if document is not None:
        detail += _seen_in(document, f" of {quoted_value(document.path.name)}")
        words += f" {_nearest(document)}".rstrip()
    fix = _named(f"{words} {_LIST}")
    if names and all(is_image_name(name) for name in names):
        detail = f"{detail}, which look like photos"
        fix = Fix.missing(
            "Pass the file or folder that holds the boxes. If each image is a map of objects in one channel, pass"
            " {gt_format} or {pred_format}; for maps of classes use {command}.",
            gt_format="instances",
            pred_format="instances",
            command="pixels GT PRED",
        )
    labels = [peek.at(entry) for entry in entries if is_label_name(entry.name)][:MAX_ENTRIES]
    shown = next((file for file in labels if file.lines), None)
    if shown is not None:
        detail = f"{detail}; {quoted_value(shown.path.name)} starts with {quoted_value(shown.lines[0])}"
        words = f"Write {_LABELS}, or name its format with {{gt_format}} or {{pred_format}}."
        fix = _named(f"{words} {_nearest(shown)}{_LIST}")
    return DataError.single("format-unknown", where, detail, fix=fix)


def _is_list(peek: Peek) -> bool:
    return peek.head.lstrip().startswith(b"[")


def _fields_of(text: str) -> list[str]:
    """Return the keys of JSON, or the elements of XML, that a text begins with."""
    pattern = _ELEMENT if text.lstrip().startswith("<") else _KEY
    return list(dict.fromkeys(pattern.findall(text)))


def _seen_in(peek: Peek, of: str = "") -> str:
    fields = _fields_of(peek.text) if peek.is_json or peek.kind is Kind.XML else []
    more = " and others" if len(fields) > MAX_KINDS else ""
    return f"; fields{of} are {', '.join(map(quoted_value, fields[:MAX_KINDS]))}{more}" if fields else ""


def _nearest(peek: Peek) -> str:
    """Name the formats whose examples are most like what is there, each with what it has besides."""
    modules = {name: format_module(name) for name in format_names()}
    examples = {name: one.FORMAT.example for name, one in modules.items() if not hasattr(one, "write_example")}
    kinds = {name: text.lstrip()[:1] if text.lstrip()[:1] in "{[<" else "" for name, text in examples.items()}
    if peek.is_json or peek.kind is Kind.XML:
        alike = {
            name: text for name, text in examples.items() if (kinds[name] == "<") is not peek.is_json and kinds[name]
        }
        seen, has = {*_fields_of(peek.text)}, {name: _fields_of(text) for name, text in alike.items()}
        often = Counter(field for fields in has.values() for field in fields)  # what few have means more
        share = {
            name: sum(1 / often[field] for field in fields if field in seen) / sum(1 / often[field] for field in fields)
            for name, fields in has.items()
        }
        best = sorted((name for name in share if share[name]), key=lambda name: -share[name])[:_NEAREST]
        lacks = {name: [field for field in has[name] if field not in seen][:_NEAREST] for name in best}
    elif peek.kind is Kind.TEXT and peek.lines:
        wanted = {name: _words_and_numbers(text) for name, text in examples.items() if not kinds[name]}
        words, numbers = _words_and_numbers(peek.lines[0])
        if not numbers:
            return ""  # prose is like none of them
        away = {name: abs(pair[0] - words) + abs(pair[1] - numbers) for name, pair in wanted.items() if pair[1]}
        best = sorted(away, key=lambda name: away[name])[:_NEAREST]
        lacks = {
            name: [
                pluralise(more, what)
                for what, more in (("word", wanted[name][0] - words), ("number", wanted[name][1] - numbers))
                if more > 0
            ]
            for name in best
        }
    else:
        return ""
    told = (
        f"{name} ({'lacks ' + ', '.join(lacks[name]) if lacks[name] else 'has other fields, too'})" for name in best
    )
    return f"Nearest formats: {', '.join(told)}. " if best else ""


def _words_and_numbers(text: str) -> tuple[int, int]:
    """Count the words and the numbers of the first line of a text."""
    fields = re.split(r"[\s,;|]+", text.strip().splitlines()[0])
    n_numbers = sum(map(is_numeral, fields))
    return len(fields) - n_numbers, n_numbers


def _named(words: str) -> Fix:
    return Fix.missing(words, gt_format=None, pred_format=None)


def _foreign(file: Path) -> DataError | None:
    """Return what a file is if it is not text, or empty."""
    try:
        data = read_bytes(file)
        if data.strip():
            # The start alone, cut where no character can be cut in two.
            decode(file, data if len(data) <= SNIFF_BYTES else data[: data.rfind(b"\n", 0, SNIFF_BYTES) + 1])
            return None
    except DataError as error:
        return error
    detail = "the file holds only whitespace"
    return DataError.single("file-empty", Where(str(file)), detail, fix="Export it again.")


def _contents(inner: Sequence[str], names: Sequence[str]) -> str:
    """Describe what lies in a folder, by the suffixes of the files and the names of the folders."""
    folders = [quoted_value(name) for name in sorted(inner)]
    kinds = Counter(Path(name).suffix.lower() or "without suffix" for name in sorted(names))
    files = [f"{count:,} {printable(kind)}" for kind, count in kinds.most_common()]
    said = [
        f"{what} ({', '.join(names[:MAX_KINDS])}{', ...' if len(names) > MAX_KINDS else ''})"
        for what, names in (("files", files), ("folders", folders))
        if names
    ]
    return f"it holds {' and '.join(said)}" if said else "the folder is empty"
