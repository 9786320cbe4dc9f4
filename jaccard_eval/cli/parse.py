"""What a command line means: texts as thresholds, areas, lists, mappings and paths, and options that commands share.

Paths that it reads are noted as it is parsed: no output may lie on them or where the next run would read it.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.errors import UsageError
from jaccard_eval.extensions import extension_names
from jaccard_eval.findings import DataError, SettingsError, Where, as_settings, is_address
from jaccard_eval.options import BEST_F1, SideOptions, score_of
from jaccard_eval.text import did_you_mean, is_numeral, quoted_value, shown_json

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from jaccard_eval.data.protocol import AreaRange
    from jaccard_eval.features.gates import Rule

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
    """Note what the document of a saved result was made of: to report it again must not cost its inputs.

    It may be damaged: the reader of the result reports that.
    """
    inputs, rows = document.get("inputs"), document.get("comparisons")
    others = (row.get("pred") for row in (rows if isinstance(rows, list) else ()) if isinstance(row, Mapping))
    sides = (*(inputs.values() if isinstance(inputs, Mapping) else ()), *others)
    paths = (side.get("path") for side in sides if isinstance(side, Mapping))
    # What came from memory has a name in brackets.
    named = (path for path in paths if isinstance(path, str) and path and not path.startswith("<"))
    note_inputs(map(input_path, named), kind=LABELS)


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
        suffixes = (*LABEL_SUFFIXES, ".npz", *([".json"] if kind == SEGMENTS else []))
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


SORT_KEYS = ("name", "gt", "pred")
MAX_THRESHOLDS = 1001  # a step of 0.001 over the whole range; a finer one is a slip
_MAP_FIX = "Map each prediction class to one ground-truth class, both as text."


class RunOptions(SideOptions):
    """The options that commands share, by the names of their parameters; a command that lacks one has its default.

    What was given for how sides are read, and for the engine, is in `vars`, by the names that the fields of these
    options declare. No dataclass: the methods of 50 fields cost 2 ms to make, at each start.
    """

    gt: tuple[Path, ...] = ()
    pred: tuple[Path, ...] = ()

    names: str | None = None
    images: Path | None = None

    protocol: str | None = None
    iou: tuple[float, ...] | None = None
    max_dets: tuple[int, ...] | None = None
    areas: tuple[AreaRange, ...] | None = None
    class_agnostic: bool = False
    difficult: str | None = None
    iou_type: str | None = None
    sigmas: tuple[float, ...] | None = None
    dilation_ratio: float | None = None
    score: float | str | None = None

    bootstrap: int | None = None
    confidence: float | None = None
    seed: int | None = None
    group_by: str | None = None
    slice: tuple[tuple[str, str], ...] = ()
    slices: Path | None = None

    engine: str = "auto"
    scratch: Path | None = None

    fail_under: tuple[Rule, ...] = ()
    fail_over: tuple[Rule, ...] = ()
    fail_drop: tuple[Rule, ...] = ()
    fail_significant_drop: tuple[Rule, ...] = ()
    fail_inferior: tuple[Rule, ...] = ()
    config: Path | None = None
    isolated: bool = False
    baseline: Path | None = None
    allow_missing_baseline: bool = False
    update_baseline: bool = False
    metric: tuple[tuple[str, float], ...] = ()
    metrics_file: Path | None = None
    exit_zero: bool = False

    per_class: bool = False
    top: int | None = None
    worst: int | None = None
    sort: str | None = None
    gallery: int | None = None
    title: str | None = None
    suspects: Path | None = None
    thumbnails: bool | None = None
    output: tuple[Path, ...] = ()
    as_json: bool = False
    color: str = "auto"
    ci: str = "off"

    verbose: bool = False
    quiet: bool = False
    progress: str = "auto"

    strict: bool = False

    def __init__(self, **given: Any) -> None:
        # The base is frozen and slotted and checks its own fields; what is added here lies in the instance's `vars`.
        super().__init__(**{name: given.pop(name) for name in SideOptions.__dataclass_fields__ if name in given})
        vars(self).update(given)


def parsed_by(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """Return a click callback that parses an option's text; a UsageError then names the option."""

    def callback(ctx: click.Context, param: click.Parameter, text: str | None) -> Any:
        if text is None or ctx.resilient_parsing:  # a shell completes another word
            return None
        try:
            return parse(text)
        except SettingsError:  # names its file
            raise
        except UsageError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return callback


class OneOf(click.Choice[str]):
    """A choice that suggests the word that was meant, and knows what installed packages add to a group."""

    def __init__(self, choices: Sequence[str], group: str | None = None) -> None:
        super().__init__(choices)
        self.group = group

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice."""
        if value not in self.choices:
            added = extension_names(self.group) if self.group else []
            if value not in added:
                known = [*self.choices, *added]
                listed = ", ".join(known)
                self.fail(f"{quoted_value(value)} is not one of {listed}.{did_you_mean(str(value), known)}", param, ctx)
        return str(value)


class WholeNumber(click.IntRange):
    """A whole number within bounds, whose errors name them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        try:
            number: int = super().convert(value, param, ctx)
        except click.BadParameter:
            ends = f"of at least {self.min}" if self.max is None else f"from {self.min} to {self.max}"
            bounds = "" if self.min is None else f" {ends}"
            self.fail(f"{quoted_value(value)} is not a whole number{bounds}", param, ctx)
        return number


def parse_number(text: str) -> float:
    """Return a finite decimal number; other scripts' digits, underscores, ``nan`` and ``inf`` are refused."""
    text = text.strip()
    number = float(text) if is_numeral(text) else math.nan
    # A numeral such as 1e999 is infinite all the same.
    if not math.isfinite(number):
        raise UsageError(f"{quoted_value(text)} is not a number")
    return number


def parse_numbers(text: str) -> tuple[float, ...]:
    """Return numbers from ``1,2.5``; ``none`` is an empty tuple."""
    return () if text.strip().lower() == "none" else tuple(parse_number(part) for part in text.split(","))


def parse_sigmas(text: str) -> tuple[float, ...]:
    """Return sigmas by their name, or as numbers."""
    from jaccard_eval.data.protocol import named_sigmas

    return named_sigmas(text.strip()) if text.strip()[:1].isalpha() else parse_numbers(text)


def parse_whole(text: str) -> int:
    """Return a whole number from 0 on."""
    text = text.strip()  # int() leaves some of the blanks that this removes, such as \x1c
    # 18 digits fit into 64 bits, as seeds and counts have to later.
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise UsageError(f"{quoted_value(text)} is not a whole number of at least 0")
    return int(text)


def parse_order(text: str) -> tuple[int, ...]:
    """Return whole numbers from ``0,2,1``."""
    return tuple(parse_whole(part) for part in text.split(","))


def parse_iou(text: str) -> tuple[float, ...]:
    """Return IoU thresholds from ``0.5``, ``0.5,0.75`` or ``start:stop:step``, the stop included."""
    if ":" not in text:
        return tuple(parse_number(part) for part in text.split(","))
    parts = [parse_number(part) for part in text.split(":")]
    if len(parts) != 3:
        raise UsageError(f"a range of thresholds is start:stop:step, such as 0.5:0.95:0.05; got {quoted_value(text)}")
    start, stop, step = parts
    if not (step > 0 and stop >= start):
        raise UsageError(f"a range of thresholds ascends with a step above 0; got {start:g}:{stop:g}:{step:g}")
    intervals = (stop - start) / step
    if intervals >= MAX_THRESHOLDS:
        raise UsageError(f"{start:g}:{stop:g}:{step:g} has more than {MAX_THRESHOLDS:,} thresholds; take a wider step")
    # Steps of 0.05 do not add up exactly: (0.95 - 0.5) / 0.05 is 8.999999999999998.
    if abs(intervals - round(intervals)) > 1e-6:
        last = start + math.floor(intervals) * step
        raise UsageError(f"steps of {step:g} from {start:g} do not meet {stop:g}; stop at {last:g} instead?")
    import numpy as np

    # As pycocotools makes them, so that 0.5:0.95:0.05 equals COCO's thresholds to the last bit.
    return tuple(np.linspace(start, stop, round(intervals) + 1).tolist())


def parse_max_dets(text: str) -> tuple[int, ...]:
    """Return caps on detections from ``100`` or ``1,10,100``; ``none`` means no cap, an empty tuple."""
    caps = parse_numbers(text)
    if any(cap != int(cap) or cap < 1 for cap in caps):
        raise UsageError(f"caps on detections are whole numbers of at least 1, or 'none'; got {quoted_value(text)}")
    return tuple(map(int, caps))


def parse_areas(text: str) -> tuple[AreaRange, ...]:
    """Return area ranges from ``small=0:32²,large=32²:inf``; a square is written ``32²``, ``32^2`` or ``32**2``."""
    from jaccard_eval.data.protocol import AreaRange

    def square_pixels(bound: str) -> float:
        bound = bound.strip()
        if bound.lower() == "inf":
            return math.inf
        square = re.fullmatch(r"(.+?)(²|\^2|\*\*2)", bound)
        return parse_number(square[1]) ** 2 if square else parse_number(bound)

    ranges = []
    for item in map(str.strip, text.split(",")):
        name, _, bounds = item.partition("=")
        low, colon, high = bounds.partition(":")
        # A name becomes part of metric names such as AP_small, which rules refer to as AP[area=small].
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or not colon:
            raise UsageError(
                f"an area range is name=low:high in square pixels, such as small=0:32²; got {quoted_value(item)}"
            )
        ranges.append(AreaRange(name, square_pixels(low), square_pixels(high)))
    return tuple(ranges)


def parse_names(text: str) -> tuple[str, ...]:
    """Return the names of a comma-separated list; a name with a comma stands in double quotes."""
    import csv  # most runs list no names

    try:
        names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True, strict=True)))
    except (csv.Error, StopIteration):
        names = ()
    if not names or not all(names):
        raise UsageError(f"expected names separated by commas, got {quoted_value(text)}")
    return names


def parse_score(text: str) -> float | str:
    """Return the score of an operating point: a number, or what finds one."""
    found = score_of(text.strip())
    if found is None:
        known = f"a number, {BEST_F1}, precision=0.9, recall=0.8 or fppi=1"
        raise UsageError(f"expected {known}, got {quoted_value(text)}.{did_you_mean(text, [BEST_F1])}")
    return found if isinstance(found, str) else parse_number(text)


def parse_sort(text: str) -> str:
    """Return the column that classes are sorted by: "name", "gt", "pred" or a metric."""
    from jaccard_eval.data.metricref import MetricRef

    return text if text in SORT_KEYS else str(MetricRef.parse(text))


def is_map_file(text: str) -> bool:
    """Whether a mapping of classes is the path of a file."""
    return Path(text).suffix.lower() in (".json", ".yaml", ".yml") and "=" not in text


def parse_class_map(text: str, rules: Sequence[str] | None = None) -> dict[str, str] | str:
    """Return prediction class -> ground-truth class, from ``cat=kitty,dog=hound`` or a JSON or YAML file, or a rule.

    A rule is a name such as ``id+1`` or ``auto``, and is returned as it is; None: those for classes of boxes.
    """
    if is_map_file(text):
        from jaccard_eval.engine import path_of

        return _class_map_of_file(path_of(text))
    if "=" not in text:
        from jaccard_eval.data.alignment import class_map_names

        name, known = text.strip(), class_map_names() if rules is None else rules
        if name not in known:
            listed = f", or one of {', '.join(known)}" if known else ""
            raise UsageError(
                f"expected pairs such as cat=kitty, or a .json or .yaml file{listed}; "
                f"got {quoted_value(name)}.{did_you_mean(name, known)}"
            )
        return name
    pairs = []
    for item in parse_names(text):
        pred, _, gt = (part.strip() for part in item.partition("="))
        if not (pred and gt):
            raise UsageError(f"expected prediction=ground-truth pairs such as cat=kitty, got {quoted_value(item)}")
        pairs.append((pred, gt))
    counts = Counter(pred for pred, _ in pairs)
    if len(counts) < len(pairs):
        repeated = ", ".join(quoted_value(pred) for pred, count in counts.items() if count > 1)
        raise UsageError(f"classes mapped more than once: {repeated}")
    return dict(pairs)


@as_settings()
def _class_map_of_file(path: Path) -> dict[str, str]:
    from jaccard_eval.reading.files import read_text
    from jaccard_eval.reading.json import RepeatedKeys, parse_json
    from jaccard_eval.reading.yaml import read_yaml_mapping

    is_json = path.suffix.lower() == ".json"
    content = parse_json(path, read_text(path)) if is_json else read_yaml_mapping(path)
    where, problem = Where(str(path)), ""
    if isinstance(content, RepeatedKeys):
        problem = f"classes mapped more than once: {', '.join(map(quoted_value, content.repeated))}"
    elif not isinstance(content, dict):
        problem = f"expected one JSON object, got {shown_json(content)}"
    else:
        for name, gt in content.items():
            # One example is enough: a file with numbers for classes has them throughout.
            if type(gt) is int:  # ids, and values of pixels
                content[name] = str(gt)
            elif not isinstance(gt, str):
                where = Where(str(path), field=name)
                problem = f"expected a ground-truth class as text, got {shown_json(gt)}"
                break
    if problem:
        raise DataError.single("class-map", where, problem, fix=_MAP_FIX)
    return content


def read_settings(path: Path) -> str:
    """Return the text of a file of rules or slices; what is wrong with it is a UsageError with every statement."""
    from jaccard_eval.reading.files import read_text

    try:
        return read_text(path)
    except DataError as error:
        raise UsageError("\n".join(finding.statement for finding in error.findings)) from None


def parse_toml(path: Path, text: str) -> Mapping[str, Any]:
    """Return what a TOML text holds; the path is for the message of a UsageError."""
    import tomllib

    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{path}: is nested too deeply") from None
