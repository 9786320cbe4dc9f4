"""Image sets of Pascal VOC's development kit: the lists of images in ImageSets/Main that a split is."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from jaccard_eval.errors import Severity, Where, shown
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import head, is_folder, read_lines
from jaccard_eval.reading.folders import is_folder_entry
from jaccard_eval.reading.splits import choose_split

_ANNOTATIONS = "Annotations"
_MAIN = "ImageSets/Main"
_SUFFIX = ".txt"
_JUDGEMENTS = frozenset({"-1", "0", "1"})  # of an image in the list of a class: without, difficult only, with


def kit_folder(path: Path) -> Path:
    """Return the folder that holds Annotations: a folder itself, else the only one in it, as VOCdevkit has VOC2007.

    Never raises; a folder without any is returned as it is.
    """
    if _has_annotations(path):
        return path
    inner: list[Path] = []
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        folders = (path / entry.name for entry in entries if is_folder_entry(entry))
        inner = [folder for folder in folders if _has_annotations(folder)]
    return inner[0] if len(inner) == 1 else path


def take_split(kit: Path, files: dict[str, Path], draft: Draft) -> dict[str, Path] | None:
    """Return the annotation files of the split that is asked for; None where the kit has no image sets.

    Raises
    ------
    DataError
        When there are image sets, and none of that name.
    """
    lists = _image_sets(kit)
    if not lists:
        return None
    name = choose_split(draft.options.split, lists, Where(str(kit / _MAIN)), draft.findings)
    listed = _read_list(lists[name], draft)
    missing = [key for key in listed if key not in files]
    draft.findings.add_rows(
        Severity.ERROR,
        "split-unannotated",
        range(len(missing)),
        lambda row: (Where(str(lists[name])), f"{shown(missing[row])} has no file {_ANNOTATIONS}/{missing[row]}.xml"),
        fix="Add the files, or take the images off the list; pass the folder Annotations to read all that is there.",
    )
    chosen = {key: files[key] for key in listed if key in files}
    draft.details.append(f"split {name}: {len(chosen):,} of {len(files):,} annotation files")
    return chosen


def _has_annotations(folder: Path) -> bool:
    return is_folder(folder / _ANNOTATIONS)


def _image_sets(kit: Path) -> dict[str, Path]:
    """Return the lists of images by split; those of one class, which judge each image, are none."""
    names: list[str] = []
    with contextlib.suppress(OSError), os.scandir(kit / _MAIN) as entries:
        names = sorted(entry.name for entry in entries if entry.name.endswith(_SUFFIX))
    paths = {name.removesuffix(_SUFFIX): kit / _MAIN / name for name in names}
    return {name: path for name, path in paths.items() if "_" not in name or not _is_of_class(path)}


def _is_of_class(path: Path) -> bool:
    first = head(path).decode("utf-8", "replace").strip().partition("\n")[0].split()
    return len(first) > 1 and first[-1] in _JUDGEMENTS


def _read_list(path: Path, draft: Draft) -> list[str]:
    """Return the images of a list, each once."""
    listed = [line.strip() for line in read_lines(path, empty_ok=True) if line.strip()]
    distinct = list(dict.fromkeys(listed))
    if len(distinct) < len(listed):
        detail = f"{len(listed) - len(distinct):,} images are listed twice; read once"
        draft.findings.warning("image-listed-twice", Where(str(path)), detail)
    return distinct
