"""How many planted label errors `jaccard-eval labels` finds: right among the first n of each kind, beside other tools.

Annotations are damaged at known places: objects removed (missing), given another class, moved (box), added where
nothing is (spurious, of a class and size that the set has) and doubled. The detections know nothing of it. Drawn sets
have scenes, in which some classes keep company; detectors differ in recall, noise and how much their scores mean.
Sides are exchanged in poses of persons that are turned by any angle, with a set of their own.

    python benchmarks/labels.py [--draws 3] [--real GT.json PRED.json N]

hotcoco and cleanlab are asked too where they can be imported.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval import BoxTable, labels
from jaccard_eval.similarity.keypoints import COCO_FLIPPED, Keypoints

KINDS = ("missing", "class", "box", "spurious", "duplicate")
SIDE = 640.0


@dataclass
class Boxes:
    image: np.ndarray
    label: np.ndarray
    xyxy: np.ndarray
    score: np.ndarray

    def take(self, rows: np.ndarray) -> Boxes:
        return Boxes(self.image[rows], self.label[rows], self.xyxy[rows], self.score[rows])

    @classmethod
    def joined(cls, parts: list[Boxes]) -> Boxes:
        names = ("image", "label", "xyxy", "score")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def iou(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    common = np.maximum(high - low, 0).prod(-1)
    area = [(x[:, 2:] - x[:, :2]).prod(-1) for x in (a, b)]
    return np.asarray(common / (area[0][:, None] + area[1][None] - common + 1e-12))


def draw_truth(rng: np.random.Generator, n_images: int = 1000, k: int = 24, scenes: int = 6) -> Boxes:
    """Draw images of scenes; each scene has classes of its own, and each class a usual size."""
    mixture = rng.dirichlet(np.full(k, 0.15), size=scenes) * 0.9 + 0.1 / k
    usual = np.exp(rng.uniform(np.log(24), np.log(190), size=k))
    parts = []
    for image in range(n_images):
        n = 1 + rng.poisson(7.1)
        label = rng.choice(k, size=n, p=mixture[rng.integers(scenes)])
        kept: list[np.ndarray] = []
        for c in label:
            for _ in range(10):
                side = usual[c] * np.exp(rng.normal(0, 0.45, 2)) * np.array([1.0, 1.0])
                side = np.clip(side, 10, 420)
                at = rng.uniform(0, SIDE - side)
                box = np.concatenate((at, at + side))
                if not kept or iou(box[None], np.array(kept)).max() < 0.35:
                    break
            kept.append(box)
        parts.append(Boxes(np.full(n, image), label, np.array(kept), np.ones(n)))
    return Boxes.joined(parts)


@dataclass
class Detector:
    recall: float
    noise: float = 0.06  # of edges, in sides
    wrong: float = 0.04  # share of found objects with another class
    false: float = 0.8  # false detections an image
    sure: float = 3.0  # how far scores of right and false ones are apart
    squeeze: tuple[float, float] | None = None
    pairs: float = 0.0  # share of exchanges between paired classes
    by_size: bool = False  # whether scores depend on size and class
    ghosts: int = 0  # classes that are seen surely where nothing is


DETECTORS = {
    "A recall .88, sure where right": Detector(0.88),
    "B as A, all scores .90-.99": Detector(0.88, squeeze=(0.9, 0.99)),
    "C recall .6, many false": Detector(0.6, wrong=0.15, false=2.5, noise=0.1, sure=1.6),
    "D half of the classes exchanged": Detector(0.88, pairs=0.25),
    "E calibrated by size and class": Detector(
        0.7, noise=0.09, wrong=0.06, false=2.0, sure=1.6, by_size=True, ghosts=8
    ),
}


def detect(truth: Boxes, how: Detector, rng: np.random.Generator, k: int) -> Boxes:
    """Draw what a detector sees of the true objects."""
    side = truth.xyxy[:, 2:] - truth.xyxy[:, :2]
    small = np.sqrt(side.prod(1)) < 32
    found = rng.random(len(truth.label)) < how.recall - np.where(small, 0.15, -0.02)
    quality = rng.beta(2, 2, len(truth.label))  # how plain an object is: the same for its score and its place
    seen = truth.take(found)
    side, quality, small = side[found], quality[found], small[found]
    edges = rng.normal(0, 1, (len(side), 4)) * how.noise * (1.4 - quality)[:, None] * np.tile(side, 2)
    label = seen.label.copy()
    slips = rng.random(len(label)) < how.wrong
    label[slips] = rng.integers(0, k, slips.sum())
    if how.pairs:
        swaps = (seen.label < k // 2) & (rng.random(len(label)) < how.pairs)
        label[swaps] = seen.label[swaps] ^ 1
    is_slip = slips & (label != seen.label)
    odds = how.sure * (0.6 + quality) * np.where(is_slip, 0.35, 1.0) - 1.0 + rng.normal(0, 0.5, len(label))
    parts = [Boxes(seen.image, label, seen.xyxy + edges, odds)]
    n_images = int(truth.image.max()) + 1
    n = rng.poisson(how.false * n_images)
    like = rng.integers(0, len(truth.label), n)
    size = truth.xyxy[like, 2:] - truth.xyxy[like, :2]
    at = rng.uniform(0, np.maximum(SIDE - size, 1))
    wrong = (
        rng.integers(0, k, n)
        if not how.ghosts
        else np.where(rng.random(n) < 0.5, rng.integers(0, how.ghosts, n), rng.integers(0, k, n))
    )
    surely = (wrong < how.ghosts) if how.ghosts else np.zeros(n, bool)
    parts.append(
        Boxes(
            rng.integers(0, n_images, n),
            wrong,
            np.hstack((at, at + size)),
            rng.normal(-1.8, 0.9, n) + np.where(surely, 3.0, 0.0),
        )
    )
    seen = Boxes.joined(parts)
    if how.by_size:
        area = np.sqrt((seen.xyxy[:, 2:] - seen.xyxy[:, :2]).clip(1).prod(1))
        seen.score = seen.score + 1.2 * np.log(area / 64) + 0.8 * np.sin(seen.label * 1.7)
    score = 1 / (1 + np.exp(-seen.score))
    if how.squeeze:
        score = how.squeeze[0] + (how.squeeze[1] - how.squeeze[0]) * score
    seen.score = np.round(score, 4)
    seen.xyxy = np.sort(seen.xyxy.reshape(-1, 2, 2), axis=1).reshape(-1, 4)
    return seen


@dataclass
class Planted:
    boxes: Boxes  # the damaged annotations
    # Of each kind: row in the damaged annotations; of what is missing, the boxes that are gone.
    rows: dict[str, set[int]]
    gone: Boxes
    was: dict[int, int]  # class before, of those with another


def damage(truth: Boxes, n: int, rng: np.random.Generator, k: int, doubled: int | None = None) -> Planted:
    """Plant n errors of each kind in annotations."""
    chosen = rng.permutation(len(truth.label))[: 3 * n + (doubled or n)]
    gone, other, moved, twice = np.split(chosen, [n, 2 * n, 3 * n])
    boxes = Boxes(truth.image, truth.label.copy(), truth.xyxy.copy(), truth.score)
    was = {}
    present = np.unique(truth.label)
    for row in other:
        was[int(row)] = int(boxes.label[row])
        boxes.label[row] = rng.choice(present[present != boxes.label[row]])
    for row in moved:
        # To an IoU of .35 to .75: one or two edges are off, as a hand slips, or the box lies beside.
        own, goal = truth.xyxy[row], rng.uniform(0.35, 0.75)
        for _ in range(200):
            side = np.tile(own[2:] - own[:2], 2)
            step = own + rng.normal(0, 0.3, 4) * side * (rng.random(4) < 0.6)
            if (step[2:] > step[:2] + 2).all() and abs(iou(step[None], own[None])[0, 0] - goal) < 0.03:
                boxes.xyxy[row] = step
                break
    added: list[Boxes] = []
    while len(added) < n:
        image, like = rng.choice(truth.image), rng.integers(len(truth.label))
        side = truth.xyxy[like, 2:] - truth.xyxy[like, :2]
        at = rng.uniform(0, np.maximum(SIDE - side, 1))
        box = np.concatenate((at, at + side))
        if iou(box[None], truth.xyxy[truth.image == image]).max(initial=0) < 0.1:
            added.append(Boxes(np.array([image]), truth.label[[like]], box[None], np.ones(1)))
    copies = truth.take(twice)
    side = np.tile(copies.xyxy[:, 2:] - copies.xyxy[:, :2], 2)
    copies.xyxy = copies.xyxy + rng.normal(0, 0.02, copies.xyxy.shape) * side
    kept = np.setdiff1d(np.arange(len(truth.label)), gone)
    at = {int(row): place for place, row in enumerate(kept)}
    whole = Boxes.joined([boxes.take(kept), *added, copies])
    m = len(kept)
    rows = {
        "class": {at[int(row)] for row in other},
        "box": {at[int(row)] for row in moved},
        "spurious": set(range(m, m + n)),
        # Either of the two may go.
        "duplicate": set(range(m + n, len(whole.label))) | {at[int(row)] for row in twice},
    }
    return Planted(whole, rows, truth.take(gone), {at[row]: label for row, label in was.items()})


def table(boxes: Boxes, *, scored: bool, names: list[str]) -> BoxTable:
    score = boxes.score if scored else None
    return BoxTable.from_arrays(boxes.image, boxes.label, boxes.xyxy, score=score, names=names)


def right_among(
    result: Any, planted: Planted, n: int, names: list[str], image_of: Callable[[str], int]
) -> dict[str, int]:
    """Count what is right among the first n suspects of each kind; a class is right with the right suggestion."""
    found = dict.fromkeys(KINDS, 0)
    for kind in KINDS:
        listed = [suspect for suspect in result.suspects if suspect.kind == kind][:n]
        used: set[int] = set()
        for suspect in listed:
            if kind == "missing":
                box = np.array([[suspect.xmin, suspect.ymin, suspect.xmax, suspect.ymax]])
                same = (planted.gone.image == image_of(suspect.image)) & (
                    planted.gone.label == names.index(suspect.class_name)
                )
                rows = np.flatnonzero(same)
                overlap = iou(box, planted.gone.xyxy[rows])[0] if len(rows) else np.zeros(0)
                hit = len(rows) and overlap.max() >= 0.5 and int(rows[overlap.argmax()]) not in used
                used |= {int(rows[overlap.argmax()])} if hit else set()
                found[kind] += bool(hit)
            elif suspect.row in planted.rows[kind]:
                found[kind] += kind != "class" or suspect.suggested == names[planted.was[suspect.row]]
    return found


def by_raw_score(planted: Planted, seen: Boxes, n: int) -> dict[str, int]:
    """Count the same for the obvious way: surest unmatched detection, 1 - IoU, least score of what is near."""
    gt, order = planted.boxes, np.argsort(-seen.score, kind="stable")
    taken, best = np.zeros(len(gt.label), bool), []
    cross: list[tuple[float, int, int]] = []
    nothing: list[tuple[float, int]] = []
    off: list[tuple[float, int]] = []
    of_image = {image: np.flatnonzero(gt.image == image) for image in np.unique(gt.image)}
    near = np.zeros(len(gt.label))
    for det in order:
        rows = of_image.get(seen.image[det], np.zeros(0, int))
        overlap = iou(seen.xyxy[[det]], gt.xyxy[rows])[0] if len(rows) else np.zeros(0)
        near[rows] = np.maximum(near[rows], overlap)
        same = (gt.label[rows] == seen.label[det]) & ~taken[rows]
        if (same & (overlap >= 0.5)).any():
            row = rows[np.where(same, overlap, -1).argmax()]
            taken[row] = True
            off.append((1 - float(overlap[np.where(same, overlap, -1).argmax()]), int(row)))
        elif (overlap >= 0.5).any():
            cross.append((float(seen.score[det]), int(rows[overlap.argmax()]), int(seen.label[det])))
        else:
            nothing.append((float(seen.score[det]), int(det)))
    cross = [item for item in cross if not taken[item[1]]]
    gone = planted.gone
    hits = 0
    for _, det in nothing[:n]:
        rows = np.flatnonzero((gone.image == seen.image[det]) & (gone.label == seen.label[det]))
        hits += bool(len(rows)) and iou(seen.xyxy[[det]], gone.xyxy[rows]).max() >= 0.5
    alone = np.argsort(near, kind="stable")[:n]
    best = [row for _, row in sorted(off, reverse=True)[:n]]
    return {
        "missing": int(hits),
        "class": sum(row in planted.rows["class"] and planted.was[row] == label for _, row, label in cross[:n]),
        "box": sum(row in planted.rows["box"] for row in best),
        "spurious": sum(int(row) in planted.rows["spurious"] for row in alone),
        "duplicate": 0,
    }


def as_coco(boxes: Boxes, names: list[str], *, scored: bool) -> Any:
    rows = [
        {
            "id": row + 1, "image_id": int(boxes.image[row]) + 1, "category_id": int(boxes.label[row]) + 1,
            "iscrowd": 0, "bbox": [float(x0), float(y0), float(x1 - x0), float(y1 - y0)],
            "area": float((x1 - x0) * (y1 - y0)),
        } | ({"score": float(boxes.score[row])} if scored else {})
        for row, (x0, y0, x1, y1) in enumerate(boxes.xyxy)
    ]  # fmt: skip
    if scored:
        return rows
    images = [
        {"id": k + 1, "width": int(SIDE), "height": int(SIDE), "file_name": f"{k}.jpg"}
        for k in range(int(boxes.image.max()) + 1)
    ]
    return {
        "images": images,
        "annotations": rows,
        "categories": [{"id": k + 1, "name": name} for k, name in enumerate(names)],
    }


def by_hotcoco(planted: Planted, seen: Boxes, n: int, names: list[str]) -> dict[str, int] | None:
    """Count the same for hotcoco's list of label errors; None without hotcoco."""
    try:
        import hotcoco
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        gt_path, pred_path = Path(folder) / "gt.json", Path(folder) / "pred.json"
        gt_path.write_text(json.dumps(as_coco(planted.boxes, names, scored=False)))
        pred_path.write_text(json.dumps(as_coco(seen, names, scored=True)))
        gt = hotcoco.COCO(str(gt_path))
        run = hotcoco.COCOeval(gt, gt.load_res(str(pred_path)), "bbox")
        run.evaluate()
        errors = run.image_diagnostics(iou_thr=0.5, score_thr=0.5)["label_errors"]
    found = dict.fromkeys(KINDS, 0)
    for kind, word in (("missing", "missing_annotation"), ("class", "wrong_label")):
        for error in [error for error in errors if error["type"] == word][:n]:
            det = int(error["dt_id"]) - 1
            if kind == "missing":
                gone = planted.gone
                rows = np.flatnonzero((gone.image == seen.image[det]) & (gone.label == seen.label[det]))
                found[kind] += bool(len(rows)) and bool(iou(seen.xyxy[[det]], gone.xyxy[rows]).max() >= 0.5)
            else:
                row = int(error["gt_id"]) - 1
                found[kind] += row in planted.rows["class"] and planted.was[row] == int(seen.label[det])
    return found


def by_cleanlab(planted: Planted, seen: Boxes, n: int, k: int) -> dict[str, int] | None:
    """Count the same for cleanlab's worst boxes of each kind; None without cleanlab."""
    try:
        from cleanlab.object_detection import rank
    except ImportError:
        return None
    gt, n_images = planted.boxes, int(planted.boxes.image.max()) + 1
    of_image = [np.flatnonzero(gt.image == image) for image in range(n_images)]
    dets = [[np.flatnonzero((seen.image == image) & (seen.label == c)) for c in range(k)] for image in range(n_images)]
    truth = [{"bboxes": gt.xyxy[rows], "labels": gt.label[rows]} for rows in of_image]
    preds = [
        np.array([np.hstack((seen.xyxy[rows], seen.score[rows, None])) for rows in image] + [None], dtype=object)[:-1]
        for image in dets
    ]
    how = {"high_probability_threshold": 0.5}
    found = dict.fromkeys(KINDS, 0)
    over = rank.compute_overlooked_box_scores(labels=truth, predictions=preds, **how)
    flat = [
        (value, int(det))
        for values, image in zip(over, dets, strict=True)
        for value, det in zip(values, np.concatenate(image), strict=True)
        if not np.isnan(value)
    ]
    for _, det in sorted(flat)[:n]:
        rows = np.flatnonzero((planted.gone.image == seen.image[det]) & (planted.gone.label == seen.label[det]))
        found["missing"] += bool(len(rows)) and bool(iou(seen.xyxy[[det]], planted.gone.xyxy[rows]).max() >= 0.5)
    for kind, made in (
        ("class", rank.compute_swap_box_scores(labels=truth, predictions=preds, **how)),
        ("box", rank.compute_badloc_box_scores(labels=truth, predictions=preds)),
    ):
        worst = sorted(
            (value, int(row))
            for values, rows in zip(made, of_image, strict=True)
            for value, row in zip(values, rows, strict=True)
        )
        found[kind] += sum(row in planted.rows[kind] for _, row in worst[:n])
    return found


# A person from nose to ankles, in parts of the height: how far to the side, how far to the front, how far down.
LEFT = (
    (0.03, 0.07, 0.03), (0.06, 0, 0.05), (0.13, 0, 0.2), (0.18, 0, 0.35), (0.2, 0.05, 0.5),
    (0.09, 0, 0.5), (0.1, 0, 0.72), (0.1, 0, 0.95),
)  # fmt: skip
PERSON = np.array([(0, 0.08, 0.05), *((side * x, z, y) for x, z, y in LEFT for side in (1, -1))])


def sides(how: Detector, rng: np.random.Generator, n: int, first: int) -> dict[str, dict[str, int]]:
    """Count which of n poses of 3,000 with exchanged sides are among the first suspects, and of the surest ones."""
    m = 3000
    height, turn = rng.uniform(60, 400, m), rng.uniform(0, 2 * np.pi, m)
    across = PERSON[None, :, 0] * np.cos(turn)[:, None] + PERSON[None, :, 1] * np.sin(turn)[:, None]
    points = np.stack((across, np.broadcast_to(PERSON[:, 2], across.shape)), axis=2) * height[:, None, None] + 300
    points += rng.normal(0, 0.01, points.shape) * height[:, None, None]
    quality = rng.beta(2, 2, m)
    spread = how.noise / 2 * (1.4 - quality) * height  # of points, half of that of edges
    seen = points + rng.normal(0, 1, points.shape) * spread[:, None, None]
    slips = rng.random(m) < how.wrong  # a model exchanges sides as well
    seen[slips] = seen[slips][:, COCO_FLIPPED]
    odds = how.sure * (0.6 + quality) * np.where(slips, 0.35, 1.0) - 1.0 + rng.normal(0, 0.5, m)
    found = np.flatnonzero(rng.random(m) < how.recall)
    n_false = rng.poisson(how.false * m)
    away = points[rng.integers(m, size=n_false)] * 0.7 + rng.uniform(-200, 200, (n_false, 1, 2))
    image = np.concatenate((found, rng.integers(m, size=n_false)))
    seen, odds = np.concatenate((seen[found], away)), np.concatenate((odds[found], rng.normal(-1.8, 0.9, n_false)))
    planted = set(rng.permutation(m)[:n].tolist())
    rows = np.array(sorted(planted))
    labelled = points.copy()
    labelled[rows] = labelled[rows][:, COCO_FLIPPED]
    score = np.round(1 / (1 + np.exp(-odds)), 4)
    gt, pred = (
        BoxTable.from_arrays(
            of, np.zeros(len(of), int), np.hstack((one.min(axis=1), one.max(axis=1))), names=["person"], score=scores,
            shapes=Keypoints(np.concatenate((one, np.ones((*one.shape[:2], 1))), axis=2)),
        )
        for of, one, scores in ((np.arange(m), labelled, None), (image, seen, score))
    )  # fmt: skip
    listed = [one for one in labels(gt, pred, iou_type="keypoints").suspects if one.kind == "sides"][:first]
    # The obvious way: of detections that lie nearer to the points with their sides exchanged, the surest ones.
    as_is, turned = (
        np.abs(seen[: len(found)] - labelled[found][:, order]).sum(axis=(1, 2)) for order in (range(17), COCO_FLIPPED)
    )
    better = found[turned < as_is][np.argsort(-score[: len(found)][turned < as_is], kind="stable")][:first]
    return {
        "labels": {"sides": sum(one.row in planted for one in listed)},
        "raw score": {"sides": len(planted & set(better.tolist()))},
    }


def drawn(draws: int, k: int = 24) -> None:
    names = [f"class {c}" for c in range(k)]
    for name, how in DETECTORS.items():
        rows: dict[str, list[dict[str, int]]] = {}
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            truth = draw_truth(rng, k=k)
            seen = detect(truth, how, rng, k)
            planted = damage(truth, 150, rng, k, 100)
            result = labels(table(planted.boxes, scored=False, names=names), table(seen, scored=True, names=names))
            found: dict[str, dict[str, int] | None] = {
                "labels": right_among(result, planted, 100, names, int),
                "raw score": by_raw_score(planted, seen, 100),
            }
            found |= {"hotcoco": by_hotcoco(planted, seen, 100, names), "cleanlab": by_cleanlab(planted, seen, 100, k)}
            exchanged = sides(how, np.random.default_rng(draw), 150, 100)
            for who, counts in found.items():
                rows.setdefault(who, []).extend([] if counts is None else [counts | exchanged.get(who, {})])
        show(name, rows)


def show(name: str, rows: dict[str, list[dict[str, int]]]) -> None:
    for who, counts in rows.items():
        text = (
            "  ".join(
                f"{kind} {np.mean([one[kind] for one in counts]):5.1f}"
                for kind in (*KINDS, "sides")
                if kind in counts[0]
            )
            if counts
            else "not installed"
        )
        print(f"{name:34}  {who:10}  {text}", flush=True)


def of_files(gt_path: str, pred_path: str, n: int, draws: int) -> None:
    """Damage a real set."""
    from jaccard_eval.evaluation import load_and_align
    from jaccard_eval.options import SideOptions

    aligned = load_and_align(gt_path, pred_path, SideOptions()).aligned
    names = list(aligned.class_names)
    sides = []
    for boxes in (aligned.gt_table.take(~aligned.gt_table.crowd), aligned.pred_table):
        corners = np.hstack((boxes.xywh[:, :2], boxes.xywh[:, :2] + boxes.xywh[:, 2:]))
        score = np.ones(len(boxes)) if boxes.score is None else boxes.score
        sides.append(Boxes(boxes.image.astype(np.int64), boxes.label.astype(np.int64), corners, score))
    truth, seen = sides
    rows: dict[str, list[dict[str, int]]] = {}
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        planted = damage(truth, n, rng, len(names))
        result = labels(table(planted.boxes, scored=False, names=names), table(seen, scored=True, names=names))
        rows.setdefault("labels", []).append(right_among(result, planted, n, names, int))
        rows.setdefault("raw score", []).append(by_raw_score(planted, seen, n))
    show(f"{Path(gt_path).name[:24]}, {n} planted", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--real", nargs=3, action="append", default=[], metavar=("GT", "PRED", "N"))
    parser.add_argument("--no-drawn", action="store_true")
    args = parser.parse_args()
    if not args.no_drawn:
        drawn(args.draws)
    for gt, pred, n in args.real:
        of_files(gt, pred, int(n), max(args.draws, 8))


if __name__ == "__main__":
    main()
