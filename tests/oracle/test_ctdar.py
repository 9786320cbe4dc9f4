"""Pairs of cTDaR's measurement tool on drawn tables, and our weighted F1 of them.

`ctdar.json` has, at each IoU, how many tables `evaluate_result_reg` of the tool (at 738456d3) paired on drawn sets, how
many there were and were found, and their F1 by the formula of its `evaluate.py`, null where that divides by 0. The tool
prints no weighted F1: that is worked out here, by the formula of the competition's paper.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from drawn_boxes import Tables, drawn_tables

from jaccard_eval import (
    BoxTable,
    EvaluationResult,
    Gates,
    ReadOptions,
    Rule,
    UsageError,
    evaluate,
    gate,
    load_result,
)

IOUS = (0.6, 0.7, 0.8, 0.9)
Row = dict[str, tuple[int, int, int, float | None]]
RECORDED: list[Row] = json.loads(Path(__file__).with_name("ctdar.json").read_text(encoding="utf-8"))
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def evaluated(folder: Path, pages: Tables, **asked: Any) -> EvaluationResult:
    for side in ("gt", "pred"):
        (folder / side).mkdir(exist_ok=True)
    for n, page in enumerate(pages, 1):
        for side, text in zip(("gt", "pred"), page, strict=True):
            (folder / side / f"page_{n}.xml").write_text(text, encoding="utf-8")
    return evaluate(folder / "gt", folder / "pred", **{"protocol": "ctdar"} | asked)


@pytest.mark.parametrize("seed", range(100))
def test_pairs_are_those_of_the_tool_and_their_f1_is_weighted(tmp_path: Path, seed: int) -> None:
    result, recorded = evaluated(tmp_path, drawn_tables(seed)), RECORDED[seed]
    f1 = []
    for iou in IOUS:
        tp, objects, found, own = recorded[f"{iou}"]
        counted = [result[f"{name}[iou={iou}]"] for name in ("TP", "FN", "FP")]
        assert counted == [tp, objects - tp, found - tp]
        # Where nothing is paired the tool divides by 0.
        f1.append(own if own is not None else 0.0 if objects + found else math.nan)
        assert result[f"F1[iou={iou}]"] == pytest.approx(f1[-1], abs=1e-9, nan_ok=True)
    weighted = (0.6 * f1[0] + 0.7 * f1[1] + 0.8 * f1[2] + 0.9 * f1[3]) / 3.0
    assert result["wF1"] == pytest.approx(weighted, abs=1e-9, nan_ok=True)


def table(*boxes: tuple[int, int, int, int]) -> str:
    points = [f"{left},{top} {left},{bottom} {right},{bottom} {right},{top}" for left, top, right, bottom in boxes]
    tables = "".join(f'<table><Coords points="{text}"/></table>' for text in points)
    return f"<document>{tables}</document>"


# The first overlaps by 1, the second by 3/4, the third is missed, and nothing is where the last was found.
PAGES = [
    (table((0, 0, 100, 100), (200, 0, 300, 100)), table((0, 0, 100, 100), (200, 0, 275, 100))),
    (table((0, 0, 50, 50)), table((500, 0, 550, 50))),
]
BY_HAND = (0.6 * 2 / 3 + 0.7 * 2 / 3 + 0.8 / 3 + 0.9 / 3) / 3


def test_thresholds_weigh_themselves(tmp_path: Path) -> None:
    result = evaluated(tmp_path, PAGES)
    assert [result[f"F1[iou={iou}]"] for iou in IOUS] == pytest.approx([2 / 3, 2 / 3, 1 / 3, 1 / 3])
    assert result["wF1"] == pytest.approx(BY_HAND, abs=1e-12)
    assert result["wF1[class=table]"] == result["weighted F1"] == result["wF1"]


def test_an_equal_overlap_matches(tmp_path: Path) -> None:
    result = evaluated(tmp_path, [(table((0, 0, 100, 100)), table((0, 0, 60, 100)))])
    assert [result[f"F1[iou={iou}]"] for iou in IOUS] == [1, 0, 0, 0]
    assert result["wF1"] == pytest.approx(0.6 / 3, abs=1e-12)


def test_gates_and_documents_have_it(tmp_path: Path) -> None:
    result = evaluated(tmp_path, PAGES)
    for name in ("run.npz", "result.json"):
        result.save(tmp_path / name)
        again = load_result(tmp_path / name)
        assert (again["wF1"], again["F1[iou=0.9]"]) == (result["wF1"], result["F1[iou=0.9]"])
    for least, passes in ((0.45, True), (0.5, False)):
        assert gate(result, gates=Gates(rules=(Rule(metric="wF1", min=least),))).passed is passes


def test_scores_choose_what_counts_at_every_threshold(tmp_path: Path) -> None:
    image, label = [0, 0], [0, 0]
    places = [[0, 0, 100, 100], [200, 0, 100, 100]]
    gt = BoxTable.from_arrays(image, label, places, encoding="xywh")
    pred = BoxTable.from_arrays(image, label, places, score=[0.9, 0.2], encoding="xywh")
    result = evaluate(gt, pred, protocol="coco", iou=IOUS, score=0.5)
    assert result["wF1"] == pytest.approx(2 / 3)
    assert result["wF1[score=0.1]"] == 1.0
    with pytest.raises(UsageError, match="wF1 takes score and class only"):
        _ = result["wF1[iou=0.6]"]
    with pytest.raises(UsageError, match=r"wF1 needs a score; write wF1\[score=0\.5\]"):
        _ = evaluate(gt, pred, protocol="coco")["wF1"]


def test_files_of_the_benchmark_are_told_of_it(tmp_path: Path) -> None:
    result = evaluated(tmp_path, PAGES, protocol="coco", pred_options=ReadOptions(assume_score=1.0))
    noted = [str(finding) for finding in result.findings if finding.code == "protocol-unusual"]
    assert ["marked as the benchmark ctdar" in text for text in noted] == [True]


def test_pages_without_any_table_found_have_no_f1_but_0(tmp_path: Path) -> None:
    result = evaluated(tmp_path, [(gt, table()) for gt, _ in PAGES])
    assert (result["wF1"], result["FN"]) == (0.0, 3)


def test_tables_of_other_outlines_are_left_out_with_a_warning(tmp_path: Path) -> None:
    six = '<document><table><Coords points="0,0 0,9 5,9 5,5 9,5 9,0"/></table></document>'
    result = evaluated(tmp_path, [*PAGES, (six, six)])
    assert result["wF1"] == pytest.approx(BY_HAND, abs=1e-12)
    assert "shape-unused" in [finding.code for finding in result.findings]
