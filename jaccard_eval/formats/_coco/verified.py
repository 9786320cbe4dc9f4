"""What LVIS adds to COCO JSON: classes that are verified on each image, and how frequent each class is."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np
from msgspec import UNSET

from jaccard_eval.data.dataset import ABSENT, NOT_EXHAUSTIVE, Dataset, Key
from jaccard_eval.findings import Severity, Where
from jaccard_eval.formats._coco.strict import VERIFIED, CategoryRecord, ImageRecord
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.rawboxes import Keys

LVIS = "lvis"  # the protocol of such files


def add_verified(draft: Draft, images: Sequence[ImageRecord], categories: Sequence[CategoryRecord]) -> None:
    """Add verified classes and frequencies where a file has them."""
    frequency = {category.id: category.frequency for category in categories if category.frequency is not None}
    # Only texts: in other files the key may mean anything.
    draft.class_frequency = {key: value for key, value in frequency.items() if isinstance(value, str)}
    # A file with one of the two fields is of LVIS, and lacks the other.
    if any([*map(attrgetter(field), images)].count(UNSET) < len(images) for field in VERIFIED):
        draft.usual_protocol = LVIS
        for field, fact in zip(VERIFIED, (ABSENT, NOT_EXHAUSTIVE), strict=True):
            lists = [getattr(image, field) for image in images]
            missing = [row for row, ids in enumerate(lists) if ids is UNSET]
            _add_lists(draft, fact, field, images, [[] if ids is UNSET else ids for ids in lists])
            draft.findings.add_rows(
                Severity.WARNING,
                "image-labels-missing",
                missing,
                lambda row, field=field: (  # type: ignore[misc]
                    Where(draft.path, record=f"images[{row}]", field=field),
                    "is missing or null",
                ),
                summary=f"{field} is missing or null in {len(missing):,} of {len(lists):,} images: read as empty",
                fix="Write a list for every image; an empty one if there are none.",
            )


def verified_lists(dataset: Dataset) -> dict[str, list[list[Key]]]:
    """Return the lists of classes of each image, as a file has them; nothing where none were read."""
    rows, keys = dataset.facts.images, dataset.labels.keys
    if rows is None or dataset.facts.usual_protocol != LVIS:
        return {}
    found: dict[str, list[list[Key]]] = {}
    for field, fact in zip(VERIFIED, (ABSENT, NOT_EXHAUSTIVE), strict=True):
        found[field] = [[] for _ in range(len(dataset.images))]
        for image, label in zip(*(column.tolist() for column in rows.of(fact)), strict=True):
            found[field][image].append(keys[label])
    return found


def _add_lists(
    draft: Draft, fact: int, field: str, images: Sequence[ImageRecord], lists: Sequence[Sequence[Key]]
) -> None:
    image_of = np.repeat(np.arange(len(lists)), [len(ids) for ids in lists])
    keys: list[Key] = [image.id for image, ids in zip(images, lists, strict=True) for _ in ids]
    classes: list[Key] = [key for ids in lists for key in ids]
    draft.add_image_labels(
        fact,
        _as_keys(keys),
        _as_keys(classes),
        lambda row: Where(draft.path, record=f"images[{image_of[row]}]", field=field),
    )


def _as_keys(keys: list[Key]) -> Keys:
    return np.array(keys, dtype=np.int64) if {*map(type, keys)} <= {int, bool} else keys
