"""Rows of images whose objects are lists: from nested values to a table of boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jaccard_eval.findings import Where
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import described_json
from jaccard_eval.reading.tabular.boxes import NO_CLASS, add_boxes, note_no_class
from jaccard_eval.reading.tabular.columns import (
    CLASS_IDS,
    IMAGE_IDS,
    Columns,
    may_lack_class,
    meant_header,
    position_of,
    read_naming,
    resolve_columns,
)
from jaccard_eval.reading.tabular.table import Column, NumberColumn, Table, read_cells

OBJECTS = "objects"
IMAGE_FIELD = "image"
PATHS = ("path", "file_name", "filename", "src")  # of an image that is an object
SINGULAR = {
    "bboxes": "bbox", "boxes": "bbox", "box": "bbox", "categories": "category", "labels": "label", "classes": "class",
    "category_ids": "category_id", "class_ids": "class_id", "category_names": "category_name", "areas": "area",
    "boundingBox": "bbox", "bounding_box": "bbox", "class_names": "class_name", "scores": "score",
    "confidences": "confidence", "tags": "tag",
}  # fmt: skip
USUAL = ("bbox", "category")  # what objects have where there are none
_CENTRED = {"x": "cx", "y": "cy", "width": "w", "height": "h"}
OF_THE_IMAGE = {"width": "image_width", "height": "image_height"}  # with lists of objects they can be nothing else

Place = Callable[[int], Where]

OBJECTS_FIX = "Write 'objects' as lists of equal length by field, or as a list of objects."


def add_object_rows(rows: Sequence[Mapping[str, Any]], place: Place, draft: Draft) -> None:
    """Add the images, classes and boxes of rows to the draft; the rows are all images there are.

    Each row is the fields of one image, and "objects" those of its boxes, which are xywh unless the names of the
    fields, or the options of the draft, decide otherwise.
    """
    flat = _Flat(place, draft)
    for row, values in enumerate(rows):
        flat.add_row(row, values)
    draft.findings.raise_errors()
    add_table(flat.table(), draft)


def add_flat_rows(rows: Sequence[Mapping[str, Any]], place: Place, draft: Draft) -> None:
    """Add the images, classes and boxes of rows to the draft; a row is the fields of one box and of its image."""
    boxes = [inner_fields(row) for row in rows]
    names = dict.fromkeys(name for box in boxes for name in box)
    cells = {name: Column([box.get(name) for box in boxes]) for name in names}
    table = Table(
        header=tuple(cells),
        titles=tuple(cells),
        columns=dict(enumerate(cells.values())),
        n_rows=len(boxes),
        place=lambda row, column: replace(place(row), field=column),
    )
    add_table(table, draft)


@dataclass(slots=True)
class _Flat:
    """Collects rows with one box each, or none for an image without boxes."""

    place: Place
    draft: Draft
    parents: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)  # of the box among its image's
    outer: list[dict[str, Any]] = field(default_factory=list)
    inner: list[dict[str, Any]] = field(default_factory=list)
    bare: list[bool] = field(default_factory=list)  # whether the row is an image without boxes

    def add_row(self, row: int, values: Mapping[str, Any]) -> None:
        """Add the boxes of an image."""
        about = outer_fields(values)
        boxes = self._boxes(row, values.get(OBJECTS))
        places = max(len(boxes), 1)
        self.parents += [row] * places
        self.positions += range(places)
        self.outer += [about] * places
        self.bare += [not boxes] * places
        self.inner += map(inner_fields, boxes or [{}])

    def table(self) -> Table:
        """Return everything as columns; a field of the box hides one of its image."""
        inner_names = dict.fromkeys(name for box in self.inner for name in box)
        inner_names = inner_names or dict.fromkeys(USUAL if all(self.bare) else ())
        outer_names = dict.fromkeys(name for image in self.outer for name in image if name not in inner_names)
        cells = {name: Column([image.get(name) for image in self.outer]) for name in outer_names}
        cells |= {name: Column([box.get(name) for box in self.inner]) for name in inner_names}

        def place(row: int, column: str | None) -> Where:
            box = f"{OBJECTS}[{self.positions[row]}]"
            where = self.place(self.parents[row])
            if column is None and not self.bare[row]:
                return replace(where, field=box)
            if column is None or column in outer_names:
                return replace(where, field=column)
            return replace(where, field=f"{box}.{column}")

        return Table(
            header=tuple(cells),
            titles=tuple(cells),
            columns=dict(enumerate(cells.values())),
            n_rows=len(self.parents),
            place=place,
            listed=True,
            of_box=frozenset(inner_names),
            bare=np.array(self.bare, dtype=np.bool_),
        )

    def _boxes(self, row: int, objects: Any) -> list[Mapping[str, Any]]:
        """Return the fields of each box; report what is neither lists nor objects."""
        if objects is None:
            return []
        if isinstance(objects, Mapping) and all(isinstance(values, list | tuple) for values in objects.values()):
            lengths = {name: len(values) for name, values in objects.items()}
            if len(set(lengths.values())) <= 1:
                return [dict(zip(objects, box, strict=True)) for box in zip(*objects.values(), strict=True)]
            told = ", ".join(f"{length} of {name}" for name, length in lengths.items())
            return self._fault(row, f"the lists differ in length: {told}")
        if isinstance(objects, list | tuple) and all(isinstance(box, Mapping) for box in objects):
            return list(objects)
        return self._fault(row, f"is {described_json(objects)} that holds other things than lists or objects")

    def _fault(self, row: int, detail: str) -> list[Mapping[str, Any]]:
        self.draft.findings.error("objects-type", replace(self.place(row), field=OBJECTS), detail, fix=OBJECTS_FIX)
        return []


def outer_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an image by the names that columns have; an image object gives its path and size."""
    fields = {
        OF_THE_IMAGE.get(name, name): value for name, value in values.items() if name not in (OBJECTS, IMAGE_FIELD)
    }
    picture = values.get(IMAGE_FIELD)
    if not isinstance(picture, Mapping):
        return fields if picture is None else {IMAGE_FIELD: picture, **fields}
    path = next((picture[name] for name in PATHS if picture.get(name) is not None), None)
    sizes = {name: picture[side] for side, name in OF_THE_IMAGE.items() if picture.get(side) is not None}
    return {**({} if path is None else {IMAGE_FIELD: path}), **sizes, **fields}


def inner_fields(box: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a box by the names that columns have; a box that is an object gives its own fields."""
    fields = {SINGULAR.get(name, name): value for name, value in box.items()}
    if isinstance(tags := fields.get("tag"), list) and len(tags) == 1:
        fields["tag"] = tags[0]
    packed = fields.get("bbox")
    if isinstance(packed, Mapping):
        del fields["bbox"]
        fields |= packed
    centred = fields.get("coordinates")  # of Turi Create
    if isinstance(centred, Mapping) and {*_CENTRED} <= centred.keys():
        del fields["coordinates"]
        fields |= {name: centred[side] for side, name in _CENTRED.items()}
    return fields


def add_table(table: Table, draft: Draft) -> None:
    """Add images, classes and boxes to the draft; what cannot be used is among its findings."""
    table = replace(table, header=meant_header(table.titles, read_naming(draft.options.columns)))
    # Other fields are of the image, and name the class of none of its boxes.
    of_box = [
        name for name, title in zip(table.header, table.titles, strict=True) if title in (table.of_box or (title,))
    ]
    if may_lack_class(table.header, draft.options, of_box):
        note_no_class(draft)
        added = NumberColumn(np.full(len(table), float(NO_CLASS)))
        cells = {**table.columns, len(table.header): added}
        header, titles = ((*names, "class") for names in (table.header, table.titles))
        table = replace(table, header=header, titles=titles, columns=cells)
    columns = resolve_columns(table.header, draft.options, draft.findings, Where(draft.path))
    if columns is None:
        return
    columns = _with_ids(table, columns)
    add_boxes(table, columns, read_cells(table, columns, draft.findings), draft)


def _with_ids(table: Table, columns: Columns) -> Columns:
    """Use ids as the keys if the table has them; those of images also if some have no name."""
    image, label = position_of(table.header, IMAGE_IDS), position_of(table.header, CLASS_IDS)
    named = table.columns[columns.image].filled.all()
    if image is None or not (table.keyed or (table.columns[image].filled.all() and not named)):
        image = columns.image
    if label is None or not table.keyed:
        label = columns.label
    needed = {image, label}
    unused = {*columns.unused, columns.image, columns.label} - needed
    return replace(columns, image=image, label=label, unused=tuple(sorted(unused)))
