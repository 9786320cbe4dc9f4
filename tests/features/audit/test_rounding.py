"""Rounded boxes: the bound of the IoU against brute force, the steps found, and when it is told."""

from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaccard_eval import BoxTable, EvaluationResult, evaluate
from jaccard_eval.features.audit.boxes import fewest_decimals, least_iou, quantiles
from jaccard_eval.findings import Finding, Severity
from jaccard_eval.similarity.boxes import Corners, overlapping_pairs

N = 40  # boxes of a scene
FloatArray = npt.NDArray[np.float64]


def _said(result: EvaluationResult) -> list[Finding]:
    return [finding for finding in result.findings if finding.code == "box-rounded"]


def _scene(side: float = 40.0) -> FloatArray:
    """Boxes (n, 4) as corners, of random sides around `side`, with all their digits."""
    rng = np.random.default_rng(11)
    corners = 100 * rng.random((N, 2))
    return np.concatenate((corners, corners + side * (0.8 + 0.4 * rng.random((N, 2)))), axis=1)


def _evaluate(truth: FloatArray, pred: FloatArray) -> EvaluationResult:
    """One box per image, so that every rounded box meets the one that it came from."""
    rows, zeros = np.arange(N), np.zeros(N, dtype=int)
    gt = BoxTable.from_arrays(rows, zeros, truth)
    return evaluate(gt, BoxTable.from_arrays(rows, zeros, pred, score=np.linspace(0.01, 0.99, N)))


@pytest.mark.parametrize("sides", [(10.0, 10.0), (10.0, 3.0), (2.0, 50.0), (1.5, 1.5), (640.0, 480.0)])
@pytest.mark.parametrize("step", [1.0, 0.1, 0.64])
def test_no_movement_of_the_edges_by_half_a_step_goes_below_the_bound(sides: tuple[float, float], step: float) -> None:
    rng = np.random.default_rng(2)
    extremes = np.array(list(product((-step / 2, 0.0, step / 2), repeat=4)))
    moves = np.concatenate((extremes, step * (rng.random((2000, 4)) - 0.5)))
    corners = np.array([0.0, 0.0, *sides]) + moves
    xywh = np.concatenate((corners[:, :2], corners[:, 2:] - corners[:, :2]), axis=1)
    n = len(xywh)
    true = Corners.of(np.array([[0.0, 0.0, *sides]]))
    kept, _, overlap = overlapping_pairs(Corners.of(xywh), true, np.arange(n), np.zeros(n, dtype=np.int64))
    bound = float(least_iou(np.array([sides]), step)[0])
    lowest = float(overlap.min()) if len(kept) == n else 0.0
    assert bound == pytest.approx(lowest, abs=1e-12)  # all edges inward by half a step is the worst


def test_the_bound_of_some_boxes() -> None:
    # (1 - 1/10)^2, (1 - 1/100)^2, and a box no longer than the step
    sides = np.array([[10.0, 10.0], [100.0, 100.0], [1.0, 50.0], [0.5, 50.0], [0.0, 5.0]])
    assert least_iou(sides, 1.0).tolist() == pytest.approx([0.81, 0.9801, 0.0, 0.0, 0.0])
    assert least_iou(np.array([[10.0, 20.0]]), (1.0, 0.5)).tolist() == pytest.approx([0.9 * 0.975])


@pytest.mark.parametrize(
    ("coords", "decimals"),
    [
        ([[1.0, 2.0, 3.0, 4.0]], 0),
        ([[1.0, 2.0, 3.0, 4.0], [1.5, 2.0, 3.0, 4.0]], 1),
        ([[0.123, 0.4, 0.25, 0.5]], 3),
        ([[199.99975, 20.0001, 30.0, 40.0002]], 0),  # fractions of six decimals, in pixels
        ([[0.12345, 0.4, 0.25, 0.5]], None),
    ],
)
def test_the_fewest_decimals_are_found(coords: list[list[float]], decimals: int | None) -> None:
    boxes = np.array(coords)
    assert fewest_decimals([boxes], 4) == decimals
    assert fewest_decimals(np.split(boxes, len(boxes)), 4) == decimals


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(0, 1e9) | st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=40),
    st.floats(0, 1),
    st.integers(1, 5),
)
def test_quantiles_of_numbers_in_parts_are_those_of_numpy(numbers: list[float], share: float, n_parts: int) -> None:
    parts = np.array_split(np.array(numbers), n_parts)
    found = quantiles(lambda: parts, len(numbers), (share, 0.1))
    assert found == np.quantile(numbers, (share, 0.1)).tolist()


def test_whole_pixels_of_small_objects_are_a_warning() -> None:
    truth = _scene(12.0)
    (warning,) = _said(_evaluate(truth, np.round(truth)))
    assert warning.severity is Severity.WARNING
    sides = truth[:, 2:] - truth[:, :2]
    loss = 1 - np.quantile((1 - 1 / sides).prod(axis=1), 0.5)
    assert "predictions are rounded to whole pixels, the ground truth is not" in warning.message
    assert f"can cost up to {loss:.3f} IoU at the median object" in warning.message
    assert warning.table[0] == ("IoU threshold", "objects that rounding alone can push below it")
    assert [row[0] for row in warning.table[1:]] == ["0.95", "0.75", "0.5"]
    assert [row[1] for row in warning.table[1:]] == ["100.0%", "0.0%", "0.0%"]  # sides of 9.6 to 14.4: .80 to .87


@pytest.mark.parametrize(
    ("side", "decimals", "severity"),
    [
        (40.0, 0, Severity.NOTE),  # (1 - 1/32)^2 is .94 for the smallest
        (400.0, 0, Severity.NOTE),  # next to nothing, but predictions are not whole as a rule
        (12.0, 1, Severity.NOTE),
        (40.0, 1, None),  # a tenth of a pixel costs .5 % of 40 pixels
        (12.0, 2, None),
    ],
)
def test_what_costs_little_is_a_note_or_nothing(side: float, decimals: int, severity: Severity | None) -> None:
    truth = _scene(side)
    assert [one.severity for one in _said(_evaluate(truth, np.round(truth, decimals)))] == ([severity] * bool(severity))


def test_ground_truth_in_whole_pixels_is_no_more_than_a_note_and_that_for_small_objects_only() -> None:
    small, large = _scene(12.0), _scene(60.0)
    (note,) = _said(_evaluate(np.round(small), small))
    assert note.severity is Severity.NOTE
    assert "ground truth are rounded" not in note.message
    assert "ground truth is rounded to whole pixels, predictions are not" in note.message
    assert _said(_evaluate(np.round(large), large)) == []


def test_both_sides_in_whole_pixels_are_as_usual() -> None:
    truth = np.round(_scene(12.0))
    assert _said(_evaluate(truth, truth + 1)) == []


def test_a_few_boxes_may_well_be_whole() -> None:
    truth = _scene(12.0)[:19]
    gt = BoxTable.from_arrays(np.arange(19), [0] * 19, truth)
    pred = BoxTable.from_arrays(np.arange(19), [0] * 19, np.round(truth), score=np.linspace(0.1, 0.9, 19))
    assert _said(evaluate(gt, pred)) == []


@pytest.mark.parametrize(("decimals", "severity"), [(2, Severity.WARNING), (3, None), (6, None)])
def test_fractions_of_few_decimals_are_told_in_pixels(
    decimals: int, severity: Severity | None, tmp_path: Path, sample_data: Path
) -> None:
    # Images are 640 x 480 in the middle: 2 decimals are steps of 6.4 x 4.8 pixels. 3 decimals are steps of a tenth of
    # that, finer than the whole pixels of the ground truth.
    folder = tmp_path / "labels"
    folder.mkdir()
    for path in (sample_data / "yolo/better").glob("*.txt"):
        lines = [line.split() for line in path.read_text().splitlines()]
        rounded = [[name, *(f"{float(x):.{decimals}f}" for x in box), score] for name, *box, score in lines]
        (folder / path.name).write_text("".join(f"{' '.join(words)}\n" for words in rounded))
    findings = _said(evaluate(sample_data / "coco/gt.json", folder))
    assert [one.severity for one in findings] == [severity] * bool(severity)
    if decimals == 2:
        assert "predictions are rounded to fractions with 2 decimals, in steps of 6.4 x 4.8" in findings[0].message
