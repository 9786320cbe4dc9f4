"""What to say of an input that no format recognises: what it holds instead, as far as a look at it tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.findings import DataError, FindingLog, Where, reason_of
from jaccard_eval.reading.files import SNIFF_BYTES, decode, read_bytes, record_failures
from jaccard_eval.reading.peek import Peek
from jaccard_eval.text import printable, quoted_value

MAX_FILES = 20  # of a folder that are looked into
MAX_KINDS = 5  # of files and folders that a message lists


def explain_unknown(peek: Peek, known: Sequence[str], recognise: Callable[[Peek], list[str]]) -> DataError:
    """Return the most telling error about an input that none of the `known` formats recognises.

    `recognise` names the formats that a file or folder looks like.
    """
    path = peek.path
    if peek.is_folder:
        return _explain_folder(peek, known, recognise)
    fix = "Name it with --gt-format or --pred-format; where each image has a file of its own, pass their folder."
    return _foreign(path) or _unknown(path, known, "", fix)


def _explain_folder(peek: Peek, known: Sequence[str], recognise: Callable[[Peek], list[str]]) -> DataError:
    folder = peek.path
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        return DataError.single("folder-unreadable", Where(str(folder)), f"cannot be listed: {reason_of(error)}")
    files = [entry for entry in entries if not entry.is_dir() and not is_image_name(entry.name)][:MAX_FILES]
    choices: list[str] = []
    # Files go before folders: where a project holds both, the file with all boxes is likelier meant.
    for entry in [*files, *(entry for entry in entries if entry.is_dir())][:MAX_FILES]:
        formats = recognise(peek.at(entry))
        if len(formats) == 1:
            choices.append(f"{quoted_value(entry.name)} ({formats[0]})")
    if choices:
        more = f" and {len(choices) - MAX_KINDS} more" if len(choices) > MAX_KINDS else ""
        fix = f"Pass what holds the boxes: {', '.join(choices[:MAX_KINDS])}{more}."
        return _unknown(folder, known, f"; {_contents(entries)}", fix)
    foreign = [found for file in files if (found := _foreign(file)) is not None]
    if foreign and len(foreign) == len(files):
        log = FindingLog()
        record_failures(foreign, log)
        return DataError(log.findings())
    fix = "Pass the file or folder that holds the boxes, or name its format with --gt-format or --pred-format."
    return _unknown(folder, known, f"; {_contents(entries)}", fix)


def _unknown(path: Path, known: Sequence[str], contents: str, fix: str) -> DataError:
    detail = f"not recognised as any known format ({', '.join(known)}){contents}"
    return DataError.single("format-unknown", Where(str(path)), detail, fix=fix)


def _foreign(file: Path) -> DataError | None:
    """Return what a file is when it is no text with anything in it."""
    try:
        data = read_bytes(file)
        if data.strip():
            # The start alone, cut where no character can be cut in two.
            decode(file, data if len(data) <= SNIFF_BYTES else data[: data.rfind(b"\n", 0, SNIFF_BYTES) + 1])
            return None
    except DataError as error:
        return error
    detail = "the file is empty but for blanks"
    return DataError.single("file-empty", Where(str(file)), detail, fix="Export it again.")


def _contents(entries: Sequence[Path]) -> str:
    """Say what lies in a folder, by the suffixes of the files and the names of the folders."""
    folders = [quoted_value(entry.name) for entry in entries if entry.is_dir()]
    kinds = Counter(entry.suffix.lower() or "without suffix" for entry in entries if not entry.is_dir())
    files = [f"{count:,} {printable(kind)}" for kind, count in kinds.most_common()]
    said = [
        f"{what} ({', '.join(names[:MAX_KINDS])}{', ...' if len(names) > MAX_KINDS else ''})"
        for what, names in (("files", files), ("folders", folders))
        if names
    ]
    return f"it holds {' and '.join(said)}" if said else "the folder is empty"
