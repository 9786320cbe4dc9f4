"""Reading inputs: every problem of both sides at once, swapped sides recognised, one input read as what it is."""

import json
from pathlib import Path

import pandas as pd
import pytest

from jaccard_eval import BoxTable, Dataset, evaluate, load
from jaccard_eval.evaluation import load_and_align
from jaccard_eval.findings import DataError
from jaccard_eval.inputs import Input, read_alone, read_both
from jaccard_eval.options import ReadOptions, SideOptions

BOX = [10, 10, 20, 20]
TRUTH = {
    "images": [{"id": 1, "file_name": "a.jpg"}],
    "categories": [{"id": 1, "name": "dog"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": BOX, "area": 400, "iscrowd": 0}],
}
RESULTS = [{"image_id": 1, "category_id": 1, "bbox": BOX, "score": 0.9}]


def coco(folder: Path, name: str, content: object) -> Input:
    path = folder / name
    path.write_text(json.dumps(content))
    return Input(path)


def yolo(folder: Path, name: str, line: str) -> Input:
    (folder / name).mkdir()
    (folder / name / "a.txt").write_text(f"{line}\n")
    return Input(folder / name)


def both(gt: Input, pred: Input) -> tuple[Dataset, Dataset]:
    readings = read_both(gt, pred)
    assert readings.gt is not None and readings.pred is not None and not readings.errors
    return readings.gt, readings.pred


def error_codes(gt: Input, pred: Input) -> list[str]:
    return [error.code for error in read_both(gt, pred).errors]


def test_both_sides_are_read_in_their_roles(tmp_path: Path) -> None:
    gt, pred = both(coco(tmp_path, "gt.json", TRUTH), coco(tmp_path, "pred.json", RESULTS))
    assert (gt.role, pred.role) == ("gt", "pred")


def test_problems_of_both_sides_are_told_at_once(tmp_path: Path) -> None:
    pred = coco(tmp_path, "pred.json", [{**RESULTS[0], "bbox": [1, 2, 3]}])
    assert error_codes(Input(tmp_path / "no.json"), pred) == ["file-missing", "bbox-length"]


@pytest.mark.parametrize("layout", ["coco", "yolo"])
def test_swapped_sides_are_recognised_with_the_repair(tmp_path: Path, layout: str) -> None:
    if layout == "coco":
        truth, results = coco(tmp_path, "gt.json", TRUTH), coco(tmp_path, "pred.json", RESULTS)
    else:
        truth, results = yolo(tmp_path, "labels", "0 .5 .5 .9 .2"), yolo(tmp_path, "found", "0 .5 .5 .9 .2 .9")
    readings = read_both(results, truth)  # the wrong way round
    assert readings.gt is not None and readings.pred is not None
    assert (readings.gt.path, readings.pred.path) == (str(truth.source), str(results.source))
    assert [(error.code, str(error.fix)) for error in readings.errors] == [
        ("sides-swapped", f"Pass --gt {truth.source} --pred {results.source}.")
    ]
    with pytest.raises(DataError, match="sides-swapped"):
        load_and_align(results.source, truth.source, SideOptions())


def test_predictions_without_scores_are_not_taken_for_swapped(tmp_path: Path) -> None:
    assert error_codes(coco(tmp_path, "gt.json", TRUTH), coco(tmp_path, "pred.json", TRUTH)) == ["pred-copies-gt"]


def test_one_input_is_predictions_where_it_has_scores(tmp_path: Path) -> None:
    assert read_alone(coco(tmp_path, "gt.json", TRUTH)).role == "gt"
    assert read_alone(coco(tmp_path, "pred.json", RESULTS)).role == "pred"
    assert read_alone(yolo(tmp_path, "labels", "0 .5 .5 .9 .2")).role == "gt"
    assert read_alone(yolo(tmp_path, "found", "0 .5 .5 .9 .2 .9")).role == "pred"
    assert read_alone(Input(BoxTable.from_arrays([0], [0], [[0, 0, 1, 1]], score=[0.5]))).role == "pred"


def test_the_role_of_one_input_can_be_forced(tmp_path: Path) -> None:
    assert read_alone(yolo(tmp_path, "found", "0 .5 .5 .9 .2 .9"), "gt").boxes.score is None


def test_a_broken_list_of_results_is_told_as_such_and_not_as_broken_ground_truth(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read_alone(coco(tmp_path, "pred.json", [{**RESULTS[0], "bbox": [1, 2, 3]}]))
    assert [finding.code for finding in raised.value.findings] == ["bbox-length"]


def test_broken_ground_truth_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read_alone(coco(tmp_path, "gt.json", {**TRUTH, "images": []}))
    assert "section-empty" in [finding.code for finding in raised.value.findings]


VOC = """<annotation><object><name>{}</name><bndbox><xmin>10</xmin><ymin>10</ymin><xmax>30</xmax><ymax>30</ymax>
</bndbox></object></annotation>"""


def numbered_beside_named(folder: Path, **names: str) -> tuple[Input, Input]:
    """Ground truth with names in r/gts, detections of class 1 in r/dets/run/abs, and texts of names where asked for."""
    for inner in ("gts", "dets/run/abs"):
        (folder / inner).mkdir(parents=True)
    (folder / "gts/a.xml").write_text(VOC.format("dog"))
    (folder / "dets/run/abs/a.txt").write_text("1 .9 10 10 30 30\n")
    for place, text in names.items():
        (folder / place).write_text(text)
    return Input(folder / "gts"), Input(folder / "dets/run/abs", options=ReadOptions(box="xyxy", units="px"))


@pytest.mark.parametrize("place", ["voc.names", "obj.names", "voc_classes.txt", "dets/classes.txt", "dets/data.yaml"])
def test_classes_that_are_numbers_are_named_by_the_one_names_file_above(place: str, tmp_path: Path) -> None:
    text = "names: [cat, dog]\n" if place.endswith(".yaml") else "cat\ndog\n"
    gt, pred = both(*numbered_beside_named(tmp_path / "r", **{place: text}))
    assert pred.labels.names[int(pred.boxes.label[0])] == "dog"
    assert gt.labels.names == ("dog",)
    if not place.startswith("dets/"):  # what lies two levels above labels is found by their reader
        (note,) = (finding for finding in pred.findings if finding.code == "names-found")
        assert note.message == (
            f"{tmp_path}/r/dets/run/abs: its classes are numbers; named by the 2 names in {tmp_path}/r/{place}."
            " For other names, pass --pred-names."
        )


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ({"voc.names": "dog\n"}, "class 1 has no name in it"),
        ({"voc.names": "cat\ndog\n", "b.names": "dog\ncat\n"}, "two say different things"),
        ({"voc.names": "cat\nbird\n"}, "the ground truth has no bird"),
        ({"../voc.names": "cat\ndog\n"}, "it lies above the folder of both"),
        ({"voc.names": "cat\n\ndog\n"}, "it cannot be read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_names_file_above_that_may_be_of_other_data_is_not_used(
    names: dict[str, str], why: str, tmp_path: Path
) -> None:
    _, pred = both(*numbered_beside_named(tmp_path / "r", **names))
    assert (pred.labels.keys, pred.labels.named) == ((1,), False), why


def test_names_that_the_user_gives_go_before_a_names_file_above(tmp_path: Path) -> None:
    gt, pred = numbered_beside_named(tmp_path / "r", **{"voc.names": "cat\ndog\n"})
    given = Input(pred.source, options=ReadOptions(box="xyxy", units="px", names=("dog", "cat")))
    assert both(gt, given)[1].labels.names == ("dog", "cat")


def test_an_index_that_is_no_id_of_the_other_side_is_named(tmp_path: Path) -> None:
    (tmp_path / "my.names").write_text("dog\ncat\n")
    results = [{**RESULTS[0], "category_id": 0}]
    gt, pred = both(coco(tmp_path, "gt.json", TRUTH), coco(tmp_path, "pred.json", results))
    assert (gt.labels.names, pred.labels.names[int(pred.boxes.label[0])]) == (("dog",), "dog")


def test_ids_are_not_named_where_the_other_side_has_ids(tmp_path: Path) -> None:
    (tmp_path / "coco.names").write_text("cat\ndog\n")
    _, pred = both(coco(tmp_path, "gt.json", TRUTH), coco(tmp_path, "pred.json", RESULTS))
    assert (pred.labels.keys, pred.labels.named) == ((1,), False)


def test_boxes_of_both_sides_that_may_be_corners_are_not_guessed(tmp_path: Path) -> None:
    """Ten boxes of 40 x 30 far from the corner of the image: as left, top, width and height all would be larger."""
    rows = [{"image": "a.jpg", "class": "dog", "bbox": [50 + 60 * at, 70, 90 + 60 * at, 100]} for at in range(10)]
    scored = [{**row, "score": 0.9, "bbox": [side + 4 for side in row["bbox"]]} for row in rows]
    gt, pred = (tmp_path / name for name in ("gt.json", "pred.json"))
    for path, content in ((gt, rows), (pred, scored)):
        path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"columns-ambiguous.*fit as x1 y1 x2 y2 and as x y w h"):
        evaluate(gt, pred)
    corners = ReadOptions(box="xyxy")
    # 36 x 26 of 40 x 30 are shared: 936 of 1464, .639, at 3 of 10 thresholds.
    assert evaluate(gt, pred, gt_options=corners, pred_options=corners)["AP"] == pytest.approx(0.3)
    sized = [{**row, "width": 1400, "height": 900} for row in rows]
    gt.write_text(json.dumps(sized))
    assert "columns-ambiguous" not in {finding.code for finding in load(gt).findings}
    table = pd.DataFrame([dict(zip("xywh", row["bbox"], strict=True), image="a.jpg", label="dog") for row in rows])
    assert evaluate(table, table.assign(score=0.9))["AP"] == 1  # columns that are called so
