"""The images of label files: those that the user or the dataset names, or those next to the labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.data.imagekeys import without_suffix
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import IMAGES_OF
from jaccard_eval.formats._yolo.sources import LabelSource, folder_source, require_labels
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.images import ImageFolder
from jaccard_eval.reading.lines import mention_other_files
from jaccard_eval.text import quoted_value


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
