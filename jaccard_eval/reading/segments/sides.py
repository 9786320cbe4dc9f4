"""One side of a panoptic segmentation, whatever its layout: classes, and images with their segments and maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jaccard_eval.findings import Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.labelmaps.arrays import ArrayMap
from jaccard_eval.reading.labelmaps.images import EncodedImage, LabelImage

MAX_ID = 2**24 - 1  # of three bytes


@dataclass(frozen=True, slots=True)
class Category:
    """A class: its id as a text, its name, and whether it has instances."""

    key: str
    name: str
    is_thing: bool
    colour: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ListedSegments:
    """The segments that an image lists, shape (n,) each."""

    ids: npt.NDArray[np.int64]
    categories: tuple[str, ...]  # keys of their classes
    crowd: npt.NDArray[np.bool_]
    area: npt.NDArray[np.float64]  # as listed; NaN where it is not


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedImage:
    """One image of a side."""

    key: str
    name: str  # of the image that was segmented, where the side has it; else of the map
    map: Path | ArrayMap
    where: Where  # of the record that lists the segments, or of the map
    size: tuple[int, int] | None  # width and height as listed
    # None where the values of the map show it, see `SegmentedSide.list_of`; else where the list cannot be read
    segments: ListedSegments | None


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedSide:
    """The images of one side."""

    path: str
    masks: str  # folder of the maps
    format: str
    categories: tuple[Category, ...]  # none where the other side has them
    images: tuple[SegmentedImage, ...]
    decode: Callable[[EncodedImage], LabelImage]
    failed: frozenset[str] = frozenset()  # images whose records cannot be used, which was reported
    # Of a layout without lists: the segments that the values of a map are.
    list_of: Callable[[npt.NDArray[np.int64]], ListedSegments] | None = None

    @property
    def by_key(self) -> dict[str, SegmentedImage]:
        """The images by their keys."""
        return {image.key: image for image in self.images}

    def renamed(self, meaning: Mapping[str, str]) -> SegmentedSide:
        """Return the side with other categories for some of its own."""

        def meant(listed: ListedSegments) -> ListedSegments:
            return replace(listed, categories=tuple(meaning.get(key, key) for key in listed.categories))

        listed, list_of = (image.segments for image in self.images), self.list_of
        images = zip(self.images, listed, strict=True)
        return replace(
            self,
            images=tuple(replace(image, segments=None if own is None else meant(own)) for image, own in images),
            list_of=None if list_of is None else lambda values: meant(list_of(values)),
        )
