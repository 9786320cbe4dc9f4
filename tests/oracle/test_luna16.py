"""Sensitivities of LUNA16's script on drawn scans, and ours.

`luna16.json` has those at 1/8 to 8 false positives per scan, by `numpy.interp` on the curve of `computeFROC` in
noduleCADEvaluationLUNA16.py (DeepLung at 0fedeae8, translated to Python 3, without its bootstrap and plots); null
where it has none: 0 / 0 without a nodule or a hit, or an exception without a mark.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import Bootstrap, DataError, evaluate

RECORDED: list[list[float] | None] = json.loads(Path(__file__).with_name("luna16.json").read_text(encoding="utf-8"))
RATES = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def written(folder: Path, name: str, last: str, rows: list[tuple[object, ...]]) -> Path:
    lines = [f"seriesuid,coordX,coordY,coordZ,{last}", *(",".join(map(str, row)) for row in rows)]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / f"{name}.csv"


def drawn_scans(folder: Path, seed: int) -> tuple[Path, Path]:
    """Nodules that overlap, some excluded or of unknown size; marks near them and elsewhere, some of equal scores."""
    rng = np.random.default_rng(seed)
    scans = [f"s{k:02}" for k in range(int(rng.choice([1, 2, 4, 5, 8, 10, 16, 21])))]
    nodules, excluded, marks = [], [], []
    for scan in scans:
        own: list[np.ndarray] = []
        for _ in range(int(rng.integers(0, 5))):
            near = own and rng.random() < 0.4
            centre = np.round(own[-1][:3] + rng.normal(0, 4, 3) if near else rng.uniform(-60, 60, 3), 3)
            diameter = round(float(rng.uniform(3, 30)), 3)
            own.append(np.array([*centre, diameter]))
            if rng.random() < 0.3:
                excluded.append((scan, *centre.tolist(), -1 if rng.random() < 0.5 else diameter))
            else:
                nodules.append((scan, *centre.tolist(), diameter))
        for _ in range(130 if rng.random() < 0.08 else int(rng.integers(0, 12))):
            if own and rng.random() < 0.5:
                at = own[int(rng.integers(len(own)))]
                centre = at[:3] + rng.normal(0, at[3] / 4, 3)
            else:
                centre = rng.uniform(-60, 60, 3)
            score = float(rng.random())
            marks.append((scan, *np.round(centre, 2).tolist(), round(score, 6 if seed % 3 else 1)))
    written(folder, "annotations_excluded", "diameter_mm", excluded)
    (folder / "seriesuids.csv").write_text("\n".join(scans) + "\n", encoding="utf-8")
    return written(folder, "annotations", "diameter_mm", nodules), written(folder, "marks", "probability", marks)


@pytest.mark.parametrize("seed", range(120))
def test_the_sensitivities_are_those_of_the_script(tmp_path: Path, seed: int) -> None:
    result = evaluate(*drawn_scans(tmp_path, seed), protocol="froc")
    found = [result.metrics[f"recall[fppi={rate:g}]"].value for rate in RATES]
    expected = RECORDED[seed]
    if expected is None:
        assert all(math.isnan(value) or value == 0 for value in found)
        return
    assert found == pytest.approx(expected, abs=1e-9)
    assert result["CPM"] == pytest.approx(sum(expected) / 7, abs=1e-9)


def test_cases_without_a_number_of_the_script_are_few() -> None:
    assert len(RECORDED) - RECORDED.count(None) >= 100


def test_a_mark_hits_every_nodule_it_is_in_and_the_edge_is_out(tmp_path: Path) -> None:
    nodules = [("a", 0, 0, 0, 10), ("a", 6, 0, 0, 10), ("b", 0, 0, 0, 10), ("c", 0, 0, 0, 10)]
    # Of a: in both. Of b: 5 mm along z, on the edge. Of c: 4.9 mm off in z, and 7 mm off, which is no hit.
    marks = [("a", 3, 0, 0, 0.9), ("b", 0, 0, 5, 0.8), ("c", 0, 0, -4.9, 0.7), ("c", 0, 0, 7, 0.6)]
    gt, pred = written(tmp_path, "gt", "diameter_mm", nodules), written(tmp_path, "p", "probability", marks)
    result = evaluate(gt, pred, protocol="froc")
    assert [result[f"{name}[score=0]"] for name in ("TP", "FP", "FN")] == [3, 2, 1]
    # Three scans: up to 1/4 per scan no mark may be wrong (2 of 4), at 1/3 the first is, and c's nodule counts.
    assert [result[f"recall[fppi={rate:g}]"] for rate in RATES] == [0.5, 0.5, 0.75, 0.75, 0.75, 0.75, 0.75]
    assert result.pred.boxes == 4
    assert result.protocol.iou_type == "spheres"


def test_equal_probabilities_are_one_straight_line(tmp_path: Path) -> None:
    gt = written(tmp_path, "gt", "diameter_mm", [("a", 0, 0, 0, 10), ("b", 0, 0, 0, 10)])
    pred = written(tmp_path, "p", "probability", [("a", 0, 0, 0, 0.5), ("b", 50, 0, 0, 0.5)])
    # From (0, 0) to half a false positive per scan and half of the nodules.
    result = evaluate(gt, pred, protocol="froc")
    assert [result[f"recall[fppi={rate:g}]"] for rate in RATES[:4]] == [0.125, 0.25, 0.5, 0.5]


def test_a_folder_and_unlisted_scans(tmp_path: Path) -> None:
    gt = written(tmp_path, "newannotations", "diameter_mm", [("a", 0, 0, 0, 10), ("c", 0, 0, 0, 10)])
    pred = written(tmp_path.parent, f"{tmp_path.name}-marks", "probability", [("a", 0, 0, 0, 0.5)])
    (tmp_path / "newseriesuids.csv").write_text("a\nb\n", encoding="utf-8")
    result = evaluate(gt, pred, protocol="froc")
    assert (result["CPM"], result.gt.images) == (1.0, 2)
    assert "image-unlisted" in {finding.code for finding in result.findings}
    gt.rename(tmp_path / "annotations.csv")
    (tmp_path / "newseriesuids.csv").rename(tmp_path / "seriesuids.csv")
    assert evaluate(tmp_path, pred, protocol="froc")["CPM"] == 1.0


@pytest.mark.parametrize(
    ("gt", "pred", "said"),
    [
        ("seriesuid,coordX,coordY,coordZ\na,0,0,0\n", "", r"no column diameter_mm among seriesuid, coordX"),
        ("", "seriesuid,coordX,coordY,coordZ,probability\na,0,0\n", r"p\.csv:2: expected 5 cells, got 3"),
        ("", "seriesuid,coordX,coordY,coordZ,probability\na,0,0,x,1\n", r"'x' is not a plain finite number"),
        ("", "seriesuid,coordX,coordY,coordZ,class\na,0,0,0,1\n", r"score"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, gt: str, pred: str, said: str) -> None:
    sides = []
    for name, text, last in (("gt", gt, "diameter_mm"), ("p", pred, "probability")):
        sides.append(written(tmp_path, name, last, [("a", 0, 0, 0, 1)]))
        if text:
            sides[-1].write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        evaluate(*sides, protocol="froc")


def test_spheres_have_intervals_and_saved_runs(tmp_path: Path) -> None:
    rows = [(f"s{k}", 0, 0, 0, 10) for k in range(40)]
    gt = written(tmp_path, "gt", "diameter_mm", rows)
    pred = written(tmp_path, "p", "probability", [(s, k % 7, 0, 0, 1 - k / 100) for k, (s, *_) in enumerate(rows)])
    result = evaluate(gt, pred, protocol="froc", bootstrap=Bootstrap(n_resamples=50))
    low, high = result.metrics["CPM"].interval
    assert low <= result["CPM"] <= high
