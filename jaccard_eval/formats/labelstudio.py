"""Label Studio: a list of tasks with annotations and predictions, in per cent of the picture; JSON and JSON-MIN."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.documents import Record, listed_records, looks_like
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.records import UNKNOWN_SIZE, Scene

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
)


def sniff(path: Path) -> bool:
    """Whether the file is a list of tasks."""
    return not files.is_folder(path) and looks_like(path, _is_task_list)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of an export to the draft.

    Raises
    ------
    DataError
        When the file cannot be read; problems of its tasks are among the draft's findings.
    """
    # not needed to look for a format

    read_tasks(path, draft, options)


def _is_task_list(_outer: set[str], inner: set[str], head: bytes) -> bool:
    is_labelled = b'"rectanglelabels"' in head or b'"labels"' in head
    is_min = is_labelled and b'"original_width"' in head
    return ("data" in inner and bool(inner & {"annotations", "predictions"})) or (bool(inner) and is_min)


_LABELS = "rectanglelabels"
_SHARED_LABELS = "labels"  # of a project whose tools share their labels; the rectangle is a result of its own
_RECTANGLE = "rectangle"
_WIDTH, _HEIGHT = "original_width", "original_height"  # of the picture, in pixels
_SIDES = ("x", "y", "width", "height")
_UPLOAD = re.compile(r"^[0-9a-f]{8}-")  # which Label Studio puts before the names of uploaded files
_PICTURE = ("image", "img", "image_url", "url")


def read_tasks(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of an export to the draft."""
    tasks = list(listed_records(path, draft))
    addresses = [_address(task) for task in tasks]
    scene, left_out = Scene(draft), Counter[str]()
    units = "px" if any(map(_names_size, tasks)) else "norm"  # older exports name no sizes
    for task, key in zip(tasks, _keys(addresses, draft), strict=True):
        _add_task(scene, task, key, left_out, role=options.role, units=units)
    scene.hand_over(encoding="xywh", units=units, listed=True)
    for kind, count in left_out.items():
        draft.ignored[kind] += count
    if left_out:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(left_out.items()))
        detail = f"one annotation or prediction of a task is read, the latest; set aside: {kinds}"
        draft.findings.note("annotations-unused", Where(draft.path), detail)


def _names_size(task: Record) -> bool:
    """Whether any result of a task says how wide its picture is; those of JSON-MIN stand in the task itself."""
    entries = _objects(list(task.values.values()))
    results = _objects([entry.get("result") for entry in entries])
    return any(one.get(_WIDTH) is not None for one in (*entries, *results))


def _objects(lists: list[Any]) -> list[dict[str, Any]]:
    return [one for values in lists if isinstance(values, list) for one in values if isinstance(one, dict)]


def _address(task: Record) -> str:
    """Return where a task has its picture."""
    data = task.record("data") if task.has("data") else task  # JSON-MIN has the data in the task
    texts = {name: value for name, value in data.values.items() if isinstance(value, str)}
    named = [texts[name] for name in _PICTURE if texts.get(name)]
    pictures = [value for value in texts.values() if is_image_name(value)]
    found = [*named, *pictures]
    return found[0] if found else data.text(_PICTURE[0])


def _keys(addresses: list[str], draft: Draft) -> list[str]:
    """Return the names of the pictures without what uploading put before them, where that tells them apart."""
    names = [_path(address) for address in addresses]
    bare = [_UPLOAD.sub("", name.rpartition("/")[2]) for name in names]
    claims = Counter(bare)
    keys = [one if claims[one] == 1 else name for one, name in zip(bare, names, strict=True)]
    n_shortened = sum(map(str.__ne__, keys, addresses))
    if n_shortened:
        draft.details.append(f"{n_shortened:,} addresses of pictures shortened to file names")
    return keys


def _path(address: str) -> str:
    """Return the path of an address; that of local storage stands in its query."""
    parts = urlsplit(address)
    return parse_qs(parts.query).get("d", [parts.path])[0]


def _add_task(scene: Scene, task: Record, key: str, left_out: Counter[str], *, role: str, units: str) -> None:
    chosen = _chosen(task, role, left_out)
    results = list(_results(task)) if chosen is None else list(chosen.records("result"))
    sized = [one for one in results if one.has(_WIDTH) and one.has(_HEIGHT)]
    size = (sized[0].number(_WIDTH), sized[0].number(_HEIGHT)) if sized else UNKNOWN_SIZE
    scene.add_image(key, size=size)
    values = [result.record("value") if result.has("value") else result for result in results]
    fields = [_labels_field(value) for value in values]
    labelled = {result.values.get("id") for result, field in zip(results, fields, strict=True) if field}
    for result, value, field in zip(results, values, fields, strict=True):
        kind = result.values.get("type")
        if field:
            _add_result(scene, key, result, value, _score(result, chosen), units=units)
        elif kind != _RECTANGLE or result.values.get("id") not in labelled:
            scene.count_shape(result.text("type") if kind is not None else "without a type")


def _labels_field(value: Record) -> str:
    """Return the field that holds the classes of a box; empty where there is no box, or it has none."""
    if value.has(_LABELS):
        return _LABELS
    return _SHARED_LABELS if value.has(_SHARED_LABELS) and all(map(value.has, _SIDES)) else ""


def _chosen(task: Record, role: str, left_out: Counter[str]) -> Record | None:
    """Return the annotation that counts: of several, the last that is marked as ground truth, else the last."""
    kind = "predictions" if role == "pred" and task.values.get("predictions") else "annotations"
    if not task.has("data"):
        return None
    given = list(task.records(kind)) if task.has(kind) else []
    kept = [one for one in given if not one.values.get("was_cancelled")]
    marked = [one for one in kept if one.values.get("ground_truth")]
    if len(given) > 1 or len(kept) < len(given):
        left_out[kind] += len(given) - bool(kept)
    nothing = Record({"result": []}, task.where, task.findings)
    return (marked or kept or [nothing])[-1]


def _results(task: Record) -> Iterator[Record]:
    """Yield the boxes of a task of JSON-MIN, which stand in the field that the project calls its labels."""
    for name, value in task.values.items():
        if isinstance(value, list) and any(isinstance(one, dict) and _is_labelled(one) for one in value):
            yield from task.records(name)


def _is_labelled(result: dict[str, Any]) -> bool:
    return _LABELS in result or result.keys() >= {_SHARED_LABELS, *_SIDES}


def _known_side(result: Record, field: str) -> float:
    """Read a side of the image that boxes in percent are measured by."""
    side = result.side(field)
    if result.values.get(field) == 0:
        result.error("image-size", field, "is 0; expected the size that the percentages are of")
    return side


def _add_result(scene: Scene, key: str, result: Record, value: Record, score: float, *, units: str) -> None:
    field = _labels_field(value)
    degrees = value.number("rotation") if value.has("rotation") else 0.0
    needs_size = units == "px" or degrees % 360  # a turn mixes width and height
    width, height = (_known_side(result, _WIDTH), _known_side(result, _HEIGHT)) if needs_size else (1.0, 1.0)
    x, y, w, h = (value.number(side) / 100 for side in _SIDES)
    box = [x * width, y * height, w * width, h * height]
    if degrees % 360:
        scene.count_rotated()
        box = _upright(box, degrees)
    names = Record({f"{field}[{at}]": name for at, name in enumerate(value.array(field))}, value.where, value.findings)
    if not names.values:
        value.error("field-missing", field, "is empty; expected the class of the box")
    for name in names.values:
        scene.add_box(key, names.text(name), box, value.where, score=score)


def _score(result: Record, chosen: Record | None) -> float:
    """Return the score of a box, else that of its whole prediction."""
    sources = (result,) if chosen is None else (result, chosen)
    return next((one.number("score") for one in sources if one.has("score")), math.nan)


def _upright(box: list[float], degrees: float) -> list[float]:
    """Return the upright box around one that is turned about its left top corner, clockwise as pixels count."""
    x, y, width, height = box
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    right = [0.0, width * cos, -height * sin, width * cos - height * sin]
    down = [0.0, width * sin, height * cos, width * sin + height * cos]
    return [x + min(right), y + min(down), max(right) - min(right), max(down) - min(down)]
