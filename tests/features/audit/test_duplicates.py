"""Repeated rows, near-duplicates and ground truth out of reach, told from hand-made scenes."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from pictures import det, evaluate, gt

from jaccard_eval import BoxTable, EvaluationResult, inspect, load
from jaccard_eval import evaluate as evaluate_sides
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap
from jaccard_eval.data.protocol import COCO, AreaRange
from jaccard_eval.features.audit.duplicates import Repeats, check_repeats, near_duplicates, repeats_of
from jaccard_eval.findings import Finding, FindingLog, Severity
from jaccard_eval.similarity.boxes import Corners, overlapping_pairs

DOG, CAT = "dog 0 0 10 10", "cat 0 0 10 10"


def _said(result: EvaluationResult, code: str) -> list[Finding]:
    return [finding for finding in result.findings if finding.code == code]


def _side(boxes: BoxTable, images: Sequence[str] = ("a", "b"), sizes: FloatArray | None = None) -> Dataset:
    sizes = np.full((len(images), 2), np.nan) if sizes is None else sizes
    table = ImageTable(tuple(range(len(images))), tuple(images), sizes, listed=True)
    role = "gt" if boxes.score is None else "pred"
    return Dataset(role, "test", role, table, LabelMap((0, 1), ("dog", "cat"), named=True), boxes)


def test_a_repeated_hit_is_a_false_positive_and_the_ap_without_it_is_told() -> None:
    # Ranking: hit, its repetition (a false positive), hit. Precision is 1 at the 51 recalls up to .5, then 2/3: AP is
    # (51 + 50 * 2/3) / 101 as given, and 1 without the repetition.
    truth = [gt(DOG, "a"), gt(DOG, "b")]
    detections = [det(DOG, 0.9, "a"), det(DOG, 0.9, "a"), det(DOG, 0.8, "b")]
    (warning,) = _said(evaluate(truth, detections), "pred-duplicate")
    assert (warning.severity, warning.count) == (Severity.WARNING, 1)
    assert "1 of 3 rows are duplicate predictions" in warning.message
    assert f"AP {(51 + 50 * 2 / 3) / 101:.4f} as given, 1.0000 without repeated rows" in warning.message
    assert "image 'a': 'dog' at 0, 0, 10 wide, 10 high" in warning.message
    assert "--drop-duplicates" in str(warning.fix)
    assert "whole file" not in warning.message


def test_dropping_repeats_restores_the_ap_is_counted_and_signed() -> None:
    truth = [gt(DOG, "a"), gt(DOG, "b")]
    detections = [det(DOG, 0.9, "a"), det(DOG, 0.8, "b")]
    good = evaluate(truth, detections)
    mended = evaluate([*truth, *truth], [*detections, *detections], drop_duplicates=True)
    assert mended["AP"] == good["AP"]
    assert (mended.gt.ignored, mended.pred.ignored) == ({"duplicates": 2}, {"duplicates": 2})
    assert (mended.gt.fingerprint, mended.pred.fingerprint) == (good.gt.fingerprint, good.pred.fingerprint)
    assert "|drop_duplicates|" in mended.signature
    assert not _said(mended, "gt-duplicate") + _said(mended, "pred-duplicate")
    assert evaluate(truth, detections, drop_duplicates=True).pred.ignored == {}


@pytest.mark.parametrize(("copies", "words"), [(2, "every row occurs twice"), (3, "every row occurs 3 times")])
def test_a_whole_file_appended_to_itself_is_called_so(copies: int, words: str) -> None:
    detections = [det(DOG, 0.9, "a"), det(CAT, 0.8, "a"), det(DOG, 0.7, "b")] * copies
    (finding,) = _said(evaluate([gt(DOG, "a"), gt(DOG, "b")], detections), "pred-duplicate")
    assert finding.count == 3 * (copies - 1)
    assert f"{words}, as if the file had been appended to itself" in finding.message


def test_repeats_that_change_nothing_are_a_note() -> None:
    detections = [det(DOG, 0.9), det(DOG, 0.8), det("dog 50 50 9 9", 0.1), det("dog 50 50 9 9", 0.1)]
    (finding,) = _said(evaluate([gt(DOG)], detections), "pred-duplicate")
    assert finding.severity is Severity.NOTE


def test_rows_that_differ_in_image_class_score_or_place_are_no_repeats() -> None:
    detections = [det(DOG, 0.9), det(DOG, 0.9, "b"), det(CAT, 0.9), det(DOG, 0.8), det("dog 0 0 10 10.5", 0.9)]
    assert _said(evaluate([gt(DOG)], detections, names=["cat", "dog"]), "pred-duplicate") == []


def test_images_of_one_name_keep_their_rows_apart() -> None:
    boxes = BoxTable.from_arrays([0, 1, 0, 1], [0] * 4, [[0, 0, 5, 5]] * 4, score=[0.5] * 4)
    assert repeats_of(_side(boxes, ("a.jpg", "a.jpg"))).rows.tolist() == [2, 3]
    assert repeats_of(_side(boxes, ("a.jpg", "b.jpg"))).rows.tolist() == [2, 3]


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_repeats_in_tables_of_one_row_or_none(n: int) -> None:
    boxes = BoxTable.from_arrays([0] * n, [0] * n, [[0, 0, 5, 5]] * n)
    repeats = Repeats.of(boxes, np.arange(n, dtype=np.uint64))
    assert (repeats.rows.tolist(), repeats.times) == ([], 1)
    assert near_duplicates(boxes).tolist() == []


def test_one_side_alone_is_checked_as_well(tmp_path: Path) -> None:
    (tmp_path / "gt.csv").write_text("image,class,xmin,ymin,xmax,ymax\n" + "a,dog,1,2,3,4\n" * 3)
    log = FindingLog()
    check_repeats(load(tmp_path / "gt.csv"), log)
    (finding,) = log.findings()
    assert (finding.code, finding.severity, finding.count) == ("gt-duplicate", Severity.WARNING, 2)
    assert "2 of 3 rows are duplicate ground-truth boxes" in finding.message


def test_an_inspection_of_one_file_tells_of_repeats(tmp_path: Path) -> None:
    (tmp_path / "gt.csv").write_text("image,class,xmin,ymin,xmax,ymax\n" + "a,dog,1,2,3,4\n" * 2)
    assert [finding.code for finding in inspect(tmp_path / "gt.csv").findings] == ["gt-duplicate"]


def test_objects_drawn_twice_are_told_from_neighbours() -> None:
    # IoU with the first: 96/100 (told), 94/100 (not), another class, another image, and a crowd.
    truth = [gt("dog 0 0 100 100"), gt("dog 0 0 100 96"), gt("dog 0 0 100 90", "b"), gt("dog 0 0 100 84.6", "b")]
    truth += [gt("cat 0 0 100 100"), gt("dog 0 0 100 100", "c"), gt("dog 0 0 100 99", "c", crowd=True)]
    (warning,) = _said(evaluate(truth, [det("dog 0 0 100 100", 0.9)]), "gt-near-duplicate")
    assert (warning.severity, warning.count) == (Severity.WARNING, 1)
    assert "1 near-duplicate ground-truth box: same image and class, and IoU 0.95 or more" in warning.message
    assert "image 'a': 'dog' at 0, 0, 100 wide" in warning.message


def test_exact_repeats_are_not_told_again_as_near_duplicates() -> None:
    result = evaluate([gt(DOG), gt(DOG)], [det(DOG, 0.9)])
    assert [one.code for one in result.findings] == ["gt-duplicate"]


def test_near_duplicates_are_those_of_all_pairs() -> None:
    rng = np.random.default_rng(3)
    corners = rng.integers(0, 3, (300, 2)).astype(float)
    xywh = np.concatenate((corners, 40 + rng.integers(0, 4, (300, 2))), axis=1)
    boxes = BoxTable.from_arrays(rng.integers(0, 30, 300), rng.integers(0, 2, 300), xywh, encoding="xywh")
    i, j = np.triu_indices(300, 1)
    alike = (boxes.image[i] == boxes.image[j]) & (boxes.label[i] == boxes.label[j])
    sides = Corners.of(boxes.xywh)
    i, j, _ = overlapping_pairs(sides, sides, i[alike], j[alike], threshold=0.95)
    found = near_duplicates(boxes)
    pairs = list(zip(i.tolist(), j.tolist(), strict=True))
    assert len(pairs) > 50
    assert all(not {a, b}.isdisjoint(found.tolist()) for a, b in pairs)  # every pair has one of its boxes told
    assert set(found.tolist()) <= {row for pair in pairs for row in pair}
    some = np.flatnonzero(rng.random(300) < 0.7)
    assert near_duplicates(boxes, some).tolist() == some[near_duplicates(boxes.take(some))].tolist()


def test_thousands_of_boxes_in_one_place_stay_cheap() -> None:
    rng = np.random.default_rng(0)
    xywh = np.concatenate((rng.random((20_000, 2)), np.full((20_000, 2), 500.0)), axis=1)
    boxes = BoxTable.from_arrays([0] * 20_000, [0] * 20_000, xywh, encoding="xywh")
    start = time.process_time()
    assert len(near_duplicates(boxes)) == 19_999
    assert time.process_time() - start < 2.0


def test_ground_truth_out_of_the_image_cannot_be_matched() -> None:
    # A box inside the image of 100 x 100 reaches an IoU of 20/100, 49/100, 50/100 and 1.
    boxes: npt.ArrayLike = [[80, 0, 100, 10], [51, 0, 100, 10], [50, 0, 100, 10], [0, 0, 100, 100]]
    truth = BoxTable.from_arrays([0] * 4, [0] * 4, boxes, encoding="xywh")
    pred = BoxTable.from_arrays([0], [0], [[0, 0, 100, 100]], score=[0.9])
    sizes = np.array([[100.0, 100.0], [100.0, 100.0]])
    result = evaluate_sides(_side(truth, sizes=sizes), _side(pred))
    (note,) = _said(result, "gt-unmatchable")
    assert (note.severity, note.count) == (Severity.NOTE, 2)
    assert "so far outside the image that no box within it reaches IoU 0.5" in note.message
    assert [one.severity for one in _said(result, "box-outside")] == [Severity.WARNING]  # told once as a warning
    loose = evaluate_sides(_side(truth, sizes=sizes), _side(pred), iou=[0.3])
    assert _said(loose, "gt-unmatchable")[0].count == 1
    assert _said(evaluate_sides(_side(truth), _side(pred)), "gt-unmatchable") == []  # sizes are not known
    unknown = np.zeros((2, 2))  # as some exporters write it
    assert _said(evaluate_sides(_side(truth, sizes=unknown), _side(pred)), "gt-unmatchable") == []


def test_ground_truth_without_an_area_is_told_once(tmp_path: Path) -> None:
    truth = [gt(DOG), gt("dog 5 5 0 7")]
    assert [one.code for one in evaluate(truth, [det(DOG, 0.9)]).findings] == ["gt-unmatchable"]
    (tmp_path / "gt.csv").write_text("image,class,xmin,ymin,xmax,ymax\na,dog,0,0,10,10\na,dog,5,5,5,12\n")
    (tmp_path / "pred.csv").write_text("image,class,xmin,ymin,xmax,ymax,score\na,dog,0,0,10,10,0.9\n")
    result = evaluate_sides(tmp_path / "gt.csv", tmp_path / "pred.csv")
    assert [one.code for one in result.findings] == ["box-empty"]


def test_ground_truth_that_is_ignored_or_outside_every_range_is_not_out_of_reach() -> None:
    truth = [gt(DOG), gt("dog 5 5 0 7", ignore=True), gt("dog 50 50 20 20"), gt("dog 90 90 0 5", crowd=True)]
    ranges = [AreaRange("all", 0, 200), AreaRange("small", 0, 50)]
    result = evaluate(truth, [det(DOG, 0.9)], areas=ranges)
    codes = [(str(one.severity), one.code, one.count) for one in result.findings]
    assert ("note", "gt-uncounted", 1) in codes
    assert "1 ground-truth box outside every area range: not counted" in _said(result, "gt-uncounted")[0].message
    ignored = COCO.with_options(ignored_flags=("crowd", "ignore"))
    assert _said(evaluate(truth, [det(DOG, 0.9)], protocol=ignored), "gt-unmatchable") == []


@pytest.mark.parametrize(("n_boxes", "severity"), [(1000, Severity.NOTE), (999, Severity.WARNING)])
def test_near_duplicates_are_a_note_up_to_one_in_a_thousand(n_boxes: int, severity: Severity) -> None:
    apart = np.arange(n_boxes - 1)[:, None] * [300, 0, 0, 0] + [0, 0, 100, 100]
    truth = BoxTable.from_arrays([0] * n_boxes, [0] * n_boxes, [*apart, [1, 0, 100, 100]], encoding="xywh")
    found = BoxTable.from_arrays([0], [0], [[0, 0, 100, 100]], encoding="xywh", score=[0.9])
    (finding,) = [one for one in evaluate_sides(truth, found).findings if one.code == "gt-near-duplicate"]
    assert finding.severity is severity
