"""What compare says of published detections, box by box, against counts of the evaluations themselves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import write_json

import jaccard_eval
from jaccard_eval.cli import run

GT = "faster-coco-eval/tests/dataset/cocoapi/instances_val2014_100.json"
PRED = "cocoapi/results/instances_val2014_fakebbox100_results.json"
PERSON = 1
SCORE = 0.3

Record = dict[str, Any]


def worse(results: list[Record]) -> list[Record]:
    """Leave out every fifth detection, move every third by 3 px, name every seventh a person, repeat every eleventh."""
    changed: list[Record] = []
    for i, one in enumerate(results):
        x, y, width, height = one["bbox"]
        moved = one | {"bbox": [x + 3 * (i % 3 == 0), y, width, height]}
        named = moved | {"category_id": PERSON if i % 7 == 0 else one["category_id"]}
        changed += [named] * (i % 5 > 0) + [named | {"score": one["score"] * 0.9}] * (i % 11 == 0)
    return changed


@pytest.fixture
def compared(shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[list[Path], Record]:
    sides = [shared_data / GT, shared_data / PRED]
    sides.append(write_json(tmp_path / "worse.json", worse(json.loads(sides[1].read_text()))))
    assert run.run(["compare", *map(str, sides), "--score", str(SCORE), "--json", "--quiet"]) == 0
    document = json.loads(capsys.readouterr().out)
    return sides, document["comparisons"][0]


def is_found(change: Record, side: str) -> bool:
    return bool(change[side]["predicted"] == change["class"])


def test_boxes_that_are_found_or_not_make_the_difference_of_true_positives(
    compared: tuple[list[Path], Record],
) -> None:
    (gt, before, after), one = compared
    gained = Counter(change["class"] for change in one["changes"] if not is_found(change, "before"))
    lost = Counter(change["class"] for change in one["changes"] if not is_found(change, "after"))
    a, b = (jaccard_eval.evaluate(gt, pred, iou=(0.5,)) for pred in (before, after))
    for row in a.per_class:
        ref = f'TP[score={SCORE},class="{row.name}"]'
        assert b[ref] - a[ref] == gained[row.name] - lost[row.name], ref


def test_every_kind_that_was_planted_is_told_and_counted(compared: tuple[list[Path], Record]) -> None:
    _, one = compared
    counted = Counter(change["kind"] for change in one["changes"])
    assert {kind: count for kind, count in one["counts"].items() if count} == counted
    assert {"lost", "reclassified", "duplicated", "moved"} <= set(counted)


def test_the_deltas_are_those_of_the_evaluations(compared: tuple[list[Path], Record]) -> None:
    (gt, before, after), one = compared
    a, b = (jaccard_eval.evaluate(gt, pred) for pred in (before, after))
    for delta in one["metrics"]:
        assert (delta["baseline"], delta["value"]) == (a[delta["metric"]], b[delta["metric"]])
        assert delta["delta"] == delta["value"] - delta["baseline"]


def test_the_other_way_round_everything_is_the_other_way_round(
    compared: tuple[list[Path], Record], capsys: pytest.CaptureFixture[str]
) -> None:
    (gt, before, after), one = compared
    assert run.run(["compare", *map(str, (gt, after, before)), "--score", str(SCORE), "--json", "--quiet"]) == 0
    back = json.loads(capsys.readouterr().out)["comparisons"][0]["counts"]
    mirrored = {"lost": "found", "found": "lost", "duplicated": "deduplicated", "deduplicated": "duplicated"}
    assert {mirrored.get(kind, kind): count for kind, count in back.items()} == one["counts"]
