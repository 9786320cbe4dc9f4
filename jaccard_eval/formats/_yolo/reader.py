"""Reading text labels: the images that they belong to, and one side of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.data.imagekeys import without_suffix
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.formats._yolo.boxes import KnownNames, LineReporter, add_boxes
from jaccard_eval.formats._yolo.lines import read_label_files, uses_names
from jaccard_eval.formats._yolo.sources import (
    LabelSource,
    find_description,
    folder_source,
    labels_of_folder,
    require_labels,
)
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.images import ImageFolder
from jaccard_eval.reading.lines import mention_other_files
from jaccard_eval.reading.names import find_names, read_names, warn_repeated
from jaccard_eval.text import shown


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


def list_images(source: LabelSource, draft: Draft) -> ImageList:
    """Return the images that belong to the labels of `source`.

    The pictures that the user named go before those of the source. One that cannot be read is an error in the former,
    and a warning in the latter: nobody asked for their sizes.
    """
    findings, pictures = draft.findings, draft.pictures or source.folder
    if pictures is not None:
        _warn_equal_stems(pictures, findings)
    if source.images is not None:
        keys, names = list(source.images), list(source.images.values())
        found: list[str | None] = [None] * len(keys) if pictures is None else pictures.match(names)
    elif pictures is not None:
        images = _pair(list(source.files), pictures, draft.options.role, findings)
        keys, names = list(images), list(images.values())
        found = [*names]
    else:
        keys = list(source.files)
        return ImageList(keys=keys, file_names=[None] * len(keys), sizes=unknown_sizes(len(keys)), is_complete=False)
    severity = Severity.WARNING if draft.pictures is None else Severity.ERROR
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
    images = list_images(source, draft)
    draft.set_images(images.keys, file_names=images.file_names, sizes=images.sizes, listed=images.is_complete)
    mention_other_files(source.root, source.other_files, draft)
    return source.files


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


def read_labels(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of text labels to the draft.

    Raises
    ------
    DataError
        When there are no labels to read; problems of their lines are among the draft's findings.
    """
    source = _find_source(path, draft, options)
    paths = list(source.files.values())
    reporter = LineReporter(read_label_files(paths, draft.findings), paths, options.role, draft.findings)
    images = list_images(source, draft)
    draft.set_images(images.keys, file_names=images.file_names, sizes=images.sizes, listed=images.is_complete)
    known = _known_names(source, draft, options, search=not uses_names(reporter.lines))
    if len(reporter.lines):
        add_boxes(draft, reporter, list(source.files), images.sizes_of(list(source.files)), known)
    elif known.names is not None:
        draft.set_classes(range(len(known.names)), known.names)
    mention_other_files(source.root, source.other_files, draft)


def _find_source(path: Path, draft: Draft, options: ReadOptions) -> LabelSource:
    """Find the labels; what was said before the search failed is said with the error."""
    try:
        source = _source(path, options.split, draft.findings)
        require_labels(source, options.role, draft.findings)
    except DataError as error:
        draft.findings.extend(error.findings)
        raise DataError(draft.findings.findings()) from None
    return source


def _source(path: Path, split: str, findings: FindingLog) -> LabelSource:
    """Return what `path` means: a folder, or the split of a data.yaml or a darknet obj.data."""
    description = find_description(path)
    if description is None:
        return labels_of_folder(path, split, findings)
    from jaccard_eval.formats._yolo.sources import read_description

    return read_description(description, split, findings)


def _known_names(source: LabelSource, draft: Draft, options: ReadOptions, *, search: bool) -> KnownNames:
    """Return the names given by the user, else by the data set, else (`search`) by a names file near the labels."""
    if options.names is not None:
        warn_repeated(options.names, Where(draft.path, field="names"), draft.findings)
        return KnownNames(names=options.names, origin="the given list of names")
    if source.names is not None:
        return KnownNames(names=source.names, origin=source.names_from)
    found = find_names(source.root) if search else None
    if found is None:
        return KnownNames(names=None, origin="")
    try:
        return KnownNames(names=read_names(found, draft.findings), origin=str(found))
    except DataError as error:
        first = error.findings[0].examples[0]
        draft.findings.warning("names-unusable", first.where, f"{first.detail}; it is not used")
        return KnownNames(names=None, origin="")
