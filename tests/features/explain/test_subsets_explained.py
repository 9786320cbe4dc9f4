"""Metrics of subsets, and of rules that match anew, are explained: what a fix gives is what the files give with it."""

import re
from pathlib import Path
from typing import Any

import pytest
from drawn_boxes import drawn_streets

from jaccard_eval import ExplanationResult, UsageError, evaluate, explain

pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
KITTI: dict[str, Any] = {"gt_format": "kitti", "pred_format": "kitti", "protocol": "kitti"}


def folders(folder: Path, texts: list[tuple[str, str]]) -> tuple[Path, Path]:
    for place, sides in enumerate(texts):
        for name, text in zip(("gt", "pred"), sides, strict=True):
            (folder / name).mkdir(parents=True, exist_ok=True)
            (folder / name / f"{place:06d}.txt").write_text(text, encoding="utf-8")
    return folder / "gt", folder / "pred"


def repaired(texts: list[tuple[str, str]], result: ExplanationResult, n: int) -> list[tuple[str, str]]:
    """Remove the line of a wrong detection, move it, or add one for an object that was missed."""
    fix, sides = result.fixes[n], [list(pair) for pair in texts]
    image = int(fix.image.partition(".")[0])
    left, top, width, height = fix.xywh
    corners = f"{left!r} {top!r} {left + width!r} {top + height!r}"
    if fix.kind == "missed":
        sides[image][1] += f"{fix.becomes} -1 -1 -10 {corners} -1 -1 -1 -1000 -1000 -1000 -10 2\n"
    else:
        lines = sides[image][1].splitlines(keepends=True)
        (row,) = [row for row, line in enumerate(lines) if float(line.split()[-1]) == fix.score]
        words = lines[row].split()
        lines[row] = " ".join([fix.becomes, *words[1:4], corners, *words[8:]]) + "\n" if fix.becomes else ""
        sides[image][1] = "".join(lines)
    return [(truth, found) for truth, found in sides]


@pytest.mark.parametrize(
    "metric",
    ["AP_easy", "AP[subset=hard]", "AP70[subset=moderate,class=Car]", "AR[subset=easy]", "AP", "AP[class=Car]"],
)
@pytest.mark.parametrize("seed", [3, 12])
def test_gains_of_a_subset_are_those_of_changed_files(tmp_path: Path, metric: str, seed: int) -> None:
    texts = drawn_streets(seed)
    paths = folders(tmp_path / "given", texts)
    result = explain(*paths, metric, boxes=4, **KITTI)
    before = evaluate(*paths, **KITTI)[metric]
    assert result.metric.value == before
    assert result.fixes
    for n, fix in enumerate(result.fixes):
        if fix.kind == "both":
            continue
        after = evaluate(*folders(tmp_path / f"fix{n}", repaired(texts, result, n)), **KITTI)[metric]
        assert after - before == pytest.approx(fix.gain, abs=1e-9)
        assert fix.gain > 0


def test_the_curve_of_slots_is_theirs_and_its_mean_the_value(tmp_path: Path) -> None:
    # Four cars, all found and nothing else: three slots behind the first have precision 1, and the others none.
    car = "Car 0 0 0 {0} 0 {1} 60 1 1 1 1 1 1 1\n"
    found = "Car -1 -1 -10 {0} 0 {1} 60 -1 -1 -1 -1000 -1000 -1000 -10 0.{2}\n"
    texts = [
        (
            "".join(car.format(100 * k, 100 * k + 90) for k in range(4)),
            "".join(found.format(100 * k, 100 * k + 90, 9 - k) for k in range(4)),
        )
    ]
    result = explain(*folders(tmp_path, texts), "AP_easy", **KITTI)
    assert result.metric.value == pytest.approx(3 / 40)
    # Every fourth of 41 slots: 0, 4, ..., 40.
    assert [point.precision for point in result.curve] == [1.0] + [0.0] * 10


def test_another_protocol_keeps_the_subset(tmp_path: Path) -> None:
    paths = folders(tmp_path, drawn_streets(3))
    result = explain(*paths, "AP_easy", against="coco", boxes=1, **KITTI)
    assert result.steps[-1].value == pytest.approx(result.metric.value + sum(step.delta for step in result.steps))
    assert "subsets" not in {step.rule for step in result.steps}


def test_a_subset_that_is_not_there_is_named(tmp_path: Path) -> None:
    paths = folders(tmp_path, drawn_streets(3))
    with pytest.raises(UsageError, match=re.escape("choose from easy, moderate, hard")):
        explain(*paths, "AP[subset=esy]", **KITTI)
    with pytest.raises(UsageError, match="cannot be explained"):
        explain(*paths, "AP_small", **KITTI)
