"""Writing outputs so that a file is whole or untouched: checked first, written aside, renamed together."""

from __future__ import annotations

import contextlib
import os
import stat
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from jaccard_eval import storage
from jaccard_eval.atomic import (
    FolderPath,
    explained,
    make_folders,
    probe,
    write_aside,
    write_folder_aside,
    write_message,
)
from jaccard_eval.engine import list_names
from jaccard_eval.errors import MachineError, UsageError
from jaccard_eval.findings import as_given, is_address
from jaccard_eval.frozen import dataclass
from jaccard_eval.report import Reporter, ReportOptions, reporter_for
from jaccard_eval.text import example_keys, pluralise, quoted_value

TEXT_SUFFIX = ".txt"
FOLDER, PNG_FOLDER = "folder/", "folder.png/"  # as reporters of folders are called
LISTING = ".jaccard-eval-files"  # in a folder: the names of all that was written there, a line each


@dataclass(frozen=True, slots=True)
class Output:
    """A place to write to: as the user named it, the file behind its links, and the reporter that fills it."""

    path: Path
    target: Path
    is_device: bool
    reporter: Reporter


def plan_outputs(paths: Sequence[Path], *, folders: bool = False) -> list[Output]:
    """Check, before anything is computed, that all outputs can be written; folders above them are made with them.

    An output can be a folder itself where `folders` is true.
    """
    for path in filter(is_address, paths):
        storage.require_place(as_given(path))
    outputs = [_plan_folder(path) if folders and is_folder_output(path) else _plan(path) for path in paths]
    seen: set[Path] = set()
    for output in outputs:
        if output.target in seen:
            raise UsageError(f"output {quoted_value(str(output.path))} is given twice; keep one")
        seen.add(output.target)
        if not output.is_device and not is_address(output.path):
            with explained(output.path):
                probe(output.target)
    return outputs


def is_folder_output(path: Path) -> bool:
    """Whether an output is a folder: by a slash at its end, or because there is one."""
    return isinstance(path, FolderPath) or os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises for odd names


def options_for(output: Output, options: ReportOptions) -> ReportOptions:
    """Return what is asked of a report, with the folder that it is written to."""
    is_there = not output.is_device and not is_address(output.path)
    folder = output.target if is_folder_output(output.path) else output.target.parent
    return replace(options, folder=folder) if is_there else options


def write_outputs(documents: Sequence[tuple[Output, str | bytes | Mapping[str, bytes]]]) -> None:
    """Write all documents aside, then rename all; when anything fails, files that stood there before are intact."""
    with contextlib.ExitStack() as cleanup:
        written: list[tuple[Output, Callable[[], object]]] = []
        # Files are written aside before a device gets a byte, for what a device got cannot be taken back. They are
        # renamed last, when nothing but a rename can fail; an upload can, and goes before these.
        for output, text in (document for document in documents if not document[0].is_device):
            if is_address(output.path):
                written.insert(0, (output, partial(_upload, output, text)))
                continue
            with explained(output.path):
                make_folders(output.target, cleanup)
                if isinstance(text, str | bytes):
                    temporary = write_aside(output.target, _encoded(text), cleanup)
                    written.append((output, partial(temporary.replace, output.target)))
                else:
                    written.append((output, write_folder_aside(output.target, _listed(text), cleanup)))
        for output, text in (document for document in documents if document[0].is_device):
            if isinstance(text, str | bytes):
                with explained(output.path):
                    _write_device(output.target, _encoded(text))
        for done, (output, put) in enumerate(written):
            try:
                put()
            except (OSError, MachineError) as error:
                finished = ", ".join(quoted_value(as_given(earlier.path)) for earlier, _ in written[:done])
                already = f"; written before that: {finished}" if finished else ""
                message = write_message(output.path, error) if isinstance(error, OSError) else str(error)
                raise MachineError(message + already) from None


def _upload(output: Output, text: str | bytes | Mapping[str, bytes]) -> None:
    """Write a document to an object store: a file, or a folder in the place of one that was written before."""
    url = as_given(output.path)
    if isinstance(text, str | bytes):
        storage.write(url, _encoded(text))
        return
    files = _listed(text)
    before = [entry.url for entry in storage.list_below(url) if not entry.is_folder]
    storage.write_folder(url, files)
    for stale in before:
        if stale.removeprefix(f"{url}/") not in files:
            storage.remove(stale)


def _plan(path: Path) -> Output:
    if isinstance(path, FolderPath):
        fix = "name a file, such as report.html. Folders are written by commands that have images or runs to show."
        raise UsageError(f"output {quoted_value(f'{path}/')} is a folder; {fix}")
    if is_address(path):
        if is_folder_output(path):
            raise MachineError(f"cannot write {quoted_value(as_given(path))}: it is a folder; name a file inside it")
        return Output(path, path, is_device=False, reporter=reporter_for(path.name))
    with explained(path):
        mode = path.stat().st_mode if path.exists() else stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise MachineError(f"cannot write {quoted_value(str(path))}: it is a directory; name a file inside it")
    is_device = not stat.S_ISREG(mode)
    # The link of a pipe in /dev/fd leads nowhere, so devices keep their name.
    target = path if is_device else Path(os.path.realpath(path))
    # A device has no suffix to choose by: it gets what a terminal would.
    name = TEXT_SUFFIX if is_device and not path.suffix else path.name
    return Output(path, target, is_device, reporter_for(name))


def _plan_folder(path: Path) -> Output:
    """Check that a folder can be made, or holds nothing but what such an output wrote before."""
    target = Path(os.path.realpath(path))
    reporter = reporter_for(PNG_FOLDER if path.suffix.lower() == ".png" else FOLDER)
    list_names(path, recursive=True)
    with explained(path):
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(0, "it is not a folder; remove the slash, or choose another name")
        # A link is of somebody else, wherever it leads: replacing the folder would lose it.
        links = {True: set[str](), False: set[str]()}
        for entry in target.rglob("*"):
            if entry.is_symlink() or not entry.is_dir():
                links[entry.is_symlink()].add(entry.relative_to(target).as_posix())
        known = {LISTING}
        if LISTING in links[False] and (path / LISTING).is_file():
            with (path / LISTING).open("rb") as file:
                known |= set(file.read().decode("utf-8", "surrogateescape").splitlines())
    if foreign := sorted(links[True] | (links[False] - known)):
        what = pluralise(len(foreign), "file")
        raise UsageError(
            f"output folder {quoted_value(str(path))} holds {what} that another program wrote:"
            f" {example_keys(foreign)}; choose a new folder"
        )
    return Output(path, path if is_address(path) else target, is_device=False, reporter=reporter)


def _listed(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return the files of a folder with the list of them, by which a later run knows what it may replace."""
    names = "".join(f"{name}\n" for name in sorted(files))
    return ChainMap({LISTING: names.encode("utf-8", "surrogateescape")}, files)  # type: ignore[arg-type]


def _write_device(target: Path, data: bytes) -> None:
    # Opening a FIFO that nobody reads must fail instead of waiting for ever.
    descriptor = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _encoded(document: str | bytes) -> bytes:
    # Lone surrogates come from odd file names.
    return document.encode("utf-8", "backslashreplace") if isinstance(document, str) else document
