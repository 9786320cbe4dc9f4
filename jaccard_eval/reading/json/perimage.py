"""Predictions that programs dump, of one image or of many: which part of a document belongs to which image.

A document is the output for one image, called as its file; an object from the names of images to outputs; or a list of
outputs, which names no images, so that they are called by their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jaccard_eval.errors import Where
from jaccard_eval.formats import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import documents
from jaccard_eval.reading.json.record import Record
from jaccard_eval.reading.json.scene import Scene


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
    scene.hand_over(options, encoding="xyxy", listed=False)
