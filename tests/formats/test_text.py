"""One text for all images: the image of each line, then what labels of one image have, in any usual order."""

from pathlib import Path

import pytest

from jaccard_eval import ReadOptions, evaluate, load
from jaccard_eval.findings import DataError
from jaccard_eval.formats import detect_format

BOXES = (("a.jpg", "dog", "0.9", "10 20 110 220"), ("b.jpg", "traffic light", "0.75", "30 40 70 55"))
MORE = (("b.jpg", "dog", "0.5", "300 200 340 230"), ("a.jpg", "dog", "0.25", "400 10 410 300"))
ORDERS = {
    "image class conf box": "{0} {1} {2} {3}",
    "image class box conf": "{0} {1} {3} {2}",
    "image conf box class": "{0} {2} {3} {1}",
    "image box conf class": "{0} {3} {2} {1}",
    "image box class conf": "{0} {3} {1} {2}",
}
PACKED = {  # a box as one field
    "{0} {3} {1} {2}", "{0} {3} {2} {1}", "{0} {1} {3} {2}", "{0} {1} {2} {3}", "{0} {2} {3} {1}", "{0} [{3}] {1} {2}",
    "{0}|{1}|{2}|{3}", "{0} ({3}) {1},{2}",
}  # fmt: skip


def write(path: Path, order: str, *, mark: str = " ") -> Path:
    lines = (ORDERS[order].replace(" ", "\0").format(*(field for field in box)) for box in BOXES + MORE)
    # Numbers of a box are separated as the rest is; the blank in a name stays.
    texts = (line.replace("traffic light", "\1").replace(" ", "\0").replace("\0", mark) for line in lines)
    path.write_text("".join(f"{text}\n".replace("\1", "traffic light") for text in texts))
    return path


@pytest.mark.parametrize("mark", [" ", ",", "\t", ", "])
@pytest.mark.parametrize("order", ORDERS)
def test_every_order_is_the_same_set(tmp_path: Path, order: str, mark: str) -> None:
    path = write(tmp_path / "pred.txt", order, mark=mark)
    assert detect_format(path) == "text"
    data = load(path, role="pred", options=ReadOptions(role="pred", box="xyxy"))
    assert data.images.keys == ("a.jpg", "b.jpg")
    assert data.labels.names == ("dog", "traffic light")
    assert data.boxes.score is not None
    assert data.boxes.score.tolist() == [0.9, 0.75, 0.5, 0.25]
    assert data.boxes.xywh.tolist() == [[10, 20, 100, 200], [30, 40, 40, 15], [300, 200, 40, 30], [400, 10, 10, 290]]
    assert [data.images.keys[row] for row in data.boxes.image] == ["a.jpg", "b.jpg", "b.jpg", "a.jpg"]


@pytest.mark.parametrize("order", sorted(PACKED))
def test_a_box_may_be_one_field(tmp_path: Path, order: str) -> None:
    for role, scored in (("pred", True), ("gt", False)):
        for names in (("dog", "traffic light"), ("0", "1")):
            path = tmp_path / f"{role}.txt"
            meant = dict(zip(("dog", "traffic light"), names, strict=True))
            texts = (
                order.format(image, meant[name], score if scored else "", box.replace(" ", ","))
                for image, name, score, box in BOXES + MORE
            )
            path.write_text("".join(f"{text.rstrip(',|')}\n" for text in texts))
            assert detect_format(path) == "text"
            data = load(path, role=role, options=ReadOptions(box="xyxy"))
            assert data.labels.names == names
            assert data.boxes.label.tolist() == [0, 1, 0, 0]
            assert data.boxes.xywh[0].tolist() == [10, 20, 100, 200]
            assert not scored or data.boxes.score.tolist() == [0.9, 0.75, 0.5, 0.25]


@pytest.mark.parametrize("order", ["{0} {2} {3}", "{0} {3} {2}"])
def test_lines_without_a_class_are_of_one(tmp_path: Path, order: str) -> None:
    for mark in (" ", ",") if order.endswith("{3}") else (",",):  # a last number may end a box behind a class
        for role, scored in (("pred", True), ("gt", False)):
            path = tmp_path / f"{role}.txt"
            lines = [
                order.format(image, "", score if scored else "", box.replace(" ", mark))
                for image, _, score, box in BOXES + MORE
            ]
            path.write_text("".join(f"{line}\n" for line in lines))
            data = load(path, role=role, options=ReadOptions(names=("car",), box="xyxy"))
            assert (data.labels.names, data.boxes.xywh[0].tolist()) == (("car",), [10, 20, 100, 200])
            assert not scored or data.boxes.score.tolist() == [0.9, 0.75, 0.5, 0.25]
            assert "csv-one-class" in {finding.code for finding in data.findings}
        corners = ReadOptions(box="xyxy")
        found = evaluate(tmp_path / "gt.txt", tmp_path / "pred.txt", gt_options=corners, pred_options=corners)
        assert found["AP"] == 1
    path.write_text("a.jpg 10,20,30,40 dog\na.jpg 10,20,30,40\n")
    with pytest.raises(DataError, match=r"gt.txt:2: cannot read 'a.jpg 10,20,30,40' as image, class and box"):
        load(path)


def test_a_class_index_stands_behind_the_image(tmp_path: Path) -> None:
    path = tmp_path / "gt.txt"
    path.write_text("a.jpg 3 10 20 110 220 difficult\n\nb.jpg 0 30 40 70 55\n")
    data = load(path, role="gt")
    assert data.labels.keys == (0, 3)
    assert data.boxes.difficult.tolist() == [True, False]


def test_images_without_a_suffix_are_known_by_what_follows(tmp_path: Path) -> None:
    path = tmp_path / "pred.txt"
    path.write_text("000004 car 0.9 10 20 30 40\n000012 car 0.8 50 60 70 80\n")
    assert detect_format(path) == "text"


def test_lines_of_another_kind_are_all_named_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "gt.txt"
    path.write_text("a.jpg dog 10 20 30 40\n\nhello world\na.jpg dog 10 20 x 40\nb.jpg dog 1 2 3\nb.jpg cat 1 2 3 4\n")
    with pytest.raises(DataError) as caught:
        load(path, role="gt", format_name="text")
    for line in (3, 4, 5):
        assert f"gt.txt:{line}: " in str(caught.value)
    assert "gt.txt:1: " not in str(caught.value)


def test_the_ap_is_that_of_the_same_boxes_as_coco(sample_data: Path) -> None:
    # The published numbers of the sample, whose ground truth in this form has no crowd region, and no empty image.
    text = evaluate(sample_data / "text/gt.txt", sample_data / "text/better.txt")
    boxes = evaluate(sample_data / "kerasyolo/gt.txt", sample_data / "kerasyolo/better.txt")
    assert text["AP"] == pytest.approx(boxes["AP"], abs=1e-12)
