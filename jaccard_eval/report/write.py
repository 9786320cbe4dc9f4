"""Writing outputs so that a file is whole or untouched: checked first, written aside, renamed together."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaccard_eval.atomic import explained, make_folders, missing_folders, probe, write_aside, write_message
from jaccard_eval.errors import MachineError, UsageError
from jaccard_eval.findings import is_address
from jaccard_eval.report import Reporter, reporter_for
from jaccard_eval.text import quoted_value

TEXT_SUFFIX = ".txt"


@dataclass(frozen=True, slots=True)
class Output:
    """A place to write to: as the user named it, the file behind its links, and the reporter that fills it."""

    path: Path
    target: Path
    is_device: bool
    reporter: Reporter
    makes_folders: bool = False


def plan_outputs(paths: Sequence[Path], *, making_folders: Collection[Path] = ()) -> list[Output]:
    """Check, before anything is computed, that all outputs can be written; the folders of some are made with them."""
    outputs = [_plan(path, makes_folders=path in making_folders and not is_address(path)) for path in paths]
    seen: set[Path] = set()
    for output in outputs:
        if output.target in seen:
            raise UsageError(f"output {quoted_value(str(output.path))} is given twice; keep one")
        seen.add(output.target)
        if not output.is_device:
            with explained(output.path):
                missing = missing_folders(output.target) if output.makes_folders else []
                probe(missing[0] if missing else output.target)
    return outputs


def write_outputs(documents: Sequence[tuple[Output, str | bytes]]) -> None:
    """Write all documents aside, then rename all; when anything fails, files that stood there before are intact."""
    with contextlib.ExitStack() as cleanup:
        written = []
        # Files are written aside before a device gets a byte, for what a device got cannot be taken back. They are
        # renamed last, when nothing but a rename can fail.
        for output, text in (document for document in documents if not document[0].is_device):
            with explained(output.path):
                if output.makes_folders:
                    make_folders(output.target, cleanup)
                written.append((output, write_aside(output.target, _encoded(text), cleanup)))
        for output, text in (document for document in documents if document[0].is_device):
            with explained(output.path):
                _write_device(output.target, _encoded(text))
        for done, (output, temporary) in enumerate(written):
            try:
                temporary.replace(output.target)
            except OSError as error:
                finished = ", ".join(quoted_value(str(earlier.path)) for earlier, _ in written[:done])
                already = f"; written before that: {finished}" if finished else ""
                raise MachineError(write_message(output.path, error) + already) from None


def _plan(path: Path, *, makes_folders: bool) -> Output:
    with explained(path):
        mode = path.stat().st_mode if path.exists() else stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise MachineError(f"cannot write {quoted_value(str(path))}: it is a directory; name a file inside it")
    is_device = not stat.S_ISREG(mode)
    # The link of a pipe in /dev/fd leads nowhere, so devices keep their name.
    target = path if is_device else Path(os.path.realpath(path))
    # A device has no suffix to choose by: it gets what a terminal would.
    name = TEXT_SUFFIX if is_device and not path.suffix else path.name
    return Output(path, target, is_device, reporter_for(name), makes_folders)


def _write_device(target: Path, data: bytes) -> None:
    # Opening a FIFO that nobody reads must fail instead of waiting for ever.
    descriptor = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _encoded(document: str | bytes) -> bytes:
    # Lone surrogates come from odd file names.
    return document.encode("utf-8", "backslashreplace") if isinstance(document, str) else document
