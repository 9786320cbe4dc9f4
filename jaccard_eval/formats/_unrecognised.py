"""The error about an input that no format recognises: what it holds instead, as far as a look at it shows."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.findings import DataError, FindingLog, Where, reason_of
from jaccard_eval.fixes import Fix
from jaccard_eval.reading.files import SNIFF_BYTES, decode, is_label_name, list_folder, read_bytes, record_failures
from jaccard_eval.reading.peek import LEVELS, Kind, Peek
from jaccard_eval.reading.tabular.columns import is_header
from jaccard_eval.text import is_numeral, pluralise, printable, quoted_value

MAX_ENTRIES = 20  # of a folder that are looked into
MAX_KINDS = 5  # of files and folders that a message lists
_OF_ARCHIVES = frozenset({"__MACOSX"})  # which macOS adds to what it packs
_UNKNOWN = "not recognised as any known format"
_NEAREST = 3
_KEY = re.compile(r'"([A-Za-z_][\w-]*)"\s*:')
_ELEMENT = re.compile(r"<([A-Za-z_][\w-]*)")
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
    from jaccard_eval.formats import format_module, format_names

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
