"""Predictions take image names, sizes, ids and classes from the ground truth that they are converted with."""

import json
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import DataError, UsageError, convert, evaluate, load
from jaccard_eval.cli import run
from jaccard_eval.formats import written_formats
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.images import ImageFolder

SAMPLE = Path(__file__).parents[3] / "sample_data"
COCO_GT, COCO_PRED = SAMPLE / "coco/gt.json", SAMPLE / "coco/better.json"
YOLO_GT, YOLO_PRED = SAMPLE / "yolo/data.yaml", SAMPLE / "yolo/better"


def write_pair(folder: Path, results: list[dict[str, object]]) -> tuple[Path, Path]:
    """Write ground truth of two images and the classes 7 (cat) and 3 (dog), and results on it."""
    document = {
        "images": [
            {"id": 20, "file_name": "val/a.jpg", "width": 100, "height": 50},
            {"id": 10, "file_name": "val/b.png", "width": 200, "height": 100},
        ],
        "annotations": [
            {"id": 1, "image_id": 20, "category_id": 7, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0},
            {"id": 2, "image_id": 10, "category_id": 3, "bbox": [20, 10, 40, 20], "area": 800, "iscrowd": 0},
        ],
        "categories": [{"id": 7, "name": "cat"}, {"id": 3, "name": "dog"}],
    }
    gt, pred = folder / "gt.json", folder / "pred.json"
    gt.write_text(json.dumps(document))
    pred.write_text(json.dumps(results))
    return gt, pred


def result(image: int, label: int, *box: float, score: float = 0.5) -> dict[str, object]:
    return {"image_id": image, "category_id": label, "bbox": box, "score": score}


def test_coco_results_become_yolo_labels_with_the_names_sizes_and_classes_of_the_ground_truth(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path, [result(20, 7, 10, 5, 20, 10, score=0.75), result(10, 3, 20, 10, 40, 20)])
    convert(pred, tmp_path / "out", to="yolo", gt=gt)
    # In an image of 100 x 50: (10 + 20 / 2) / 100, (5 + 10 / 2) / 50, 20 / 100, 10 / 50. Ids 3 and 7 are classes 0, 1.
    assert (tmp_path / "out/val/a.txt").read_text() == "1 0.2 0.2 0.2 0.2 0.75\n"
    assert (tmp_path / "out/val/b.txt").read_text() == "0 0.2 0.2 0.2 0.2 0.5\n"


def test_classes_have_the_indices_of_yolo_ground_truth(tmp_path: Path) -> None:
    # The list of names has an order of its own, and a class that no image shows; COCO's ids are 3 and 7.
    gt, pred = write_pair(tmp_path, [result(20, 7, 0, 0, 10, 10), result(10, 3, 20, 10, 40, 20)])
    convert(gt, tmp_path / "truth", to="yolo")
    (tmp_path / "truth/data.yaml").write_text("names: [bird, dog, fish, cat]\ntrain: .\nval: .\n")
    (tmp_path / "truth/val/a.txt").write_text("3 0.05 0.1 0.1 0.2\n")
    (tmp_path / "truth/val/b.txt").write_text("1 0.2 0.2 0.2 0.2\n")
    named = [one | {"category_name": {7: "cat", 3: "dog"}[one["category_id"]]} for one in json.loads(pred.read_text())]
    files = {20: "val/a.jpg", 10: "val/b.png"}
    pred.write_text(json.dumps([one | {"file_name": files[one["image_id"]]} for one in named]))
    from PIL import Image

    for name, size in (("a.jpg", (100, 50)), ("b.png", (200, 100))):
        (tmp_path / "images/val").mkdir(parents=True, exist_ok=True)
        Image.new("1", size).save(tmp_path / "images/val" / name)
    images = ReadOptions(images=ImageFolder(tmp_path / "images"))
    convert(pred, tmp_path / "out", to="yolo", gt=tmp_path / "truth", gt_options=images)
    assert (tmp_path / "out/val/a.txt").read_text() == "3 0.05 0.1 0.1 0.2 0.5\n"
    assert (tmp_path / "out/val/b.txt").read_text() == "1 0.2 0.2 0.2 0.2 0.5\n"


def test_yolo_predictions_become_a_results_list_with_the_ids_of_the_ground_truth(tmp_path: Path) -> None:
    convert(YOLO_PRED, tmp_path / "out.json", gt=COCO_GT)
    records, truth = json.loads((tmp_path / "out.json").read_text()), json.loads(COCO_GT.read_text())
    assert {tuple(record) for record in records} == {("image_id", "category_id", "bbox", "score")}
    assert {record["image_id"] for record in records} <= {image["id"] for image in truth["images"]}
    assert {record["category_id"] for record in records} <= {category["id"] for category in truth["categories"]}


@pytest.mark.parametrize("name", ["out.json", "out.jsonl"])
def test_ids_are_those_that_the_ground_truth_gets_when_it_is_converted(name: str, tmp_path: Path) -> None:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    convert(YOLO_GT, tmp_path / "gt.json", role="gt")
    convert(YOLO_PRED, tmp_path / name, gt=YOLO_GT)
    text = (tmp_path / name).read_text()
    records = json.loads(text) if name == "out.json" else list(map(json.loads, text.splitlines()))
    coco = COCO(str(tmp_path / "gt.json"))
    judged = COCOeval(coco, coco.loadRes(records), "bbox")
    judged.evaluate()
    judged.accumulate()
    judged.summarize()
    assert judged.stats[0] == pytest.approx(evaluate(YOLO_GT, YOLO_PRED)["AP"], abs=1e-12)


# CVAT has no scores, and maps of instances hold masks alone: tests of conversion refuse both.
@pytest.mark.parametrize("target", [name for name in written_formats() if name not in ("cvat", "instances")])
@pytest.mark.parametrize(("gt", "pred"), [(COCO_GT, COCO_PRED), (YOLO_GT, YOLO_PRED), (COCO_GT, YOLO_PRED)])
def test_ap_is_what_it_was(gt: Path, pred: Path, target: str, tmp_path: Path) -> None:
    out = tmp_path / ("out" if target in ("yolo", "voc") else "out.json" if target == "coco" else f"out.{target}")
    convert(pred, out, to=target, gt=gt)
    before, after = evaluate(gt, pred).metrics, evaluate(gt, out, pred_format=target).metrics
    for name, value in before.items():
        np.testing.assert_allclose(after[name].value, value.value, rtol=0, atol=1e-12, err_msg=name)


def test_predictions_of_unknown_classes_are_left_out_only_when_asked(tmp_path: Path) -> None:
    pred = tmp_path / "pred.csv"
    pred.write_text(
        "image,class,score,xmin,ymin,xmax,ymax\nstreet_01.png,dog,0.5,0,0,10,10\nstreet_01.png,gnu,0.5,0,0,9,9\n"
    )
    argv = ["convert", str(pred), str(tmp_path / "out"), "--to", "yolo", "--gt", str(COCO_GT)]
    assert run.run(argv) == 3
    assert not (tmp_path / "out").exists()
    with pytest.raises(DataError, match=r"does not have the classes of 1 prediction: 'gnu'\. Map them with class_map"):
        convert(pred, tmp_path / "out", to="yolo", gt=COCO_GT)
    assert run.run([*argv, "--lossy"]) == 0
    # dog is the fifth class; the image is 640 x 480
    assert (tmp_path / "out/street_01.txt").read_text() == f"4 {5 / 640} {5 / 480!r} {10 / 640} {10 / 480!r} 0.5\n"
    assert run.run([*argv, "--class-map", "gnu=cat,dog=dog", "--force"]) == 0
    assert [line[0] for line in (tmp_path / "out/street_01.txt").read_text().splitlines()] == ["4", "3"]


def test_what_predictions_lack_is_named_with_the_flag_that_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for to in ("yolo", "voc", "openimages"):
        assert run.run(["convert", str(COCO_PRED), str(tmp_path / to), "--to", to]) == 3
        assert "needs names, but these predictions only have ids: images 1001" in (said := capsys.readouterr().err)
        assert "Pass the ground truth with --gt" in said
        assert not (tmp_path / to).exists()
        assert run.run(["convert", str(COCO_PRED), str(tmp_path / to), "--to", to, "--gt", str(COCO_GT)]) == 0


def test_sizes_that_neither_side_knows_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["convert", str(YOLO_PRED), str(tmp_path / "out.json")]
    assert run.run(argv) == 3
    assert "Pass the ground truth with --gt, or the image folder with --images DIR." in capsys.readouterr().err
    assert run.run([*argv, "--images", str(SAMPLE / "yolo/images/val")]) == 0


def test_swapped_sides_are_told_how_to_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["convert", str(COCO_GT), str(tmp_path / "out"), "--to", "yolo", "--gt", str(COCO_PRED)]) == 3
    assert f"Convert {COCO_PRED}, and pass --gt {COCO_GT}." in capsys.readouterr().err


def test_what_is_read_wrongly_beyond_doubt_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = json.loads(COCO_PRED.read_text())
    for record in records:
        left, top, width, height = record["bbox"]
        record["bbox"] = [left, top, left + width, top + height]
    (tmp_path / "corners.json").write_text(json.dumps(records))
    argv = ["convert", str(tmp_path / "corners.json"), str(tmp_path / "out"), "--to", "yolo", "--gt", str(COCO_GT)]
    assert run.run(argv) == 3
    assert "--pred-box xyxy" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert run.run([*argv, "--pred-box", "xyxy"]) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--gt", str(COCO_GT), "--role", "gt"], "--gt is for predictions; remove --role gt"),
        (["--class-map", "auto"], "Pass the ground truth with --gt, or a map of names, --class-map a=b."),
        (["--gt-class-map", "a=b"], "--gt-class-map: pass the ground truth with --gt"),
        (
            ["--match-images", "stem", "--extra-images", "ignore"],
            "--match-images, --extra-images: pass the ground truth",
        ),
    ],
)
def test_options_that_do_not_go_together(
    given: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(["convert", str(COCO_PRED), str(tmp_path / "out.csv"), *given]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_ground_truth_is_not_converted_with_ground_truth(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gt works with predictions only"):
        convert(COCO_GT, tmp_path / "out.csv", gt=COCO_GT, role="gt")


def test_the_ground_truth_is_never_written_over(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path, [result(20, 7, 0, 0, 10, 10)])
    before = gt.read_bytes()
    assert run.run(["convert", str(pred), str(gt), "--gt", str(gt), "--force"]) == 2
    with pytest.raises(UsageError, match="must not contain each other"):
        convert(pred, gt, gt=gt, replace=True)
    assert gt.read_bytes() == before
    assert len(load(gt).boxes) == 2


@pytest.mark.parametrize("role", ["gt", "pred"])
def test_classes_are_merged_without_ground_truth(role: str, tmp_path: Path) -> None:
    rows = [("a", "car", 10), ("a", "truck", 40), ("b", "dog", 70)]
    score = {"gt": "", "pred": ",0.5"}[role]
    lines = [f"{image},{name},{at},10,{at + 20},30{score}" for image, name, at in rows]
    path, target = tmp_path / "in.csv", tmp_path / "out.csv"
    head = "image,class,xmin,ymin,xmax,ymax" + (",score" if score else "")
    path.write_text("\n".join([head, *lines]))
    merged = ("dog", "vehicle")
    assert load(path, role=role, class_map={"car": "vehicle", "truck": "vehicle"}).labels.names == merged
    assert run.run(["convert", str(path), str(target), "--class-map", "car=vehicle,truck=vehicle"]) == 0
    written = load(target, role=role)
    assert written.labels.names == merged
    assert [merged[label] for label in written.boxes.label.tolist()] == ["vehicle", "vehicle", "dog"]
    convert(path, target, class_map={"car": "dog"}, replace=True)
    assert load(target, role=role).labels.names == ("dog", "truck")
    with pytest.raises(UsageError, match="no class 'cat' in the"):
        load(path, role=role, class_map={"cat": "vehicle"})
