"""What a command line reads, noted as it is parsed: no output may lie on it or where the next run would read it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from jaccard_eval.formats import FormatModule

    Reads = Callable[[str], bool]  # whether a file of this name in a folder is read
    Identity = tuple[int, int]  # device and number of a file, the same by whatever name it is reached
    TextType = click.ParamType[str]
else:
    TextType = click.ParamType  # takes no parameter in click 8.2

FILE, LABELS, IMAGES, MAPS = (
    "file",
    "labels",
    "images",
    "maps",
)  # what an input is; which decides what of a folder counts
_READ = "jaccard_eval.read"  # in the context


@dataclass(frozen=True, slots=True)
class Input:
    """A file or folder that a run reads, as the user knows it: by an option, or as an argument (no name)."""

    path: Path
    option: str = ""
    kind: str = FILE

    def __str__(self) -> str:
        return f"{self.option or 'the input'} {quoted_value(str(self.path))}"


class AnyPath(click.Path):
    """A path as it stands: whether it can be read shows when it is, with the exit code of what it is for."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; an empty text, as of a variable that is not set, would be the folder we are in."""
        if value == "":
            self.fail("expected a path, got an empty text", param, ctx)
        return super().convert(value, param, ctx)


class InputPath(AnyPath):
    """A path that is read."""

    def __init__(self, kind: str = FILE) -> None:
        super().__init__()
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, and note it."""
        path: Any = super().convert(value, param, ctx)
        if ctx is not None:
            _noted(ctx).append(Input(Path(path), _option_of(param), self.kind))
        return path


class InputText(TextType):
    """A text that can be the path of a file to read."""

    name = "text"

    def __init__(self, is_file: Callable[[str], bool]) -> None:
        self.is_file = is_file

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the text, and note it where it is a path."""
        if ctx is not None and self.is_file(value):
            _noted(ctx).append(Input(Path(value), _option_of(param)))
        return value


def note_inputs(paths: Iterable[Path], option: str = "", kind: str = FILE) -> None:
    """Note what a run reads beside the paths that are parsed as such: what is found, or named in a file."""
    context = click.get_current_context(silent=True)
    if context is not None:
        _noted(context).extend(Input(path, option, kind) for path in paths)


def refuse_overwriting(outputs: Sequence[tuple[str, Path]]) -> None:
    """Raise when an output lies on what this run reads, or where the next one would read it.

    Parameters
    ----------
    outputs : sequence of (str, Path)
        Each with its option.

    Raises
    ------
    UsageError
        With all of them, each with its option and what it clashes with.
    """
    context = click.get_current_context()
    inputs = list(dict.fromkeys(_noted(context)))
    clashes = (_first_clash(path, inputs, context.params) for _, path in outputs)
    said = [
        f"{option} {quoted_value(str(path))} {clash}; choose another path"
        for (option, path), clash in zip(outputs, clashes, strict=True)
        if clash
    ]
    if said:
        raise UsageError("\n".join(said))


def _noted(context: click.Context) -> list[Input]:
    noted: list[Input] = context.meta.setdefault(_READ, [])
    return noted


def _option_of(param: click.Parameter | None) -> str:
    return param.opts[0] if isinstance(param, click.Option) else ""


def _first_clash(output: Path, inputs: Sequence[Input], options: dict[str, Any]) -> str:
    """Say what an output does to the first input that it touches; empty where it touches none."""
    target = Path(os.path.realpath(output))
    if _identity(target) is not None and not (target.is_file() or target.is_dir()):
        return ""  # a device
    for one in inputs:
        source = Path(os.path.realpath(one.path))
        if _is_same(target, source):
            return f"would overwrite {one}, which this run reads"
        places = [(source, lambda _: False), *_places(one, options)]
        if any(target in Path(os.path.realpath(place)).parents and _identity(place) is not None for place, _ in places):
            return f"holds what this run reads with {one}"
        if any(_is_same(target, place) or _is_read_in(place, target, reads) for place, reads in places):
            return (
                f"would overwrite a file of {one}"
                if _identity(target) is not None
                else f"would be read with {one} next time"
            )
    return ""


def _places(source: Input, options: dict[str, Any]) -> Iterator[tuple[Path, Reads]]:
    """Yield the folders that an input is or leads to, and files that it leads to, each with what is read there."""
    from jaccard_eval.data.imagekeys import is_image_name

    if source.kind == IMAGES:
        yield source.path, is_image_name
    elif source.kind == MAPS:
        from jaccard_eval.reading.labelmaps.images import SUFFIXES

        yield source.path, lambda name: name.lower().endswith(SUFFIXES)
    elif source.kind == LABELS:
        from jaccard_eval.formats import leads_to, reads_name

        for module in _formats(source.path, options):

            def reads(name: str, module: FormatModule = module) -> bool:
                return reads_name(module, name)

            yield source.path, reads
            for place in leads_to(module, source.path, options.get("split") or ""):
                yield place, lambda name, reads=reads: reads(name) or is_image_name(name)  # type: ignore[misc]


def _formats(path: Path, options: dict[str, Any]) -> list[FormatModule]:
    """Return the formats that an input can be read as: the one that is named or found, all where that fails."""
    from jaccard_eval.formats import detect_format, format_module, format_names

    named = {options.get("gt_format"), options.get("pred_format")} - {None}
    try:
        named.add(detect_format(path))
    except DataError:
        named = named or {*format_names()}
    return [format_module(str(name)) for name in sorted(map(str, named))]


def _is_read_in(folder: Path, target: Path, reads: Reads) -> bool:
    """Whether a file is read, or would be if it were there, in a folder or below it, by whatever link."""
    wanted, parent = _identity(target), _identity(target.parent)
    is_read = reads(target.name)
    if wanted is None and not is_read:
        return False
    for identity, files in _walk(folder):
        if is_read and identity == parent:
            return True
        if wanted and any(_leads_to(file, wanted) and reads(file.name) for file in files):
            return True
    return False


def _walk(folder: Path) -> Iterator[tuple[Identity, list[os.DirEntry[str]]]]:
    """Yield each folder in a folder, itself included, with the files in it; links are followed, circles are not."""
    from jaccard_eval.reading.files import is_folder_entry

    seen: set[Identity] = set()
    pending = [Path(os.path.realpath(folder))]
    pending = [one for one in pending if one != one.parent]  # the root of the file system is no input
    while pending:
        here = pending.pop()
        identity = _identity(here)
        if identity is None or identity in seen:
            continue
        seen.add(identity)
        entries: list[os.DirEntry[str]] = []
        with contextlib.suppress(OSError), os.scandir(here) as scanned:
            entries = list(scanned)
        pending += [Path(entry.path) for entry in entries if is_folder_entry(entry)]
        yield identity, [entry for entry in entries if not is_folder_entry(entry)]


def _leads_to(entry: os.DirEntry[str], wanted: Identity) -> bool:
    # Only links cost a look at the file: of most entries the number is known from the folder.
    return (entry.is_symlink() or entry.inode() == wanted[1]) and _identity(Path(entry.path)) == wanted


def _is_same(target: Path, source: Path) -> bool:
    """Whether two paths are of one file, hard links and systems without regard to case included."""
    wanted = _identity(target)
    return target == Path(os.path.realpath(source)) or (wanted is not None and wanted == _identity(source))


def _identity(path: Path) -> Identity | None:
    """Return what a file is known by; None where there is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None
    return status.st_dev, status.st_ino
