"""Where the labels of a set are, and the images that they belong to: folders, descriptions and their splits."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.data.imagekeys import is_image_name, without_suffix
from jaccard_eval.engine import absolute, list_names, path_of
from jaccard_eval.errors import JaccardEvalError, UsageError
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.fixes import IMAGES_OF, Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import (
    SPLIT_NAMES,
    SPLITS,
    choose_split,
    first_line,
    is_beside_labels,
    is_folder,
    is_label_name,
    list_tree,
    require_folder,
    scan_folder,
    split_of,
    without_backups,
)
from jaccard_eval.reading.images import ImageFolder
from jaccard_eval.reading.lines import mention_other_files, split_files
from jaccard_eval.reading.names import names_files, names_of_yaml, read_names
from jaccard_eval.reading.yaml import read_yaml_mapping
from jaccard_eval.text import did_you_mean, quoted_value, shown_json

DESCRIPTIONS = ("obj.data", "data.yaml", "data.yml")  # what describes a data set, in order of preference

_NUMERAL = r"\s*-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*"
# A class, the numbers of a box and perhaps a score, between commas or semicolons. More numbers would be the objects
# of VisDrone or MOT, and with blanks between them 0,5 is a number with a decimal comma.
SEPARATED_LINE = pattern(rf"[^,;]+(?P<mark>[,;]){_NUMERAL}(?:(?P=mark){_NUMERAL}){{3,4}}", re.ASCII)

_LOOKED_INTO = 20  # folders of a folder, to see whether there are images
_YEAR = pattern(r"20\d\d$")  # of COCO's splits: val2017
_IMAGE_LISTS = frozenset({"train.txt", "val.txt", "valid.txt", "test.txt", "trainval.txt"})
_USUAL_SUFFIXES = frozenset(
    {".yaml", ".yml", ".json", ".names", ".data", ".labels", ".cache", ".md", ".html", ".xml", ".csv"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSource:
    """What an input means."""

    root: Path  # the folder of the label files; names are looked for from here
    files: dict[str, Path]  # label file by key, sorted
    images: dict[str, str] | None = None  # file name of each image by key, where the input lists them
    folder: ImageFolder | None = None  # the images that belong to the labels
    beside: tuple[Path, ...] = ()  # where images lie as if they belonged to the labels; no option names them
    names: tuple[str, ...] | None = None  # of classes, where the input gives them
    names_from: str = ""
    kpt_shape: tuple[int, int] | None = None  # points of a pose, and numbers of each, where the input gives them
    # Files in the folder that are neither labels nor usually found next to labels.
    other_files: tuple[str, ...] = ()


def find_description(path: Path) -> Path | None:
    """Return the data.yaml or obj.data that `path` is or holds; a folder with labels of its own needs none."""
    if path.suffix.lower() in (".yaml", ".yml", ".data") and not is_folder(path):
        return path
    if not is_folder(path) or _has_labels(path):
        return None
    return next((path / name for name in DESCRIPTIONS if (path / name).is_file()), None)


def labels_of_folder(path: Path, split: str, findings: FindingLog) -> LabelSource:
    """Return the labels of a folder: its own, or those in its "labels" where it has none itself.

    Where all of them lie in folders that are called after several splits (val, or val2017), they are those of `split`.
    """
    require_folder(path, "the folder of .txt label files")
    nested = path / "labels"
    root = nested if nested.is_dir() and not _has_labels(path) else path
    source = _of_split(folder_source(root, findings), split, findings)
    return replace(source, beside=tuple(dict.fromkeys(place for place in image_places(root) if _holds_images(place))))


def image_places(labels: Path) -> list[Path]:
    """Return where the images of a folder of labels can lie: with the labels, or in "images" for "labels".

    A data.yaml above the labels has nothing to add: it names images, whose labels are found by the same rule.
    """
    there = absolute(labels)  # "labels" may be the folder that we are in
    return list(dict.fromkeys((there, twin_folder(there, "labels", "images"))))


def _holds_images(place: Path) -> bool:
    """Whether a folder holds an image, itself or in a folder of it. Never raises."""
    found, folders = scan_folder(place, is_image_name, _LOOKED_INTO)
    return bool(found) or any(scan_folder(folder, is_image_name, 1)[0] for folder in folders)


def folder_source(root: Path, findings: FindingLog) -> LabelSource:
    """Return the label files in a folder and below it; other files are ignored."""
    names = list_tree(root, findings)
    found, backups = without_backups([name for name in names if is_label_name(name)])
    labels = {*found, *backups}
    files: dict[str, Path] = {}
    for name in found:
        if _is_image_list(root, name):
            continue
        key = name[: -len(".txt")]
        if key in files:
            fix = "Keep one of them."
            findings.error("label-twice", Where(str(root / name)), f"{quoted_value(key)} has two label files", fix=fix)
        files[key] = root / name
    other = (*backups, *(name for name in names if name not in labels and _is_unusual(name)))
    return LabelSource(root=root, files=dict(sorted(files.items())), other_files=other)


def _of_split(source: LabelSource, split: str, findings: FindingLog) -> LabelSource:
    splits = {key: _YEAR.sub("", key.partition("/")[0].lower()) for key in source.files if "/" in key}
    there = list(dict.fromkeys(map(split_of, splits.values())))
    if len(splits) < len(source.files) or len(there) < 2 or not set(splits.values()) <= set(SPLIT_NAMES):
        return source
    chosen = choose_split(split, there, Where(str(source.root)), findings)
    files = {key: path for key, path in source.files.items() if split_of(splits[key]) == chosen}
    n_others = len(source.files) - len(files)
    what = f"split {quoted_value(chosen)} is read: {len(files):,} label files"
    detail = f"{what}; {n_others:,} of other splits are ignored"
    findings.note(
        "split-chosen", Where(str(source.root)), detail, fix=Fix.missing("Choose another with {split}.", split=None)
    )
    return replace(source, files=files)


def require_labels(source: LabelSource, role: str, findings: FindingLog) -> None:
    """Raise when ground truth has no label file; warn when predictions have none."""
    if source.files:
        return
    where = Where(str(source.root))
    if role == "gt":
        raise DataError.single("labels-missing", where, "no .txt label files", fix="Pass the folder that holds them.")
    findings.warning("pred-empty", where, "no .txt label files: no detection in any image")


def _has_labels(folder: Path) -> bool:
    """Whether a folder itself holds label files."""
    with contextlib.suppress(OSError):
        return any(is_label_name(name) and not _is_image_list(folder, name) for name in files.list_folder(folder)[1])
    return False


def _is_image_list(root: Path, name: str) -> bool:
    """Whether a file such as train.txt names images, one a line, instead of boxes."""
    if name.rpartition("/")[2].lower() not in _IMAGE_LISTS:
        return False
    return is_image_name(first_line(root / name).strip())


def _is_unusual(name: str) -> bool:
    """Whether a file that is not a label file deserves a note: a backup of one, for example."""
    if is_image_name(name):
        return False
    base = name.rpartition("/")[2].lower()
    suffix = base[base.rfind(".") :] if "." in base else ""
    if suffix == ".xml" and "/" in name:  # the annotations that the labels were made of
        return True
    return suffix not in _USUAL_SUFFIXES and not is_beside_labels(base)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Description:
    """The content of a description: the folder its paths start from, the places of each split, the class names."""

    path: Path
    base: Path
    splits: Mapping[str, list[str]]
    names: tuple[str, ...]
    names_from: str
    kpt_shape: tuple[int, int] | None = None
    missing: str = ""  # the folder that `path` names and that is not here


def read_description(path: Path, split: str, findings: FindingLog) -> LabelSource:
    """Return the labels of one split of a data set."""
    description, places = _described(path, split, findings)
    source = _locate(description, places, findings)
    if description.missing:
        detail = f"there is no folder {quoted_value(description.missing)}; paths start from the file's folder"
        listed = next(iter((source.images or {}).values()), None)
        is_found = source.folder is not None or (listed is not None and _find_below(source.root, listed) is not None)
        # Where images are found in spite of it, the path did no harm.
        severity = Severity.NOTE if is_found else Severity.WARNING
        findings.add_one(severity, "path-missing", Where(str(path), field="path"), detail)
    return replace(source, names=description.names, names_from=description.names_from, kpt_shape=description.kpt_shape)


def described_paths(path: Path, split: str) -> list[Path]:
    """Return the files and folders that are read of one split of a data set; of a broken one the description."""
    log = FindingLog()
    try:
        description, places = _described(path, split, log)
        source = _locate(description, places, log)
    except JaccardEvalError:
        return [path]
    listed = [
        _existing(description.base, place) or _moved(description.base, place) or _find_below(description.base, place)
        for place in places
    ]
    folders = {file.parent for file in source.files.values()}
    return [path, path_of(description.names_from), *(place for place in listed if place is not None), *sorted(folders)]


def _described(path: Path, split: str, findings: FindingLog) -> tuple[_Description, list[str]]:
    split = split_of(split)
    if split not in SPLITS:
        known = f"choose from {', '.join(SPLITS)}.{did_you_mean(split, SPLITS)}"
        raise UsageError(f"unknown split {quoted_value(split)}; {known}")
    read = _read_darknet if path.suffix.lower() == ".data" else _read_yaml
    description = read(path, findings)
    return description, _places(description, split, findings)


def _read_yaml(path: Path, findings: FindingLog) -> _Description:
    content = read_yaml_mapping(path)
    base, written, missing = path.parent, content.get("path"), ""
    if isinstance(written, str) and written:
        base = path.parent / written
        if not files.is_folder(base):  # what the file offers to download is ignored
            base, missing = path.parent, written
    splits = {}
    for key in filter(SPLIT_NAMES.__contains__, content):
        places = content[key] if isinstance(content[key], list) else [content[key]]
        if not all(isinstance(place, str) for place in places):
            fix = "Give a folder of images, a list file, or a list of those."
            detail = f"{quoted_value(content[key])} names no images"
            raise DataError.single("split-invalid", Where(str(path), field=key), detail, fix=fix)
        splits[split_of(key)] = [place for place in places if place not in ("", "null", "~")]
    return _Description(
        path=path,
        base=base,
        splits={name: places for name, places in splits.items() if places},
        names=names_of_yaml(path, content, findings),
        names_from=str(path),
        kpt_shape=kpt_shape_of(path, content),
        missing=missing,
    )


def find_kpt_shape(labels: Path) -> tuple[int, int] | None:
    """Return the points of a pose from the data.yaml that is nearest to labels; of one that cannot be read nothing."""
    for path in names_files(labels):
        if path.suffix.lower() in (".yaml", ".yml") and path.is_file():
            with contextlib.suppress(DataError):
                return kpt_shape_of(path, read_yaml_mapping(path))
    return None


def kpt_shape_of(path: Path, content: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return how many points a pose has, and how many numbers each of them, where a data.yaml names them."""
    given = content.get("kpt_shape")
    if given is None:
        return None
    values = [int(value) for value in given if str(value).isdecimal()] if isinstance(given, list) else []
    if len(values) == len(given) == 2 and values[0] > 0 and values[1] in (2, 3):
        return values[0], values[1]
    where, fix = Where(str(path), field="kpt_shape"), "Write the number of points, then 2 (x, y) or 3 (x, y, visible)."
    raise DataError.single("keypoints-invalid", where, f"is {shown_json(given)}; expected [17, 3] or the like", fix=fix)


def _read_darknet(path: Path, findings: FindingLog) -> _Description:
    pairs = [line.partition("=") for line in files.read_lines(path) if "=" in line]
    content = {key.strip(): value.strip() for key, _, value in pairs}
    if "names" not in content:
        fix = "Add a line 'names = obj.names'."
        raise DataError.single("names-missing", Where(str(path)), "there is no 'names'", fix=fix)
    names_path = _find_below(path.parent, content["names"]) or path.parent.joinpath(*_inner_parts(content["names"]))
    return _Description(
        path=path,
        base=path.parent,
        splits={split_of(key): [content[key]] for key in content if key in SPLIT_NAMES and content[key]},
        names=read_names(names_path, findings),
        names_from=str(names_path),
    )


def _places(description: _Description, split: str, findings: FindingLog) -> list[str]:
    """Return the places of the split; where there is only one, darknet's tools call it 'train'."""
    splits = description.splits
    if split in splits:
        return splits[split]
    where = Where(str(description.path), field=split)
    if description.path.suffix.lower() == ".data" and list(splits) == ["train"]:
        findings.note(
            "split-train", where, f"there is no split {quoted_value(split)}; 'train', the only one, is read instead"
        )
        return splits["train"]
    detail = f"there is no split {quoted_value(split)}; there are: {', '.join(splits) or 'none'}"
    raise DataError.single(
        "split-missing", where, detail, fix=Fix.missing("Choose one with {split}.", split=tuple(splits) or None)
    )


def _locate(description: _Description, places: list[str], findings: FindingLog) -> LabelSource:
    """Find the labels of a split: those of one folder of images, or those of listed images."""
    folder = _existing(description.base, places[0]) if len(places) == 1 else None
    is_list = places[0].lower().endswith(".txt")
    if folder is None and len(places) == 1 and not is_list:
        folder = _moved(description.base, places[0]) or _moved(
            description.base, str(twin_folder(Path(*_inner_parts(places[0]))))
        )
        if folder is not None:
            detail = f"there is no {quoted_value(places[0])}; {folder}, where its path ends, is read instead"
            findings.note("path-moved", Where(str(description.path)), detail)
    if folder is not None and folder.is_dir():
        labels = twin_folder(folder)
        source = folder_source(labels if labels.is_dir() else folder, findings)
        images = ImageFolder(folder)
        return replace(source, folder=images) if images.names else source
    if len(places) == 1 and folder is None and not is_list:
        # A folder of images that was not copied along.
        twin = _existing(description.base, str(twin_folder(Path(places[0]))))
        if twin is not None and twin.is_dir():
            return folder_source(twin, findings)
        detail = f"there is no folder {quoted_value(places[0])} and no labels for it"
        fix = "Check 'path' and the split in the file."
        raise DataError.single("split-missing", Where(str(description.path)), detail, fix=fix)
    listed = [image for place in places for image in _listed_images(description, place, findings)]
    return _source_of_list(description, listed, findings)


def _existing(base: Path, place: str) -> Path | None:
    """Return the place from `base`; Roboflow writes ``../valid/images`` for what lies next to the file."""
    attempts = [base / place, base / place.removeprefix("../")]
    return next((attempt for attempt in attempts if os.path.exists(attempt)), None)  # noqa: PTH110 - see is_folder


def _moved(base: Path, place: str) -> Path | None:
    """Return the folder below `base` that the end of a path of another machine means: datasets are often moved.

    Its last two parts have to exist, or the last if the one before it is `base` itself: a folder "images" alone proves
    nothing, as every split has one.
    """
    parts = _inner_parts(place)
    least = 1 if len(parts) > 1 and parts[-2] == absolute(base).name else 2
    attempts = (base.joinpath(*parts[start:]) for start in range(1, len(parts) - least + 1))
    return next((attempt for attempt in attempts if files.is_folder(attempt)), None)


def twin_folder(path: Path, part: str = "images", other: str = "labels") -> Path:
    """Return a path whose last folder `part` has the name `other`, as "labels" lie next to "images"."""
    parts = list(path.parts)
    if part in parts:
        parts[len(parts) - 1 - parts[::-1].index(part)] = other
    return type(path)(*parts)


def _listed_images(description: _Description, place: str, findings: FindingLog) -> Iterator[str]:
    """Paths of images as a list file or a folder gives them."""
    found = _existing(description.base, place) or _find_below(description.base, place)
    if found is None:
        where = Where(str(description.path))
        raise DataError.single("split-missing", where, f"there is no {quoted_value(place)}", fix="Check the path.")
    if found.is_dir():
        yield from (f"{place}/{name}" for name in list_tree(found, findings) if is_image_name(name))
    else:
        yield from filter(None, map(str.strip, files.read_lines(found)))


def _find_below(base: Path, written: str) -> Path | None:
    """Return the file below `base` that a path means: leading folders are dropped until it is there."""
    parts = _inner_parts(written)
    # A link that leads nowhere counts as found: the error from opening it is more helpful than "not found".
    attempts = (base.joinpath(*parts[start:]) for start in range(len(parts)))
    return next((attempt for attempt in attempts if os.path.lexists(attempt)), None)


def _inner_parts(written: str) -> list[str]:
    """Return the parts of a path without root, "." and "..": a list in a data set cannot lead out of it."""
    return [part for part in PurePosixPath(written.replace("\\", "/")).parts if part.strip("/") not in ("", ".", "..")]


def _source_of_list(description: _Description, listed: list[str], findings: FindingLog) -> LabelSource:
    """Return the label files of listed images; an image without one has no objects."""
    # Lists carry the folders of the machine that wrote them; only what is below the description is opened.
    paths = list(dict.fromkeys("/".join(_inner_parts(image)) for image in listed))
    where = Where(str(description.path))
    if len(paths) < len(listed):
        detail = f"{len(listed) - len(paths):,} images are listed twice; read once"
        findings.warning("image-listed-twice", where, detail)
    # Keys begin where the paths part, as those of a folder begin at its root.
    shared = os.path.commonpath([os.path.dirname(path) for path in paths]) if paths else ""  # noqa: PTH120
    keys = [without_suffix(path[len(shared) :].lstrip("/")) for path in paths]
    if len(set(keys)) < len(keys):
        findings.warning("image-ambiguous", where, "images that differ only in their suffix share a label file")
    found: dict[str, Path | None] = {}
    list_names(description.base, recursive=True)  # at once, not one by one
    for key, path in zip(keys, paths, strict=True):  # in "labels" for "images", or next to it as darknet has it
        beside = without_suffix(path) + ".txt"
        twin = twin_folder(Path(beside)).as_posix()
        found[key] = _find_below(description.base, twin) or _find_below(description.base, beside)
    return LabelSource(
        root=description.base,
        files={key: label for key, label in sorted(found.items()) if label is not None},
        images=dict(zip(keys, paths, strict=True)),
    )


def fields_below(root: Path, split: Callable[[str], list[str]] = str.split) -> Iterator[list[str]]:
    """Yield the fields of each line of the label files of a folder; what cannot be read is left to its reader."""
    found = FindingLog()
    for _, _, fields in split_files(folder_source(root, found).files, found, split):
        yield fields


def add_label_images(path: Path, draft: Draft) -> dict[str, Path]:
    """Add the images that the label files of a folder are of to the draft; return these files by key."""
    source = folder_source(path, draft.findings)
    require_labels(source, draft.options.role, draft.findings)
    add_images(source, draft)
    mention_other_files(source.root, source.other_files, draft)
    return source.files


def add_images(source: LabelSource, draft: Draft) -> FloatArray:
    """Add the images of `source` to the draft; return the size of that of each label file (n_files, 2), NaN if unknown.

    The images that the user named go before those of the source. One that cannot be read is an error in the former,
    and a warning in the latter: nobody asked for their sizes.
    """
    findings, labels, is_complete = draft.findings, list(source.files), True
    named = draft.pictures or source.folder
    if named is not None:
        by_stem: dict[str, list[str]] = {}
        for name in named.names:
            by_stem.setdefault(without_suffix(name), []).append(name)
        shared = [f"{' and '.join(alike)} share a label file" for alike in by_stem.values() if len(alike) > 1]
        where = Where(str(named.root))
        findings.add_rows(
            Severity.WARNING,
            "image-ambiguous",
            range(len(shared)),
            lambda row: (where, f"{shared[row]}; the first is used"),
        )
    folder = draft.image_folder = named or _folder_beside(source, draft)
    images: dict[str, str | None]
    if source.images is not None:
        draft.image_folder = folder or source.root  # their paths begin there
        images = {**source.images}
        found = [None] * len(images) if folder is None else folder.match(list(source.images.values()))
    elif folder is None or (named is None and draft.options.role == "pred"):
        # Predictions do not depend on images that lie there by chance; ground truth has no objects in them.
        found = [None] * len(labels) if folder is None else folder.match(labels)
        images, is_complete = dict(zip(labels, found, strict=True)), False
    else:
        images = _pair(labels, folder, draft.options.role, findings)
        found = list(images.values())
    severity = Severity.WARNING if draft.pictures is None else Severity.ERROR
    sizes = unknown_sizes(len(images)) if folder is None else folder.read_sizes(found, findings, severity=severity)
    draft.set_images(list(images), file_names=list(images.values()), sizes=sizes, listed=is_complete)
    rows = {key: row for row, key in enumerate(images)}
    known = np.vstack((sizes, unknown_sizes(1)))  # the last row is that of labels without their image
    return np.asarray(known[[rows.get(key, -1) for key in labels]]).reshape(-1, 2)


def _folder_beside(source: LabelSource, draft: Draft) -> ImageFolder | None:
    """Return the images next to the labels if they are clearly meant; if not, report it.

    Clearly: one place holds an image for each label file, by its relative path.
    """
    if not source.beside or not source.files or source.images is not None:
        return None
    keys, where = list(source.files), Where(str(source.root))
    fix = IMAGES_OF[draft.options.role]
    if len(source.beside) > 1:
        detail = f"found images in {' and '.join(map(str, source.beside))}; none of them is used"
        draft.findings.note("images-beside", where, detail, fix=fix)
        return None
    # Labels that lie in folders of splits must not bring along the images of other splits.
    firsts = {key.partition("/")[0] for key in keys} if all("/" in key for key in keys) else set()
    folder = ImageFolder(source.beside[0], within=firsts)
    found = zip(keys, folder.match(keys), strict=True)
    missing = [key for key, name in found if name is None or without_suffix(name) != key]
    if missing:
        detail = f"{folder.root} has no image for {len(missing):,} of {len(keys):,} label files; it is not used"
        draft.findings.note("images-beside", where, f"{detail}. First: {quoted_value(missing[0])}", fix=fix)
        return None
    draft.details.append(f"images from {folder.root.joinpath(*firsts) if len(firsts) == 1 else folder.root}")
    return folder


def _pair(labels: list[str], folder: ImageFolder, role: str, findings: FindingLog) -> dict[str, str | None]:
    """Return images by key: those of label files, and those without one, which are images without objects."""
    found = zip(labels, folder.match(labels), strict=True)
    paired: dict[str, str | None] = {key: name for key, name in found if name is not None}
    if labels and not paired:
        detail = f"none of the {len(labels):,} label files has an image here; first: {quoted_value(labels[0])}"
        findings.error("images-mismatch", Where(str(folder.root)), detail, fix="Pass the images of these labels.")
    claimed = {without_suffix(name) for name in paired.values() if name}
    free = [name for name in folder.names if without_suffix(name) not in claimed]
    if role == "gt":
        findings.add_rows(
            Severity.NOTE if len(free) <= len(paired) else Severity.WARNING,
            "image-without-label",
            range(len(free)),
            lambda row: (Where(str(folder.root / free[row])), "has no label file"),
            summary=f"{len(free):,} images without a label file, counted as images without objects",
        )
    return paired | {without_suffix(name): name for name in reversed(free)}  # of two suffixes the first stays
