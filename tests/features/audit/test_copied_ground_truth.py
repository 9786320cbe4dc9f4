"""Predictions that hold the ground truth itself, and objects marked as difficult where nobody asks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planting import Pair, run_evaluate

from jaccard_eval import DataError, evaluate

Loader = Callable[[str], Pair]


def _as_predictions(pair: Pair) -> list[dict[str, Any]]:
    keys = ("image_id", "category_id", "bbox")
    return [{key: one[key] for key in keys} | {"score": 1.0} for one in pair.gt["annotations"] if not one["iscrowd"]]


@pytest.mark.parametrize("name", ["sample", "medwaste"])
def test_labels_among_the_predictions_are_counted(name: str, good_pair: Loader) -> None:
    pair = good_pair(name)
    true = pair.as_it_came()
    assert true.warnings("pred-copies-gt") == []
    labels, n = _as_predictions(pair), len(pair.pred)
    predicted = {one["image_id"] for one in pair.pred}
    pair.pred += labels
    hybrid = pair.evaluate()
    (warning,) = hybrid.warnings("pred-copies-gt")
    assert (
        f"predictions hold {len(labels)} of the {len(labels)} ground-truth boxes up to rounding" in warning["message"]
    )
    assert (
        f"and {n:,} others: labels were probably mixed in (save_hybrid). Predict without labels" in warning["message"]
    )
    assert predicted <= {one["image_id"] for one in pair.pred}
    pair.pred = pair.pred[:n]  # as it says
    assert pair.evaluate().ap == true.ap < hybrid.ap


def test_the_ground_truth_as_predictions_is_no_detector(good_pair: Loader) -> None:
    pair = good_pair("sample")
    pair.pred = _as_predictions(pair)
    outcome = pair.evaluate()
    (warning,) = outcome.warnings("pred-copies-gt")
    assert outcome.ap == 1.0
    assert "up to rounding, and nothing else. Predict without labels" in warning["message"]


def test_rounded_labels_are_labels_and_no_advice_follows(good_pair: Loader) -> None:
    # JSON of Ultralytics has three decimals; scores of 1 for labels, per cent for the others, would draw advice.
    pair = good_pair("sample")
    for one in pair.pred:
        one["score"] *= 100
    assert pair.evaluate().warnings("score-percent")
    rounded = [one | {"bbox": [round(value + 0.0004, 3) for value in one["bbox"]]} for one in _as_predictions(pair)]
    pair.pred += [one | {"score": 100.0} for one in rounded]
    assert [warning["code"] for warning in pair.evaluate().result["warnings"]] == ["pred-copies-gt"]


def test_labels_that_were_moved_by_less_than_a_pixel_are_labels_by_their_score(good_pair: Loader) -> None:
    pair = good_pair("sample")
    labels = _as_predictions(pair)
    moved = [
        row | {"bbox": [value + (0.1 if at % 2 else -0.1) for at, value in enumerate(row["bbox"])]} for row in labels
    ]
    pair.pred += moved
    assert pair.evaluate().warnings("pred-copies-gt")
    for number, row in enumerate(moved):  # as exact as this is a detector, but never with one score for all
        row["score"] = 0.5 + number / 2000
    assert not pair.evaluate().warnings("pred-copies-gt")


@pytest.mark.parametrize(("copies", "is_told"), [(19, True), (18, False)])
def test_half_of_the_objects_are_too_many(copies: int, is_told: bool, good_pair: Loader) -> None:
    # The sample has 38 objects that count: 19 of them are one half.
    pair = good_pair("sample")
    assert len(_as_predictions(pair)) == 38
    pair.pred = _as_predictions(pair)[:copies]
    assert bool(pair.evaluate().warnings("pred-copies-gt")) == is_told


VOC = """<annotation><filename>{0}.jpg</filename><size><width>200</width><height>200</height></size>
<object><name>dog</name><difficult>{1}</difficult><bndbox><xmin>11</xmin><ymin>11</ymin><xmax>60</xmax><ymax>60</ymax>
</bndbox></object></annotation>"""


def test_difficult_objects_are_counted_and_said_so_by_protocols_that_take_no_notice(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    gt, pred = tmp_path / "gt", tmp_path / "pred.csv"
    gt.mkdir()
    for row in range(4):
        (gt / f"{row}.xml").write_text(VOC.format(row, int(row == 0)))
    pred.write_text("filename,class,score,xmin,ymin,xmax,ymax\n1.jpg,dog,0.9,11,11,60,60\n2.jpg,dog,0.9,11,11,60,60\n")
    outcome = run_evaluate(capsys, str(gt), str(pred), "--iou", "0.5")
    (note,) = (one for one in outcome.result["warnings"] if one["code"] == "difficult-counted")
    assert "1 of 4 objects are marked difficult, but protocol coco counts them like all others" in note["message"]
    assert outcome.result["metrics"]["AR100"] == 0.5  # 2 of 4
    # Recall 0.5 and 2/3: 51 and 67 of 101 levels.
    assert "; AP 0.5050 with them, 0.6634 without. To count them neither as found" in note["message"]
    assert note["fix"]["after"] == pytest.approx(67 / 101)
    voc = run_evaluate(capsys, str(gt), str(pred), "--protocol", "voc2012")
    assert voc.result["per_class"][0]["gt"] == 3
    assert "difficult-counted" not in {one["code"] for one in voc.result["warnings"]}


@pytest.mark.parametrize(("flags", "objects"), [((), 4), (("--difficult", "ignore"), 3), (("--difficult", "count"), 4)])
def test_difficult_objects_are_what_the_option_says(
    flags: tuple[str, ...], objects: int, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two hits of four objects: recall 0.5, which 51 of the 101 recall levels reach: 51/101. Of three objects, recall is
    # 2/3, which 67 of 101 levels reach. The difficult one is hit as well, twice: neither found, nor a false positive.
    (tmp_path / "gt").mkdir()
    for row in range(4):
        (tmp_path / "gt" / f"{row}.xml").write_text(VOC.format(row, int(row == 0)))
    hits = [f"{row}.jpg,dog,0.9,11,11,60,60\n" for row in (1, 2)]
    (tmp_path / "pred.csv").write_text("filename,class,score,xmin,ymin,xmax,ymax\n" + "".join(hits))
    paths = str(tmp_path / "gt"), str(tmp_path / "pred.csv")
    outcome = run_evaluate(capsys, *paths, "--iou", "0.5", *flags)
    assert outcome.result["per_class"][0]["gt"] == objects
    assert outcome.ap == pytest.approx({4: 51 / 101, 3: 67 / 101}[objects], abs=1e-9)
    assert ("ignored=difficult+crowd" in outcome.result["signature"]) == (flags == ("--difficult", "ignore"))
    (tmp_path / "pred.csv").write_text(
        "filename,class,score,xmin,ymin,xmax,ymax\n" + "".join(hits) + "0.jpg,dog,0.99,11,11,60,60\n" * 2
    )
    outcome = run_evaluate(capsys, *paths, "--iou", "0.5", *flags)
    # Counted, the first is a third hit, and the second a false positive at rank 2: precision 1, then 3/4.
    expected = 67 / 101 if objects == 3 else (26 + 50 * 0.75) / 101
    assert outcome.ap == pytest.approx(expected, abs=1e-9)


def test_labels_that_are_given_twice_are_called_so(tmp_path: Path) -> None:
    rows = [f"a.jpg,dog,{20 * row},0,{20 * row + 10},10" for row in range(4)]
    for name in ("gt.csv", "pred.csv"):
        (tmp_path / name).write_text("\n".join(["image,class,xmin,ymin,xmax,ymax", *rows]))
    with pytest.raises(DataError, match="the labels are given twice") as caught:
        evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv")
    assert [finding.code for finding in caught.value.findings] == ["pred-copies-gt"]
    (tmp_path / "pred.csv").write_text("image,class,xmin,ymin,xmax,ymax\na.jpg,dog,0,0,10,10")
    with pytest.raises(DataError, match="score-missing"):
        evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv")
