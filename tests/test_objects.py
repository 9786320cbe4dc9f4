"""What a program holds is read as the file that it would be written to: tables, COCO objects, arrays by image."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from array_likes import Capsule, Tensor
from pycocotools.coco import COCO  # type: ignore[import-untyped]
from pycocotools.cocoeval import COCOeval  # type: ignore[import-untyped]

from jaccard_eval import (
    BoxTable,
    DataError,
    ReadOptions,
    UsageError,
    compare,
    evaluate,
    explain,
    gate,
    inspect,
    load,
    sensitivity,
    to_frame,
)

SAMPLE = Path(__file__).parents[1] / "sample_data"
CSV, COCO_FILES = SAMPLE / "csv", SAMPLE / "coco"
GT, BETTER = (json.loads((COCO_FILES / f"{name}.json").read_text()) for name in ("gt", "better"))

NAMES = tuple(category["name"] for category in GT["categories"])


def by_image(records: list[dict[str, Any]], make: Any = np.array) -> list[dict[str, Any]]:
    """COCO records as one dict per image of the sample, with classes by index."""
    index = {category["id"]: row for row, category in enumerate(GT["categories"])}
    found = []
    for image in GT["images"]:
        own = [record for record in records if record["image_id"] == image["id"]]
        entry: dict[str, Any] = {
            "image_id": image["file_name"],
            "boxes": make([record["bbox"] for record in own]),
            "labels": make([index[record["category_id"]] for record in own]),
            "encoding": "xywh",
        }
        if records is BETTER:
            entry["scores"] = make([record["score"] for record in own])
        else:
            entry |= {name: make([record[name] for record in own]) for name in ("iscrowd", "area")}
        found.append(entry)
    return found


def test_a_table_and_its_file_give_one_document_but_for_the_paths() -> None:
    tables = [pd.read_csv(CSV / name) for name in ("gt.csv", "better.csv")]
    of_tables, of_files = evaluate(*tables), evaluate(CSV / "gt.csv", CSV / "better.csv")
    assert of_tables.signature == of_files.signature
    document, expected = of_tables.to_dict(), of_files.to_dict()
    for side in (*document["inputs"].values(), *expected["inputs"].values()):
        del side["path"]
    assert document["metrics"] == expected["metrics"]
    assert document["inputs"] == expected["inputs"]


def test_coco_objects_and_their_files_give_one_signature_and_the_numbers_of_pycocotools() -> None:
    result = evaluate(GT, BETTER)
    expected = evaluate(COCO_FILES / "gt.json", COCO_FILES / "better.json")
    assert result.signature == expected.signature
    assert {name: value.value for name, value in result.metrics.items()} == {
        name: value.value for name, value in expected.metrics.items()
    }
    with redirect_stdout(io.StringIO()):
        truth = COCO(str(COCO_FILES / "gt.json"))
        peer = COCOeval(truth, truth.loadRes(str(COCO_FILES / "better.json")), "bbox")
        peer.evaluate()
        peer.accumulate()
        peer.summarize()
    assert [metric.value for metric in result.metrics.values()] == pytest.approx(peer.stats, abs=1e-12)


def test_coco_objects_of_numpy_numbers_are_those_of_python() -> None:
    arrays = [
        {
            **record,
            "image_id": np.int64(record["image_id"]),
            "bbox": np.array(record["bbox"]),
            "score": np.float64(record["score"]),
        }
        for record in BETTER
    ]
    assert evaluate(GT, arrays).signature == evaluate(GT, BETTER).signature


@pytest.mark.parametrize("make", [np.array, Tensor, Capsule, list])
def test_arrays_by_image_give_the_signature_of_the_file(make: Any) -> None:
    options = ReadOptions(names=NAMES)
    sides = by_image(GT["annotations"], make), by_image(BETTER, make)
    result = evaluate(*sides, gt_options=options, pred_options=options)
    expected = evaluate(COCO_FILES / "gt.json", COCO_FILES / "better.json")
    assert result["AP"] == expected["AP"]
    assert result.signature == expected.signature


def test_arrays_by_image_are_corners_and_numbered_in_their_order() -> None:
    gt = [
        {"boxes": np.array([[0, 0, 10, 10]]), "labels": np.array([0])},
        {"boxes": np.zeros((0, 4)), "labels": np.array([])},
    ]
    pred = [
        {"boxes": np.array([[0, 0, 10, 10]]), "labels": np.array([0]), "scores": np.array([0.9])},
        {"boxes": np.array([[5, 5, 9, 9]]), "labels": np.array([0]), "scores": np.array([0.95])},
    ]
    result = evaluate(gt, pred, iou=0.5)
    # The false positive on the second image has the higher score: precision is 1/2 at every recall.
    assert result["AP"] == pytest.approx(0.5, abs=1e-12)
    assert load(gt).boxes.xywh.tolist() == [[0.0, 0.0, 10.0, 10.0]]
    assert load(gt).images.keys == (0, 1)


def test_names_of_classes_are_given_with_the_options() -> None:
    names = ReadOptions(names=("dog", "cat"))
    gt = [{"boxes": [[0, 0, 10, 10]], "labels": [1]}]
    side = load(gt, options=names)
    assert side.labels.names == ("dog", "cat")
    assert side.boxes.label.tolist() == [1]
    assert load([{"boxes": [[0, 0, 10, 10]], "labels": ["cat"]}]).labels.names == ("cat",)


def test_bfloat16_is_widened_without_loss() -> None:
    class Half(Tensor):
        dtype = "torch.bfloat16"

        def cpu(self) -> "Half":
            return Half(self.values, on_host=True)

        def float(self) -> np.ndarray[Any, Any]:
            return self.values.astype(np.float32)

    gt = [{"boxes": Half([[0, 0, 10.5, 10]]), "labels": [1]}]
    assert load(gt).boxes.xywh.tolist() == [[0.0, 0.0, 10.5, 10.0]]


BOX = [[0, 0, 10, 10]]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"boxes": [[0, 0, 10]], "labels": [1]}, r"<list>\[1\]\['boxes'\] has shape \(1, 3\); expected \(n, 4\)"),
        (
            {"boxes": [*BOX, [0, 0, 1]], "labels": [1, 2]},
            r"<list>\[1\]\['boxes'\] has 4 values in row 0 and 3 .* row 1",
        ),
        ({"boxes": BOX, "labels": [1, 2]}, r"<list>\[1\]\['labels'\] has shape \(2,\); expected \(1,\)"),
        ({"boxes": BOX, "labels": [-1]}, r"<list>: \[1\].boxes\[0\]: label is -1; expected whole numbers"),
        ({"boxes": BOX, "labels": [0.5]}, r"<list>: \[1\].boxes\[0\]: label is 0.5"),
        ({"boxes": BOX, "labels": [7]}, r"\[1\].boxes\[0\]: label is 7, but there are 2 class names \(0 to 1\)"),
        ({"boxes": [["a"] * 4], "labels": [1]}, r"<list>\[1\]\['boxes'\] must hold numbers, got 'a'"),
        ({"boxes": BOX}, r"<list>\[1\] has no labels; it has boxes"),
        ({"boxes": BOX, "labels": [1], "image_id": 0}, r"<list>\[1\]: image_id 0 is also that of \[0\]"),
        ({"boxes": BOX, "labels": [1], "image_id": "a"}, "image_id must be numbers in all dicts or texts in all"),
        ({"boxes": BOX, "labels": [1], "encoding": "xywh"}, "boxes have more than one encoding: xywh, xyxy"),
        ("boxes", r"<list>\[1\] is 'str'; expected a dict per image"),
    ],
)
def test_a_faulty_dict_is_refused_with_its_place(record: Any, message: str) -> None:
    good = {"boxes": BOX, "labels": [0]}
    with pytest.raises(UsageError, match=message):
        load([good, record], options=ReadOptions(names=("dog", "cat")))


@pytest.mark.parametrize(("box", "code"), [([0, 0, np.nan, 10], "number-not-finite"), ([10, 10, 0, 0], "box-negative")])
def test_a_faulty_box_is_refused_with_its_place(box: list[float], code: str) -> None:
    records = [{"boxes": BOX, "labels": [0]}, {"boxes": [BOX[0], box], "labels": [0, 0]}]
    with pytest.raises(DataError, match=rf"\[{code}\]: <list>: \[1\]\.boxes\[1\]"):
        load(records)


def test_scores_in_some_dicts_only_are_refused() -> None:
    scored = {"boxes": BOX, "labels": [0], "scores": [0.5]}
    with pytest.raises(UsageError, match="some dicts have scores and 1 have none"):
        load([scored, {"boxes": BOX, "labels": [0]}], role="pred")
    with pytest.raises(DataError, match="score-missing"):
        load([{"boxes": BOX, "labels": [0]}], role="pred")


def test_faults_of_a_table_are_told_by_row_and_column() -> None:
    table = pd.read_csv(CSV / "better.csv")
    table["score"] = table["score"].astype(object)
    table.loc[3, "score"] = "high"
    with pytest.raises(DataError, match=r"<DataFrame>: row 3\.score"):
        load(table, role="pred")
    with pytest.raises(DataError, match=r"columns need names.*got 0"):
        load(pd.DataFrame(np.zeros((2, 6))))


def test_a_named_index_and_arrays_in_cells_are_columns() -> None:
    table = pd.DataFrame(
        {"image": ["a", "b"], "class": ["dog", "cat"], "bbox": [np.array([1 / 3, 2, 3, 4]), [5, 6, 7, 8]]}
    )
    expected = [[1 / 3, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]
    for given in (table, table.set_index("image")):
        side = load(given)
        assert side.boxes.xywh.tolist() == expected
        assert side.images.keys == ("a", "b")


def test_the_table_of_boxes_comes_back_as_it_was() -> None:
    side = load(CSV / "gt.csv")
    assert load(to_frame(side)).boxes.xywh.tolist() == side.boxes.xywh.tolist()


@pytest.mark.parametrize("source", [{1}, 5, {"a": 1}, [1, 2], object()])
def test_what_cannot_be_read_is_named_with_what_can(source: Any) -> None:
    kind = type(source).__name__
    with pytest.raises(UsageError) as error:
        evaluate(source, source)
    article = "an" if kind[0] in "io" else "a"
    assert str(error.value) == (
        f"evaluate() cannot read {article} {kind}. Pass a path, a DataFrame, a COCO dict or a list of dicts."
    )


def test_all_verbs_take_objects() -> None:
    table = pd.read_csv(CSV / "gt.csv")
    preds = [pd.read_csv(CSV / f"{name}.csv") for name in ("better", "worse")]
    expected = compare(CSV / "gt.csv", CSV / "better.csv", CSV / "worse.csv")
    assert compare(table, preds).signature == expected.signature
    assert compare(table, *preds).signature == expected.signature
    for given, path in ((table, CSV / "gt.csv"), (preds[0], CSV / "better.csv")):
        assert inspect(given).to_dict()["contents"] == inspect(path).to_dict()["contents"]
    files = (CSV / "gt.csv", CSV / "better.csv")
    assert sensitivity(table, preds[0]).signature == sensitivity(*files).signature
    assert explain(table, preds[0], "mAP50").signature == explain(*files, "AP50").signature


def test_predictions_by_image_alone_are_one_side_of_a_comparison() -> None:
    with pytest.raises(UsageError, match="two"):
        compare(GT, [{"boxes": BOX, "labels": [1], "scores": [0.5]}])


def test_gates_are_written_as_texts() -> None:
    result = evaluate(CSV / "gt.csv", CSV / "better.csv", iou=0.5)
    assert result["mAP@0.5"] == result["AP50"]
    assert [verdict.failed for verdict in gate(result, ["AP50>=0.2", "AP50 >= 0.999", "AP50<=0.1"])] == [
        False,
        True,
        True,
    ]
    for text in ("AP50", "AP50>0.5", "AP50>=high"):
        with pytest.raises(UsageError, match="cannot read the rule"):
            gate(result, [text])
    with pytest.raises(UsageError, match="gates must be a list"):
        gate(result, "AP50>=0.5")


def test_arrays_with_names_correspond_by_them() -> None:
    gt = BoxTable.from_arrays(["b", "a"], ["dog", "cat"], [[0, 0, 10, 10], [5, 5, 9, 9]])
    pred = BoxTable.from_arrays(["a"], [0], [[5, 5, 9, 9]], score=[0.9], names=["cat", "dog"])
    result = evaluate(gt, pred, iou=0.5)
    assert [row.name for row in result.per_class] == ["cat", "dog"]
    assert [row.values["AP"].value for row in result.per_class] == pytest.approx([1, 0], abs=1e-12)
    assert to_frame(gt)["image"].tolist() == ["b", "a"]
    # The same rows in a file, by name.
    table = pd.DataFrame({"image": ["a"], "class": ["cat"], "xmin": [5], "ymin": [5], "xmax": [9], "ymax": [9]})
    truth = pd.concat([table, table.assign(image="b", xmin=0, ymin=0, xmax=10, ymax=10, **{"class": "dog"})])
    assert evaluate(truth, table.assign(score=0.9), iou=0.5).signature == result.signature


def test_names_keep_their_order_and_take_part_of_the_rows() -> None:
    boxes = BoxTable.from_arrays(["a", "b"], ["dog", "cat"], BOX * 2, names=["dog", "cat", "bird"])
    assert load(boxes).labels.names == ("dog", "cat", "bird")
    assert load(boxes.take(np.array([1]))).boxes.label.tolist() == [1]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ([0, 3], "row 1: label is 3, but there are 2 class names"),
        (["dog", "cow"], "row 1: label is 'cow', which is not"),
    ],
)
def test_labels_outside_the_names_are_refused_with_their_row(label: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BoxTable.from_arrays([0, 0], label, BOX * 2, names=["dog", "cat"])
