"""Files that hold points: lists of NWPU-Crowd, tables of x and y, and answers of models that point."""

import json
from pathlib import Path

import pytest
from command_line import run_here

from jaccard_eval import DataError, Dataset, ReadOptions, evaluate
from jaccard_eval.formats import read_dataset

pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")

TABLE = "image,label,x,y,image_width,image_height\na.jpg,dogs,20,40,200,200\na.jpg,dogs,100,120,200,200\n"
MOLMO = '<points x1="10.0" y1="20.0" x2="50" y2="60.5" alt="dogs">dogs</points>'


def read(folder: Path, name: str, text: str, role: str = "gt", format_name: str | None = None) -> Dataset:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_dataset(path, ReadOptions(role=role), format_name)


def refused(folder: Path, name: str, text: str, format_name: str | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read(folder, name, text, format_name=format_name)
    return str(caught.value)


def test_heads_have_the_shorter_side_as_width_and_their_diagonal(tmp_path: Path) -> None:
    data = read(tmp_path, "gt.txt", "3110 2 10 20 3 5 1 50 60 2 2 0\n3111 0\n")
    assert (data.format, data.facts.usual_protocol, list(data.images.keys)) == ("nwpu", "nwpu", ["3110", "3111"])
    # Half a side of 3 and half a diagonal of 5 leave 4 for the other side; what is rounded has none.
    assert data.boxes.xywh.tolist() == [[7, 16, 6, 8], [48, 60, 4, 0]]
    assert data.labels.names == ("person",)


def test_results_of_heads_are_points(tmp_path: Path) -> None:
    path = tmp_path / "pred.txt"
    path.write_text("7 2 1.5 2 3 4\n", encoding="utf-8")
    data = read_dataset(path, ReadOptions(role="pred", assume_score=1.0))
    assert data.boxes.xywh.tolist() == [[1.5, 2, 0, 0], [3, 4, 0, 0]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3110 2 10 20 3 5 1 50", "2 heads announced, 6 numbers follow"),
        ("3110", "no count of heads, 0 numbers follow"),
        ("3110 -1 10 20", "no count of heads, 2 numbers follow"),
        (f"3110 {'9' * 5000} 10 20", "no count of heads, 2 numbers follow"),
        ("3110 1 ten 20", "'ten' is not a plain finite number"),
        ("3110 1 10 20 5 3 1", "'5 3': half a diagonal is at least half a side"),
        ("3109 1 10 20", "the image already stands in line 1"),
    ],
)
def test_lines_that_are_no_image_are_refused_with_their_place(tmp_path: Path, line: str, message: str) -> None:
    text = refused(tmp_path, "gt.txt", f"3109 1 10 20\n{line}\n", "nwpu")
    assert f"{tmp_path / 'gt.txt'}:2" in text
    assert message in text


def test_a_list_of_nothing_is_refused(tmp_path: Path) -> None:
    assert "error[file-empty]" in refused(tmp_path, "gt.txt", "\n\n", "nwpu")


@pytest.mark.parametrize(
    ("answer", "units"),
    [
        (MOLMO, None),
        ('<point x="10.0" y="20.0" alt="dogs">dogs</point> <point x="50" y="60.5">dogs</point>', None),
        ('```json\n[{"point": [200, 100], "label": "dogs"}, {"point": [605, 500], "label": "dogs"}]\n```', None),
        ('[{"point_2d": [100, 200], "label": "dogs"}, {"point_2d": [500, 605], "label": "dogs"}]', "norm"),
        ('[{"point_2d": [20, 40], "label": "dogs"}, {"point_2d": [100, 121], "label": "dogs"}]', "px"),
    ],
)
def test_answers_that_point_are_within_the_distance(tmp_path: Path, answer: str, units: str | None) -> None:
    (tmp_path / "gt.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "pred.jsonl").write_text(json.dumps({"image": "a.jpg", "response": answer}) + "\n", encoding="utf-8")
    sides = tmp_path / "gt.csv", tmp_path / "pred.jsonl"
    result = evaluate(*sides, protocol="points=0.9,1", pred_options=ReadOptions(units=units))
    # The first is on the point, the second one pixel below it.
    near, far = (result[f"TP[iou={iou}]"] for iou in reversed(result.protocol.iou_thresholds))
    assert (near, far, result["FP"], result["count_exact"]) == (1, 2, 0, 1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ('<points x1="10.0" y1="a">dogs</points>', "' x1=\"10.0\"' has 1 numbers; a point has 2"),
        ('<point x="a" y="2">dogs</point>', "is not a box with a label, or not an object in JSON"),
        ('[{"point_2d": [100, 200, 3], "label": "dogs"}]', "point_2d"),
        ('[{"point": [200, 1001], "label": "dogs"}]', "above the thousandths that point counts"),
        (MOLMO.replace(">dogs<", "> <"), "a box has no label"),
    ],
)
def test_answers_that_point_nowhere_are_refused(tmp_path: Path, answer: str, message: str) -> None:
    assert message in refused(tmp_path, "a.json", json.dumps({"image": "a.jpg", "response": answer}), "vlm")


PIXMO = [
    {"image_url": "a.jpg", "label": "dogs", "count": 2, "points": [{"x": 10.0, "y": 20.0}, {"x": 50, "y": 60.5}]},
    {"image_url": "a.jpg", "label": "cats", "count": 0, "points": []},
]


def test_rows_of_pixmo_are_points_in_per_cent(tmp_path: Path) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in PIXMO)
    data = read(tmp_path, "pixmo.jsonl", lines)
    assert (data.format, data.units, data.facts.usual_protocol) == ("vlm", "norm", "points")
    assert data.boxes.xywh.tolist() == [[0.1, 0.2, 0, 0], [0.5, 0.605, 0, 0]]
    assert list(data.images.keys) == ["a.jpg"]
    # A table of the same points in pixels has the sizes that per cent need.
    (tmp_path / "gt.csv").write_text(TABLE, encoding="utf-8")
    result = evaluate(
        tmp_path / "gt.csv", tmp_path / "pixmo.jsonl", protocol="points=1", pred_options=ReadOptions(assume_score=1.0)
    )
    assert (result["TP"], result["count_exact"]) == (2, 1)


@pytest.mark.parametrize("wrong", ["a", None, True, 1e400])
def test_points_of_pixmo_that_are_no_numbers_are_refused(tmp_path: Path, wrong: object) -> None:
    row = {"image_url": "a.jpg", "label": "dogs", "points": [{"x": 1, "y": wrong}]}
    assert f"{tmp_path / 'pixmo.jsonl'}:1: " in refused(tmp_path, "pixmo.jsonl", json.dumps(row) + "\n", "vlm")


def test_points_are_compared_by_no_area(tmp_path: Path) -> None:
    (tmp_path / "gt.csv").write_text(TABLE, encoding="utf-8")
    with pytest.raises(DataError, match=r"holds points, which have no area for protocol coco to compare") as caught:
        evaluate(tmp_path / "gt.csv", tmp_path / "gt.csv", pred_options=ReadOptions(assume_score=1.0))
    assert "points=4,8" in str(caught.value)
    with pytest.raises(DataError, match=r"holds points, which have no size for protocol nwpu to compare"):
        evaluate(tmp_path / "gt.csv", tmp_path / "gt.csv", protocol="nwpu", pred_options=ReadOptions(assume_score=1.0))


def test_a_summary_with_precision_counts_in_a_column_that_is_not_called_objects(tmp_path: Path) -> None:
    # Three of four detections are on the three objects: precision is of 4, recall of 3.
    (tmp_path / "gt.txt").write_text("1 2 851 1304 15 23 3 831 1344 13 22 2\n2 1 100 100 10 12 2\n")
    (tmp_path / "pred.txt").write_text("1 2 851 1303 832 1344\n2 2 101 100 500 500\n")
    lines = run_here(tmp_path / "gt.txt", tmp_path / "pred.txt").stdout.splitlines()
    summary = [line.split() for line in lines[lines.index("Summary") + 1 :]]
    assert summary[0] == ["metric", "value", "n"]
    assert [row[1:] for row in summary if len(row) == 3 and row[0] in ("precision", "recall")] == [
        ["0.7500", "4"],
        ["1.0000", "3"],
    ]
    assert "  n: objects, of precision detections" in lines
