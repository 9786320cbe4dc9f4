"""KITTI's label files: the box among the columns, scores, regions that nobody labelled, and broken lines."""

from pathlib import Path

import pytest

from jaccard_eval import DataError, ReadOptions, load
from jaccard_eval.formats import detect_format


def line(kind: str, box: str, score: str = "") -> str:
    return f"{kind} 0.00 0 1.57 {box} 1.5 1.6 3.9 2.0 1.5 20.0 1.6 {score}".rstrip() + "\n"


def labels(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_the_box_is_columns_five_to_eight(tmp_path: Path) -> None:
    dataset = load(labels(tmp_path, a=line("Car", "10 20 40 60"), b=""))
    assert (dataset.format, dataset.images.keys, dataset.labels.names) == ("kitti", ("a", "b"), ("Car",))
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40]]


def test_the_sixteenth_column_is_the_score_of_a_prediction_and_nothing_in_ground_truth(tmp_path: Path) -> None:
    path = labels(tmp_path, a=line("Car", "10 20 40 60", "0.75"))
    prediction = load(path, role="pred")
    assert prediction.boxes.score is not None and prediction.boxes.score.tolist() == [0.75]
    assert load(path).boxes.score is None


def test_regions_that_nobody_labelled_are_marked_ignore(tmp_path: Path) -> None:
    region = "DontCare -1 -1 -10 1 2 30 40 -1 -1 -1 -1000 -1000 -1000 -10\n"
    dataset = load(labels(tmp_path, a=region + line("Car", "10 20 40 60")))
    assert dataset.labels.names == ("Car", "DontCare")
    assert dataset.boxes.ignore.tolist() == [True, False]
    assert [one.code for one in dataset.findings] == ["kitti-dontcare"]


def test_yolo_does_not_claim_the_files_and_kitti_none_of_yolo(tmp_path: Path) -> None:
    for name in ("kitti", "yolo"):
        (tmp_path / name).mkdir()
    assert detect_format(labels(tmp_path / "kitti", a="", b=line("Car", "10 20 40 60"))) == "kitti"
    polygon = "0 .1 .1 .2 .1 .2 .2 .1 .2 .1 .3 .1 .4 .2 .4\n"  # 15 columns as well
    assert detect_format(labels(tmp_path / "yolo", a=polygon)) == "yolo"


def test_broken_lines_are_told_with_their_number(tmp_path: Path) -> None:
    path = labels(tmp_path, a=line("Car", "10 20 40") + line("Car", "10 20 40 wide"), b=line("Car", "1 2 3 4", "x"))
    with pytest.raises(DataError) as caught:
        load(path, format_name="kitti")
    for told in (
        "a.txt:1: expected 15 columns, or 16 with a score, got 14",
        "a.txt:2: bottom: 'wide' is not a plain finite number",
        "b.txt:1: score: 'x' is not a plain finite number",
    ):
        assert told in str(caught.value)


def test_predictions_need_a_score_in_every_line_or_in_none(tmp_path: Path) -> None:
    path = labels(tmp_path, a=line("Car", "1 2 3 4", "0.5") + line("Car", "1 2 3 4"))
    with pytest.raises(DataError, match=r"a\.txt:2: expected 16 columns with a score"):
        load(path, role="pred")
    labels(tmp_path, a=line("Car", "1 2 3 4"))
    with pytest.raises(DataError, match="predictions have no score"):
        load(path, role="pred")
    assert len(load(path, role="pred", options=ReadOptions(assume_score=1.0)).boxes) == 1


def test_the_benchmarks_folder_has_its_labels_in_label_2(tmp_path: Path) -> None:
    (tmp_path / "training/label_2").mkdir(parents=True)
    (tmp_path / "training/image_2").mkdir()
    labels(tmp_path / "training/label_2", a=line("Car", "10 20 40 60"))
    dataset = load(tmp_path / "training")
    assert (dataset.format, dataset.images.keys) == ("kitti", ("a",))
