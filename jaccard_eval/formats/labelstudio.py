"""Label Studio: a list of tasks with annotations and predictions, in per cent of the image; JSON and JSON-MIN."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from jaccard_eval.atomic import replace_file
from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn, kinds_in, rings_of
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import UNKNOWN_SIZE, Record, RecordCollector, listed_records

if TYPE_CHECKING:
    from jaccard_eval.similarity.runs import IntArray

FORMAT = Format(
    name="labelstudio",
    summary="Label Studio JSON or JSON-MIN: the latest annotation of each task, or its latest prediction",
    source="https://labelstud.io/guide/export.html#Label-Studio-JSON-format-of-annotated-tasks",
    example="""[
  {
    "id": 1,
    "data": {"image": "/data/upload/1/ab12cd34-street.jpg"},
    "annotations": [
      {
        "was_cancelled": false,
        "result": [
          {
            "type": "rectanglelabels", "original_width": 640, "original_height": 480, "image_rotation": 0,
            "value": {"x": 10, "y": 20, "width": 30, "height": 40, "rotation": 0, "rectanglelabels": ["dog"]}
          }
        ]
      }
    ],
    "predictions": []
  }
]
""",
    carries=("images", "sizes", "scores"),
    suffixes=(".json",),
    shapes=("segm", "obb"),
    written_if_named=True,
    reads={
        "bbox": "rectanglelabels",
        "obb": "rectanglelabels with rotation",
        "segm": "polygonlabels, brushlabels",
        "keypoints": "keypointlabels in a rectangle",
    },
)

_LABELS = "rectanglelabels"
_POLYGON, _BRUSH, _POINT = "polygonlabels", "brushlabels", "keypointlabels"
_KINDS = {
    "bbox": pattern(rb'"rectangle(?:labels)?"'),
    "segm": pattern(rb'"(?:polygon|brush)(?:labels)?"'),
    "obb": pattern(rb'"rotation"\s*:\s*-?(?!0[,}\s]|0\.0+[,}\s])\d'),
    # Points of a rectangle are a pose; others belong to nothing.
    "keypoints": pattern(rb'"parentID"\s*:\s*"[^{}]*"keypointlabels"|"keypointlabels"[^{}]*\}[^{}]*"parentID"\s*:\s*"'),
}
_LABELLED = 2.0  # how well a point is seen that annotators have placed
_SHARED_LABELS = "labels"  # of a project whose tools share their labels; the rectangle is a result of its own
_WIDTH, _HEIGHT = "original_width", "original_height"  # of the image, in pixels
_SIDES = ("x", "y", "width", "height")
_BYTE, _WORD, _RLE_HEAD = 255, 8, 8  # of masks: the largest value, its bits; bytes before the first run
_UPLOAD = pattern(r"^[0-9a-f]{8}-")  # which Label Studio puts before the names of uploaded files
_UNCONFIRMED = "unconfirmed"  # tasks of ground truth that a model has annotated and nobody else
_ADDRESSES = ("image", "img", "image_url", "url")  # of an image


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a list of tasks, or of what JSON-MIN makes of them."""
    keys, head = peek.item_keys, peek.head
    are_tasks = "data" in keys and not keys.isdisjoint(("annotations", "predictions"))
    is_labelled = b'labels"' in head
    is_min = bool(keys) and is_labelled and b'"original_width"' in head
    return Likeness.STRUCTURE if are_tasks or is_min else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of an export to the draft."""
    tasks = list(listed_records(path, draft))
    addresses = [_address(task) for task in tasks]
    collector, left_out = RecordCollector(draft), Counter[str]()
    # Results have the size of their image, except in older exports. In JSON-MIN they are in the task itself.
    entries = [entry for task in tasks for entry in _objects(list(task.values.values()))]
    results = _objects([entry.get("result") for entry in entries])
    is_sized = any(entry.get(_WIDTH) is not None for entry in (*entries, *results))
    units = "px" if is_sized else "norm"
    for task, key in zip(tasks, _keys(addresses, draft), strict=True):
        chosen = _chosen(task, options.role, left_out)
        _add_task(collector, key, task, chosen, units=units)
    collector.to_draft(encoding="xywh", units=units, listed=True, drawn=True)
    unconfirmed = left_out.pop(_UNCONFIRMED, 0)
    if unconfirmed:
        draft.ignored["predictions"] += unconfirmed
        detail = f"{unconfirmed:,} tasks have predictions and no annotation: predictions are not ground truth"
        fix = "Accept them in Label Studio and export the annotations, or pass the file as predictions."
        draft.findings.warning("annotations-unused", Where(draft.path), detail, fix=fix)
    for kind, count in left_out.items():
        draft.ignored[kind] += count
    if left_out:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(left_out.items()))
        detail = f"only the latest annotation or prediction of each task is read; ignored: {kinds}"
        draft.findings.note("annotations-unused", Where(draft.path), detail)


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a task per image, with annotations, or with predictions and their scores; places in per cent of the image.

    Masks that are not one polygon are brushed, oriented boxes are polygons of four corners.
    """
    from jaccard_eval.reading import writing
    from jaccard_eval.similarity.masks import Outlines
    from jaccard_eval.similarity.obb import Quads

    boxes, images, names = dataset.table, dataset.images, dataset.labels.names
    writing.require_pixels(dataset, "Label Studio")
    writing.require_names(dataset, "Label Studio", findings)
    writing.report_losses(dataset, path, findings, ("shapes", "sizes", "images"))
    writing.require_sizes(dataset, "Label Studio", findings)
    shapes: object = boxes.shapes
    masks = writing.masks_in_images(dataset, path, "Label Studio", findings) if isinstance(shapes, Outlines) else None
    findings.raise_errors()
    sizes = images.sizes[boxes.image]
    percents, exact = _percents(boxes.xywh, np.tile(sizes, 2))
    is_exact = np.logical_and.reduce(exact, axis=1)
    results: list[list[dict[str, Any]]] = [[] for _ in range(len(images))]
    for row, (image, label) in enumerate(zip(boxes.image.tolist(), boxes.label.tolist(), strict=True)):
        ring = shapes.corners[row] if isinstance(shapes, Quads) else None
        ring = writing.polygon_of(shapes, row) if isinstance(shapes, Outlines) else ring
        kind, value = _LABELS, dict[str, Any](zip(_SIDES, percents[row].tolist(), strict=True), rotation=0)
        if ring is not None:
            points, exact = _percents(ring, np.broadcast_to(sizes[row], ring.shape))
            is_exact[row] = exact.all()
            kind, value = _POLYGON, {"points": points.tolist(), "closed": True}
        elif masks is not None:
            kind, value = _BRUSH, {"format": "rle", "rle": brushed(writing.pixels_of(masks, row))}
            is_exact[row] = True
        own = region(f"r{row}", kind, value, names[label], sizes[row].tolist())
        results[image].append(own if boxes.score is None else {**own, "score": float(boxes.score[row])})
    writing.report_rounded(is_exact, path, findings)
    drawn = zip((images.name(row) for row in range(len(images))), results, strict=True)
    replace_file(path, to_tasks(drawn, kind="annotations" if dataset.role == "gt" else "predictions"))


def to_tasks(pictures: Iterable[tuple[str, Sequence[dict[str, Any]]]], *, kind: str, model: str = "") -> bytes:
    """Return tasks by the address of an image and its results; those of a model have the highest score of these."""
    tasks = []
    for address, results in pictures:
        own: dict[str, Any] = {"result": list(results)}
        if kind == "predictions":
            # The Data Manager sorts tasks by it.
            own = {"model_version": model, "score": max((one.get("score", 0.0) for one in results), default=0.0), **own}
        tasks.append({"data": {"image": address}, kind: [own]})
    return (json.dumps(tasks, indent=1, ensure_ascii=False) + "\n").encode(errors="backslashreplace")


def region(key: str, kind: str, value: Mapping[str, Any], label: str, size: Sequence[float]) -> dict[str, Any]:
    """Return a result: a shape with its class, in an image of a width and height."""
    return {
        "id": key,
        "type": kind,
        "from_name": "label",
        "to_name": "image",
        **{field: int(side) for field, side in zip((_WIDTH, _HEIGHT), size, strict=True)},
        "image_rotation": 0,
        "value": {**value, kind: [label]},
    }


def _percents(values: FloatArray, sizes: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return values in per cent of sizes, and which of them are read back to the last bit."""
    from jaccard_eval.reading.writing import REACH, exact_fractions

    flat, are_exact = exact_fractions(values.ravel(), sizes.ravel())
    shares, exact = flat.reshape(values.shape), are_exact.reshape(values.shape)
    percents, found = shares * 100, np.equal(shares * 100 / 100, shares)
    for steps in REACH[1:]:
        near = percents
        for _ in range(abs(steps)):
            near = np.nextafter(near, np.copysign(np.inf, steps))
        better = ~found & (near / 100 == shares)
        percents, found = np.where(better, near, percents), found | better
    return percents, exact & found


def brushed(pixels: BoolArray) -> list[int]:
    """Return a mask as it is painted: four bytes a pixel, along the rows, packed as `rle-pack` of thi.ng does."""
    from jaccard_eval.reading.writing import row_runs

    widths = (4, 8, 12, 16)
    bits = [f"{4 * pixels.size:032b}", f"{_WORD - 1:05b}", *(f"{width - 1:04b}" for width in widths)]
    for at, run in enumerate(row_runs(pixels)):
        left = 4 * run
        while left:
            length = min(left, 1 << widths[-1])
            choice = next(at for at, width in enumerate(widths) if length <= 1 << width)
            bits.append(f"1{choice:02b}{length - 1:0{widths[choice]}b}{_BYTE * (at % 2):08b}")
            left -= length
    text = "".join(bits)
    return [int(text[start : start + 8].ljust(8, "0"), 2) for start in range(0, len(text), 8)]


def iou_types(peek: Peek) -> set[str]:
    """Return what the first results are."""
    return kinds_in([peek], _KINDS)


def _objects(lists: list[Any]) -> list[dict[str, Any]]:
    return [value for values in lists if isinstance(values, list) for value in values if isinstance(value, dict)]


def _address(task: Record) -> str:
    """Return where a task has its image."""
    data = task.record("data") if task.has("data") else task  # JSON-MIN has the data in the task
    texts = {name: value for name, value in data.values.items() if isinstance(value, str)}
    named = [texts[name] for name in _ADDRESSES if texts.get(name)]
    found = [*named, *filter(is_image_name, texts.values())]
    return found[0] if found else data.text(_ADDRESSES[0])


def _keys(addresses: list[str], draft: Draft) -> list[str]:
    """Return the names of the images without the prefix of the upload, if they remain distinct."""
    parts = map(urlsplit, addresses)
    paths = [parse_qs(part.query).get("d", [part.path])[0] for part in parts]  # local storage has it in the query
    bare = [_UPLOAD.sub("", path.rpartition("/")[2]) for path in paths]
    claims = Counter(bare)
    keys = [name if claims[name] == 1 else path for name, path in zip(bare, paths, strict=True)]
    n_shortened = sum(map(str.__ne__, keys, addresses))
    if n_shortened:
        draft.details.append(f"{n_shortened:,} image URLs shortened to file names")
    return keys


def _chosen(task: Record, role: str, left_out: Counter[str]) -> Record | None:
    """Return the annotation that counts: of several, the last that is marked as ground truth, else the last."""
    kind = "predictions" if role == "pred" and task.values.get("predictions") else "annotations"
    if not task.has("data"):
        return None
    given = list(task.records(kind)) if task.has(kind) else []
    if kind == "annotations" and not given and task.values.get("predictions"):
        left_out[_UNCONFIRMED] += 1
    # A skipped task keeps the annotation that was begun, marked as cancelled.
    kept = [annotation for annotation in given if not annotation.values.get("was_cancelled")]
    marked = [annotation for annotation in kept if annotation.values.get("ground_truth")]
    if len(given) > 1 or len(kept) < len(given):
        left_out[kind] += len(given) - bool(kept)
    nothing = Record({"result": []}, task.where, task.findings)
    return (marked or kept or [nothing])[-1]


def _add_task(collector: RecordCollector, key: str, task: Record, chosen: Record | None, *, units: str) -> None:
    if chosen is not None:
        results = list(chosen.records("result"))
    else:
        # In JSON-MIN the boxes of a task stand in a field whose name the project chose.
        listed = {name: _objects([value]) for name, value in task.values.items()}
        named = [
            name
            for name, found in listed.items()
            if any(_labels_field(Record(result, task.where, task.findings)) for result in found)
        ]
        results = [result for name in named for result in task.records(name)]
        for other in (other for name, found in listed.items() if name not in named for other in found):
            kind = next((key for key in other if key.endswith("labels")), None)
            if kind is not None:
                collector.count_shape(kind)
    sized = next((result for result in results if result.has(_WIDTH) and result.has(_HEIGHT)), None)
    collector.add_image(key, size=UNKNOWN_SIZE if sized is None else (sized.number(_WIDTH), sized.number(_HEIGHT)))
    values = [result.record("value") if result.has("value") else result for result in results]
    fields = [_labels_field(value) for value in values]
    # Tools that share their labels write a rectangle twice: bare, and with labels under the same id.
    labelled = {result.values.get("id") for result, field in zip(results, fields, strict=True) if field}
    every = list(zip(results, values, fields, strict=True))
    poses = _poses(every, labelled, units) if _POINT in fields else {}
    for result, value, field in every:
        kind = result.values.get("type")
        if field == _POINT and result.values.get("parentID") in poses:
            continue
        if field and field != _POINT:
            sources = (result,) if chosen is None else (result, chosen)  # a box's own score, or its prediction's
            score = next((source.number("score") for source in sources if source.has("score")), math.nan)
            drawn = _drawn(collector, result, value, field, units=units)
            drawn.points = poses.get(result.values.get("id")) if poses else None
            names = value.entries(field)
            if not names.values:
                value.error("field-missing", field, "is empty; expected the class of the box")
            for name in names.values:
                collector.add_drawn(key, names.text(name), drawn, value.where, score=score)
        elif kind not in ("rectangle", "polygon", "brush") or result.values.get("id") not in labelled:
            collector.count_shape(result.text("type") if kind is not None else field or "without a type")


def _poses(
    results: list[tuple[Record, Record, str]], labelled: set[Any], units: str
) -> dict[Any, dict[str, tuple[float, float, float]]]:
    """Return points by the id of what they are drawn in."""
    poses: dict[Any, dict[str, tuple[float, float, float]]] = {}
    for result, value, field in results:
        parent = result.values.get("parentID")
        if field == _POINT and parent in labelled:
            names = value.entries(field)
            x, y = _in_pixels(result, [(value.number("x"), value.number("y"))], units=units)[0]
            poses.setdefault(parent, {}).update({names.text(name): (x, y, _LABELLED) for name in names.values})
    return poses


def _labels_field(value: Record) -> str:
    """Return the field that holds the classes of a shape; empty where there is no shape, or it has none."""
    for field in (_LABELS, _POLYGON, _BRUSH, _POINT):
        if value.has(field):
            return field
    is_drawn = all(map(value.has, _SIDES)) or value.has("points") or value.has("rle")
    return _SHARED_LABELS if value.has(_SHARED_LABELS) and is_drawn else ""


def _drawn(collector: RecordCollector, result: Record, value: Record, field: str, *, units: str) -> Drawn:
    """Return what a result draws."""
    drawn = Drawn(kind=field)
    if field == _LABELS:
        drawn.box = _box(collector, result, value, drawn, units=units)
    elif value.has("points"):
        (ring,) = rings_of(value.values["points"]) or [[]]
        points = list(zip(ring[::2], ring[1::2], strict=True))
        if value.values.get("closed", True):
            found = value.ring(_in_pixels(result, points, units=units))
            drawn.rings = [found] if found else []
    elif value.has("rle"):
        size = int(_known_side(result, _HEIGHT) or 0), int(_known_side(result, _WIDTH) or 0)
        edges = _brushed(value.array("rle"), size)
        if isinstance(edges, str):
            value.error("segmentation-invalid", "rle", edges)
        else:
            drawn.pixels = edges, size
    elif all(map(value.has, _SIDES)):
        drawn.box = _box(collector, result, value, drawn, units=units)
    return drawn


def _in_pixels(result: Record, points: list[tuple[float, float]], *, units: str) -> list[tuple[float, float]]:
    """Return points in per cent of the image in pixels, or as fractions of it where no size is known."""
    if units != "px":
        return [(x / 100, y / 100) for x, y in points]
    width, height = _known_side(result, _WIDTH), _known_side(result, _HEIGHT)
    return [(x / 100 * width, y / 100 * height) for x, y in points]


def _brushed(values: list[Any], size: tuple[int, int]) -> IntArray | str:
    """Return the runs of what was painted: four bytes a pixel, along the rows, packed as `rle-pack` of thi.ng does."""
    from jaccard_eval.reading.labelmaps import edges_of_crop

    height, width = size
    if not all(isinstance(value, int) and 0 <= value <= _BYTE for value in values) or len(values) < _RLE_HEAD:
        return "is not a list of bytes"
    bits = np.unpackbits(np.array(values, dtype=np.uint8))
    at = 0

    def take(count: int) -> int:
        nonlocal at
        taken = bits[at : at + count]
        at += count
        return int("".join(map(str, taken.tolist())) or "0", 2)

    n_values, word, widths = take(32), take(5) + 1, [0, 0, 0, 0]
    widths = [take(4) + 1 for _ in widths]
    if n_values != 4 * height * width or word != _WORD:
        return f"has {n_values:,} values, but {height} x {width} are {height * width:,} pixels of four"
    starts, found, n_found = [], [], 0
    while n_found < n_values and at < len(bits):
        repeated, length = take(1), take(widths[take(2)]) + 1
        for _ in range(1 if repeated else length):
            starts.append(n_found)
            found.append(take(_WORD))
            n_found += length if repeated else 1
    if n_found != n_values:
        return f"ends after {n_found:,} of {n_values:,} values"
    whole = np.repeat(np.array(found, dtype=np.uint8), np.diff([*starts, n_values]))
    return edges_of_crop(whole.reshape(height, width, 4)[:, :, 3] > 0, 0, 0, size)


def _box(collector: RecordCollector, result: Record, value: Record, drawn: Drawn, *, units: str) -> list[float]:
    """Return left, top, width and height of the upright box around one that may be turned, which is drawn then."""
    degrees = value.optional("rotation", 0.0)
    needs_size = units == "px" or degrees % 360  # a turn mixes width and height
    image_width, image_height = (
        (_known_side(result, _WIDTH), _known_side(result, _HEIGHT)) if needs_size else (1.0, 1.0)
    )
    x, y, w, h = (value.number(side) / 100 for side in _SIDES)
    left, top, width, height = x * image_width, y * image_height, w * image_width, h * image_height
    if not degrees % 360:
        return [left, top, width, height]
    if collector.reads_boxes:
        collector.count_rotated()
    # Label Studio turns a box about its left top corner, clockwise as pixels count.
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    xs = [0.0, width * cos, -height * sin, width * cos - height * sin]
    ys = [0.0, width * sin, height * cos, width * sin + height * cos]
    drawn.rings = [[side for at in (0, 1, 3, 2) for side in (left + xs[at], top + ys[at])]]
    return [left + min(xs), top + min(ys), max(xs) - min(xs), max(ys) - min(ys)]


def _known_side(result: Record, field: str) -> float:
    """Read a side of the image that boxes in percent are measured by."""
    side = result.side(field)
    if result.values.get(field) == 0:
        result.error("image-size", field, "is 0; expected the image size, as boxes are percentages of it")
    return side
