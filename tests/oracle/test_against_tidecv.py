"""Error types against tidecv, where its conventions are ours: no crowds, no caps, no ties, no exact thresholds.

``tidecv.json`` holds what tidecv 1.0.1 says of these scenes and of published detections: tidecv loads OpenCV with the
graphics libraries of the system, so that it is asked once and not wherever the tests run. Where it is installed, it is
asked again; ``python tests/oracle/test_against_tidecv.py`` writes the file.

Differences by design, which the scenes avoid: tidecv caps detections per image, not per image and class; counts an IoU
equal to the threshold as localisation; takes the mean without missed boxes over the classes that are left, so that it
rises where the worst one leaves it; gives other classes without ground truth an AP of 0; and shows no negative gain.
Its recall values are i / 100, of which ten lie an ulp below those of COCO: a class may win or lose one of its 101
points.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pictures import Picture, det, evaluate, gt

import jaccard_eval

FILE = Path(__file__).with_name("tidecv.json")
NAMES = {
    "Cls": "classification",
    "Loc": "localisation",
    "Both": "both",
    "Dupe": "duplicate",
    "Bkg": "background",
    "Miss": "missed",
}
CLASSES = ("ant", "bee", "cow")
N_SCENES = 30
GT = "faster-coco-eval/tests/dataset/cocoapi/instances_val2014_100.json"
UMBRELLA = 28  # its one box is missed, and others are taken for umbrellas: without the box tidecv counts 0 for it
PRED = "cocoapi/results/instances_val2014_fakebbox100_results.json"
ONE_POINT = 1 / 101

Scene = tuple[list[Picture], list[Picture]]


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize("seed", range(N_SCENES))
def test_counts_and_gains_are_those_of_tidecv(seed: int, answers: dict[str, Any]) -> None:
    found = evaluate(*draw(seed), errors=True, iou=(0.5,), max_dets=()).errors
    require_same(found, answers["scenes"][seed], n_classes=len(CLASSES))


def test_counts_and_gains_of_published_detections_are_those_of_tidecv(
    shared_data: Path, answers: dict[str, Any]
) -> None:
    truth, detections, chosen = published(shared_data)
    names_of = {one["id"]: one["name"] for one in truth["categories"]}
    names = [one["name"] for one in truth["categories"] if one["id"] in chosen]
    result = jaccard_eval.evaluate(
        shared_data / GT, shared_data / PRED, errors=True, iou=(0.5,), max_dets=(), classes=names
    )
    expected = answers["published"]
    # Classes that are wholly missed, and without false positives, have 1 here and no part in tidecv's mean.
    objects = Counter(one["category_id"] for one in truth["annotations"] if not one["iscrowd"])
    by_name = {one["name"]: objects[one["id"]] for one in truth["categories"]}
    missed = dict(zip(result.errors.confusion.names, result.errors.types[-1].by_class, strict=True))
    found = {names_of[one["category_id"]] for one in detections}
    n_left = sum(missed[name] < by_name[name] or name in found for name in names)
    assert n_left == len(names) - 1
    theirs = expected["ap"] + expected["gains"]["missed"]
    ours = (theirs * n_left + len(names) - n_left) / len(names) - expected["ap"]
    expected = {**expected, "gains": {**expected["gains"], "missed": ours}}
    require_same(result.errors, expected, n_classes=len(names), points=4)


def test_tidecv_still_says_what_is_written_down(answers: dict[str, Any]) -> None:
    pytest.importorskip("tidecv")
    assert [ask_about(draw(seed)) for seed in range(N_SCENES)] == answers["scenes"]


def require_same(errors: Any, expected: dict[str, Any], *, n_classes: int, points: int = 1) -> None:
    """Hold APs and gains to some points of recall, which as many classes may win or lose in the mean."""
    near = points * ONE_POINT / n_classes
    assert errors.ap == pytest.approx(expected["ap"], abs=near)
    assert {one.name: one.count for one in errors.types} == expected["counts"]
    for one in errors.types:
        assert max(one.gain, 0.0) == pytest.approx(expected["gains"][one.name], abs=near), one.name


def draw(seed: int) -> Scene:
    """Boxes on 12 images and detections near them, with other classes, shifts, repeats and inventions.

    Drawn by `random.Random.random` alone, which gives the same numbers in all versions of Python.
    """
    rng = random.Random(seed).random
    truth, found = [], []
    for image in map(str, range(12)):
        for i in range(1 + int(4 * rng())):
            x, y, w, h = 60 * rng(), 60 * rng(), 8 + 22 * rng(), 8 + 22 * rng()
            name = CLASSES[i % 3]
            truth.append(gt(f"{name} {x} {y} {w} {h}", image))
            for _ in range(int(3 * rng())):
                other = CLASSES[int(3 * rng())] if rng() < 0.3 else name
                dx, dy = 16 * rng() - 8, 16 * rng() - 8
                found.append(det(f"{other} {x + dx} {y + dy} {w} {h}", rng(), image))
        found.append(det(f"{CLASSES[int(3 * rng())]} {90 * rng()} {90 * rng()} 10 10", rng(), image))
    return truth, found


def ask_about(scene: Scene) -> dict[str, Any]:
    import tidecv

    truth, found = scene
    ours, theirs = tidecv.Data("gt"), tidecv.Data("pred")
    for box in truth:
        ours.add_ground_truth(int(box.image), CLASSES.index(box.name), list(box.xywh))
    for box in found:
        theirs.add_detection(int(box.image), CLASSES.index(box.name), box.score, list(box.xywh))
    return ask(ours, theirs)


def published(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]], set[int]]:
    """Both sides of the published set, and the classes that keep ground truth: tidecv counts 0 for the others."""
    truth, found = (json.loads((folder / name).read_text()) for name in (GT, PRED))
    chosen = {one["category_id"] for one in truth["annotations"] if not one["iscrowd"]} - {UMBRELLA}
    return truth, [one for one in found if one["category_id"] in chosen], chosen


def ask_about_published(folder: Path) -> dict[str, Any]:
    import tidecv

    truth, found, chosen = published(folder)
    ours, theirs = tidecv.Data("gt"), tidecv.Data("pred")
    for one in (one for one in truth["annotations"] if one["category_id"] in chosen):
        add = ours.add_ignore_region if one["iscrowd"] else ours.add_ground_truth
        add(one["image_id"], one["category_id"], one["bbox"])
    for one in found:
        theirs.add_detection(one["image_id"], one["category_id"], one["score"], one["bbox"])
    return ask(ours, theirs)


def ask(ours: Any, theirs: Any) -> dict[str, Any]:
    import tidecv

    run = tidecv.TIDE().evaluate(ours, theirs, pos_threshold=0.5, mode=tidecv.TIDE.BOX)
    counts = {NAMES[kind.short_name]: len(errors) for kind, errors in run.error_dict.items()}
    gains = {NAMES[kind.short_name]: gain / 100 for kind, gain in run.fix_main_errors().items()}
    return {"ap": run.ap / 100, "counts": counts, "gains": gains}


if __name__ == "__main__":
    import numpy
    import tidecv

    written = {
        "source": f"tidecv {tidecv.__version__} with numpy {numpy.__version__}, by tests/oracle/test_against_tidecv.py",
        "scenes": [ask_about(draw(seed)) for seed in range(N_SCENES)],
        "published": ask_about_published(Path(__file__).parents[3] / "shared/data"),
    }
    FILE.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
