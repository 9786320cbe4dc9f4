"""The pages that tests look at in a browser, each by the command that writes it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import box, write_json
from pictures import det, gt

from jaccard_eval import evaluate

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    '"><img src=x onerror="window.pwned=1">',
    "{{7*7}}{% raw %}",
    "javascript:window.pwned=1",
    "' onclick='window.pwned=1",
    "<svg onload=window.pwned=1>",
    "\u202edesrever & <b>bold</b>",
    "__proto__",
    "constructor",
)
SAMPLE = Path(__file__).parents[2] / "sample_data"
PAIR = (SAMPLE / "coco" / "gt.json", SAMPLE / "coco" / "better.json")
SEGMENTS = SAMPLE / "panoptic"
MAPS = Path(__file__).parents[1] / "golden" / "given" / "inputs" / "maps"


def of_sample(*options: object) -> Callable[..., list[object]]:
    return lambda folder, request: ["evaluate", *PAIR, "--images", SAMPLE / "yolo" / "images" / "val", *options]


def of_padilla(folder: Path, request: pytest.FixtureRequest) -> list[object]:
    data = request.getfixturevalue("shared_data") / "padilla-review" / "data" / "database"
    sides = data / "gts" / "pascalvoc_format", data / "dets" / "coco_format"
    return ["evaluate", *sides, "--images", data / "images", "--protocol", "voc2012"]


def of_many_classes(folder: Path, request: pytest.FixtureRequest) -> list[object]:
    """1,203 classes, as LVIS has; a tenth of them with objects, and every third of these is found."""
    drawn = np.random.default_rng(7)
    names = [f"class {i}" if i % 9 else f"a class with a longer name, {i}" for i in range(1_203)]
    truth = [
        box(1 + i % 40, 1 + int(drawn.integers(1_203)), [float(x) for x in drawn.integers(5, 200, 4)])
        for i in range(600)
    ]
    found = [dict(one, score=round(float(drawn.random()), 3)) for one in truth if drawn.random() < 0.7]
    return [*write_coco(folder / "many", names, [f"{i:03}.jpg" for i in range(40)], truth, found)]


def of_hostile_names(folder: Path, request: pytest.FixtureRequest) -> list[object]:
    images = [f"{name.replace('/', '')}.jpg" for name in HOSTILE]
    boxes = [box(1 + i, 1 + i, [10, 10, 40 + i, 30]) for i in range(len(HOSTILE))]
    # The last class is predicted as the first one, so that every part of the page has a name to show.
    found = [dict(one, score=0.9 - i / 20) for i, one in enumerate(boxes)]
    found[-1]["category_id"] = 1
    inner = folder / "<img src=x onerror=window.pwned=1>"
    return [*write_coco(inner, HOSTILE, images, boxes, found), "--slice", f"{HOSTILE[0].replace('=', '')}=*"]


# Every button that says how many boxes it selects, against what is selected when it is chosen.
EVERY_BUTTON = """state => {
  const wrong = [], counted = () => total(Object.values(selection.counts));
  chosen = { ...state };
  isWhole = true;
  render();
  const buttons = all("[data-n]").map(one => [JSON.parse(one.dataset.key), +one.dataset.n, one.ariaPressed]);
  for (const [picks, n, pressed] of buttons) {
    if (pressed === "true") continue;
    chosen = { ...state };
    choose(picks);
    render();
    const shown = +get("what").textContent.split(" ")[0].replaceAll(",", "");
    if (counted() !== n || shown !== n) wrong.push([picks, n, counted(), shown]);
  }
  return [buttons.length, wrong];
}"""


def until(page: Any, condition: str) -> None:
    """Wait for what becomes true of a page, whose policy lets nobody evaluate a text in it again and again."""
    for _ in range(1_000):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(10)
    raise AssertionError(condition)


def write_coco(folder: Path, names: Any, images: Any, truth: list[Any], found: list[Any]) -> tuple[Path, Path]:
    folder.mkdir()
    gt = {
        "images": [{"id": i, "file_name": name, "width": 640, "height": 480} for i, name in enumerate(images, start=1)],
        "annotations": [
            {"id": i, "area": one["bbox"][2] * one["bbox"][3], "iscrowd": 0, **one}
            for i, one in enumerate(truth, start=1)
        ],
        "categories": [{"id": i, "name": name} for i, name in enumerate(names, start=1)],
    }
    return write_json(folder / "gt.json", gt), write_json(folder / "pred.json", found)


def of_one_score(folder: Path, request: pytest.FixtureRequest) -> list[object]:
    found = [dict(one, score=1.0) for one in json.loads(PAIR[1].read_text())]
    return ["evaluate", PAIR[0], write_json(folder / "one-score-pred.json", found)]


def of_no_predictions(folder: Path, request: pytest.FixtureRequest) -> list[object]:
    return ["evaluate", PAIR[0], write_json(folder / "no-predictions.json", [])]


def of_saved_result(command: str, *options: object) -> Callable[..., list[object]]:
    def words(folder: Path, request: pytest.FixtureRequest) -> list[object]:
        saved = folder / "saved" / f"{command}.json"
        saved.parent.mkdir(exist_ok=True)
        evaluate(*PAIR, errors=True).save(saved)
        return [command, saved, *options]

    return words


def of_history(folder: Path, request: pytest.FixtureRequest) -> list[object]:
    saved = folder / "runs"
    saved.mkdir(exist_ok=True)
    for name in ("worse", "better"):
        evaluate(PAIR[0], SAMPLE / "coco" / f"{name}.json").save(saved / f"{name}.npz")
    evaluate(*PAIR, protocol="voc2012").save(saved / "other.npz")
    return ["report", *(saved / f"{name}.npz" for name in ("worse", "better", "other")), "--bootstrap", "50"]


# Name -> the words of the command that writes it. A page of another command than `evaluate` is called as that one.
PAGES: dict[str, Callable[[Path, pytest.FixtureRequest], list[object]]] = {
    "sample": of_sample(),
    "gates": of_sample(
        *("--fail-under", "AP=0.9", "--fail-under", "AP50=0.5", "--bootstrap", "50"),
        *("--slice", "first=street_0[1-6]*", "--worst-images", "3", "--per-class"),
    ),
    "padilla": of_padilla,
    "many": of_many_classes,
    "hostile": of_hostile_names,
    "one-score": of_one_score,
    "nothing": of_no_predictions,
    "compare": lambda *_: ["compare", PAIR[0], SAMPLE / "coco" / "worse.json", PAIR[1], "--bootstrap", "50"],
    "pixels": lambda *_: [
        *("pixels", MAPS / "gt", MAPS / "pred"),
        *("--classes", "sky,road,car", "--ignore", "9"),
    ],
    "panoptic": lambda *_: [
        *("panoptic", SEGMENTS / "gt.json", SEGMENTS / "worse.json", "--against", SEGMENTS / "better.json"),
        *("--bootstrap", "50", "--slice", "first=*1.jpg", "--slice", "rest=*0[234].jpg", "--fail-under", "PQ=0.9"),
    ],
    "sensitivity": lambda *_: ["sensitivity", *PAIR],
    "overlap": lambda *_: ["overlap", "6,1,18,9", "1,3,13,11"],
    "verify": of_saved_result("verify", *PAIR),
    "gate": of_saved_result("gate", "--fail-under", "AP=0.9", "--fail-under", "AP50=0.5"),
    "inspect": lambda *_: ["inspect", *PAIR],
    "labels": lambda *_: ["labels", *PAIR],
    "suite": lambda *_: ["suite", SAMPLE / "suite.toml", "--no-cache"],
    "history": of_history,
    "explain": lambda *_: ["explain", *PAIR, "--boxes", "10"],
    "report": of_saved_result("report"),
}


def drawn(n_images: int, seed: int = 3) -> tuple[list[Any], list[Any]]:
    """Objects of four classes; detections of them that are moved, taken for others, doubled, or on nothing."""
    random, truth, found = np.random.default_rng(seed), [], []
    names = ("dog", "cat", "a>b", "c=d&e#f")
    for i in range(n_images):
        for _ in range(random.integers(1, 5)):
            name, (x, y), side = random.choice(names), random.integers(0, 300, 2), int(random.integers(10, 150))
            truth.append(gt(f"{name} {x} {y} {side} {side}", f"{i:03}.jpg", crowd=bool(random.random() < 0.05)))
            for _ in range(random.integers(0, 4)):
                seen = name if random.random() < 0.6 else random.choice(names)
                dx, dy = random.normal(0, side / 8, 2)
                score = round(float(random.random()), 3)
                found.append(det(f"{seen} {x + dx} {y + dy} {side} {side}", score, f"{i:03}.jpg"))
        if random.random() < 0.5:
            found.append(
                det(f"dog {random.integers(400, 500)} 0 30 30", 0.2 + 0.7 * float(random.random()), f"{i:03}.jpg")
            )
    return truth, found
