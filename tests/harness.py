"""Plant mistakes into scenes, follow the fixes that are advised by machine, and see where they lead.

    python tests/harness.py --scenes 300 --seed 7
    python tests/harness.py --seed 7 --scene 123       one scene again, step by step

A scene is drawn with its true number. It is written with mistakes: boxes in another encoding or unit, classes and
images that are numbered or called otherwise, swapped sides, rows twice, scores that are missing or called strangely.
One scene in four is of masks, poses, label maps, or boxes in memory (`other_scenes`).
Each is evaluated by the command line and by the library, in this process; the options of the fixes are added, what is
missing is given, and so on until nothing is advised. Then the number is the right one, or a finding remains that says
why not. More than two stops for one input are a failure, as is a fix that makes a right number wrong. The exit code is
1 if any fails.
"""

import argparse
import collections
import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from other_scenes import Kind, draw, write
from PIL import Image

from jaccard_eval import Evaluator, ReadOptions, evaluate, pixels
from jaccard_eval.cli import COMMAND_TABLE, PROGRAM, streams
from jaccard_eval.errors import JaccardEvalError
from jaccard_eval.findings import DataError, Finding, Severity
from jaccard_eval.fixes import ON, READING, Fix, Keywords, Value

MOST_STOPS = 2
MOST_STEPS = 6
ALIKE = 2e-3  # of AP, where numbers were rounded on their way through a file
NAMES = ("car", "person", "dog", "bicycle", "traffic light", "cat")
ENCODINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # of x, y, width, height
    "xywh": lambda b: b,
    "xyxy": lambda b: np.concatenate((b[:, :2], b[:, :2] + b[:, 2:]), axis=1),
    "cxcywh": lambda b: np.concatenate((b[:, :2] + b[:, 2:] / 2, b[:, 2:]), axis=1),
    "xxyy": lambda b: np.stack((b[:, 0], b[:, 0] + b[:, 2], b[:, 1], b[:, 1] + b[:, 3]), axis=1),
    "yxyx": lambda b: np.stack((b[:, 1], b[:, 0], b[:, 1] + b[:, 3], b[:, 0] + b[:, 2]), axis=1),
}


@dataclass
class Side:
    """Boxes of one side by image and class, as they will be written."""

    image: np.ndarray
    label: np.ndarray
    xywh: np.ndarray
    score: np.ndarray | None = None

    def numbers(self, encoding: str, units: str, sizes: np.ndarray) -> np.ndarray:
        boxes = ENCODINGS[encoding](self.xywh)
        if units == "norm":
            wide = [0, 0, 1, 1] if encoding == "xxyy" else [1, 0, 1, 0] if encoding == "yxyx" else [0, 1, 0, 1]
            boxes = boxes / sizes[self.image][:, wide]
        return boxes


@dataclass
class Scene:
    """What is true, and how it is written."""

    sizes: np.ndarray
    names: tuple[str, ...]
    gt: Side
    pred: Side
    noise: float = 0.0  # of the detector, by the sides of a box
    gt_format: str = "coco"
    pred_format: str = "coco"
    encoding: dict[str, str] = field(default_factory=lambda: {"gt": "", "pred": ""})  # "" is that of the format
    units: dict[str, str] = field(default_factory=lambda: {"gt": "", "pred": ""})
    image_name: Callable[[int], str] = lambda row: f"frame_{row:04}.jpg"
    pred_image_name: Callable[[int], str] = lambda row: f"frame_{row:04}.jpg"
    image_id: Callable[[int], int] = lambda row: 100 + row
    pred_image_id: Callable[[int], int] = lambda row: 100 + row
    class_id: Callable[[int], int] = lambda label: label + 1
    pred_class_id: Callable[[int], int] = lambda label: label + 1
    pred_class_name: Callable[[str], str] = lambda name: name
    score_column: str = "score"
    class_column: str = "class"
    swapped: bool = False
    origin: dict[str, int] = field(default_factory=lambda: {"gt": 0, "pred": 0})
    resized: tuple[float, float] | None = None
    sized: bool = False  # whether images lie next to labels
    mistakes: tuple[str, ...] = ()
    folder: Path = Path()

    def side(self, role: str) -> Side:
        return self.gt if role == "gt" else self.pred


def draw_scene(rng: np.random.Generator) -> Scene:
    """Draw images of several sizes with objects that do not touch, and detections of a fair detector."""
    n_images, n_classes = int(rng.integers(8, 20)), int(rng.integers(2, len(NAMES) + 1))
    shapes = np.array([(640, 480), (500, 375), (1280, 720), (800, 800)])[: rng.integers(1, 5)]
    sizes = shapes[rng.integers(0, len(shapes), n_images)].astype(float)
    rows: list[tuple[int, int, float, float, float, float]] = []
    for image, (width, height) in enumerate(sizes):
        # One object for each cell of a grid: none overlaps another.
        for cell in rng.permutation(9)[: rng.integers(3, 8)]:
            w, h = width / 3 * rng.uniform(0.35, 0.85), height / 3 * rng.uniform(0.35, 0.85)
            x = (cell % 3) * width / 3 + rng.uniform(0, width / 3 - w)
            y = (cell // 3) * height / 3 + rng.uniform(0, height / 3 - h)
            rows.append((image, int(rng.integers(n_classes)), x, y, w, h))
    table = np.array(rows)
    gt = Side(table[:, 0].astype(int), table[:, 1].astype(int), np.round(table[:, 2:], 2))
    found = rng.random(len(table)) < rng.uniform(0.75, 0.97)
    boxes = gt.xywh[found]
    noise = float(rng.choice([0.002, 0.03]))
    boxes = boxes + rng.normal(0, noise, boxes.shape) * np.tile(boxes[:, 2:], 2)
    labels = np.where(rng.random(len(boxes)) < 0.95, gt.label[found], rng.integers(0, n_classes, len(boxes)))
    pred = Side(gt.image[found], labels, boxes, rng.uniform(0.3, 0.99, len(boxes)))
    spurious = rng.integers(0, len(boxes), len(boxes) // 5)
    stray = pred.xywh[spurious] * [1, 1, 0.5, 0.5] + np.append(
        boxes[spurious, 2:] * 0.8, boxes[spurious, 2:] * 0, axis=1
    )
    pred = Side(
        np.concatenate((pred.image, pred.image[spurious])),
        np.concatenate((pred.label, pred.label[spurious])),
        np.concatenate((pred.xywh, stray)),
        np.round(np.concatenate((pred.score, rng.uniform(0.05, 0.6, len(spurious)))), 4),  # type: ignore[list-item]
    )
    corners = np.clip(ENCODINGS["xyxy"](pred.xywh), 0, np.tile(sizes[pred.image], 2))
    pred.xywh = np.round(np.concatenate((corners[:, :2], corners[:, 2:] - corners[:, :2]), axis=1), 2)
    pred = Side(*(part[(pred.xywh[:, 2:] > 2).all(axis=1)] for part in (pred.image, pred.label, pred.xywh, pred.score)))
    return Scene(sizes, NAMES[:n_classes], gt, pred, noise=noise)


# How sides are written


def write_side(scene: Scene, role: str) -> Any:
    """Write one side in its format; return what is given to the tool."""
    side, name = scene.side(role), scene.gt_format if role == "gt" else scene.pred_format
    if scene.origin[role]:
        side = replace(side, xywh=side.xywh + np.array([1, 1, 0, 0]))
    if scene.resized is not None and role == "pred":
        side = replace(side, xywh=side.xywh / np.tile(scene.sizes[side.image], 2) * np.tile(scene.resized, 2))
    return WRITERS[name](scene, side, role)


def write_coco(scene: Scene, side: Side, role: str) -> Path:
    boxes = side.numbers(scene.encoding[role] or "xywh", scene.units[role] or "px", scene.sizes)
    image, label = (scene.image_id, scene.class_id) if role == "gt" else (scene.pred_image_id, scene.pred_class_id)
    rows: list[dict[str, Any]] = [
        {"image_id": image(int(at)), "category_id": label(int(kind)), "bbox": [float(f"{v:.9g}") for v in box]}
        for at, kind, box in zip(side.image, side.label, boxes, strict=True)
    ]
    for number, row in enumerate(rows):
        if side.score is not None:
            row["score"] = float(side.score[number])
        if role == "gt":
            w, h = side.xywh[number, 2:]
            row |= {"id": number + 1, "iscrowd": 0, "area": float(w * h)}
    document: Any = rows
    if role == "gt":
        document = {
            "images": [
                {"id": image(row), "file_name": scene.image_name(row), "width": int(w), "height": int(h)}
                for row, (w, h) in enumerate(scene.sizes)
            ],
            "annotations": rows,
            "categories": [{"id": label(row), "name": name} for row, name in enumerate(scene.names)],
        }
    path = scene.folder / f"{role}.json"
    path.write_text(json.dumps(document))
    return path


CSV_COLUMNS = {"xyxy": "xmin ymin xmax ymax", "xywh": "x y width height", "cxcywh": "cx cy w h"}


def table_of(scene: Scene, side: Side, role: str) -> pd.DataFrame:
    # A wrong encoding is one that the columns do not name.
    named = "xyxy"
    boxes = side.numbers(scene.encoding[role] or named, scene.units[role] or "px", scene.sizes)
    image = scene.image_name if role == "gt" else scene.pred_image_name
    called: Callable[[str], str] = (lambda name: name) if role == "gt" else scene.pred_class_name
    table = pd.DataFrame(
        {
            "image": [image(int(row)) for row in side.image],
            scene.class_column if role == "pred" else "class": [called(scene.names[row]) for row in side.label],
            **dict(zip(CSV_COLUMNS[named].split(), np.round(boxes, 7).T, strict=True)),
        }
    )
    if side.score is not None:
        table[scene.score_column] = side.score
    return table


def write_csv(scene: Scene, side: Side, role: str) -> Path:
    path = scene.folder / f"{role}.csv"
    table_of(scene, side, role).to_csv(path, index=False)
    return path


def write_yolo(scene: Scene, side: Side, role: str) -> Path:
    root = scene.folder / role
    (root / "labels").mkdir(parents=True)
    boxes = side.numbers(scene.encoding[role] or "cxcywh", scene.units[role] or "norm", scene.sizes)
    label = (lambda kind: kind) if role == "gt" else (lambda kind: scene.pred_class_id(kind) - 1)
    name = scene.image_name if role == "gt" else scene.pred_image_name
    for row in range(len(scene.sizes)):
        lines = []
        for at in np.flatnonzero(side.image == row).tolist():
            tail = [] if side.score is None else [f"{side.score[at]:.6g}"]
            lines.append(" ".join([str(label(int(side.label[at]))), *(f"{v:.8g}" for v in boxes[at]), *tail]))
        (root / "labels" / f"{Path(name(row)).stem}.txt").write_text("".join(f"{line}\n" for line in lines))
    if scene.sized:
        _write_images(scene, root / "images", name)
    if role == "gt":
        (root / "classes.txt").write_text("".join(f"{name}\n" for name in scene.names))
    return root / "labels"


def _write_images(scene: Scene, folder: Path, name: Callable[[int], str]) -> Path:
    """Write images without content, which have a size."""
    folder.mkdir(exist_ok=True)
    for row, (w, h) in enumerate(scene.sizes.astype(int).tolist()):
        Image.new("1", (w, h)).save(folder / f"{Path(name(row)).stem}.png")
    return folder


def write_frame(scene: Scene, side: Side, role: str) -> pd.DataFrame:
    return table_of(scene, side, role)


WRITERS = {"coco": write_coco, "csv": write_csv, "yolo": write_yolo, "frame": write_frame}


# Mistakes: each changes how a scene is written


def other_encoding(scene: Scene, rng: np.random.Generator) -> str:
    role, kind = str(rng.choice(["gt", "pred"])), str(rng.choice(["xyxy", "cxcywh", "yxyx", "xxyy", "xywh"]))
    written = {"coco": "xywh", "yolo": "cxcywh"}.get(scene.gt_format if role == "gt" else scene.pred_format, "xyxy")
    scene.encoding[role] = "xyxy" if kind == written == "xywh" else "xywh" if kind == written else kind
    return f"{role} boxes as {scene.encoding[role]}"


def other_units(scene: Scene, rng: np.random.Generator) -> str:
    role = str(rng.choice(["gt", "pred"]))
    scene.units[role] = "px" if (scene.gt_format if role == "gt" else scene.pred_format) == "yolo" else "norm"
    return f"{role} boxes in {scene.units[role]}"


def other_class_ids(scene: Scene, rng: np.random.Generator) -> str:
    if scene.pred_format not in ("coco", "yolo"):
        scene.pred_class_name = [str.upper, lambda name: name.replace(" ", "_"), lambda name: f"{name} "][
            rng.integers(3)
        ]
        return "classes spelt otherwise"
    shift = int(rng.choice([-1, 1]))
    scene.pred_class_id = lambda label: label + 1 + shift
    if scene.pred_format == "yolo" and shift < 0:
        scene.pred_class_id = lambda label: label + 2
    return "classes counted from another number"


def sparse_class_ids(scene: Scene, rng: np.random.Generator) -> str:
    ids = np.sort(rng.choice(np.arange(3, 90), len(scene.names), replace=False)).tolist()
    scene.class_id = lambda label: int(ids[label])
    scene.pred_class_id = lambda label: label
    return "classes as indices, ids with gaps"


def other_image_names(scene: Scene, rng: np.random.Generator) -> str:
    ways: list[Callable[[int], str]] = [
        lambda row: f"frame_{row:04}.png",
        lambda row: f"frame_{row:04}",
        lambda row: f"images/val/frame_{row:04}.jpg",
        lambda row: f"FRAME_{row:04}.JPG",
        lambda row: f"data\\val\\frame_{row:04}.jpg",
    ]
    scene.pred_image_name = ways[rng.integers(len(ways))]
    scene.pred_image_id = lambda row: 101 + row
    return "images called or numbered otherwise"


def swapped_sides(scene: Scene, rng: np.random.Generator) -> str:
    scene.swapped = True
    return "sides swapped"


def odd_score_column(scene: Scene, rng: np.random.Generator) -> str:
    scene.score_column = str(rng.choice(["how_sure", "p", "col5"]))
    return "scores in a column of another name"


def no_scores(scene: Scene, rng: np.random.Generator) -> str:
    scene.pred = replace(scene.pred, score=None)
    return "no scores"


def repeated_rows(scene: Scene, rng: np.random.Generator) -> str:
    pred = scene.pred
    scene.pred = Side(*(None if part is None else np.concatenate((part, part)) for part in vars(pred).values()))  # type: ignore[arg-type]
    return "predictions written twice"


def counted_from_one(scene: Scene, rng: np.random.Generator) -> str:
    # A pixel is not seen where a detector is less exact, nor in fractions, nor told from what a resize leaves over.
    if scene.noise > 0.01 or scene.resized is not None or "yolo" in (scene.gt_format, scene.pred_format):
        return "pixels counted from 0"
    scene.origin["gt" if rng.random() < 0.5 else "pred"] = 1
    return "pixels counted from 1"


def resized_images(scene: Scene, rng: np.random.Generator) -> str:
    if scene.gt_format != "coco" or scene.pred_format == "yolo":  # sizes are what shows it
        return "images of their own size"
    side = float(rng.choice([416, 512, 640, 1024]))
    scene.origin = {"gt": 0, "pred": 0}
    scene.resized = (side, side)
    return f"boxes of images stretched to {side:g}"


def foreign_images(scene: Scene, rng: np.random.Generator) -> str:
    """Ground truth of some of the images only."""
    kept = scene.gt.image >= len(scene.sizes) // 4
    scene.gt = Side(scene.gt.image[kept], scene.gt.label[kept], scene.gt.xywh[kept])
    return "ground truth of fewer images"


MISTAKES: tuple[Callable[[Scene, np.random.Generator], str], ...] = (
    other_encoding,
    other_units,
    other_class_ids,
    sparse_class_ids,
    other_image_names,
    swapped_sides,
    odd_score_column,
    no_scores,
    repeated_rows,
    counted_from_one,
    resized_images,
)


def plant(seed: int, number: int, folder: Path) -> Scene:
    """Draw a scene and up to two mistakes; one in six has none."""
    rng = np.random.default_rng([seed, number])
    scene = draw_scene(rng)
    scene.folder = folder
    scene.gt_format = str(rng.choice(["coco", "coco", "csv", "yolo", "frame"]))
    scene.pred_format = str(
        rng.choice(["coco", "csv", "yolo", "frame"] if scene.gt_format == "coco" else ["csv", "yolo", "frame"])
    )
    n = int(rng.choice([0, 1, 1, 1, 2, 2]))
    # Sizes that are missing are a mistake as well.
    scene.sized = n == 2
    scene.mistakes = tuple(MISTAKES[row](scene, rng) for row in rng.permutation(len(MISTAKES))[:n].tolist())
    return scene


# Following


@dataclass
class Run:
    """How one run ended: AP, or why there is none."""

    ap: float | None
    findings: tuple[Finding, ...]
    message: str = ""

    @property
    def is_stop(self) -> bool:
        return self.ap is None


def by_command(
    gt: Any, pred: Any, options: Mapping[str, Value], *, command: str = "evaluate", metric: str = "AP"
) -> Run:
    """Run the command line in this process, as far as its findings."""
    given = [str(gt), str(pred)]
    words = [word for name, value in options.items() for word in _words(name, value)]
    out, err = io.StringIO(), io.StringIO()
    argv = [command, *given, *words, "--json", "--isolated"]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            streams.prepare()
            with COMMAND_TABLE.make_context(PROGRAM, argv) as context:
                COMMAND_TABLE.invoke(context)
            streams.flush_result()
    except DataError as error:
        return Run(None, error.findings, str(error))
    except (JaccardEvalError, SystemExit, Exception) as error:
        return Run(None, (), f"{type(error).__name__}: {error}")
    document = json.loads(out.getvalue())
    from jaccard_eval.findings import parse_finding

    return Run(document["metrics"][metric], tuple(map(parse_finding, document["warnings"])))


def _words(name: str, value: Value) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    return [flag] if value == ON else [flag, str(value)]


def by_library(
    gt: Any,
    pred: Any,
    options: Mapping[str, Value],
    *,
    verb: Callable[..., Any] = evaluate,
    metric: str = "AP",
    **rules: Any,
) -> Run:
    """Call a verb with the keywords that the wording gives."""
    import inspect as signatures

    wording = Keywords(frozenset(signatures.signature(verb).parameters))
    keywords = eval(f"dict({wording.phrase(options)})", {"ReadOptions": ReadOptions, "dict": dict}) if options else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = verb(gt, pred, **rules, **keywords)
    except DataError as error:
        return Run(None, error.findings, str(error))
    except JaccardEvalError as error:
        return Run(None, (), f"{type(error).__name__}: {error}")
    return Run(result[metric], result.findings)


def by_evaluator(gt: Any, pred: Any, options: Mapping[str, Value]) -> Run:
    """Update an `Evaluator` with dicts, which are changed as its advice has it, and compute."""
    pairs = [pair.split("=") for pair in str(options.get("class_map", "")).split(",") if pair]
    sides = {"gt": gt, "pred": pred}
    for role, batches in sides.items():
        box = options.get(f"{role}_box")
        sides[role] = [batch | ({} if box is None else {"encoding": box}) for batch in batches]
    for batch in sides["pred"] if pairs else ():
        to = {int(one): int(other) for one, other in pairs}
        batch["labels"] = np.array([to.get(label, label) for label in batch["labels"].tolist()], dtype=int)
    evaluator = Evaluator()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluator.update(range(len(gt)), sides["pred"], sides["gt"])
            result = evaluator.compute()
    except DataError as error:
        return Run(None, error.findings, str(error))
    except JaccardEvalError as error:
        return Run(None, (), f"{type(error).__name__}: {error}")
    return Run(result["AP"], result.findings)


class Follower:
    """Takes the fixes of a run, and does what they ask for."""

    def __init__(self, scene: Scene, truth: Scene, run: Callable[[Any, Any, Mapping[str, Value]], Run]) -> None:
        self.scene, self.truth, self.run = scene, truth, run
        self.options: dict[str, Value] = {}
        self.steps: list[str] = []
        self.codes: list[str] = []
        self.stops = 0
        self.inputs = [write_side(scene, "gt"), write_side(scene, "pred")]
        if scene.swapped:
            self.inputs.reverse()

    def follow(self) -> Run:
        """Run, and run again with what is advised, until nothing is."""
        done: Run | None = None
        for _ in range(MOST_STEPS):
            done = self.run(*self.inputs, self.options)
            self.stops += done.is_stop
            told = f"AP {done.ap}" if done.ap is not None else "stop"
            self.steps.append(
                f"{self.options}: {told}; "
                + " | ".join(
                    f"{one.severity}[{one.code}]: {one.message}"
                    for one in done.findings
                    if one.severity is not Severity.NOTE
                )
                + done.message * (not done.findings)
            )
            before = dict(self.options), list(map(id, self.inputs))
            findings = [one for one in done.findings if one.severity is Severity.ERROR] or [
                one for one in done.findings if one.severity is Severity.WARNING
            ]
            for finding in findings:
                if finding.fix is not None:
                    self.codes.append(finding.code)
                    self.apply(finding.fix)
            if (dict(self.options), list(map(id, self.inputs))) == before:
                return done
        assert done is not None
        self.steps.append("no end")
        return done

    def apply(self, fix: Fix) -> None:
        """Do what a fix asks for: a reading as it is, what is missing as far as the scene knows it."""
        ids = self.scene.class_id if self.scene.gt_format == "coco" else None
        for name, value in fix.options.items():
            # Of several ways to name classes, the one that always works.
            if name.endswith("_names") and "class_map" in fix.options:
                continue
            if name == "class_map" and value is None and ids is None and self.scene.pred_format in ("coco", "yolo"):
                own = self.scene.pred_class_id if self.scene.pred_format == "coco" else self._yolo_class
                self.options[name] = ",".join(f"{own(row)}={called}" for row, called in enumerate(self.scene.names))
            elif fix.kind == READING:
                self.options[name] = value
                if value == "":
                    del self.options[name]
            elif name == "gt" and value:
                self.inputs.reverse()
            elif name == "assume_score":
                if self.scene.pred.score is None:
                    self.scene.pred = replace(
                        self.scene.pred, score=np.resize(self.truth.pred.score, len(self.scene.pred.label))
                    )
                    self._write("pred")
            elif name.endswith("_columns"):
                self.options[name] = self._columns(name, value)
            elif name.endswith("images") and value is None:
                self.options[name] = str(self._images())
            elif name.endswith("_names") and value is None:
                names = self.scene.folder / "names.txt"
                names.write_text("".join(f"{one}\n" for one in self.scene.names))
                self.options[name] = str(names)
            elif name.endswith(("_units", "_box")):
                role, _, what = name.partition("_")
                right = self.scene.units[role] if what == "units" else self.scene.encoding[role]
                if right:
                    self.options[name] = right

    def _yolo_class(self, label: int) -> int:
        return self.scene.pred_class_id(label) - 1

    def _write(self, role: str) -> None:
        shutil.rmtree(self.scene.folder / role, ignore_errors=True)
        at = int((role == "pred") != self.scene.swapped)
        self.inputs[at] = write_side(self.scene, role)

    def _columns(self, name: str, value: Value) -> Value:
        choices = value if isinstance(value, tuple) else (value,)
        right = [choice for choice in choices if choice and choice.endswith(f"={self.scene.score_column}")]
        return right[0] if right else f"score={self.scene.score_column}"

    def _images(self) -> Path:
        return _write_images(self.scene, self.scene.folder / "images", "frame_{:04}.png".format)


class OtherFollower(Follower):
    """Takes the readings that are advised of a scene that is not a table of boxes; what is missing stays so."""

    def __init__(self, inputs: list[Any], run: Callable[[Any, Any, Mapping[str, Value]], Run]) -> None:
        self.run, self.inputs = run, inputs
        self.options, self.steps, self.codes, self.stops = {}, [], [], 0

    def apply(self, fix: Fix) -> None:
        """Read otherwise, or give the sides in the other order."""
        for name, value in fix.options.items():
            if fix.kind == READING and value == "":
                del self.options[name]
            elif fix.kind == READING:
                self.options[name] = value
            elif name == "gt" and value:
                self.inputs.reverse()
            elif name == "pred_box" and self.run is by_evaluator:
                self.options[name] = "xywh"  # which is what such boxes are


def runs_of(kind: Kind) -> dict[str, Callable[[Any, Any, Mapping[str, Value]], Run]]:
    """Return what evaluates a kind of scene, by its name."""
    if kind.verb == "Evaluator":
        return {"Evaluator": by_evaluator}
    rules = {
        name: [float(part) for part in value.split(",")] if name == "sigmas" else value
        for name, value in kind.options.items()
    }
    verb = pixels if kind.verb == "pixels" else evaluate

    def command(gt: Any, pred: Any, options: Mapping[str, Value]) -> Run:
        return by_command(gt, pred, {**kind.options, **options}, command=kind.verb, metric=kind.metric)

    return {"command line": command, "library": partial(by_library, verb=verb, metric=kind.metric, **rules)}


def check_other(seed: int, number: int, *, verbose: bool = False) -> tuple[int, list[str], dict[str, int]]:
    """Judge a scene of another kind, as `check` does."""
    faults, codes, judged = [], collections.Counter[str](), 0
    kind, right_sides, sides, planted = draw(np.random.default_rng([seed, number]))
    runs = runs_of(kind)
    with tempfile.TemporaryDirectory(prefix="harness-") as place:
        options = {"ignore": "255"} if kind.verb == "pixels" else {}
        right = list(runs.values())[-1](*write(right_sides, Path(place)), options)
    if right.ap is None:
        return 1, [f"FAILED scene {number}: {planted[0]} as they are right: {right.message}"], {}
    for name, run in runs.items():
        with tempfile.TemporaryDirectory(prefix="harness-") as place:
            follower = OtherFollower(write(sides, Path(place)), run)
            fault = judge(follower, right.ap)
        judged += 1
        codes.update(follower.codes)
        if fault or verbose:
            head = f"scene {number} by {name}: {'; '.join(planted)}: {fault or 'right'} (right: {right.ap:.4f})"
            faults.append(("FAILED " if fault else "") + "\n  ".join([head, *follower.steps]))
    return judged, faults, dict(codes)


def judge(follower: Follower, right: float) -> str:
    """Return what is wrong with how it ended; empty where nothing is."""
    done = follower.follow()
    if "no end" in follower.steps:
        return "followed, it does not end"
    if follower.stops > MOST_STOPS:
        return f"{follower.stops} stops"
    if done.message.startswith(("Exception", "TypeError", "NoSuchOption")) or (
        "Error: " in done.message and not done.findings and "UsageError" not in done.message
    ):
        return f"cannot be followed: {done.message}"
    if done.ap is not None and abs(done.ap - right) <= ALIKE:
        return ""
    # An offset that costs little is a note.
    why = [one for one in done.findings if one.severity is not Severity.NOTE or one.code == "box-offset"]
    if not why and not done.message:
        return f"AP {done.ap} for {right}, and nothing says why"
    if any(one.fix is not None and one.fix.kind == READING for one in why):
        return f"AP {done.ap} for {right}, and a reading is still advised"
    return ""


def check(seed: int, number: int, *, verbose: bool = False) -> tuple[int, list[str], dict[str, int]]:
    """Judge a scene by the command line and by the library: how often, what is wrong, and the codes with a fix."""
    if number % 4 == 3:
        return check_other(seed, number, verbose=verbose)
    faults, codes, judged = [], collections.Counter[str](), 0
    clean = draw_scene(np.random.default_rng([seed, number]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # In tables whose columns say what they are.
        right = evaluate(table_of(clean, clean.gt, "gt"), table_of(clean, clean.pred, "pred"))["AP"]
    for name, run in (("command line", by_command), ("library", by_library)):
        with tempfile.TemporaryDirectory(prefix="harness-") as place:
            scene = plant(seed, number, Path(place))
            if name == "command line" and "frame" in (scene.gt_format, scene.pred_format):
                continue
            follower = Follower(scene, clean, run)
            fault = judge(follower, right)
        judged += 1
        codes.update(follower.codes)
        if fault or verbose:
            planted = f"{scene.gt_format} and {scene.pred_format}; {', '.join(scene.mistakes) or 'no mistake'}"
            head = f"scene {number} by {name}: {planted}: {fault or 'right'} (right: {right:.4f})"
            faults.append(("FAILED " if fault else "") + "\n  ".join([head, *follower.steps]))
    return judged, faults, dict(codes)


def main() -> int:
    """Judge scenes, in as many processes as there are processors."""
    parser = argparse.ArgumentParser(description="Follow the fixes of planted scenes; see the head of this file.")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--scenes", type=int, default=3000)
    parser.add_argument("--scene", type=int, help="judge this one only, and print its steps")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    print(f"harness: seed {options.seed}", flush=True)
    if options.scene is not None:
        _, told, _ = check(options.seed, options.scene, verbose=True)
        print(*told, sep="\n")
        return int(any(text.startswith("FAILED") for text in told))
    began, judged, failed, codes = time.monotonic(), 0, 0, collections.Counter[str]()
    with ProcessPoolExecutor(options.jobs) as pool:
        for n, faults, found in pool.map(partial(check, options.seed), range(options.scenes), chunksize=10):
            judged, failed, codes = judged + n, failed + len(faults), codes + collections.Counter(found)
            for fault in faults:
                print(fault, flush=True)
    listed = ", ".join(f"{code} {n}" for code, n in sorted(codes.items()))
    seconds = time.monotonic() - began
    counted = f"{options.scenes} scenes, {judged} times followed in {seconds:.0f} s, {failed} failed"
    print(f"harness: seed {options.seed}, {counted}")
    print(f"harness: fixes followed: {listed}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
