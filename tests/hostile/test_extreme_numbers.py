"""Numbers at the ends of what is accepted: every command computes, without overflow, NaN in JSON or a warning."""

import json
import random
from pathlib import Path

import pytest
from command_line import write_json

from jaccard_eval.cli import run
from jaccard_eval.data.boxtable import MAX_AREA, MAX_COORDINATE, MAX_SCORE

pytestmark = pytest.mark.slow

N_SCENES = 40
PLACES = (0, 1, -1, 10, 99.5, 0.1, 1e-20, 1e-300, 5e-324, 1e20, 1e75, MAX_COORDINATE, -MAX_COORDINATE)
SIZES = (1, 10, 30, 0, -1, *PLACES[5:12])
SCORES = (0.5, 0.9, 0, 1, -1, 100, 5e-324, MAX_SCORE, -MAX_SCORE)
AREAS = (400, 1, 0, -1, 5e-324, MAX_AREA)
SIDES = (100, 1, 0.5, 5e-324, 1e7)
COMMANDS = (
    ["evaluate"],
    ["evaluate", "--errors", "--score", "best-f1"],
    ["evaluate", "--protocol", "voc2012"],
    ["evaluate", "--class-agnostic", "--nms", "0.5"],
    ["inspect"],
    ["sensitivity"],
    ["compare", "--bootstrap", "50"],
    ["labels"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_extreme_numbers_are_computed_with(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(" ".join(command))
    for _ in range(N_SCENES):
        gt, pred = write_scene(rng, tmp_path)
        sides = [gt, pred, pred] if command[0] == "compare" else [gt, pred]
        code = run.run([command[0], *map(str, sides), *command[1:], "--json"])
        shown = capsys.readouterr()
        scene = f"{gt.read_text()}\n{pred.read_text()}\n{shown.err}"
        assert code in ((0, 2) if command == ["sensitivity"] else (0,)), scene  # boxes may be too few for bins
        assert not shown.out or json.loads(shown.out, parse_constant=pytest.fail)


def write_scene(rng: random.Random, folder: Path) -> tuple[Path, Path]:
    """Write objects of any size on three pictures, and predictions half of which are at their places."""
    images = [
        {"id": i, "file_name": f"{i}.jpg", "width": rng.choice(SIDES), "height": rng.choice(SIDES)} for i in range(3)
    ]
    truth = [
        {"id": i, "image_id": rng.randrange(3), "category_id": rng.randrange(2), "bbox": draw_box(rng)}
        | {"iscrowd": int(rng.random() < 0.2)}
        | ({"area": rng.choice(AREAS)} if rng.random() < 0.7 else {})
        for i in range(rng.choice((1, 2, 5, 30)))
    ]
    found = [
        {"image_id": one["image_id"], "category_id": rng.randrange(2), "score": rng.choice(SCORES)}
        | {"bbox": one["bbox"] if rng.random() < 0.5 else draw_box(rng)}
        for one in truth * rng.choice((1, 2))
    ]
    categories = [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}]
    content = {"images": images, "annotations": truth, "categories": categories}
    return write_json(folder / "gt.json", content), write_json(folder / "pred.json", found)


def draw_box(rng: random.Random) -> list[float]:
    if rng.random() < 0.5:
        return [rng.choice(PLACES), rng.choice(PLACES), rng.choice(SIZES), rng.choice(SIZES)]
    return [rng.randint(0, 50), rng.randint(0, 50), rng.randint(1, 50), rng.randint(1, 50)]
