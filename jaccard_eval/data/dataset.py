"""Images, classes and boxes of one side, as read: the only place that knows the keys of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from operator import eq
from os import PathLike
from typing import overload

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import Boxes, BoxTable, FloatArray, RowArray
from jaccard_eval.data.resizing import Resizing
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import AS_WRITTEN

# What is known of a class on an image: verified to be absent or present; present, with objects that have no box.
ABSENT, PRESENT, NOT_EXHAUSTIVE = range(3)
FACTS = ("absent", "present", "not exhaustive")


def _no_rows() -> RowArray:
    return np.zeros(0, dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class ImageLabels:
    """Verified image-level labels: rows of an image, a class, and what is known of it there, shape (r,) each."""

    image: RowArray
    label: RowArray
    fact: npt.NDArray[np.int8]

    @classmethod
    def none(cls) -> ImageLabels:
        """Return no rows."""
        return cls(_no_rows(), _no_rows(), np.zeros(0, dtype=np.int8))

    @classmethod
    def ordered(cls, image: RowArray, label: RowArray, fact: npt.NDArray[np.int8]) -> ImageLabels:
        """Return rows by fact, image and class; what is stated twice is stated once."""
        n_images, n_labels = (int(column.max(initial=0)) + 1 for column in (image, label))
        # As `numpy.unique`, which hashes integers before it sorts them: of these, in a hundred times the time.
        keys = np.sort((fact.astype(np.int64) * n_images + image) * n_labels + label)
        keys = keys[np.diff(keys, prepend=-1) > 0]
        rest, label_of = np.divmod(keys, n_labels)
        fact_of, image_of = np.divmod(rest, n_images)
        return cls(image_of.astype(np.int32), label_of.astype(np.int32), fact_of.astype(np.int8))

    def __len__(self) -> int:
        return len(self.image)

    def of(self, fact: int) -> tuple[RowArray, RowArray]:
        """Return image and class of the rows of one kind."""
        chosen = self.fact == fact
        return self.image[chosen], self.label[chosen]


@dataclass(frozen=True, slots=True, eq=False)
class ClassFacts:
    """All that is known of classes besides boxes; what a file does not have is empty.

    `images` are None where the file has no such labels, which is not the same as an empty list of them.
    """

    images: ImageLabels | None = None
    frequency: tuple[str, ...] = ()  # of each class: "r", "c", "f", as LVIS has it, "" where it is not given
    ancestors: tuple[tuple[int, ...], ...] = ()  # rows of the classes above each class, all of them, ascending
    # What limits of subsets are about, by its name: of each image, NaN where it is not given; and of each box, by its
    # `source`.
    of_images: Mapping[str, FloatArray] = field(default_factory=dict)
    of_boxes: Mapping[str, FloatArray] = field(default_factory=dict)
    usual_protocol: str = ""  # that judges by these facts; the files of its benchmark have them

    def renumbered(self, image_rows: RowArray, label_rows: RowArray) -> ClassFacts:
        """Return the facts in other rows of images and classes; those of rows that become -1 are dropped."""
        images = self.images
        if images is not None:
            image, label = image_rows[images.image], label_rows[images.label]
            kept = (image >= 0) & (label >= 0)
            images = ImageLabels(image[kept], label[kept], images.fact[kept])
        kept_labels = np.flatnonzero(label_rows >= 0)
        # Rows of classes ascend in either numbering.
        frequency = tuple(self.frequency[row] for row in kept_labels) if self.frequency else ()
        above = (tuple(label_rows[row] for row in self.ancestors[k]) for k in kept_labels) if self.ancestors else ()
        ancestors = tuple(tuple(int(row) for row in rows if row >= 0) for rows in above)
        of_images = {name: _moved(values, image_rows) for name, values in self.of_images.items()}
        return ClassFacts(images, frequency, ancestors, of_images, self.of_boxes, self.usual_protocol)


def _moved(values: FloatArray, rows: RowArray) -> FloatArray:
    """Return the values of images (n,) in other rows, up to the last one that is known."""
    moved = np.full(int(rows.max(initial=-1)) + 1, np.nan)
    moved[rows[rows >= 0]] = values[rows >= 0]
    return moved


Key = int | str

# px; the largest images stitched so far stay below a tenth of it.
MAX_IMAGE_SIDE = 1e7
KEYS_AT_ONCE = 10_000


class IntegerKeys(Sequence[Key]):
    """Keys that are all integers: 8 bytes each, where objects in a tuple take 40. Those of a table ascend."""

    def __init__(self, values: npt.NDArray[np.int64]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, at: int) -> Key: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Key]: ...
    def __getitem__(self, at: int | slice) -> Key | Sequence[Key]:
        found: Key | Sequence[Key] = self.values[at].tolist()
        return found

    def __iter__(self) -> Iterator[Key]:
        # In pieces: there may be millions, and each is an object for a moment.
        for start in range(0, len(self), KEYS_AT_ONCE):
            yield from self.values[start : start + KEYS_AT_ONCE].tolist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]


class NumberedNames(Sequence[str]):
    """Names of images that have none but their number, each made when it is asked for."""

    def __init__(self, keys: IntegerKeys) -> None:
        self.keys = keys

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        return list(map(str, self.keys[at])) if isinstance(at, slice) else str(self.keys[at])

    def __iter__(self) -> Iterator[str]:
        return map(str, self.keys)


@dataclass(frozen=True, slots=True, eq=False)
class ImageTable:
    """Images of one side, sorted by key: integers ascending, then texts."""

    # What the file calls an image: COCO's id, the path or stem elsewhere.
    keys: Sequence[Key]
    # The file name of each key, if the format has both.
    file_names: tuple[str | None, ...]
    # Width and height in pixels, (n, 2); NaN where unknown.
    sizes: FloatArray
    # Whether the input lists all images, those without boxes included. Where it does not, an image that only the other
    # side knows may simply have no box.
    listed: bool

    def __len__(self) -> int:
        return len(self.keys)

    def name(self, row: int) -> str:
        """Return the file name of an image, else its key as text."""
        return self.file_names[row] or str(self.keys[row])

    def names(self) -> Sequence[str]:
        """Return the names of all images."""
        if isinstance(self.keys, IntegerKeys) and not any(self.file_names):
            return NumberedNames(self.keys)
        return tuple(name or str(key) for name, key in zip(self.file_names, self.keys, strict=True))

    def take(self, rows: Sequence[int]) -> ImageTable:
        """Return some of the images; ascending rows stay sorted by key."""
        keys, names = tuple(self.keys[row] for row in rows), tuple(self.file_names[row] for row in rows)
        return ImageTable(keys, names, self.sizes[list(rows)], self.listed)


@dataclass(frozen=True, slots=True)
class LabelMap:
    """Classes of one side in the order of the file's keys."""

    # What the boxes of the file carry: a category id, an index, or the name itself.
    keys: tuple[Key, ...]
    # The name of each class; the key as text where the file names none.
    names: tuple[str, ...]
    # Whether the names come from the input (or from ``--names``), so that classes can correspond by name.
    named: bool
    # Rows in the order in which the file lists its classes, -1 of one without a row; empty where it does not list all.
    order: tuple[int, ...] = field(default=(), compare=False)
    # What the classes were before they were merged or renamed, and the row of each of those; None where nothing was.
    former: tuple[LabelMap, RowArray] | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class Reading:
    """How the four numbers of a file's boxes were read: an encoding, and pixels ("px") or fractions ("norm")."""

    encoding: str = "xywh"
    units: str = "px"
    # What the options name as the first pixel, 0 or 1.
    origin: int = 0
    # What was done to the images that the boxes are of; the boxes of the data set are not mapped back yet, as the sizes
    # of the images are most often known to the other side alone.
    resized: Resizing | None = None
    # How angles of oriented boxes were read, one of `options.ANGLES`; empty where there are none.
    angle: str = ""
    # What the masks of the file exchange, as the options name it: one of `options.MASK_AXES`.
    mask_axes: str = AS_WRITTEN
    # What of it the caller stated ("box", "units", "resized", "angle"; also "names", where some are taken) rather than
    # the format or the values: it is not doubted.
    named: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """One side of an evaluation, as read from one input.

    Parameters
    ----------
    path : str
        The input as the user named it.
    format : str
        Name of the format.
    role : {"gt", "pred"}
    images, labels
        The tables.
    boxes : Boxes
        A `BoxTable` where they are in memory, as in every data set that `load` returns; `table` is one in any case.
    units : {"px", "norm"}
        Of the boxes: pixels, or fractions of the image's width and height where the size is not known yet.
    units_guessed : bool
        Whether the units rest on the values alone.
    reading : Reading
        How the numbers of the file were read.
    details : tuple of str
        How the input was read, for the report ("class cx cy w h, normalised").
    has_no_class : bool
        Whether the input names no class: the one that its boxes have stands in for none.
    has_splits : bool
        Whether the input has splits, of which one was read.
    truth : Dataset, optional
        Ground truth whose images and classes these are, where predictions were given them to be written.
    zero_id : int, optional
        Row of the one annotation with id 0, which some tools take for none.
    annotation_ids : sequence of int or str
        What the file calls its annotations, by `source` of a box; empty where it does not name each.
    ignored : mapping of str to int
        What was ignored while reading, counted by reason.
    findings : tuple of Finding
        Warnings and notes of the loader.
    image_folder : path-like, optional
        Where the images lie, where they were named or found.
    facts : ClassFacts
        What is known of the classes besides boxes, in the rows of its images and classes.
    point_names : tuple of str
        What the points of poses are called, where the file has them and poses are compared.
    first_mask : tuple, optional
        Where boxes are compared: image key, and width and height of the mask of the first one, if it has one of pixels.

    Examples
    --------
    >>> from jaccard_eval import load
    >>> dataset = load([{"boxes": [[0, 0, 10, 10]], "labels": ["dog"], "image_id": "a.jpg"}])
    >>> dataset.labels.names, dataset.images.name(0), len(dataset.boxes)
    (('dog',), 'a.jpg', 1)
    """

    path: str
    format: str
    role: str
    images: ImageTable
    labels: LabelMap
    boxes: Boxes
    units: str = "px"
    units_guessed: bool = False
    reading: Reading = Reading()
    details: tuple[str, ...] = ()
    has_no_class: bool = False
    has_splits: bool = False
    truth: Dataset | None = None
    zero_id: int | None = None
    annotation_ids: Sequence[object] | npt.NDArray[np.int64] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    image_folder: PathLike[str] | None = None
    facts: ClassFacts = ClassFacts()
    point_names: tuple[str, ...] = ()
    first_mask: tuple[Key, tuple[float, float]] | None = None

    @property
    def table(self) -> BoxTable:
        """The boxes as one table in memory; those of a data set on the disk are read."""
        return self.boxes.whole()

    @property
    def key_format(self) -> str:
        """Name of the format whose keys the images and classes have."""
        return self.format if self.truth is None else self.truth.format


def key_order(key: Key) -> tuple[bool, Key]:
    """Sort key of file keys: integers by value first, then texts by code point."""
    return (isinstance(key, str), key)


def unknown_sizes(n: int) -> FloatArray:
    """Sizes (n, 2) of images whose size is not known."""
    return np.full((n, 2), np.nan)
