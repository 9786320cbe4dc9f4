"""The images of a set of label files: those that a description lists, those in a folder, or just the labelled ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.data.imagenames import without_suffix
from jaccard_eval.errors import FindingLog, Severity, Where, counted, shown
from jaccard_eval.formats import ReadOptions
from jaccard_eval.formats._yolo.sources import LabelSource, folder_source, require_labels
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.images import ImageFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageList:
    """Images by key, their file names and sizes (n, 2) where known, and whether these are all there are."""

    keys: list[str]
    file_names: list[str | None]
    sizes: FloatArray
    is_complete: bool

    def sizes_of(self, keys: Sequence[str]) -> FloatArray:
        """Return the sizes (n, 2) of images by key, NaN where unknown."""
        rows = {key: row for row, key in enumerate(self.keys)}
        known = np.vstack((self.sizes, unknown_sizes(1)))
        return np.asarray(known[[rows.get(key, -1) for key in keys]]).reshape(-1, 2)


def list_images(source: LabelSource, options: ReadOptions, findings: FindingLog) -> ImageList:
    """Return the images that belong to the labels of `source`.

    The pictures that the user named go before those of the source. One that cannot be read is an error in the former,
    and a warning in the latter: nobody asked for their sizes.
    """
    pictures = options.images or source.folder
    if pictures is not None:
        _warn_equal_stems(pictures, findings)
    if source.images is not None:
        keys, names = list(source.images), list(source.images.values())
        found: list[str | None] = [None] * len(keys) if pictures is None else pictures.match(names)
    elif pictures is not None:
        images = _pair(list(source.files), pictures, options.role, findings)
        keys, names = list(images), list(images.values())
        found = [*names]
    else:
        keys = list(source.files)
        return ImageList(keys=keys, file_names=[None] * len(keys), sizes=unknown_sizes(len(keys)), is_complete=False)
    severity = Severity.WARNING if options.images is None else Severity.ERROR
    sizes = unknown_sizes(len(keys)) if pictures is None else pictures.read_sizes(found, findings, severity=severity)
    return ImageList(keys=keys, file_names=[*names], sizes=sizes, is_complete=True)


def add_label_images(path: Path, draft: Draft, options: ReadOptions) -> dict[str, Path]:
    """Add the images that the label files of a folder are of to the draft; return these files by key.

    Raises
    ------
    DataError
        When there are no label files on the side of the ground truth.
    """
    source = folder_source(path, draft.findings)
    require_labels(source, options.role, draft.findings)
    images = list_images(source, options, draft.findings)
    draft.set_images(images.keys, file_names=images.file_names, sizes=images.sizes, listed=images.is_complete)
    mention_other_files(source.root, source.other_files, draft)
    return source.files


def mention_other_files(folder: Path, others: Sequence[str], draft: Draft) -> None:
    """Count the files of a folder that are no labels, and say which they are."""
    if others:
        draft.ignored["other_file"] += len(others)
    draft.findings.add_rows(
        Severity.NOTE,
        "other-files",
        range(len(others)),
        lambda row: (Where(str(folder / others[row])), "holds no labels by its name"),
        summary=f"{counted(len(others), 'file')} beside the labels passed over",
    )


def _pair(labels: list[str], pictures: ImageFolder, role: str, findings: FindingLog) -> dict[str, str]:
    """Return pictures by key: those of label files, and those without one, which are images without objects."""
    found = zip(labels, pictures.match(labels), strict=True)
    paired = {key: name for key, name in found if name is not None}
    if labels and not paired:
        detail = f"none of the {len(labels):,} label files has a picture here; first: {shown(labels[0])}"
        findings.error("images-mismatch", Where(str(pictures.root)), detail, fix="Pass the images of these labels.")
    claimed = {without_suffix(name) for name in paired.values()}
    free = [name for name in pictures.names if without_suffix(name) not in claimed]
    if role == "gt":
        _mention_unlabelled(free, len(paired), pictures, findings)
    return paired | {without_suffix(name): name for name in reversed(free)}  # of two suffixes the first stays


def _mention_unlabelled(unlabelled: list[str], n_paired: int, pictures: ImageFolder, findings: FindingLog) -> None:
    """Say which pictures have no label file: a note, a warning when they are the greater part."""
    severity = Severity.NOTE if len(unlabelled) <= n_paired else Severity.WARNING
    findings.add_rows(
        severity,
        "image-without-label",
        range(len(unlabelled)),
        lambda row: (Where(str(pictures.root / unlabelled[row])), "has no label file"),
        summary=f"{len(unlabelled):,} images without label file, taken for images without objects",
    )


def _warn_equal_stems(pictures: ImageFolder, findings: FindingLog) -> None:
    """Warn about pictures that differ in their suffix only: one label file means both."""
    by_stem: dict[str, list[str]] = {}
    for name in pictures.names:
        by_stem.setdefault(without_suffix(name), []).append(name)
    shared = [names for names in by_stem.values() if len(names) > 1]
    findings.add_rows(
        Severity.WARNING,
        "image-ambiguous",
        range(len(shared)),
        lambda row: (Where(str(pictures.root)), f"{' and '.join(shared[row])} share a label file; the first is used"),
    )
