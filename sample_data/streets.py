"""The scene of the sample, and what two models see in it. Nothing is written here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

# Class ids as in COCO, which has gaps; YOLO numbers the same names from 0. No cat is in the scene: the models see some.
CATEGORIES = {"person": 1, "bicycle": 2, "car": 3, "cat": 17, "dog": 18}
MISTAKEN_FOR = {"person": "bicycle", "bicycle": "person", "car": "bicycle", "dog": "cat"}
FIRST_IMAGE_ID = 1001
GRID = 4  # steps per pixel that coordinates are rounded to: exact in binary, so every format gives the same numbers

# Picture, width, height, and its objects as "class left top width height", an asterisk marking a crowd region.
SCENE = (
    ("street_01", 640, 480, "car 40 250 210 110; person 300 200 42 124; person 352 206 38 116; dog 410 320 60 44"),
    ("street_02", 640, 480, "car 20 260 150 80; car 180 262 130 76; car 330 268 100 58; bicycle 470 280 90 70"),
    ("street_03", 480, 640, "person 120 180 130 360; bicycle 90 380 220 190; dog 330 500 80 70"),
    ("street_04", 640, 480, "*person 20 150 420 140; person 460 160 60 190; person 540 170 56 180; dog 250 330 90 80"),
    ("street_05", 800, 600, "car 300 340 26 18; car 340 342 22 16; car 372 344 20 14; person 420 330 12 30"),
    ("street_06", 640, 480, "bicycle 60 220 140 110; bicycle 210 224 136 108; person 110 130 60 160"),
    ("street_07", 800, 600, "car 80 200 560 330; person 690 280 70 230"),
    ("street_08", 640, 480, "person 200 240 16 40; person 230 238 15 42; person 258 242 14 38; bicycle 300 250 30 24"),
    ("street_09", 640, 480, "dog 120 260 180 150; dog 330 270 150 130; person 500 120 90 300"),
    ("street_10", 480, 640, "person 60 200 80 220; bicycle 40 300 130 140; car 260 240 190 120; dog 200 470 60 50"),
    ("street_11", 640, 480, "car 30 280 120 66; car 160 282 110 62; person 300 240 28 80; person 336 238 26 82"),
    ("street_12", 640, 480, ""),
)


@dataclass(frozen=True)
class Box:
    """An object or, with a score, a detection; pixels."""

    name: str
    left: float
    top: float
    width: float
    height: float
    crowd: bool = False
    score: float = 1.0


@dataclass(frozen=True)
class Picture:
    """An image of the scene and the boxes in it."""

    number: int
    stem: str
    width: int
    height: int
    boxes: tuple[Box, ...]

    @property
    def file_name(self) -> str:
        """Name of the picture's file."""
        return f"{self.stem}.png"


@dataclass(frozen=True, kw_only=True)
class Model:
    """How a model errs: shares of objects, and the spread of its boxes as a share of their size."""

    name: str
    seed: int
    missed: float
    mistaken: float
    spread: float
    repeated: float
    clutter: int


MODELS = (
    Model(name="better", seed=18, missed=0.06, mistaken=0.05, spread=0.045, repeated=0.10, clutter=8),
    Model(name="worse", seed=21, missed=0.22, mistaken=0.12, spread=0.100, repeated=0.25, clutter=16),
)


def read_scene() -> list[Picture]:
    """Return the pictures of the scene with their objects."""
    return [_read_picture(row, *line) for row, line in enumerate(SCENE)]


def detect(scene: Sequence[Picture], model: Model) -> list[Picture]:
    """Return the pictures with a model's detections instead of the objects, the best first."""
    random = Random(model.seed)
    found: list[list[Box]] = [[] for _ in scene]
    for row, picture in enumerate(scene):
        for one in picture.boxes:
            found[row] += _see_crowd(random, one) if one.crowd else _see(random, model, one)
    for _ in range(model.clutter):
        row = int(random.random() * len(scene))
        found[row].append(_imagine(random, scene[row]))
    return [
        Picture(p.number, p.stem, p.width, p.height, tuple(sorted((_inside(p, b) for b in boxes), key=_by_score)))
        for p, boxes in zip(scene, found, strict=True)
    ]


def _read_picture(row: int, stem: str, width: int, height: int, objects: str) -> Picture:
    boxes = tuple(_read_box(text) for text in objects.split(";") if text)
    return Picture(FIRST_IMAGE_ID + 3 * row, stem, width, height, boxes)


def _read_box(text: str) -> Box:
    name, *numbers = text.split()
    left, top, width, height = map(float, numbers)
    return Box(name.lstrip("*"), left, top, width, height, crowd=name.startswith("*"))


def _see(random: Random, model: Model, one: Box) -> list[Box]:
    """One object as the model sees it: perhaps not at all, perhaps as something else, perhaps twice."""
    if random.random() < model.missed:
        return []
    name = MISTAKEN_FOR[one.name] if random.random() < model.mistaken else one.name
    seen = [_moved(random, model.spread, one, name, 0.0)]
    if random.random() < model.repeated:
        seen.append(_moved(random, 2.5 * model.spread, one, one.name, 0.25))
    return seen


def _moved(random: Random, spread: float, one: Box, name: str, penalty: float) -> Box:
    """Move and stretch a box; the farther, the lower its score."""
    dx, dy, dw, dh = (spread * (random.random() + random.random() - 1.0) * 2 for _ in range(4))
    quality = 0.97 - 1.6 * (abs(dx) + abs(dy) + abs(dw) + abs(dh)) / 2 - penalty - 0.25 * random.random()
    return Box(
        name,
        one.left + dx * one.width,
        one.top + dy * one.height,
        one.width * (1.0 + dw),
        one.height * (1.0 + dh),
        score=max(quality, 0.02 + 0.1 * random.random()),
    )


def _see_crowd(random: Random, crowd: Box) -> list[Box]:
    """Single people in a crowd that nobody outlined one by one."""
    return [
        Box(
            crowd.name,
            crowd.left + share * crowd.width,
            crowd.top + 20,
            40.0,
            110.0,
            score=0.5 + 0.4 * random.random(),
        )
        for share in (0.1, 0.35, 0.6, 0.8)
    ]


def _imagine(random: Random, picture: Picture) -> Box:
    """Something that is not there."""
    names = list(CATEGORIES)
    width, height = 20 + 120 * random.random(), 20 + 120 * random.random()
    left, top = random.random() * (picture.width - width), random.random() * (picture.height - height)
    return Box(names[int(random.random() * len(names))], left, top, width, height, score=0.05 + 0.5 * random.random())


def _inside(picture: Picture, box: Box) -> Box:
    """Cut a box at the picture's edge and round it to the grid, its score to four decimals."""
    left, top = _on_grid(max(box.left, 0.0)), _on_grid(max(box.top, 0.0))
    right = _on_grid(min(box.left + box.width, picture.width))
    bottom = _on_grid(min(box.top + box.height, picture.height))
    return Box(box.name, left, top, right - left, bottom - top, score=round(box.score, 4))


def _on_grid(value: float) -> float:
    return round(value * GRID) / GRID


def _by_score(box: Box) -> float:
    return -box.score
