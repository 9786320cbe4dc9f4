"""A similarity of another package, from a file with its shapes to metrics, comparisons, saved runs and back."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import BoxTable, DataError, UsageError, compare, evaluate, load
from jaccard_eval.data.boxtable import Shapes
from jaccard_eval.data.protocol import COCO
from jaccard_eval.features.nms import Suppression, suppress
from jaccard_eval.formats import ReadOptions
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.npz import render
from jaccard_eval.runs import load_run
from jaccard_eval.similarity import KINDS

BY_LENGTH = COCO.with_options(name="line", iou_type="interval", iou_thresholds=(0.5, 0.75, 0.9))
TRUTH = "a dog 0-4,6-10\na dog 20-30\n"
# The first is the first object. The second shares 8 of 10 with it, which is taken, but has its bounds. The third
# shares 8 of 10 with the second object, whose bounds it has as well.
PREDICTIONS = "a dog 0.9 0-4,6-10\na dog 0.8 0-10\na dog 0.7 20-24,26-30\n"
# TP FP TP of 2 objects: precision 1 at the 51 recalls up to .5, then 2/3 at the other 50 of 101.
BOTH_FOUND = (51 + 50 * 2 / 3) / 101
ONE_FOUND = 51 / 101


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install `intervals.py` as a package with two entry points."""
    package = tmp_path / "site/line-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: line\nVersion: 1.0\n")
    points = "[jaccard_eval.formats]\nline = intervals\n\n"
    points += "[jaccard_eval.similarities]\ninterval = intervals:SIMILARITY\n"
    (package / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    yield
    KINDS.pop("interval", None)
    sys.modules.pop("intervals", None)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "gt.line", TRUTH), write(tmp_path / "pred.line", PREDICTIONS)


def test_ap_is_that_of_the_shapes(sides: tuple[Path, Path]) -> None:
    result = evaluate(*sides, protocol=BY_LENGTH)
    found = [result[f"AP[iou={iou}]"] for iou in (0.5, 0.75, 0.9)]
    assert found == pytest.approx([BOTH_FOUND, BOTH_FOUND, ONE_FOUND], abs=1e-12)
    boxes = evaluate(*sides, protocol=BY_LENGTH.with_options(iou_type="bbox"))
    assert boxes["AP[iou=0.9]"] == pytest.approx(
        BOTH_FOUND, abs=1e-12
    )  # the bounds of the third are those of the object


def test_errors_are_found_by_the_shapes_whatever_the_class(tmp_path: Path) -> None:
    gt = write(tmp_path / "gt.line", "a dog 0-10\na cat 20-30\n")
    pred = write(tmp_path / "pred.line", "a cat 0.9 0-10\na cat 0.8 20-21,29-30\n")  # bounds of the cat, 2 of 10 of it
    types = {kind.name: kind.count for kind in evaluate(gt, pred, protocol=BY_LENGTH, errors=True).errors.types}
    assert (types["classification"], types["localisation"]) == (1, 1)


def test_signature_and_document_say_what_was_compared_where_it_is_not_boxes(sides: tuple[Path, Path]) -> None:
    shapes, boxes = (evaluate(*sides, protocol=BY_LENGTH.with_options(iou_type=kind)) for kind in ("interval", "bbox"))
    assert "|iou_type=interval|" in shapes.signature
    assert shapes.to_dict()["protocol"]["iou_type"] == "interval"
    assert "iou_type" not in boxes.signature
    assert "iou_type" not in boxes.to_dict()["protocol"]


def test_fingerprints_differ_when_only_shapes_do(sides: tuple[Path, Path], tmp_path: Path) -> None:
    other = write(tmp_path / "other.line", PREDICTIONS.replace("0-10", "0-5,6-10"))
    first, second = (evaluate(sides[0], pred, protocol=BY_LENGTH) for pred in (sides[1], other))
    assert first.gt.fingerprint == second.gt.fingerprint
    assert first.pred.fingerprint != second.pred.fingerprint


def test_a_run_is_read_back_and_compared_as_its_inputs_are(sides: tuple[Path, Path], tmp_path: Path) -> None:
    gt, pred = sides
    better = write(tmp_path / "better.line", PREDICTIONS.replace("20-24,26-30", "20-30"))
    runs = []
    for path in (pred, better):
        result = evaluate(gt, path, protocol=BY_LENGTH)
        runs.append(path.with_suffix(".npz"))
        runs[-1].write_bytes(render(result, ReportOptions()))
        again = load_run(runs[-1])
        assert again.to_dict()["metrics"] == result.to_dict()["metrics"]
        assert render(again, ReportOptions()) == runs[-1].read_bytes()
    (whole,) = compare(gt, pred, better, protocol=BY_LENGTH).others
    assert [(str(one.kind), one.before.iou, one.after.iou) for one in whole.changes] == [("moved", 0.8, 1.0)]
    (saved,) = compare(None, *runs).others
    assert saved.changes == whole.changes


def test_units_and_origins_are_those_of_the_boxes(tmp_path: Path) -> None:
    path = write(tmp_path / "gt.line", "size a 100\na dog 0.125-0.25,0.5-0.75\n")
    for options in (ReadOptions(units="norm"), ReadOptions(origin=1), ReadOptions()):
        boxes = load(path, options=options).boxes
        assert boxes.shapes is not None
        assert boxes.shapes.bounds()[:, [0, 2]].tolist() == boxes.xywh[:, [0, 2]].tolist()
    assert load(path, options=ReadOptions(units="norm")).boxes.shapes.bounds()[0, 0] == 12.5  # type: ignore[union-attr]


def ends(shapes: Shapes | None) -> list[list[float]]:
    assert shapes is not None
    return shapes.to_arrays()["ends"].tolist()  # type: ignore[no-any-return]


def test_shapes_go_where_their_rows_go(sides: tuple[Path, Path]) -> None:
    boxes = load(sides[1], role="pred").boxes
    last = [[20.0, 24.0], [26.0, 30.0]]
    assert ends(boxes.take(np.array([2])).shapes) == ends(boxes.take(np.array([False, False, True])).shapes) == last
    assert ends(BoxTable.concat([boxes.take(np.array([2])), boxes.take(np.array([1]))]).shapes) == [*last, [0.0, 10.0]]
    assert ends(suppress(boxes, Suppression(iou=0.5)).shapes) == [[0.0, 4.0], [6.0, 10.0], *last]
    with pytest.raises(UsageError, match="there are 3 shapes; expected 1, one per box"):
        BoxTable.from_arrays([0], [0], [[0, 0, 1, 1]], shapes=boxes.shapes)


def test_boxes_without_the_shapes_to_compare_are_an_error(sides: tuple[Path, Path]) -> None:
    bare = BoxTable.from_arrays([0], [0], [[0, 0, 1, 1]], score=[1.0])
    with pytest.raises(DataError, match="was read without the shapes that iou_type 'interval' compares") as caught:
        evaluate(bare, bare, protocol=BY_LENGTH)
    assert [finding.code for finding in caught.value.findings] == ["shapes-missing"]


def test_an_unknown_kind_names_those_that_there_are(sides: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match=r"unknown iou_type 'intervall'; choose from .*bbox.*interval.*Did you mean"):
        evaluate(*sides, protocol=BY_LENGTH.with_options(iou_type="intervall"))
