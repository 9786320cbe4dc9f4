"""Scenes with predictions on resized images, drawn by chance; the arithmetic of resizing is written out once more."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import from_xywh
from jaccard_eval.data.resizing import Resizing
from jaccard_eval.features.audit.resizing import Found, Side, find_resizing, lie_well

Array = npt.NDArray[np.float64]

ROUND = (
    224,
    256,
    300,
    320,
    384,
    416,
    448,
    480,
    512,
    600,
    608,
    640,
    736,
    768,
    800,
    896,
    960,
    1000,
    1024,
    1280,
    1536,
    2048,
)
FORMS = (
    *("scale", "scale xy", "stretch", "stretch", "stretch AxB", "per cent", "fractions", "letterbox", "letterbox"),
    *("letterbox AxB", "letterbox fractions", "pad", "pad", "pad AxB", "short", "short", "offset", "rect"),
    *("letterbox-px", "turn"),
)
NOISES = 0.0, 0.02, 0.05, 0.10, 0.15


@dataclass
class Scene:
    """Objects and predictions of images (n, 2), and how what was planted is called."""

    gt: Side
    pred: Side
    sizes: Array
    encoding: str  # of the numbers
    planted: str
    noise: float

    def find(self) -> Found | None:
        if lie_well(self.gt, self.pred, self.sizes, "xywh"):
            return None
        return find_resizing(self.gt, self.pred, self.sizes, "xywh")


def draw(rng: np.random.Generator, form: str | None = None) -> Scene:
    """Draw a scene; its form as well unless it is given, "" for none."""
    sizes, gt, gt_image, label = _objects(rng)
    noise = float(rng.choice(NOISES))
    boxes, image, classes, score, _ = detect(rng, sizes, gt, gt_image, label, noise)
    form = str(rng.choice(FORMS)) if form is None else form
    text, turn = _parameters(rng, form, sizes), ""
    if form == "turn" or (form and rng.random() < 3 / 8):
        turn = str(rng.choice(["mirror", "swap", "rot90", "rot270", "rot180", "flip", "anti"]))
    numbers = put(boxes, sizes[image], text, turn)
    if form not in ("fractions", "letterbox fractions") and rng.random() < 0.3:
        numbers = _rounded(numbers)
    encoding = str(rng.choice(["xywh", "xyxy", "cxcywh"])) if form and rng.random() < 0.5 else "xywh"
    raw = from_xywh(numbers, encoding)
    planted = "+".join(part for part in (turn, text) if part)
    return scene(sizes, gt, gt_image, label, raw, image, classes, score, planted, encoding, noise)


def scene(sizes, gt, gt_image, label, raw, image, classes, score, planted="", encoding="xywh", noise=0.0) -> Scene:  # type: ignore[no-untyped-def]
    """Bring arrays together; predictions are read as left, top, width and height."""
    truth = Side(gt_image, label, gt, np.ones(len(gt)), gt)
    return Scene(truth, Side(image, classes, raw, score, raw), sizes, encoding, planted, noise)


def _objects(rng: np.random.Generator):  # type: ignore[no-untyped-def]
    n = int(np.exp(rng.uniform(np.log(12), np.log(600))))
    kind = rng.choice(["one", "coco", "three", "any"])
    if kind == "one":
        sizes = np.tile(rng.integers(200, 2000, 2), (n, 1))
    elif kind == "coco":
        usual = np.array([[640, 480]] * 5 + [[480, 640]] * 2 + [[640, 427]] * 3 + [[427, 640], [500, 375], [640, 360]])
        sizes = usual[rng.integers(0, len(usual), n)]
    elif kind == "three":
        sizes = rng.integers(200, 2500, (3, 2))[rng.integers(0, 3, n)]
    else:
        sizes = rng.integers(150, 3000, (n, 2))
    sizes = sizes.astype(np.float64)
    per_image = rng.poisson(np.exp(rng.uniform(np.log(1.5), np.log(20))), n)
    while per_image.sum() < 40:
        per_image += 1
    image = np.repeat(np.arange(n), per_image)
    m = len(image)
    side = np.exp(rng.normal(np.log(rng.uniform(0.06, 0.25)), 0.6, (m, 2))).clip(0.01, 0.8)
    corner = rng.uniform(0, 1, (m, 2)) * (1 - side)
    gt = np.concatenate((corner, side), axis=1) * np.tile(sizes[image], 2)
    label = rng.integers(0, int(np.exp(rng.uniform(0, np.log(40)))), m)
    return sizes, gt, image, label


def detect(rng, sizes, gt, gt_image, label, noise, recall=None):  # type: ignore[no-untyped-def]
    """Return what a detector finds: boxes, images, classes, scores, and the object of each (-1 for none)."""
    recall = rng.uniform(0.5, 0.9) if recall is None else recall
    found = np.flatnonzero(rng.random(len(gt)) < recall)
    again = found[rng.random(len(found)) < rng.choice([0, 0, rng.uniform(0, 1)])]
    source = np.concatenate((found, again))
    jitter = rng.normal(0, noise, (len(source), 4)) * np.tile(gt[source, 2:], 2)
    boxes = gt[source] + jitter
    boxes[:, :2] -= jitter[:, 2:] / 2
    boxes[:, 2:] = np.maximum(boxes[:, 2:], 0.2 * gt[source, 2:])
    n_false = int(rng.choice([0, rng.uniform(0, 2)]) * len(gt))
    of = rng.integers(0, len(gt), n_false)
    image_false = rng.integers(0, len(sizes), n_false)
    side = np.minimum(gt[of, 2:] / sizes[gt_image[of]], 0.9)
    false = np.concatenate((rng.uniform(0, 1, (n_false, 2)) * (1 - side), side), axis=1) * np.tile(
        sizes[image_false], 2
    )
    boxes = np.concatenate((boxes, false))
    image = np.concatenate((gt_image[source], image_false))
    classes = np.concatenate((label[source], label[of]))
    wrong = rng.random(len(classes)) < rng.uniform(0, 0.3)
    classes[wrong] = rng.integers(0, label.max(initial=0) + 1, np.count_nonzero(wrong))
    score = np.concatenate((rng.beta(4, 2, len(source)), rng.beta(2, 4, n_false)))
    if rng.random() < 0.5:
        far = np.clip(boxes[:, :2] + boxes[:, 2:], 0, sizes[image])
        boxes[:, :2] = np.clip(boxes[:, :2], 0, sizes[image] - 1)
        boxes[:, 2:] = np.maximum(far - boxes[:, :2], 0.5)
    return boxes, image, classes, score, np.concatenate((source, np.full(n_false, -1)))


def _side(rng: np.random.Generator) -> int:
    return int(rng.choice(ROUND) if rng.random() < 0.6 else np.exp(rng.uniform(np.log(64), np.log(4096))))


def _parameters(rng: np.random.Generator, form: str, sizes: Array) -> str:
    side, other = _side(rng), _side(rng)
    factor = [f"{rng.integers(1, 9)}/{rng.integers(1, 9)}" for _ in range(2)]
    # An input is at most three times as long as wide.
    other = int(np.clip(other, side // 3, side * 3))
    return {
        "": "",
        "turn": "",
        "scale": f"scale:{factor[0]}",
        "scale xy": f"scale:{factor[0]}x{factor[1]}",
        "stretch": f"stretch:{side}",
        "stretch AxB": f"stretch:{side}x{other}",
        "per cent": "stretch:100",
        "fractions": "stretch:1",
        "letterbox": f"letterbox:{side}",
        "letterbox AxB": f"letterbox:{side}x{other}",
        "letterbox fractions": "letterbox:1",
        "pad": f"pad:{side}",
        "pad AxB": f"pad:{side}x{other}",
        "short": f"short:{min(side, other)},{max(side, other)}",
        "offset": f"offset:{rng.integers(20, 300) * rng.choice([-1, 1])},{rng.integers(20, 300) * rng.choice([-1, 1])}",
        "rect": f"rect:{32 * max(2, round(side / 32))}",
        "letterbox-px": f"letterbox-px:{side}",
    }[form]


def put(boxes: Array, size: Array, text: str, turn: str) -> Array:
    """Turn boxes (n, 4) with their images and resize them, written out by hand."""
    x, y, w, h = boxes.T
    width, height = size.T
    if turn in ("swap", "rot90", "rot270", "anti"):
        x, y, w, h, width, height = y, x, h, w, height, width
    if turn in ("mirror", "rot180", "rot270", "anti"):
        x = width - x - w
    if turn in ("flip", "rot180", "rot90", "anti"):
        y = height - y - h
    kind, _, rest = text.partition(":")
    parts = [
        float(a.split("/")[0]) / float(a.split("/")[-1] if "/" in a else 1)
        for a in rest.replace("x", ",").split(",")
        if a
    ]
    a, b = (parts[0], parts[-1]) if parts else (1.0, 1.0)
    long, short = np.maximum(width, height), np.minimum(width, height)
    kx = ky = {
        "": np.ones_like(width),
        "offset": np.ones_like(width),
        "scale": np.full_like(width, a),
        "stretch": a / width,
        "letterbox": np.minimum(a / width, b / height),
        "letterbox-px": np.minimum(a / width, b / height),
        "pad": np.minimum(a / width, b / height),
        "short": np.minimum(a / short, b / long),
        "rect": a / long,
    }[kind]
    if kind in ("scale", "stretch"):
        ky = np.full_like(width, b) if kind == "scale" else b / height
    ox = oy = np.zeros_like(width)
    if kind == "offset":
        ox, oy = ox + a, oy + b
    elif kind == "letterbox":
        ox, oy = (a - kx * width) / 2, (b - ky * height) / 2
    elif kind == "letterbox-px":
        ox, oy = np.round((a - np.round(kx * width)) / 2 - 0.1), np.round((b - np.round(ky * height)) / 2 - 0.1)
    elif kind == "rect":
        ox, oy = (-np.round(kx * width) % 32) / 2, (-np.round(ky * height) % 32) / 2
    return np.stack((kx * x + ox, ky * y + oy, kx * w, ky * h), axis=1)


def _rounded(numbers: Array) -> Array:
    ends = np.round(numbers[:, :2] + numbers[:, 2:])
    start = np.round(numbers[:, :2])
    return np.concatenate((start, np.maximum(ends - start, 1)), axis=1)


def judge(scene_: Scene, found: Found | None) -> str:
    """Say how good an answer is: right, which is within .05 % of the sides of images; wrong; or none, refused.

    An answer with an interval, which names no flag, is refused as well. Letterboxes of whole pixels may be called those
    of fractions: half a pixel of the input.
    """
    size = scene_.sizes[scene_.gt.image]
    text, turn = scene_.planted, ""
    first = text.split("+")[0]
    if first and ":" not in first:
        turn, _, text = text.partition("+")
    truth = put(scene_.gt.xywh, size, text, turn)
    if found is None or found.resizing is None or found.unsure:
        is_same = found is None and np.array_equal(truth, scene_.gt.xywh) and scene_.encoding == "xywh"
        return "right" if is_same else "refused"
    try:
        told = found.resizing.undo(truth, size)
    except Exception:
        return "wrong"
    if found.encoding != scene_.encoding:
        told = found.resizing.undo(_as(truth, scene_.encoding, found.encoding), size)
    true = scene_.gt.xywh
    a, b = (np.concatenate((v[:, :2], v[:, :2] + v[:, 2:]), axis=1) for v in (told, true))
    away = np.abs(a - b) / np.tile(size, 2)
    if away.max() <= 5e-4:
        return "right"
    if {text, str(found.resizing.steps[-1])} == {f"letterbox{px}:{text.partition(':')[2]}" for px in ("", "-px")}:
        return "right"
    return "wrong"


def _as(xywh: Array, encoding: str, other: str) -> Array:
    from jaccard_eval.data.boxtable import to_xywh

    return to_xywh(from_xywh(xywh, encoding), other)


__all__ = ["NOISES", "Resizing", "Scene", "detect", "draw", "judge", "put", "scene"]


GOOD = (
    *("fine", "recall .15", "recall .03", "other images", "too large", "too small", "half a pixel", "a pixel"),
    *("no class right", "classes permuted", "few boxes", "few images", "scores cut", "duplicates"),
)


def draw_good(rng: np.random.Generator, kind: str) -> Scene:
    """Draw predictions that are on the images themselves, however poor they are."""
    sizes, gt, gt_image, label = _objects(rng)
    noise = float(rng.choice(NOISES))
    recall = {"recall .15": 0.15, "recall .03": 0.03}.get(kind)
    boxes, image, classes, score, _ = detect(rng, sizes, gt, gt_image, label, noise, recall)
    n_classes = int(label.max(initial=0)) + 1
    if kind == "other images":
        image = (image + 1) % len(sizes)
    if kind in ("too large", "too small"):
        by = (0.2 if kind == "too large" else -0.15) * boxes[:, 2:]
        boxes = np.concatenate((boxes[:, :2] - by / 2, boxes[:, 2:] + by), axis=1)
    if kind in ("half a pixel", "a pixel"):
        boxes[:, :2] += 0.5 if kind == "half a pixel" else 1.0
    if kind == "no class right":
        classes = (classes + 1) % n_classes
    if kind == "classes permuted":
        classes = rng.permutation(n_classes)[classes]
    kept = np.ones(len(boxes), dtype=bool)
    if kind == "few boxes":
        kept = rng.random(len(boxes)) < 0.05
    if kind == "few images":
        kept = image % 4 == 0
    if kind == "scores cut":
        kept = score > 0.5
    rows = np.flatnonzero(kept)
    if kind == "duplicates":
        rows = np.repeat(rows, 3)
    return scene(sizes, gt, gt_image, label, boxes[rows], image[rows], classes[rows], score[rows], noise=noise)
