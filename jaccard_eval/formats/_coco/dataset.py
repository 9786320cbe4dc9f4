"""From the columns of COCO JSON to a draft, by the strict reader where it can, else by the tolerant one."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BufferedIOBase, BytesIO
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from jaccard_eval.data.boxtable import Shapes
from jaccard_eval.data.dataset import ABSENT, MAX_IMAGE_SIDE, NOT_EXHAUSTIVE, Key
from jaccard_eval.findings import Severity, SizedRows, Where
from jaccard_eval.formats._coco.strict import (
    LVIS,
    VERIFIED,
    Boxes,
    CategoryRecord,
    Content,
    ImageRecord,
    ResultRecord,
    TruthRecord,
    boxes_for,
    count_given,
    count_list,
    decode_plain_results,
    decode_results,
    decode_truth,
    result_columns,
    scan_plain_results,
    scan_plain_truth,
    truth_columns,
)
from jaccard_eval.matching import starts_of_runs
from jaccard_eval.native.calls import RecordColumns
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import described_json, is_number
from jaccard_eval.reading.rawboxes import CodedKeys, Keys, RawBoxes
from jaccard_eval.text import quoted_value

# Classes of benchmarks, all of them and in lower case, by which their files are known.
_BENCHMARK_CLASSES = {
    frozenset(names.split()): protocol
    for protocol, names in {
        "aitod": "airplane bridge storage-tank ship swimming-pool vehicle person wind-mill",
        "soda": "people rider bicycle motor vehicle traffic-sign traffic-light traffic-camera warning-cone",
    }.items()
}
Places = Callable[[int], Where]

_INTEGER = pattern(r"0|-?[1-9][0-9]{0,18}")


def add_truth(
    draft: Draft, content: Content[TruthRecord], columns: RecordColumns, shapes: Shapes | None = None
) -> None:
    """Fill a draft with ground truth."""
    images, categories = content.images or [], content.categories or []
    for section, records in (("images", images), ("categories", categories)):
        if not records:
            draft.findings.error("section-empty", Where(draft.path, field=section), "is empty: nothing to evaluate")
    if not len(columns.area):
        draft.findings.warning("gt-empty", Where(draft.path, field="annotations"), "no ground truth boxes")
    draft.details.append(content.described)
    _add_images(draft, images)
    _add_categories(draft, categories)
    classes = frozenset(str(category.name).casefold() for category in categories)
    draft.usual_protocol = draft.usual_protocol or _BENCHMARK_CLASSES.get(classes, "")
    _add_verified(draft, images, categories)
    place = content.places(draft.path)
    draft.add_boxes(
        RawBoxes(
            image=_spelled_as_listed(draft, "image_id", columns.image, [image.id for image in images], place),
            label=_spelled_as_listed(
                draft, "category_id", columns.category, [category.id for category in categories], place
            ),
            coords=columns.coords,
            encoding="xywh",
            units="px",
            place=place,
            area=columns.area,
            crowd=columns.iscrowd == 1,
            ignore=columns.ignore == 1,
            group_of=np.any([flags == 1 for flags in columns.groups], axis=0) if columns.groups else None,
            negative_size=Severity.WARNING,
            shapes=shapes,
            of_boxes=_visible(draft, columns, classes, place),
        )
    )
    _note_boxes(draft, columns, place)
    # Roboflow adds a root category: the supercategory of all others, never annotated.
    parents = Counter(str(category.supercategory) for category in categories)
    for row, category in enumerate(categories):
        children = parents[str(category.name)] - (category.supercategory == category.name)
        if children and children == len(categories) - 1 and category.id not in set(_listed(columns.category)):
            detail = (
                f"{quoted_value(category.name)} is the supercategory of all others and has no annotations:"
                " kept as a class"
            )
            draft.findings.note("category-dummy", Where(draft.path, record=f"categories[{row}]"), detail)


def _visible(
    draft: Draft, columns: RecordColumns, classes: frozenset[str], place: Places
) -> dict[str, npt.NDArray[np.float64]]:
    """Return how much of each object is visible, as files of CityPersons have it, and no others."""
    if not columns.visible:
        return {}
    odd = [row for row, value in enumerate(columns.visible) if not (is_number(value) and 0 <= value <= 1)]
    draft.findings.add_rows(
        Severity.WARNING,
        "subset-unknown",
        odd,
        lambda row: (
            replace(place(row), field="vis_ratio"),
            f"{described_json(columns.visible[row])}, not a number from 0 to 1: the object is in no subset",
        ),
        fix="Write how much of the object is visible, from 0 to 1.",
    )
    if "pedestrian" in classes:
        draft.usual_protocol = "citypersons"
    values = np.array([np.nan if row in {*odd} else value for row, value in enumerate(columns.visible)], dtype=float)
    return {"vis_ratio": values}


def add_results(
    draft: Draft, content: Content[ResultRecord], columns: RecordColumns, shapes: Shapes | None = None
) -> None:
    """Fill a draft with detections."""
    if not len(columns.score):
        draft.findings.warning("pred-empty", Where(draft.path), "no predictions")
    draft.details.append(content.described)
    place = content.places(draft.path)
    image: Keys = columns.image
    label: Keys = columns.category
    if content.images is not None:
        _add_images(draft, content.images)
        image = _spelled_as_listed(draft, "image_id", image, [image.id for image in content.images], place)
    else:
        _add_file_names(draft, columns, place)
    if content.categories is not None:
        _add_categories(draft, content.categories)
        label = _spelled_as_listed(draft, "category_id", label, [category.id for category in content.categories], place)
    else:
        _add_category_names(draft, columns, place)
    _refuse_mixed(draft, "image_id", image, place)
    _refuse_mixed(draft, "category_id", label, place)
    draft.add_boxes(
        RawBoxes(
            image=image,
            label=label,
            coords=columns.coords,
            encoding="xywh",
            units="px",
            place=place,
            score=None if len(columns.score) and np.isnan(columns.score).all() else columns.score,
            negative_size=Severity.WARNING,
            shapes=shapes,
            of_box=columns.of_box,
        )
    )


def _add_images(draft: Draft, images: list[ImageRecord]) -> None:
    keys: list[Key] = [image.id for image in images]
    names = [image.file_name or None for image in images]
    given = ([getattr(image, side) or math.nan for image in images] for side in ("width", "height"))
    sides = np.stack([np.array(values, dtype=np.float64) for values in given], axis=1)
    # Of nearly all files no side is odd.
    usual = (sides > 0) & (sides <= MAX_IMAGE_SIDE) & (sides == np.floor(sides))
    for row, column in np.argwhere(~usual).tolist():
        sides[row, column] = _side(draft, row, images[row], ("width", "height")[column])
    draft.set_images(keys, file_names=names, sizes=sides)
    crowded = {image.id: image.crowd_index for image in images if image.crowd_index is not None}
    if crowded and all(map(is_number, crowded.values())):
        draft.of_images["crowdIndex"] = crowded
        draft.usual_protocol = "crowdpose"
    _warn_shared_file_names(draft, names)


def _side(draft: Draft, row: int, image: ImageRecord, field: str) -> float:
    """Return a side of an image, NaN where unknown."""
    side = getattr(image, field)
    # Some tools write 0 for a size that they do not know.
    if not side:
        return math.nan
    where = Where(draft.path, record=f"images[{row}]", field=field)
    if 0 < side <= MAX_IMAGE_SIDE:
        if side % 1:
            detail = f"{field} is {side:g}, not a whole number of pixels: used as given"
            draft.findings.warning("image-size", where, detail)
        return float(side)
    draft.findings.warning("image-size", where, f"{field} is {side:g}, not an image size: treated as unknown")
    return math.nan


def _warn_shared_file_names(draft: Draft, names: Sequence[str | None]) -> None:
    given = [name for name in names if name is not None]
    if len(set(given)) == len(given):
        return
    counts = Counter(given)
    shared = [name for name, count in counts.items() if count > 1]
    draft.findings.add_rows(
        Severity.WARNING,
        "file-name-duplicate",
        range(len(shared)),
        lambda row: (
            Where(draft.path, record="images", field="file_name"),
            f"duplicate file_name {quoted_value(shared[row])}: {counts[shared[row]]} images share it",
        ),
        fix="Images are identified by id.",
    )


def _add_categories(draft: Draft, categories: list[CategoryRecord]) -> None:
    given = [category.name for category in categories]
    names = [name if isinstance(name, str) and name.strip() else None for name in given]
    unnamed = [row for row, name in enumerate(names) if name is None]
    is_named = len(unnamed) < len(names)
    draft.findings.add_rows(
        Severity.WARNING,
        "category-unnamed",
        unnamed if is_named or draft.options.names is None else [],  # which then has the names of all
        lambda row: (Where(draft.path, record=f"categories[{row}]", field="name"), "has no name: the id is used"),
    )
    points: Any = next((category.keypoints for category in categories if category.keypoints), None)
    draft.point_names = tuple(map(str, points)) if isinstance(points, list) else ()
    texts = [name or str(category.id) for category, name in zip(categories, names, strict=True)]
    _set_classes(draft, [category.id for category in categories], texts, named=is_named)


def _set_classes(draft: Draft, keys: Sequence[Key], names: Sequence[str], *, named: bool) -> None:
    draft.set_classes(keys, names, named=named)
    shared = [name for name, count in Counter(names).items() if count > 1]

    def describe(row: int) -> tuple[Where, str]:
        ids = ", ".join(quoted_value(key) for key, name in zip(keys, names, strict=True) if name == shared[row])
        return Where(
            draft.path, record="categories", field="name"
        ), f"duplicate name {quoted_value(shared[row])}: ids {ids}"

    draft.findings.add_rows(Severity.WARNING, "category-name-duplicate", range(len(shared)), describe)


def _add_file_names(draft: Draft, columns: RecordColumns, place: Places) -> None:
    """Take the images' file names from the detections, as Ultralytics writes them."""
    names, contradicting = _one_text_each(columns.image, columns.file_names)
    draft.findings.add_rows(
        Severity.ERROR,
        "file-name-contradiction",
        contradicting,
        lambda row: (
            place(row),
            f"image_id {quoted_value(columns.image[row])} has file_name {quoted_value(columns.file_names[row])} here,"
            f" {quoted_value(names[columns.image[row]])} before",
        ),
        fix="Every image_id needs one file_name.",
    )
    if names:
        draft.set_images(list(names), file_names=list(names.values()), listed=False)
        _warn_shared_file_names(draft, list(names.values()))


def _add_category_names(draft: Draft, columns: RecordColumns, place: Places) -> None:
    """Take class names from the detections, as SAHI writes them, or from the options."""
    names, contradicting = _one_text_each(columns.category, columns.category_names)
    draft.findings.add_rows(
        Severity.WARNING,
        "category-name-contradiction",
        contradicting,
        lambda row: (place(row), quoted_value(columns.category_names[row])),
        summary="category_name differs between records of one category_id: the ids are used instead",
    )
    if names and not contradicting:
        _set_classes(draft, list(names), list(names.values()), named=True)
    elif (listed := draft.options.names) is not None:
        ids = {*columns.category}
        # As many as there are names and none of them 0: each has a name only where they count from 1.
        first = int(len(listed) in ids and ids <= {*range(1, len(listed) + 1)})
        if first:
            detail = f"class ids count the {len(listed)} names from 1: none is 0, and the highest is {len(listed)}"
            draft.findings.note("class-counting", Where(draft.path, field="class"), detail)
        _set_classes(draft, range(first, first + len(listed)), listed, named=True)


def _one_text_each(keys: Keys, texts: list[Any]) -> tuple[dict[Key, str], list[int]]:
    """Return the text that goes with each key, and the rows that contradict it."""
    text_of: dict[Key, str] = {}
    if not texts:
        return text_of, []
    contradicting = [
        row
        for row, (key, text) in enumerate(zip(_listed(keys), texts, strict=True))
        if isinstance(text, str) and text and text_of.setdefault(key, text) != text
    ]
    return text_of, contradicting


def _spelled_as_listed(draft: Draft, field: str, keys: Keys, listed: list[Key], place: Places) -> Keys:
    """Read the text "7" as the listed number 7, and the number as the listed text: VIA and pylabel write such files."""
    # Numbers throughout, in nearly all files: there is nothing to respell.
    if isinstance(keys, np.ndarray) and not any(isinstance(key, str) for key in listed):
        return keys
    known = set(listed)
    spelled = {str(key): key for key in listed}
    own = _listed(keys)
    rows = [row for row, key in enumerate(own) if key not in known and str(key) in spelled]
    draft.findings.add_rows(
        Severity.WARNING,
        "id-spelling",
        rows,
        lambda row: (place(row), quoted_value(own[row])),
        summary=(
            f"{field} is a string where the list has a number, or vice versa, in {len(rows):,} records:"
            " treated as equal"
        ),
    )
    return [key if key in known else spelled.get(str(key), key) for key in own]


def _refuse_mixed(draft: Draft, field: str, keys: Keys, place: Places) -> None:
    """Refuse "7" among numbers: a reader that treats it as another id loses the box."""
    if isinstance(keys, np.ndarray) or not any(isinstance(key, int) for key in keys):
        return
    rows = [row for row, key in enumerate(keys) if isinstance(key, str) and _INTEGER.fullmatch(key)]
    draft.findings.add_rows(
        Severity.ERROR,
        "id-mixed",
        rows,
        lambda row: (
            replace(place(row), field=field),
            f"is {quoted_value(keys[row])}, a string, but other records have numbers",
        ),
        fix="Write ids the same way in every record.",
    )


def _listed(keys: Keys) -> Sequence[Key]:
    return list(keys) if isinstance(keys, CodedKeys) else keys.tolist() if isinstance(keys, np.ndarray) else keys


def _note_boxes(draft: Draft, columns: RecordColumns, place: Places) -> None:
    """Report what was assumed about boxes, and which of their fields affect the evaluation."""
    n = len(columns.ids)
    n_scored = columns.n_scored
    if n_scored:
        detail = (
            f"{n_scored:,} of {n:,} ground-truth records have a score, which is ignored. Are these"
            " predictions (files swapped)?"
        )
        draft.findings.warning("gt-scores", Where(draft.path, record="annotations"), detail)
        draft.ignored["score"] += n_scored
    no_area = np.flatnonzero(np.isnan(columns.area))
    summary = (
        f"area is missing in {len(no_area):,} of {n:,} records: width times height is used (COCO's own"
        " areas are those of masks)"
    )
    if draft.options.iou_type != "keypoints":  # whose reader reports what OKS makes of it
        _note(draft, "area-missing", no_area, place, summary)
    ignored = np.flatnonzero(columns.ignore == 1)
    summary = f"ignore is 1 in {len(ignored):,} of {n:,} records: the protocol decides whether these boxes count"
    if draft.options.iou_type == "keypoints":
        summary = f"num_keypoints is 0 in {len(ignored):,} of {n:,} records: these objects are neither found nor missed"
    _note(draft, "ignore-flag", ignored, place, summary)
    ids = columns.ids
    if isinstance(ids, np.ndarray):
        repeated = len(ids) - int(np.count_nonzero(starts_of_runs(np.sort(ids))))
    else:
        repeated = count_given(ids) - len(set(ids) - {UNSET})
    if draft.options.role == "gt" and not repeated and (isinstance(ids, np.ndarray) or UNSET not in ids):
        draft.annotation_ids = ids
    if not repeated and 0 in ids:
        draft.zero_id = list(ids).index(0)
    draft.findings.add_rows(
        Severity.WARNING,
        "annotation-id-duplicate",
        range(repeated),
        lambda _: (Where(draft.path, record="annotations"), ""),
        fix="Renumber the annotations if other tools read the file.",
        summary=f"{repeated:,} of {n:,} records repeat the id of an earlier annotation; all are kept, "
        "but pycocotools keeps only the last of each id",
    )


def _note(draft: Draft, code: str, rows: SizedRows, place: Places, summary: str) -> None:
    draft.findings.add_rows(Severity.NOTE, code, rows, lambda row: (place(row), ""), summary=summary)


def read_file(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, categories and boxes of a COCO JSON file."""
    # Plain files of boxes are never in memory as a whole; anything else is, and is then read from its beginning.
    needs = boxes_for(draft.options.iou_type)
    if needs is Boxes.NEEDED or (needs is Boxes.OPTIONAL and options.role == "pred"):
        with files.open_regular(path) as file, files.unchanging(path, file):
            size = os.fstat(file.fileno()).st_size
            truth = scan_plain_truth(file, size) if options.role == "gt" else None
            results = _scan_results(file, size, draft) if options.role == "pred" else None
        if truth is not None:
            add_truth(draft, *truth)
            return
        if results is not None:
            add_results(draft, *results)
            return
    read_content(path, files.read_bytes(path), draft, options)


def _scan_results(
    file: BufferedIOBase, size: int, draft: Draft
) -> tuple[Content[ResultRecord], RecordColumns, Shapes | None] | None:
    """Read plain results, with the shapes that are compared; None of others."""
    if boxes_for(draft.options.iou_type) is Boxes.NEEDED:
        found = scan_plain_results(file, size)
        return None if found is None else (*found, None)
    from jaccard_eval.formats._coco.shapes import read_plain_results

    return read_plain_results(file, size, draft)


def read_content(path: Path, data: bytes, draft: Draft, options: ReadOptions) -> None:
    """Add what a file holds, by the quick reader where it can; `path` is for messages."""
    # The typed decoder looks at the encoding of the texts that it keeps, and at no others.
    if not data.isascii() or b"\0" in data:
        files.decode(path, data)
    if options.role == "gt":
        _read_truth(path, data, draft)
    else:
        _read_results(path, data, draft)


def _read_truth(path: Path, data: bytes, draft: Draft) -> None:
    needs = boxes_for(draft.options.iou_type)
    shaped, oriented = needs is not Boxes.NEEDED, needs is Boxes.ORIENTED
    decoded = decode_truth(data, boxes=needs)
    # The quick reader only reports that something is odd; the slow one finds out what.
    if decoded is None:
        from jaccard_eval.formats._coco.tolerant import read_truth, refuse_list

        # Results are tried as ground truth if no option names the format: they need no look into each record.
        n_listed = count_list(data)
        if n_listed is not None:
            raise refuse_list(path, n_listed)
        content = read_truth(path, files.decode(path, data), draft.findings, boxes=needs)
        decoded = content, truth_columns(content.boxes, oriented=oriented)
    if not shaped:
        add_truth(draft, *decoded)
        return
    from jaccard_eval.formats._coco.shapes import read_truth_shapes

    content, columns = decoded
    add_truth(draft, content, *read_truth_shapes(path, data, content, columns, draft))


_HEAD = 1 << 16  # bytes that hold the first record, unless its mask is huge
_SIZED = pattern(rb'"size"\s*:\s*\[')


def _first_mask(data: bytes) -> tuple[Key, tuple[float, float]] | None:
    """Return the image of the first record of a list and the width and height of its RLE, where it has one."""
    head = data[:_HEAD]
    if not _SIZED.search(head):
        return None
    try:
        record, _ = json.JSONDecoder().raw_decode(head.decode("latin-1"), head.index(b"{"))
        height, width = record["segmentation"]["size"]
        return record["image_id"], (float(width), float(height))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None  # of what is wrong with it, its reader reports


def _read_results(path: Path, data: bytes, draft: Draft) -> None:
    needs = boxes_for(draft.options.iou_type)
    shaped, oriented = needs is not Boxes.NEEDED, needs is Boxes.ORIENTED
    plain = None if shaped else decode_plain_results(data)
    draft.first_mask = None if shaped else _first_mask(data)
    if plain is not None:
        add_results(draft, *plain)
        return
    if shaped:
        from jaccard_eval.formats._coco.shapes import read_plain_results, read_result_shapes

        found = None if oriented else read_plain_results(BytesIO(data), len(data), draft)
        if found is not None:
            add_results(draft, *found)
            return
    scores_optional = draft.options.assume_score is not None
    decoded = decode_results(data, scores_optional=scores_optional, boxes=needs)
    if decoded is None:
        from jaccard_eval.formats._coco.tolerant import read_results

        text = files.decode(path, data)
        content = read_results(path, text, draft, scores_optional=scores_optional, boxes=needs)
        decoded = content, result_columns(content.boxes, oriented=oriented)
    if not shaped:
        add_results(draft, *decoded)
        return
    content, columns = decoded
    add_results(draft, content, *read_result_shapes(path, data, content, columns, draft))


def _add_verified(draft: Draft, images: Sequence[ImageRecord], categories: Sequence[CategoryRecord]) -> None:
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
            _add_verified_lists(draft, fact, field, images, [[] if ids is UNSET else ids for ids in lists])
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


def _add_verified_lists(
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
