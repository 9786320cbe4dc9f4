"""Other inputs in a folder than the one that was found in it: a second run, an older export, another format."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.findings import DataError, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.reading.peek import FIRST, LEVELS, Peek
from jaccard_eval.text import pluralise

if TYPE_CHECKING:
    Input = tuple[Path, str]
    Recognise = Callable[[Peek], list[str]]

# Files that can be an input by themselves; label files of an image each are one together.
_DOCUMENTS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".pq", ".npz", ".arrow", ".feather")
# Where formats look for the labels of a folder that has none itself, and what lies next to these.
_OWN_FOLDERS = frozenset(
    {"labels", "labeltxt", "label_2", "annotations", "images", "image_2", "imagesets", "jpegimages"}
)
_SHOWN = 5


def inputs_below(peek: Peek, recognise: Recognise, skipped: Sequence[Path] = ()) -> list[Input]:
    """Return the inputs in a folder, and in the folders in it, as far as the first entries of each show."""
    return [*_inputs(peek, recognise, {*skipped}, LEVELS)]


def _inputs(peek: Peek, recognise: Recognise, skipped: set[Path], levels: int) -> Iterator[Input]:
    documents = [name for name in peek.files if name.lower().endswith(_DOCUMENTS)][:FIRST]
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
