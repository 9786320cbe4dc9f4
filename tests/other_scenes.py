"""Scenes of masks, poses, label maps and boxes in memory, with mistakes, for the harness: a table of kinds.

Each kind draws two sides that are right, and has mistakes that change how one is written. A drawn scene has no more
than two, and says which options it is evaluated with, as a user would who knows what is compared.
"""

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

Record = dict[str, Any]
Pair = tuple[Any, Any]
Mistake = Callable[[Any, Any, np.random.Generator], Pair | None]  # None where it cannot be seen in such sides
WIDTH, HEIGHT = 160, 120
N_POINTS = 7
SIDES_OF_A_BODY = [0, 2, 1, 4, 3, 6, 5]  # points that are left of others, and those


@dataclass(frozen=True)
class Kind:
    """A kind of scene: how its sides are drawn, what may be wrong with them, and what asks for their number."""

    draw: Callable[[np.random.Generator], Pair]
    mistakes: Mapping[str, Mistake]
    options: Mapping[str, str] = field(default_factory=dict)
    verb: str = "evaluate"
    metric: str = "AP"


def _places(rng: np.random.Generator, cells: int = 6) -> np.ndarray:
    """Return boxes x y w h that do not touch, in some cells of a grid of three by two; whole numbers."""
    cell = np.array([WIDTH / 3, HEIGHT / 2])
    chosen = rng.permutation(cells)[: rng.integers(2, cells)]
    size = np.floor(cell * rng.uniform(0.45, 0.9, (len(chosen), 2)))
    corner = np.stack((chosen % 3, chosen // 3), axis=1) * cell + rng.uniform(0, 1, size.shape) * (cell - size)
    return np.concatenate((np.floor(corner), size), axis=1)


def _document(rng: np.random.Generator, shape: Callable[..., Record], *, n_classes: int, noise: float) -> Pair:
    images = [{"id": n, "file_name": f"{n:04}.jpg", "width": WIDTH, "height": HEIGHT} for n in range(10, 26)]
    annotations: list[Record] = []
    found: list[Record] = []
    for image in images:
        for box in _places(rng):
            label = int(rng.integers(1, n_classes + 1))
            own = {"image_id": image["id"], "category_id": label}
            drawn = shape(box, rng, 0.0)
            annotations.append({"id": len(annotations) + 1, **own, "iscrowd": 0, "area": box[2] * box[3] / 2} | drawn)
            if rng.random() < 0.9:
                again = shape(box, rng, noise, like=drawn)
                found.append({**own, "score": round(float(rng.uniform(0.2, 0.99)), 4)} | again)
    categories = [{"id": n, "name": f"kind {n}"} for n in range(1, n_classes + 1)]
    return {"images": images, "annotations": annotations, "categories": categories}, found


# Masks: triangles in their boxes, as polygons or as pixels


def _triangle(box: np.ndarray, rng: np.random.Generator, noise: float, like: Record | None = None) -> Record:
    x, y, w, h = (box + rng.normal(0, noise, 4) * [box[2], box[3], box[2], box[3]]).tolist()
    corners = [x, y, x + w, y + h / 4, x + w / 3, y + h]
    inside = np.clip(corners, 0, [WIDTH, HEIGHT] * 3)
    return {"segmentation": [[round(float(value), 2) for value in inside]]}


def _pixels(mask: Record) -> np.ndarray:
    from PIL import ImageDraw

    image = Image.new("1", (WIDTH, HEIGHT))
    ImageDraw.Draw(image).polygon(list(mask["segmentation"][0]), fill=1)
    return np.asarray(image)


def _runs(pixels: np.ndarray) -> Record:
    """Return runs down the columns, beginning with those of 0."""
    flat = np.concatenate(([False], pixels.ravel(order="F")))
    ends = np.flatnonzero(np.diff(flat)) if len(flat) else np.zeros(0, dtype=int)
    counts = np.diff(np.concatenate(([0], ends, [pixels.size]))).tolist()
    return {"size": list(pixels.shape), "counts": counts}


def _draw_masks(rng: np.random.Generator) -> Pair:
    gt, pred = _document(rng, _triangle, n_classes=3, noise=0.03)
    if rng.random() < 0.5:
        pred = [{**row, "segmentation": _runs(_pixels(row))} for row in pred]
    return gt, pred


def _rewritten(change: Callable[[Record], Record | None]) -> Mistake:
    """Change each record of a side that can be, one drawn side if both can."""

    def plant(gt: Any, pred: Any, rng: np.random.Generator) -> Pair | None:
        rows = {"gt": [change(row) for row in gt["annotations"]], "pred": [change(row) for row in pred]}
        roles = [role for role in rows if None not in rows[role]]
        if not roles:
            return None
        if rng.choice(roles) == "gt":
            return {**gt, "annotations": rows["gt"]}, pred
        return gt, rows["pred"]

    return plant


def _y_first(row: Record) -> Record | None:
    if isinstance(row["segmentation"], dict):
        return None
    rings = [np.reshape(ring, (-1, 2))[:, ::-1].ravel().tolist() for ring in row["segmentation"]]
    return {**row, "segmentation": rings}


def _as_runs(change: Callable[[np.ndarray], Record]) -> Callable[[Record], Record | None]:
    def changed(row: Record) -> Record | None:
        own = row["segmentation"]
        # Truth that is polygons stays so: its pixels are those of another rule.
        return {**row, "segmentation": change(_unrolled(own))} if isinstance(own, dict) else None

    return changed


def _unrolled(runs: Record) -> np.ndarray:
    values = np.arange(len(runs["counts"])) % 2 == 1
    return np.repeat(values, runs["counts"]).reshape(runs["size"], order="F")


def _counted_from_0(gt: Any, pred: Any, rng: np.random.Generator) -> Pair:
    return gt, [{**row, "category_id": row["category_id"] - 1} for row in pred]


def _images_too_low(gt: Any, pred: Any, rng: np.random.Generator) -> Pair:
    return gt, [{**row, "image_id": row["image_id"] - 1} for row in pred]


def _swapped(gt: Any, pred: Any, rng: np.random.Generator) -> Pair:
    return pred, gt  # given in the other order


# Poses: bodies whose points are left and right of each other


def _body(box: np.ndarray, rng: np.random.Generator, noise: float, like: Record | None = None) -> Record:
    x, y, w, h = box.tolist()
    if like is None:
        across = np.array([0.5, 0.2, 0.8, 0.1, 0.9, 0.3, 0.7]) + rng.uniform(-0.05, 0.05, N_POINTS)
        down = np.array([0.1, 0.3, 0.3, 0.55, 0.6, 0.95, 0.9]) + rng.uniform(-0.05, 0.05, N_POINTS)
        points = np.stack((x + across * w, y + down * h), axis=1)
    else:
        points = np.reshape(like["keypoints"], (-1, 3))[:, :2] + rng.normal(0, noise * np.sqrt(w * h), (N_POINTS, 2))
    flat = np.column_stack((points.round(2), np.full(N_POINTS, 2))).ravel().tolist()
    drawn = box + rng.normal(0, noise, 4) * [w, h, w, h]
    return {"keypoints": flat, "bbox": drawn.round(2).tolist(), "num_keypoints": N_POINTS}


def _exchanged(row: Record) -> Record:
    return {**row, "keypoints": np.reshape(row["keypoints"], (-1, 3))[SIDES_OF_A_BODY].ravel().tolist()}


def _one_side_exchanged(gt: Any, pred: Any, rng: np.random.Generator) -> Pair:
    return gt, [_exchanged(row) for row in pred]


def _without_area(gt: Any, pred: Any, rng: np.random.Generator) -> Pair:
    # As without: the area is that of the box, and the right number one of such areas.
    return {**gt, "annotations": [{**row, "area": 0} for row in gt["annotations"]]}, pred


def _draw_poses(rng: np.random.Generator) -> Pair:
    gt, pred = _document(rng, _body, n_classes=1, noise=0.02)
    for row in gt["annotations"]:
        row["area"] = row["bbox"][2] * row["bbox"][3]
    return gt, [{name: value for name, value in row.items() if name != "num_keypoints"} for row in pred]


# Label maps: the ground truth has regions, predictions err along their borders


def _draw_maps(rng: np.random.Generator) -> Pair:
    values = np.array([[0, 1], [7, 8, 11, 26], [0, 1, 2, 3, 4]][rng.integers(3)], dtype=np.uint8)
    maps = [np.full((HEIGHT, WIDTH), values[0]) for _ in range(3)]
    for image in maps:
        for x, y, w, h in _places(rng).astype(int).tolist():
            image[y : y + h, x : x + w] = rng.choice(values[1:])
    found = [np.roll(image, rng.integers(0, 4, 2), axis=(0, 1)) for image in maps]
    return maps, found


def _another_numbering(gt: Any, pred: Any, rng: np.random.Generator) -> Pair | None:
    used = np.unique(gt).tolist()
    to = {2: [0, 255], 4: [0, 1, 2, 13], 5: [1, 2, 3, 4, 5]}.get(len(used))
    if to is None:
        return None
    table = np.zeros(256, dtype=np.uint8)
    table[used] = to
    return gt, [table[image] for image in pred]


def _void_in_truth(gt: Any, pred: Any, rng: np.random.Generator) -> Pair | None:
    if len(np.unique(gt)) == 2:
        return None
    return [np.where(np.arange(WIDTH) < 9, np.uint8(255), image) for image in gt], pred


# Boxes in memory


def _draw_batches(rng: np.random.Generator) -> Pair:
    gt, pred = _document(
        rng,
        lambda box, rng, noise, like=None: {"bbox": (box + rng.normal(0, noise, 4) * box[2])},
        n_classes=3,
        noise=0.03,
    )
    return tuple(_batches(gt["images"], rows) for rows in (gt["annotations"], pred))  # type: ignore[return-value]


def _batches(images: list[Record], rows: list[Record]) -> list[Record]:
    batches = []
    for image in images:
        own = [row for row in rows if row["image_id"] == image["id"]]
        boxes = np.array([row["bbox"] for row in own], dtype=float).reshape(-1, 4)
        batch = {"boxes": np.concatenate((boxes[:, :2], boxes[:, :2] + boxes[:, 2:]), axis=1)}
        batch["labels"] = np.array([row["category_id"] for row in own], dtype=int)
        batches.append(
            batch | ({"scores": np.array([row["score"] for row in own])} if rows and "score" in rows[0] else {})
        )
    return batches


def _in_batches(change: Callable[[Record], Record]) -> Mistake:
    return lambda gt, pred, rng: (gt, [batch | change(batch) for batch in pred])


def _as_sizes(batch: Record) -> Record:
    boxes = batch["boxes"]
    return {"boxes": np.concatenate((boxes[:, :2], boxes[:, 2:] - boxes[:, :2]), axis=1)}


KINDS: dict[str, Kind] = {
    "masks": Kind(
        _draw_masks,
        {
            "y before x": _rewritten(_y_first),
            "pixels transposed": _rewritten(_as_runs(lambda pixels: _runs(pixels.T))),
            "runs along rows": _rewritten(_as_runs(lambda pixels: {**_runs(pixels.T), "size": [HEIGHT, WIDTH]})),
            "width before height": _rewritten(_as_runs(lambda pixels: {**_runs(pixels), "size": [WIDTH, HEIGHT]})),
            "classes from 0": _counted_from_0,
            "images one too low": _images_too_low,
            "sides swapped": _swapped,
        },
        {"iou_type": "segm"},
    ),
    "poses": Kind(
        _draw_poses,
        {
            "left and right exchanged": _one_side_exchanged,
            "no area": _without_area,
            "classes from 0": _counted_from_0,
            "images one too low": _images_too_low,
        },
        {"iou_type": "keypoints", "sigmas": ",".join(["0.07"] * N_POINTS)},
    ),
    "label maps": Kind(
        _draw_maps, {"another numbering": _another_numbering, "void": _void_in_truth}, verb="pixels", metric="mIoU"
    ),
    "batches": Kind(
        _draw_batches,
        {
            "sizes for corners": _in_batches(_as_sizes),
            "labels from 0": _in_batches(lambda batch: {"labels": batch["labels"] - 1}),
            "labels exchanged": _in_batches(lambda batch: {"labels": np.array([0, 2, 1, 3])[batch["labels"]]}),
        },
        verb="Evaluator",
    ),
}


TRUE = ("void",)  # what is no mistake of a side: the right number is that of such sides, too


def draw(rng: np.random.Generator) -> tuple[Kind, Pair, Pair, tuple[str, ...]]:
    """Return a kind, its sides as they are right and as they are written, and the mistakes."""
    name = str(rng.choice(list(KINDS)))
    right = KINDS[name].draw(rng)
    written, planted = copy.deepcopy(right), []
    for mistake in rng.permutation(list(KINDS[name].mistakes))[: rng.integers(0, 3)].tolist():
        if "sides swapped" in planted:  # which are no more what other mistakes are made of
            break
        changed = KINDS[name].mistakes[mistake](*written, rng)
        if changed is not None:
            written = changed
            planted.append(mistake)
            if mistake in TRUE:
                right = KINDS[name].mistakes[mistake](*right, rng) or right
    return KINDS[name], right, written, (name, *planted)


def write(sides: Pair, folder: Path) -> list[Any]:
    """Write the sides; what is in memory stays there."""
    places: list[Any] = []
    for role, side in zip(("gt", "pred"), sides, strict=True):
        if isinstance(side, list) and side and isinstance(side[0], np.ndarray):
            (folder / role).mkdir()
            for row, image in enumerate(side):
                Image.fromarray(image).save(folder / role / f"{row}.png")
            places.append(folder / role)
        elif isinstance(side, list) and side and "boxes" in side[0]:
            places.append(side)
        else:
            (folder / f"{role}.json").write_text(json.dumps(side))
            places.append(folder / f"{role}.json")
    return places
