"""What a command line reads, noted as it is parsed: no output may lie on it or where the next run would read it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, is_address
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Input = tuple[Path, str, str]  # path; the option as the user knows it, empty for an argument; kind
    Reads = Callable[[str], bool]  # whether a file of this name in a folder is read
    Identity = tuple[int, int]  # device and number of a file, the same by whatever name it is reached
    TextType = click.ParamType[str]
else:
    TextType = click.ParamType  # takes no parameter in click 8.2

# What an input is, which decides what of a folder is read.
FILE, LABELS, IMAGES, MAPS, SEGMENTS = "file", "labels", "images", "maps", "segments"
_READ = "jaccard_eval.read"  # in the context


def input_path(value: str | os.PathLike[str]) -> Path:
    """Return the path that a text means; what lies behind a URL is kept until the command ends."""
    if "://" not in str(value):
        return Path(value)
    from jaccard_eval.engine import path_of, session  # of use to a few runs

    context = click.get_current_context(silent=True)
    if context is not None:
        context.find_root().with_resource(session())
    return path_of(value)


class AnyPath(click.Path):
    """A path as it stands: whether it can be read shows when it is, with the exit code of what it is for."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; an empty text, as of a variable that is not set, would be the folder we are in."""
        if value == "":
            self.fail("expected a path, got an empty text", param, ctx)
        path = input_path(value)
        # Click would have a plain path of it again.
        return path if is_address(path) else super().convert(value, param, ctx)


class OutputPath(AnyPath):
    """A path that is written; a slash at its end is kept."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if isinstance(value, Path):
            return value  # click converts what is converted once more
        path = super().convert(value, param, ctx)
        if not str(value).endswith(("/", os.sep)) or is_address(path):
            return path
        from jaccard_eval.atomic import FolderPath  # of use to a few runs

        return FolderPath(path)


class InputPath(AnyPath):
    """A path that is read."""

    def __init__(self, kind: str = FILE) -> None:
        super().__init__()
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, and note it."""
        path: Any = super().convert(value, param, ctx)
        _remember(ctx, [path], param, self.kind)
        return path


class InputText(TextType):
    """A text that can be the path of a file to read."""

    name = "text"

    def __init__(self, is_file: Callable[[str], bool]) -> None:
        self.is_file = is_file

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete a file."""
        from click.shell_completion import CompletionItem  # brings the scripts of three shells along

        return [CompletionItem(incomplete, type="file")]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the text, and note it where it is a path; of a URL, what may be shown."""
        if is_address(value):
            value = str(input_path(value))
        if self.is_file(value):
            _remember(ctx, [value], param)
        return value


def refuse_results(words: Iterable[str | os.PathLike[str]]) -> None:
    """Raise an error when one of the words is a saved result, the likeliest file to come without a second one."""
    from jaccard_eval.reading.files import head, refuse_result

    for word in words:
        if os.path.isfile(word):  # noqa: PTH113 - may be anything, NUL bytes too
            refuse_result(Path(word), head(Path(word)))


def note_inputs(paths: Iterable[Path], option: str = "", kind: str = FILE) -> None:
    """Note what a run reads besides the paths that are parsed as such: what is found, or named in a file."""
    _remember(click.get_current_context(silent=True), paths, option, kind)


def note_inputs_of(document: Mapping[str, Any]) -> None:
    """Note what the document of a saved result was made of: to report it again must not cost its inputs."""
    others = (row.get("pred") for row in document.get("comparisons") or () if isinstance(row, Mapping))
    sides = (*(document.get("inputs") or {}).values(), *others)
    paths = (side.get("path") for side in sides if isinstance(side, Mapping))
    # What came from memory has a name in brackets.
    note_inputs((input_path(path) for path in paths if path and not path.startswith("<")), kind=LABELS)


def _remember(
    ctx: click.Context | None, paths: Iterable[Path | str], param: click.Parameter | str | None, kind: str = FILE
) -> None:
    if ctx is not None:  # else a function is called by itself, and writes nothing
        option = param.opts[0] if isinstance(param, click.Option) else param if isinstance(param, str) else ""
        ctx.meta.setdefault(_READ, []).extend((input_path(path), option, kind) for path in paths)


def refuse_overwriting(outputs: Sequence[tuple[str, Path]], folders: Sequence[Path] = ()) -> None:
    """Raise a UsageError with all outputs, each by its option, that lie on an input or where the next run reads.

    Some of them are folders that images are written to.
    """
    clashes = find_clashes([path for _, path in outputs])
    # None of these images may lie where images are read.
    inside = find_clashes([folder / "1.png" for folder in folders])
    clashes = {folder: inside[folder / "1.png"] for folder in folders if folder / "1.png" in inside} | clashes
    said = [
        f"{option} {quoted_value(str(path))} {clashes[path]}; choose another path"
        for option, path in outputs
        if path in clashes
    ]
    if said:
        raise UsageError("\n".join(said))


def find_clashes(outputs: Sequence[Path]) -> dict[Path, str]:
    """Return, of each output that lies on an input or where the next run reads, what it would do to that input."""
    from jaccard_eval.reading.names import names_above

    context = click.get_current_context()
    # One input is often noted twice, as `--names` is for both sides; to look at it costs a walk through its folder.
    inputs = list(dict.fromkeys(context.meta.get(_READ, ())))
    # The file of names that lies above a side is read where that side only numbers its classes.
    sides = [path for path, _, kind in inputs if kind == LABELS]
    pairs = [(path, other) for path in sides for other in sides if path != other]
    inputs += [(names, "", FILE) for path, other in pairs for names in names_above(path, other)]
    clashes = {path: _first_clash(path, inputs, context.params) for path in outputs}
    return {path: clash for path, clash in clashes.items() if clash}


def _first_clash(output: Path, inputs: Sequence[Input], options: dict[str, Any]) -> str:
    """Describe what an output does to the first input that it touches; empty where it touches none."""
    target = Path(os.path.realpath(output))
    exists = _identity(target) is not None
    if exists and not (target.is_file() or target.is_dir()):
        return ""  # a device
    for path, option, kind in inputs:
        name = f"{option or 'the input'} {quoted_value(str(path))}"
        if _is_same(target, path):
            return f"would overwrite {name}, which this run reads"
        places = list(_places(path, kind, options))
        # An output that is a folder above an input would take the place of all that lies in it.
        for place in (path, *(place for place, _ in places)):
            if target in Path(os.path.realpath(place)).parents and _identity(place) is not None:
                return f"holds what this run reads with {name}"
        if any(_is_same(target, place) or _is_read_in(place, target, reads) for place, reads in places):
            return f"would overwrite a file of {name}" if exists else f"would be read with {name} next time"
    return ""


def _places(path: Path, kind: str, options: dict[str, Any]) -> Iterator[tuple[Path, Reads]]:
    """Yield the folders that an input is or leads to, and files that it leads to, each with what is read there."""
    from jaccard_eval.data.imagekeys import is_image_name

    if kind == IMAGES:
        yield path, is_image_name
    elif kind in (MAPS, SEGMENTS):
        from jaccard_eval.data.imagekeys import LABEL_SUFFIXES

        # Lists of segments and of classes lie next to their maps.
        suffixes = (*LABEL_SUFFIXES, ".json") if kind == SEGMENTS else LABEL_SUFFIXES
        yield path, lambda name: name.lower().endswith(suffixes)
    elif kind == LABELS:
        from jaccard_eval.formats import Opened, format_module, format_names, leads_to, reads_name

        # Both sides' formats are looked at: which of them an argument is of shows when the command runs.
        names = {options.get("gt_format"), options.get("pred_format")} - {None}
        found = path
        try:
            found, name = Opened(path).found
            names.add(name)
        except DataError:
            # It may be any of them: what one of them would read next time is not to be written either.
            names = names or {*format_names()}
        for module in map(format_module, sorted(map(str, names))):
            reads = partial(reads_name, module)
            yield path, reads
            for place in leads_to(module, found, options.get("split") or ""):
                # Next to labels there may be their images, for sizes.
                yield place, lambda name, reads=reads: reads(name) or is_image_name(name)  # type: ignore[misc]


def _is_read_in(folder: Path, target: Path, reads: Reads) -> bool:
    """Whether a file is read, or would be if it were there, in a folder or below it, by whatever link."""
    wanted = _identity(target)
    # Where the folder of an output is made with it, it is made in the nearest one that exists.
    parent = next(filter(None, map(_identity, target.parents)), None)
    is_read = reads(target.name)
    if wanted is None and not is_read:
        return False
    for identity, files in _walk(folder):
        if is_read and identity == parent:
            return True
        for file in files:
            # Only links cost a look at the file: of most entries the number is known from the folder.
            is_wanted = wanted and (file.is_symlink() or file.inode() == wanted[1])
            if is_wanted and _identity(Path(file.path)) == wanted and reads(file.name):
                return True
    return False


def _walk(folder: Path) -> Iterator[tuple[Identity, list[os.DirEntry[str]]]]:
    """Yield each folder in a folder, itself included, with the files in it; links are followed, circles are not."""
    from jaccard_eval.engine import list_names
    from jaccard_eval.reading.files import is_folder_entry

    seen: set[Identity] = set()
    list_names(folder, recursive=True)
    root = Path(os.path.realpath(folder))
    pending = [] if root == root.parent else [root]  # the root of the file system is not an input
    while pending:
        here = pending.pop()
        identity = _identity(here)
        if identity is None or identity in seen:
            continue
        seen.add(identity)
        try:
            with os.scandir(here) as scanned:
                entries = list(scanned)
        except OSError:  # a file, or a folder that cannot be listed: reading it reports that
            entries = []
        pending += [Path(entry.path) for entry in entries if is_folder_entry(entry)]
        yield identity, [entry for entry in entries if not is_folder_entry(entry)]


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
