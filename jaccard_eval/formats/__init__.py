"""The formats: one module per on-disk layout, found by the name of its file.

A format module has ``looks_like(peek) -> Likeness | None``, ``read(path, draft, options)`` and one frozen value
``FORMAT``; one that can be written has ``write(dataset, path, findings)`` as well, and ``write_as_read`` if a dataset
of its own format is written another way. If the suffixes of ``FORMAT`` do not show which files of a folder are
read, ``reads_name(name)`` does; where an input leads to files outside of it, ``leads_to(path, split)`` returns them.
Where inputs may have other things to compare than boxes, ``iou_types(peek)`` returns those that the input begins with.
Where ground truth may be a benchmark's own, ``benchmark(peek)`` returns the protocol that its marks and classes mean,
"" for none; with ``OF_BOTH_SIDES = True`` it is asked only where predictions are of the format as well. Where
predictions have no place for scores, ``holds_no_scores(peek, gt)`` reports it; ``gt`` is ground truth of the format.
One that has ``ASKED_LAST = True`` rates what no other format is sure of; of one that has ``READS_SPLITS = True``, a
folder with several splits is handed on whole.
No format knows of another: the one that is surest of an input reads it. Modules that start with an underscore are
shared parts, not formats. Third parties add formats through the entry-point group ``jaccard_eval.formats``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from jaccard_eval.engine import Place, is_partitioned, path_of, session
from jaccard_eval.errors import JaccardEvalError, UsageError
from jaccard_eval.extensions import FORMATS, extension_names
from jaccard_eval.findings import DataError, Finding, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._listed import (
    NEVER_JSON,
    USUAL_JSON,
    Format,
    FormatModule,
    format_module,
    format_names,
    leads_to,
    own_modules,
    reads_name,
)
from jaccard_eval.options import ReadOptions
from jaccard_eval.progress import Stage
from jaccard_eval.reading.files import refusals_explained, require_input
from jaccard_eval.text import quoted_value

# The names of formats are completed in a shell: what needs NumPy is loaded where an input is looked at.
if TYPE_CHECKING:
    from jaccard_eval.data.dataset import Dataset
    from jaccard_eval.engine.stored import Store
    from jaccard_eval.reading.draft import Draft
    from jaccard_eval.reading.peek import Likeness, Peek

__all__ = [
    "SHAPES",
    "Format",
    "FormatModule",
    "FormatWriter",
    "Opened",
    "benchmark_of",
    "detect_format",
    "format_for_path",
    "format_module",
    "format_names",
    "format_writer",
    "formats_by_shape",
    "in_parts",
    "iou_types",
    "is_own",
    "leads_to",
    "opened",
    "read_dataset",
    "read_object",
    "read_stored",
    "reads_name",
    "surest_formats",
    "unscored",
    "write_dataset",
    "written_formats",
]

Source = TypeVar("Source")
# The kinds of shapes that formats hold, as lists of formats are divided.
SHAPES = {"bbox": "Boxes", "obb": "Oriented boxes", "segm": "Masks", "keypoints": "Keypoints", "spheres": "Spheres"}


class FormatWriter(Protocol):
    """What the module of a format that can be written offers in addition."""

    def write(self, dataset: Dataset, path: Path, findings: FindingLog) -> None:
        """Write a file or folder, whole or not at all; report what of the dataset it cannot carry.

        Everything is reported before anything is written, with ``findings.raise_errors()`` between the two: if nothing
        may be lost, a warning is an error.
        """


def formats_by_shape() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each kind of shape in words, with the formats that hold it: what these are for boxes, else where it is."""
    known = [format_module(name).FORMAT for name in format_names()]
    for kind, words in SHAPES.items():
        holding = [about for about in known if kind in about.reads]
        held = [(about.name, about.summary if kind == "bbox" else about.reads[kind]) for about in holding]
        yield f"{words} ({kind})", held


def detect_format(path: Path) -> str:
    """Return the name of the format that reads an input; see `Opened.found`."""
    return Opened(path).found[1]


class Opened(os.PathLike[str]):
    """An input that is looked at once, and handed on: it is taken wherever its path is."""

    format_name: str | None

    def __init__(self, given: str | os.PathLike[str], format_name: str | None = None) -> None:
        if isinstance(given, Opened) and format_name in (None, given.format_name):
            self.__dict__ = given.__dict__  # what one of the two finds both have
            return
        from jaccard_eval.reading.peek import Peek

        # Of a URL, the system's path is that of its copy.
        self.text = str(given) if isinstance(given, Path) else os.fspath(given)
        self.format_name = format_name
        self.peek = Peek(path_of(given if isinstance(given, Path) else self.text))

    def __fspath__(self) -> str:
        return self.text

    __str__ = __fspath__

    @cached_property
    def found(self) -> tuple[Path, str]:
        """What is read of it, and the format of that: itself, else the one data set that lies in a folder.

        The surest format reads it; formats of other packages are asked last. A DataError reports that no format
        recognises it, or that several are equally sure. Of a root with several splits, see `found_for`.
        """
        return self.found_for(ReadOptions(), FindingLog())

    def found_for(self, options: ReadOptions, findings: FindingLog) -> tuple[Path, str]:
        """Return what is read of it: of data sets that are splits of one, that of the split and the kind asked for."""
        if len(self._inputs) == 1:
            path, name = self._inputs[0]
            # Records of a script have boxes; where shapes are asked for, what reads shapes of records may find some.
            other = format_module(getattr(format_module(name), "SHAPES", name))
            if other is not format_module(name) and not self.format_name and hasattr(other, "iou_types"):
                is_asked_for = options.iou_type != "bbox" and options.iou_type in other.iou_types(self.peek.at(path))
                name = other.FORMAT.name if is_asked_for else name
            return path, name
        from jaccard_eval.formats._doubt import of_split

        return of_split(self.peek, self._inputs, options, findings)

    @cached_property
    def _inputs(self) -> list[tuple[Path, str]]:
        if self.format_name:
            return [(self.peek.path, self.format_name)]
        self.peek.head = require_input(self.peek.path)
        return _find(self.peek)

    @cached_property
    def in_parts(self) -> bool:
        """Whether it is a folder of parts of both sides, as 'jaccard-eval partition' writes it."""
        with session():  # what is known of a URL from before may be old
            return self.peek.is_folder and is_partitioned(self.peek.path)

    @cached_property
    def iou_types(self) -> frozenset[str]:
        """What of it can be compared, as far as its beginning shows; empty where nothing is recognised."""
        from jaccard_eval.data.protocol import BOXES

        try:
            if self.in_parts:
                from jaccard_eval.reading.partitions import read_manifest

                return frozenset({read_manifest(self.peek.path).iou_type})
            found, name = self.found
            module = format_module(name)
            return frozenset(module.iou_types(self.peek.at(found)) if hasattr(module, "iou_types") else (BOXES,))
        except (JaccardEvalError, OSError):
            return frozenset()  # what is wrong is reported when it is read


def benchmark_of(gt: object, preds: Sequence[object], pred_format: str | None = None) -> str:
    """Return the protocol of the benchmark whose own file ground truth is, by its marks and classes; "" for others."""
    if not isinstance(gt, Opened) or gt.in_parts:
        return ""
    try:
        path, name = gt.found
        module = format_module(name)
        if getattr(module, "OF_BOTH_SIDES", False):
            sides = [opened(pred, pred_format) for pred in preds]
            if not all(isinstance(side, Opened) and side.found[1] == name for side in sides):
                return ""
        return str(module.benchmark(gt.peek.at(path))) if hasattr(module, "benchmark") else ""
    except (JaccardEvalError, OSError):
        return ""  # what is wrong is reported when it is read


def unscored(gt: object, preds: Sequence[object], gt_format: str | None = None, pred_format: str | None = None) -> str:
    """Return what predictions are that hold objects and no scores, by how they lie there; "" where any may have one."""
    sides = [opened(side, name) for side, name in ((gt, gt_format), *((pred, pred_format) for pred in preds))]
    if not all(isinstance(side, Opened) and not side.in_parts for side in sides):
        return ""
    truth, *others = cast("list[Opened]", sides)
    names = []
    try:
        for side in others:
            path, name = side.found
            module = format_module(name)
            beside = truth.found[0] if truth.found[1] == name else None
            if not hasattr(module, "holds_no_scores") or not module.holds_no_scores(side.peek.at(path), beside):
                return ""
            names.append(name)
    except (JaccardEvalError, OSError):
        return ""  # what is wrong is reported when it is read
    return ", ".join(dict.fromkeys(names))


def opened(source: Source, format_name: str | None = None) -> Source | Opened:
    """Return an input that is looked at once where it is given as a path; what is loaded comes back."""
    return Opened(source, format_name) if isinstance(source, str | os.PathLike) else source


def in_parts(source: object) -> bool:
    """Whether an input is a folder of parts, which has both sides; see `Opened.in_parts`."""
    return isinstance(source, str | os.PathLike) and Opened(source).in_parts


def _find(peek: Peek) -> list[tuple[Path, str]]:
    """Return the input, or all that are splits of one data set."""
    from jaccard_eval.reading.peek import Likeness

    path, matches = peek.path, surest_formats(peek)
    if not matches:
        from jaccard_eval.formats._doubt import explain_unknown, look_inside, unwrapped

        peek = unwrapped(peek)
        matches = surest_formats(peek) if peek.path != path else []
    if len(matches) == 1:
        return _with_splits(peek, peek.path, matches[0])
    if matches:
        raise DataError.single(
            "format-ambiguous",
            Where(str(peek.path)),
            f"looks like {' and like '.join(matches)}",
            fix=Fix.missing("Name it with {gt_format} or {pred_format}.", gt_format=None, pred_format=None),
        )
    inputs, is_all = look_inside(peek, surest_formats)
    if len(inputs) == 1 and is_all:
        found, name = inputs[0]
        # A file recognised only by its name may be anything: the settings of a tool, for example.
        if (format_module(name).looks_like(peek.at(found)) or 0) > Likeness.SUFFIX:
            return _with_splits(peek, found, name)
    if peek.is_folder and (not inputs or is_all):
        from jaccard_eval.formats._doubt import are_splits, explain_several, inputs_below

        deeper = inputs_below(peek, surest_formats)
        if are_splits(peek.path, deeper) or (len(deeper) == 1 and not inputs):
            return deeper
        if len(deeper) > 1 and not inputs:
            raise explain_several(peek.path, deeper)
    raise explain_unknown(peek, inputs)


def _with_splits(peek: Peek, found: Path, name: str) -> list[tuple[Path, str]]:
    """Return the input that was found, with the other splits of its data set; a DataError where a folder has others.

    Which of these is meant, only users know.
    """
    if not peek.is_folder:
        return [(found, name)]
    from jaccard_eval.formats._doubt import are_splits, explain_several, rivals_of, split_parts

    if peek.at(found).is_folder and (parts := split_parts(peek.at(found), name, surest_formats)):
        return parts
    inputs = [(found, name), *rivals_of(peek, found, partial(reads_name, format_module(name)), surest_formats)]
    if len(inputs) > 1 and not are_splits(peek.path, inputs):
        raise explain_several(peek.path, inputs)
    return inputs


def surest_formats(peek: Peek) -> list[str]:
    """Return the names of the formats that are surest of an input: one where all is well, several, or none."""
    from jaccard_eval.reading.peek import Likeness

    is_json = not peek.is_folder and peek.suffix == ".json" and peek.is_json
    if is_json and cast("Any", format_module(USUAL_JSON)).is_plain(peek):
        return [USUAL_JSON]
    # Looking for installed packages reads the metadata of every one of them: only where no format of ours will do.
    for list_names in (own_modules, partial(extension_names, FORMATS)):
        asked = sorted({*list_names()} - (NEVER_JSON if is_json else frozenset()))
        modules = {name: format_module(name) for name in asked}
        rated: list[tuple[Likeness, str]] = []
        last = {name for name, module in modules.items() if getattr(module, "ASKED_LAST", False)}
        for name in sorted(modules, key=last.__contains__):
            if name in last and rated and max(rated)[0] >= Likeness.STRUCTURE:
                continue
            if level := modules[name].looks_like(peek):
                rated.append((level, name))
        if rated:
            highest = max(rated)[0]
            return [name for level, name in rated if level == highest]
    return []


def iou_types(source: object) -> frozenset[str]:
    """Return what of an input can be compared; see `Opened.iou_types`."""
    if isinstance(source, Opened):
        return source.iou_types
    from jaccard_eval.formats import _objects

    return frozenset(_objects.iou_types(source))


def read_dataset(given: str | os.PathLike[str], options: ReadOptions, format_name: str | None = None) -> Dataset:
    """Read one side of an evaluation; a DataError has every problem of the input."""
    given = Opened(given, format_name)
    path = given.peek.path
    if given.in_parts:
        from jaccard_eval.reading.partitions import read_side

        return read_side(path, options)
    with Stage(f"reading {path}"), session(), refusals_explained(path):
        notes = FindingLog()
        found, name = given.found_for(options, notes)
        if isinstance(found, Place) and name not in own_modules():
            found.bring_below()
        return _filled(options, lambda asked: _begin(path, found, name, asked, notes), partial(_add, found, name))


def _add(found: Path, name: str, draft: Draft) -> None:
    format_module(name).read(found, draft, draft.options)


def _filled(options: ReadOptions, begin: Callable[[ReadOptions], Draft], add: Callable[[Draft], None]) -> Dataset:
    """Return the data set that `add` makes of a draft; of records that cannot be used, the error names all."""

    def build(asked: ReadOptions) -> tuple[Dataset, FindingLog]:
        draft = begin(asked)
        add(draft)
        return draft.build(), draft.findings

    try:
        return build(options)[0]
    except DataError as error:
        if options.skip_invalid:
            raise
        from jaccard_eval.reading.draft import explained

        raise explained(error, lambda: build(replace(options, skip_invalid=True))[1]) from None


def _begin(path: Path, found: Path, name: str, options: ReadOptions, notes: FindingLog) -> Draft:
    """Return the draft of an input, with a note where another file than the one given is read."""
    from jaccard_eval.reading.draft import Draft

    draft = Draft(str(found), name, options)
    draft.findings.extend(notes.findings())
    draft.has_splits = bool(notes.findings())  # which name the one that was chosen of a root
    if found != path and not notes.findings():
        detail = f"read {found} ({name}), the only file with boxes in the folder"
        draft.findings.note("input-found", Where(str(path)), detail)
    _require_companions(name, options)
    return draft


def _require_companions(name: str, options: ReadOptions) -> None:
    """Raise a UsageError for files that a format of ground truth does not read."""
    files = ("hierarchy", "image_labels", *(("class_descriptions",) if options.role == "gt" else ()))
    given = [option for option in files if getattr(options, option) is not None]
    if given and "image_labels" not in format_module(name).FORMAT.carries:
        words = (
            "{options}: read with ground truth in the tables of Open Images, and"
            f" {options.role} is of the format {name}. Convert it to openimages first."
        )
        raise UsageError(fix=Fix.missing(words, **dict.fromkeys(given)))


def read_stored(given: str | os.PathLike[str], options: ReadOptions, format_name: str | None, store: Store) -> Dataset:
    """Read one side and keep its boxes in a store: in parts where the format can and the parts agree, else whole."""
    from jaccard_eval.engine.choice import fits_memory
    from jaccard_eval.reading.stored import keep_on_disk, read_parts

    given = Opened(given, format_name)
    path = given.peek.path
    if given.in_parts:
        from jaccard_eval.reading.partitions import read_side

        return read_side(path, options, store)
    with session(), refusals_explained(path):
        notes = FindingLog()
        found, name = given.found_for(options, notes)
        module = format_module(name)
        if not hasattr(module, "read_parts"):
            return keep_on_disk(read_dataset(given, options), store)
        try:
            with Stage(f"reading {path}"):
                # What is wrong with a part is found in the whole, which is then read without these records.
                options_of_parts = replace(options, skip_invalid=False)
                draft = _begin(path, found, name, options_of_parts, notes)
                return read_parts(module.read_parts(found, draft, options_of_parts, store.part_rows), draft, store)
        except DataError as error:
            # Reading the whole decides what a part cannot, and shows all that is wrong: where there is room for it.
            is_changed = any(finding.code == "input-changed" for finding in error.findings)
            if is_changed or not fits_memory(found, store.room):
                raise
        return keep_on_disk(read_dataset(given, options), store)


def read_object(source: object, options: ReadOptions) -> Dataset | None:
    """Read one side from what a program holds: a pandas table, a COCO dict, a list of dicts; None of anything else."""
    from jaccard_eval.formats._objects import form_of
    from jaccard_eval.reading.draft import Draft

    form = form_of(source, options.role)
    if form is None:
        return None
    with Stage(f"reading {form.path}"):
        return _filled(
            options, lambda asked: Draft(form.path, form.format_name, asked), lambda draft: form.add(source, draft)
        )


def write_dataset(
    dataset: Dataset,
    path: Path | str,
    *,
    format_name: str | None = None,
    inputs: Sequence[Path] = (),
    replace: bool = False,
    lossy: bool = True,
) -> tuple[Finding, ...]:
    """Write a data set, in its own format unless another is named, and return what is to be known about the output.

    The output must not touch `inputs`, nor existing files without `replace`. What the format cannot carry is a
    warning, or an error unless the output may be `lossy`.
    """
    from jaccard_eval.atomic import require_free
    from jaccard_eval.reading.writing import LossErrors

    writer = format_writer(format_name or dataset.format)
    path = path_of(path)
    require_free(path, inputs, replace=replace)
    findings = FindingLog() if lossy else LossErrors()
    if dataset.reading.origin:
        detail = f"pixels are counted from 0 here, from {dataset.reading.origin} in {dataset.path}"
        fix = Fix.of_side(dataset.role, "Read it without {origin}.", origin=None)
        findings.note("write-origin", Where(str(path), field="box"), detail, fix=fix)
    # Text labels in pixels stay so in their own format: what the format prescribes needs the sizes of the images.
    write = getattr(writer, "write_as_read", writer.write) if format_name is None else writer.write
    with Stage(f"writing {path}"):
        write(dataset, path, findings)
    return findings.findings()


def format_writer(name: str) -> FormatWriter:
    """Return the module of a format that can be written; for any other, a UsageError names those that can."""
    module = format_module(name)
    if hasattr(module, "write"):
        return cast("FormatWriter", module)
    raise UsageError(f"format {quoted_value(name)} cannot be written; choose from {', '.join(written_formats())}")


def written_formats() -> list[str]:
    """Names of the formats that can be written."""
    return [name for name in format_names() if hasattr(format_module(name), "write")]


def format_for_path(path: Path) -> str | None:
    """Return the one format that can be written and has files of this suffix; of several the one of its name.

    None when there is no such one.
    """
    name = path.name.lower()
    written = {known: format_module(known).FORMAT for known in written_formats()}
    by_suffix = {known: about.suffixes for known, about in written.items() if not about.written_if_named}
    matches = [known for known, suffixes in by_suffix.items() if name.endswith(suffixes or "/")]
    namesake = name.rpartition(".")[2]
    if namesake in matches:
        return namesake
    return matches[0] if len(matches) == 1 else None


def is_own(name: str) -> bool:
    """Whether a format is one of ours, and not of another package, nor that of what a program holds."""
    return name in own_modules()
