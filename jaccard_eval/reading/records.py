"""From records of a JSON document to a draft: images, objects, classes and scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval.data.dataset import Key
from jaccard_eval.findings import Severity, Where
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.documents import Record, documents
from jaccard_eval.reading.draft import Draft, RawBoxes
from jaccard_eval.text import shown

UNKNOWN_SIZE = (math.nan, math.nan)


class Scene:
    """Collects images and boxes one by one; `hand_over` gives them to the draft."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._images: list[Key] = []
        self._file_names: list[str | None] = []
        self._sizes: list[tuple[float, float]] = []
        self._image: list[Key] = []  # of each box
        self._labels: list[Key] = []
        self._coords: list[Sequence[float]] = []
        self._scores: list[float] = []
        self._places: list[Where] = []
        self._shapes: Counter[str] = Counter()
        self._n_rotated = 0

    def add_image(self, key: Key, *, file_name: str | None = None, size: tuple[float, float] = UNKNOWN_SIZE) -> None:
        """Add an image with its width and height; NaN where unknown."""
        self._images.append(key)
        self._file_names.append(file_name)
        self._sizes.append(UNKNOWN_SIZE if any(map(math.isnan, size)) else size)

    def add_box(
        self, image: Key, label: Key, coords: Sequence[float], where: Where, *, score: float = math.nan
    ) -> None:
        """Add a box; a score of NaN means that it has none."""
        self._image.append(image)
        self._labels.append(label)
        self._coords.append(coords)
        self._scores.append(score)
        self._places.append(where)

    def count_shape(self, kind: str) -> None:
        """Count a shape that is no box."""
        self._shapes[kind] += 1

    def count_rotated(self) -> None:
        """Count a box that was turned, and is read as the upright box around it."""
        self._n_rotated += 1

    def hand_over(self, *, encoding: str, units: str = "px", listed: bool, names: Sequence[str] = ()) -> None:
        """Give everything to the draft.

        Parameters
        ----------
        encoding, units : str
            Of the boxes.
        listed : bool
            Whether the images that were added are all of the data set.
        names : sequence of str
            Classes that the input declares; those that only boxes name follow.
        """
        sizes = np.array(self._sizes, dtype=np.float64).reshape(-1, 2)
        self._draft.fill_sizes(sizes, [str(key) for key in self._images])
        self._draft.set_images(self._images, file_names=_sole(self._file_names), sizes=sizes, listed=listed)
        if all(isinstance(label, str) for label in self._labels):
            known = list(dict.fromkeys((*names, *sorted({str(label) for label in self._labels}))))
            self._draft.set_classes(known, known)
        self._draft.set_boxes(
            RawBoxes(
                image=self._image,
                label=self._labels,
                coords=np.array(self._coords, dtype=np.float64).reshape(-1, 4),
                encoding=encoding,
                units=units,
                score=self._score_column(),
                place=self._places.__getitem__,
            )
        )
        self._mention_left_out()

    def _score_column(self) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
        """Return the scores of predictions; none where no box has any."""
        scores = np.array(self._scores, dtype=np.float64)
        missing = np.flatnonzero(np.isnan(scores))
        n_given = len(scores) - len(missing)
        if self._draft.options.role == "gt":
            if n_given:
                self._draft.ignored["score"] += n_given
                detail = "the scores of ground truth are not used"
                self._draft.findings.note("gt-scores", Where(self._draft.path), detail)
            return None
        if not n_given or self._draft.options.assume_score is not None:
            return None
        self._draft.findings.add_rows(
            Severity.ERROR,
            "score-missing",
            missing,
            lambda row: (self._places[row], "has no score, though other boxes have one"),
            fix="Export the scores, or pass --assume-score 1.0 to rank all alike.",
        )
        return scores

    def _mention_left_out(self) -> None:
        draft, where = self._draft, Where(self._draft.path)
        if self._n_rotated:
            draft.findings.note(
                "outline", where, f"{self._n_rotated:,} rotated boxes are read as the boxes around them"
            )
        if self._shapes:
            draft.ignored["shape"] += self._shapes.total()
            kinds = ", ".join(f"{count:,} {shown(kind)}" for kind, count in sorted(self._shapes.items()))
            fix = "Draw boxes, or export another format that has the boxes around them."
            draft.findings.warning("shape-unused", where, f"shapes that are no boxes are set aside: {kinds}", fix=fix)


def _sole(file_names: list[str | None]) -> list[str | None]:
    """Return the names, but for those that several images claim."""
    claims = Counter(file_names)
    return [name if claims[name] == 1 else None for name in file_names]


def outputs(path: Path, draft: Draft, is_output: Callable[[Any], bool]) -> Iterator[tuple[str, Any, Where]]:
    """Yield the image, the output and its place, for every image of a file or folder.

    Parameters
    ----------
    path : Path
    draft : Draft
    is_output : callable
        Whether a whole document is the output for one image.

    Raises
    ------
    DataError
        When a folder holds no documents.
    """
    for key, file, value in documents(path, draft):
        where = Where(str(file))
        if isinstance(value, list) and any(map(is_output, value)):
            yield from _by_position(value, where, draft)
        elif is_output(value):
            yield key, value, where
        else:
            for image, output in Record.of(value, where, draft.findings).values.items():
                yield image, output, Where(str(file), record=image)


def _by_position(listed: list[Any], where: Where, draft: Draft) -> Iterator[tuple[str, Any, Where]]:
    detail = f"the list names no images; its {len(listed):,} outputs are called 0, 1, 2 and so on, by their positions"
    fix = "Where the other side has names, write an object from the names of images to outputs."
    draft.findings.warning("image-position", where, detail, fix=fix)
    for position, output in enumerate(listed):
        yield str(position), output, Where(where.path, record=f"[{position}]")


def read_object_lists(
    path: Path, draft: Draft, options: ReadOptions, add_object: Callable[[Scene, str, Record], None]
) -> None:
    """Add images whose output is a list of objects to the draft, with their classes and boxes (xyxy).

    Parameters
    ----------
    path : Path
    draft : Draft
    options : ReadOptions
    add_object : callable
        Adds one of the objects of an image to the scene.

    Raises
    ------
    DataError
        When a folder holds no documents.
    """
    scene = Scene(draft)
    for image, output, where in outputs(path, draft, lambda value: isinstance(value, list)):
        scene.add_image(image)
        for one in Record.list_of(output, where, draft.findings):
            add_object(scene, image, one)
    scene.hand_over(encoding="xyxy", listed=False)
