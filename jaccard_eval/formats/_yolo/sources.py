"""Which files a folder of text labels means; what describes a data set is found here and read in `splits`."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from jaccard_eval.data.imagenames import is_image_name
from jaccard_eval.errors import DataError, FindingLog, Where, shown
from jaccard_eval.reading.files import head, is_folder
from jaccard_eval.reading.folders import is_folder_entry, list_tree, require_folder
from jaccard_eval.reading.images import ImageFolder
from jaccard_eval.reading.splits import SPLIT_NAMES, choose_split, split_of

DESCRIPTIONS = ("obj.data", "data.yaml", "data.yml")  # what describes a data set, in order of preference

_NO_LABELS = frozenset({"classes.txt", "_classes.txt", "predefined_classes.txt"})
_READ_ME = re.compile(r"(readme|licen[cs]e)(\.[a-z]+)*$")  # README.dataset.txt, but not license_plate_1.txt
_YEAR = re.compile(r"20\d\d$")  # of COCO's splits: val2017
_IMAGE_LISTS = frozenset({"train.txt", "val.txt", "valid.txt", "test.txt", "trainval.txt"})
_USUAL_SUFFIXES = frozenset(
    {".yaml", ".yml", ".json", ".names", ".data", ".labels", ".cache", ".md", ".html", ".xml", ".csv"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSource:
    """What an input means.

    Parameters
    ----------
    root : Path
        The folder of the label files; names are looked for from here.
    files : dict of str to Path
        Label file by key, sorted.
    images : dict of str to str, optional
        File name of each image by key, where the input lists them.
    folder : ImageFolder, optional
        The pictures that belong to the labels.
    names : tuple of str, optional
        Class names that the input gives.
    names_from : str
        Where they come from.
    other_files : tuple of str
        Files in the folder that are neither labels nor anything usual beside labels.
    """

    root: Path
    files: dict[str, Path]
    images: dict[str, str] | None = None
    folder: ImageFolder | None = None
    names: tuple[str, ...] | None = None
    names_from: str = ""
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

    Raises
    ------
    DataError
        When it is no folder, or has other splits.
    """
    require_folder(path, "the folder of .txt label files")
    nested = path / "labels"
    root = nested if nested.is_dir() and not _has_labels(path) else path
    return _of_split(folder_source(root, findings), split, findings)


def folder_source(root: Path, findings: FindingLog) -> LabelSource:
    """Return the label files in a folder and below it; what else lies there is passed over."""
    names = list_tree(root, findings)
    labels = {name for name in names if is_label_name(name)}
    files: dict[str, Path] = {}
    for name in sorted(labels):
        if _is_image_list(root, name):
            continue
        key = name[: -len(".txt")]
        if key in files:
            fix = "Keep one of them."
            findings.error("label-twice", Where(str(root / name)), f"{shown(key)} has two label files", fix=fix)
        files[key] = root / name
    other = tuple(name for name in names if name not in labels and _is_unusual(name))
    return LabelSource(root=root, files=dict(sorted(files.items())), other_files=other)


def _of_split(source: LabelSource, split: str, findings: FindingLog) -> LabelSource:
    splits = {key: _YEAR.sub("", key.partition("/")[0].lower()) for key in source.files if "/" in key}
    there = list(dict.fromkeys(map(split_of, splits.values())))
    if len(splits) < len(source.files) or len(there) < 2 or not set(splits.values()) <= set(SPLIT_NAMES):
        return source
    chosen = choose_split(split, there, Where(str(source.root)), findings)
    files = {key: path for key, path in source.files.items() if split_of(splits[key]) == chosen}
    n_others = len(source.files) - len(files)
    detail = f"split {shown(chosen)} is read: {len(files):,} label files; {n_others:,} of other splits are passed over"
    findings.note("split-chosen", Where(str(source.root)), detail, fix="Name another with --split.")
    return replace(source, files=files)


def is_label_name(name: str) -> bool:
    """Return whether a file can be a label file by its name."""
    base = name.rpartition("/")[2].lower()
    return base.endswith(".txt") and not base.startswith(".") and base not in _NO_LABELS and not _READ_ME.match(base)


def require_labels(source: LabelSource, role: str, findings: FindingLog) -> None:
    """Raise when ground truth has no label file; warn when predictions have none.

    Raises
    ------
    DataError
        When there is no label file on the side of the ground truth.
    """
    if source.files:
        return
    where = Where(str(source.root))
    if role == "gt":
        raise DataError.single("labels-missing", where, "no .txt label files", fix="Pass the folder that holds them.")
    findings.warning("pred-empty", where, "no .txt label files: no detection in any image")


def _has_labels(folder: Path) -> bool:
    """Whether a folder itself holds label files."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return any(
            is_label_name(entry.name) and not is_folder_entry(entry) and not _is_image_list(folder, entry.name)
            for entry in entries
        )
    return False


def _is_image_list(root: Path, name: str) -> bool:
    """Whether a file such as train.txt names pictures, one a line, instead of boxes."""
    if name.rpartition("/")[2].lower() not in _IMAGE_LISTS:
        return False
    first = head(root / name).decode("utf-8", "replace").strip().partition("\n")[0]
    return is_image_name(first.strip())


def _is_unusual(name: str) -> bool:
    """Whether a file that is no label file is worth a word: a backup of one, say."""
    if is_image_name(name):
        return False
    base = name.rpartition("/")[2].lower()
    suffix = base[base.rfind(".") :] if "." in base else ""
    return suffix not in _USUAL_SUFFIXES and base not in _NO_LABELS and not _READ_ME.match(base)
