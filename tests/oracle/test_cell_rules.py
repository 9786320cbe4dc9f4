"""Numbers of StarDist, Cellpose and the Data Science Bowl of 2018 for instances without scores, on drawn maps; ours.

`cells.json` has what `matching_dataset` of StarDist (at 650d3a19) counts at ten thresholds, with its mean_matched_score
at the first; the mean of the images of what `average_precision` of Cellpose (at 849ca11f) gives at each, which has
single precision and is undefined for an image with neither objects nor detections; and the mean of the images of the
mean of the thresholds where a hit is above these, as the bowl has it, with the most pairs that
`scipy.optimize.linear_sum_assignment` (1.16) finds.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_here
from drawn_boxes import Array, drawn_cells
from PIL import Image

from jaccard_eval import (
    Bootstrap,
    BoxTable,
    DataError,
    Gates,
    ReadOptions,
    Rule,
    Slice,
    UsageError,
    compare,
    evaluate,
    explain,
    gate,
    load_result,
)

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("cells.json").read_text(encoding="utf-8"))
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def written(folder: Path, images: list[tuple[Array, Array]]) -> tuple[Path, Path]:
    for at, side in enumerate(("gt", "pred")):
        (folder / side).mkdir()
        for row, maps in enumerate(images):
            Image.fromarray(maps[at]).save(folder / side / f"{row:02}.png")
    return folder / "gt", folder / "pred"


@pytest.mark.parametrize("seed", range(100))
def test_the_numbers_are_those_of_the_tools(tmp_path: Path, seed: int) -> None:
    sides = written(tmp_path, drawn_cells(seed))
    recorded = RECORDED[seed]
    result = evaluate(*sides, protocol="cells", gt_format="instances", pred_format="instances")
    points = [(point.tp, point.fp, point.fn) for point in result.operating_points]
    assert points == [*map(tuple, recorded["counts"])]
    accuracy = [tp / (tp + fp + fn) for tp, fp, fn in points]
    ious = result.protocol.iou_thresholds
    assert [result[f"accuracy[iou={iou:.9f}]"] for iou in ious] == pytest.approx(accuracy, abs=1e-12)
    assert result["accuracy"] == pytest.approx(np.mean(accuracy), abs=1e-12)
    if points[0][0]:
        assert result["mean_IoU"] == pytest.approx(recorded["matched"], abs=1e-6)
    found = [result[f"image_accuracy[iou={iou:.9f}]"] for iou in ious]
    assert found == pytest.approx(recorded["cellpose"], abs=2e-6)
    bowl = evaluate(*sides, protocol="dsb2018", gt_format="instances", pred_format="instances")
    assert bowl["image_accuracy"] == pytest.approx(recorded["bowl"], abs=1e-9)


def row(numbers: list[int]) -> Array:
    return np.repeat(np.array([numbers], dtype=np.uint8), 2, axis=0)


# Two images. On the first, 4 of 4 pixels and 3 of 5; on the second one object missed, one made up.
SCENE = [
    (row([1, 1, 1, 1, 0, 2, 2, 2, 2, 0, 0]), row([5, 5, 5, 5, 0, 0, 7, 7, 7, 7, 0])),
    (row([1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]), row([0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0])),
]


def test_both_means_by_hand(tmp_path: Path) -> None:
    result = evaluate(*written(tmp_path, SCENE), bootstrap=Bootstrap(n_resamples=40))
    # IoU 1 and .6: two hits at .5, .55 and .6, one at the seven others; one object and one detection more.
    assert [(point.tp, point.fp, point.fn) for point in result.operating_points] == [(2, 1, 1)] * 3 + [(1, 2, 2)] * 7
    assert result.protocol.name == "cells"
    assert [*result.metrics][:3] == ["accuracy", "accuracy50", "accuracy75"]
    assert "AP" not in result.metrics
    assert result.ties is None
    assert result["accuracy"] == pytest.approx((3 * 2 / 4 + 7 * 1 / 5) / 10)
    assert (result["accuracy50"], result["accuracy75"]) == (0.5, 0.2)
    assert (result["precision"], result["F1[iou=0.75]"]) == (2 / 3, 1 / 3)
    assert result["mean_IoU"] == pytest.approx(0.8)
    # Of the images: 1 at three thresholds, 1/3 at seven; and 0.
    assert result["image_accuracy"] == pytest.approx((3 + 7 / 3) / 10 / 2)
    # An overlap of .6 does not exceed it.
    bowl = evaluate(tmp_path / "gt", tmp_path / "pred", protocol="dsb2018")
    assert bowl["image_accuracy"] == pytest.approx((2 + 8 / 3) / 10 / 2)
    assert bowl["accuracy[iou=0.6]"] == 1 / 5


def test_images_with_neither_do_not_count(tmp_path: Path) -> None:
    blank = row([0] * 11)
    result = evaluate(*written(tmp_path, [*SCENE, (blank, blank)]))
    assert result["image_accuracy50"] == 0.5
    (tmp_path / "blank").mkdir()
    nothing = evaluate(
        *written(tmp_path / "blank", [(blank, blank)]), protocol="cells", gt_format="instances", pred_format="instances"
    )
    assert math.isnan(nothing["accuracy"])
    assert math.isnan(nothing["image_accuracy"])


def test_boxes_and_scores_may_be_compared(tmp_path: Path) -> None:
    gt = BoxTable.from_arrays(["a", "a", "b"], [0, 1, 0], [[0, 0, 10, 10], [20, 0, 30, 10], [0, 0, 4, 4]])
    pred = BoxTable.from_arrays(
        ["a", "a", "b"], [0, 1, 1], [[0, 0, 10, 10], [20, 0, 30, 7], [0, 0, 4, 4]], score=[0.9, 0.2, 0.5]
    )
    result = evaluate(gt, pred, protocol="cells", iou_type="bbox")
    # Whatever their scores, all count; IoU 1 and .7; the third is of another class.
    assert result["accuracy50"] == 2 / 4
    assert result["accuracy[iou=0.7]"] == 2 / 4
    assert result["accuracy75"] == 1 / 5
    classes = {found.name: found.values["accuracy50"].value for found in result.per_class}
    assert [*classes.values()] == [1 / 2, 1 / 2]
    assert result["accuracy50[score=0.5]"] == 1 / 4
    one = evaluate(gt, pred, protocol="cells", iou_type="bbox", iou=0.5)
    assert [*one.metrics][:2] == ["accuracy", "accuracy50"]
    assert "accuracy75" not in one.metrics
    with pytest.raises(UsageError, match="not evaluated"):
        one["accuracy75"]


def test_gates_slices_intervals_and_documents_have_them(tmp_path: Path) -> None:
    images = [image for seed in range(12) for image in drawn_cells(seed)][:40]
    sides = written(tmp_path, images)
    result = evaluate(*sides, bootstrap=Bootstrap(n_resamples=60), slices=[Slice(name="few", patterns=("0*",))])
    for name in ("accuracy", "accuracy75", "image_accuracy"):
        interval = result.metrics[name].interval
        assert interval is not None
        assert interval[0] <= result[name] <= interval[1]
        assert 0 < interval[1] - interval[0] < 0.5
        assert name in result.slices[0].values
    (tmp_path / "few").mkdir()
    alone = evaluate(*written(tmp_path / "few", images[:10]), protocol="cells")
    assert result.slices[0].values["image_accuracy"].value == pytest.approx(alone["image_accuracy"])
    verdicts = gate(result, Gates(rules=(Rule(metric="accuracy50", min=0.99), Rule(metric="image_accuracy", min=0.01))))
    assert [verdict.failed for verdict in verdicts.gates] == [True, False]
    result.save(tmp_path / "run.npz")
    result.save(tmp_path / "run.json")
    for name in ("run.npz", "run.json"):
        saved = load_result(tmp_path / name)
        for metric in ("accuracy", "accuracy50", "image_accuracy", "F1[iou=0.75]"):
            assert saved[metric] == result[metric]


def test_a_saved_document_answers_what_its_points_have(tmp_path: Path) -> None:
    result = evaluate(*written(tmp_path, drawn_cells(3)))
    result.save(tmp_path / "run.json")
    rules = tuple(Rule(metric=name, min=result[name] - 1e-9) for name in ("accuracy[iou=0.6]", "accuracy[score=1]"))
    verdicts = gate(load_result(tmp_path / "run.json"), Gates(rules=rules))
    assert [verdict.failed for verdict in verdicts.gates] == [False, False]


def test_every_verb_takes_them(tmp_path: Path) -> None:
    gt, pred = written(tmp_path, drawn_cells(5))
    assert compare(gt, pred, gt).results[1]["accuracy"] == 1.0
    assert explain(gt, pred, "F1").protocol == "cells"
    with pytest.raises(UsageError, match="cannot be explained"):
        explain(gt, pred, "accuracy50")
    said = run_here("evaluate", str(gt), str(pred), "--errors", "-o", str(tmp_path / "page.html"))
    assert said.returncode == 0
    refused = run_here("evaluate", str(gt), str(pred), "--engine", "disk")
    assert refused.returncode == 2
    assert "cells" in refused.stderr


def test_predictions_that_hold_no_scores_choose_them(tmp_path: Path) -> None:
    gt, pred = written(tmp_path, drawn_cells(5))
    said = run_here("evaluate", str(gt), str(pred))
    assert "protocol cells" in said.stdout
    assert "Pass --assume-score 1.0 for COCO's AP" in " ".join((said.stdout + said.stderr).split())
    # Whoever asks for AP has it, or is refused as before.
    told = evaluate(gt, pred, pred_options=ReadOptions(assume_score=1.0))
    assert (told.protocol.name, "AP" in told.metrics) == ("coco", True)
    with pytest.raises(DataError, match="score-missing"):
        evaluate(gt, pred, protocol="coco")
    # A table may have scores.
    rows = [
        "image,id,class",
        *(f"{row:02},{key},cell" for row, maps in enumerate(drawn_cells(5)) for key in np.unique(maps[1])[1:].tolist()),
    ]
    (pred / "instances.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="score-missing"):
        evaluate(gt, pred, pred_options=ReadOptions(names=("cell",)))


def test_maps_of_classes_choose_nothing(tmp_path: Path) -> None:
    classes = row([1, 1, 0, 1, 1, 0, 2, 0, 2, 2, 1])
    for name, maps in (("classes", [(classes, classes)]), ("one", [(row([1] * 4 + [0] * 7), row([1] * 3 + [0] * 8))])):
        (tmp_path / name).mkdir()
        with pytest.raises(DataError, match="pixels"):
            evaluate(*written(tmp_path / name, maps))
