"""Which images the labels of text files belong to, how large these are, and which have no label file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.data.imagekeys import without_suffix
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.formats._yolo.sources import LabelSource
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.images import ImageFolder
from jaccard_eval.text import quoted_value


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

    The images that the user named go before those of the source. One that cannot be read is an error in the former,
    and a warning in the latter: nobody asked for their sizes.
    """
    findings, folder = draft.findings, draft.pictures or source.folder
    if folder is not None:
        by_stem: dict[str, list[str]] = {}
        for name in folder.names:
            by_stem.setdefault(without_suffix(name), []).append(name)
        shared = [alike for alike in by_stem.values() if len(alike) > 1]
        findings.add_rows(
            Severity.WARNING,
            "image-ambiguous",
            range(len(shared)),
            lambda row: (Where(str(folder.root)), f"{' and '.join(shared[row])} share a label file; the first is used"),
        )
    if source.images is not None:
        keys, names = list(source.images), list(source.images.values())
        found: list[str | None] = [None] * len(keys) if folder is None else folder.match(names)
    elif folder is not None:
        images = _pair(list(source.files), folder, draft.options.role, findings)
        keys, names = list(images), list(images.values())
        found = [*names]
    else:
        return _list_beside(source, draft)
    severity = Severity.WARNING if draft.pictures is None else Severity.ERROR
    sizes = unknown_sizes(len(keys)) if folder is None else folder.read_sizes(found, findings, severity=severity)
    return ImageList(keys=keys, file_names=[*names], sizes=sizes, is_complete=True)


def _list_beside(source: LabelSource, draft: Draft) -> ImageList:
    """Return the images of the label files, with those that lie beside them where these are clearly meant.

    Clearly: one place holds an image for each label file, by its relative path. Of ground truth, further images there
    have no objects; predictions say nothing of them.
    """
    keys = list(source.files)
    plain = ImageList(keys=keys, file_names=[None] * len(keys), sizes=unknown_sizes(len(keys)), is_complete=False)
    if not source.beside or not keys:
        return plain
    findings, where = draft.findings, Where(str(source.root))
    fix = "Pass the folder of images with --images."
    if len(source.beside) > 1:
        places = " and ".join(map(str, source.beside))
        findings.note("images-beside", where, f"images lie in {places}; none of them is used", fix=fix)
        return plain
    # Labels that lie in folders of splits must not bring along the images of other splits.
    firsts = {key.partition("/")[0] for key in keys} if all("/" in key for key in keys) else set()
    folder = ImageFolder(source.beside[0], within=firsts)
    names = folder.match(keys)
    missing = [key for key, name in zip(keys, names, strict=True) if name is None or without_suffix(name) != key]
    if missing:
        detail = f"{folder.root} has no image for {len(missing):,} of {len(keys):,} label files; it is not used"
        findings.note("images-beside", where, f"{detail}. First: {quoted_value(missing[0])}", fix=fix)
        return plain
    sizes = folder.read_sizes(names, findings, severity=Severity.WARNING)
    draft.details.append(f"images from {folder.root.joinpath(*firsts) if len(firsts) == 1 else folder.root}")
    if draft.options.role == "pred":
        return replace(plain, file_names=names, sizes=sizes)
    images = _pair(keys, folder, draft.options.role, findings)
    free = [key for key in images if key not in source.files]
    free_sizes = folder.read_sizes([images[key] for key in free], findings, severity=Severity.WARNING)
    return ImageList(
        keys=[*keys, *free],
        file_names=[*names, *(images[key] for key in free)],
        sizes=np.vstack((sizes, free_sizes)),
        is_complete=True,
    )


def _pair(labels: list[str], folder: ImageFolder, role: str, findings: FindingLog) -> dict[str, str]:
    """Return images by key: those of label files, and those without one, which are images without objects."""
    found = zip(labels, folder.match(labels), strict=True)
    paired = {key: name for key, name in found if name is not None}
    if labels and not paired:
        detail = f"none of the {len(labels):,} label files has a picture here; first: {quoted_value(labels[0])}"
        findings.error("images-mismatch", Where(str(folder.root)), detail, fix="Pass the images of these labels.")
    claimed = {without_suffix(name) for name in paired.values()}
    free = [name for name in folder.names if without_suffix(name) not in claimed]
    if role == "gt":
        findings.add_rows(
            Severity.NOTE if len(free) <= len(paired) else Severity.WARNING,
            "image-without-label",
            range(len(free)),
            lambda row: (Where(str(folder.root / free[row])), "has no label file"),
            summary=f"{len(free):,} images without label file, taken for images without objects",
        )
    return paired | {without_suffix(name): name for name in reversed(free)}  # of two suffixes the first stays
