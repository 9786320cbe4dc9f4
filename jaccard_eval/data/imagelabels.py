"""What ground truth has of its classes besides boxes: which are verified on an image, how frequent, what is above."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import RowArray
from jaccard_eval.frozen import dataclass

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
        keys = np.unique((fact.astype(np.int64) * n_images + image) * n_labels + label)
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
        return ClassFacts(images, frequency, ancestors, self.usual_protocol)
