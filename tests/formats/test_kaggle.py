"""Tables of Kaggle's competitions: all boxes of an image in one string, packed boxes, and images without findings."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jaccard_eval import DataError, ReadOptions, evaluate, load
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.formats import detect_format

Load = Callable[..., Dataset]
WHEAT_GT = """image_id,width,height,bbox,source
b6ab77fd7,1024,1024,"[834.0, 222.0, 56.0, 36.0]",usask_1
b6ab77fd7,1024,1024,"[226.0, 548.0, 130.0, 58.0]",usask_1
c1,1024,512,"[1, 2, 30, 40]",arvalis_1
"""
WHEAT_PRED = """image_id,PredictionString
b6ab77fd7,0.9 834 222 56 36 0.8 226 548 130 58
c1,
"""


@pytest.fixture
def read(tmp_path: Path) -> Load:
    def write_and_read(text: str, role: str = "pred", **options: object) -> Dataset:
        path = tmp_path / f"{role}.csv"
        path.write_text(text)
        return load(path, role=role, options=ReadOptions(**options))  # type: ignore[arg-type]

    return write_and_read


def rows(data: Dataset) -> list[tuple[object, ...]]:
    """Image, class, score and x y w h of each box."""
    boxes = data.boxes
    scores = [None] * len(boxes) if boxes.score is None else boxes.score.tolist()
    columns = zip(boxes.image, boxes.label, scores, boxes.xywh.tolist(), strict=True)
    return [(data.images.keys[image], data.labels.keys[label], score, *box) for image, label, score, box in columns]


def codes(data: Dataset) -> set[str]:
    return {one.code for one in data.findings}


def test_wheat_has_one_class_and_the_size_of_each_image(read: Load) -> None:
    data = read(WHEAT_GT, "gt")
    assert data.format == "csv"
    assert rows(data)[0] == ("b6ab77fd7", 0, None, 834, 222, 56, 36)
    assert data.images.sizes.tolist() == [[1024, 1024], [1024, 512]]
    assert "csv-one-class" in codes(data)
    assert read(WHEAT_GT, "gt", names=("wheat",)).labels.names == ("wheat",)


def test_groups_of_five_are_confidence_left_top_width_height(read: Load) -> None:
    data = read(WHEAT_PRED)
    assert rows(data) == [("b6ab77fd7", 0, 0.9, 834, 222, 56, 36), ("b6ab77fd7", 0, 0.8, 226, 548, 130, 58)]
    assert data.images.keys == ("b6ab77fd7", "c1")  # an empty string: nothing was found there
    assert "PredictionString: groups of confidence left top width height" in data.details


def test_both_sides_of_wheat_correspond_without_a_flag(read: Load) -> None:
    # Two of three objects are found exactly: precision 1 up to recall 2/3, so 67 of 101 recall points count.
    result = evaluate(read(WHEAT_GT, "gt"), read(WHEAT_PRED))
    assert result["AP50"] == pytest.approx(67 / 101)


def test_groups_of_six_are_class_confidence_and_corners(read: Load) -> None:
    data = read("image_id,PredictionString\na,3 0.9 10 20 110 220 0 0.25 5 6 50 60\n")
    assert rows(data) == [("a", 3, 0.9, 10, 20, 100, 200), ("a", 0, 0.25, 5, 6, 45, 54)]


@pytest.mark.parametrize("nothing", ["14 1 0 0 1 1", "none 1 0 0 1 1", "14 1.0 0.0 0.0 1.0 1.0"])
def test_a_box_of_one_pixel_in_the_corner_says_that_nothing_was_found(read: Load, nothing: str) -> None:
    data = read(f"image_id,PredictionString\na,{nothing}\nb,3 0.9 10 20 110 220 {nothing}\n")
    assert [row[0] for row in rows(data)] == ["b"]
    assert data.images.keys == ("a", "b")
    assert data.ignored == {"csv-nothing-found": 2}
    (note,) = (one for one in data.findings if one.code == "csv-nothing-found")
    assert (note.severity, note.count, "pred.csv:2: 0 0 1 1" in note.message) == ("note", 2, True)


def test_among_fractions_the_same_numbers_are_the_whole_image(read: Load) -> None:
    data = read("image_id,PredictionString\na,dog 0.9 0.5 0.25 1 0.75 cat 0.8 0 0 1 1\n")
    assert rows(data) == [("a", "dog", 0.9, 0.5, 0.25, 0.5, 0.5), ("a", "cat", 0.8, 0, 0, 1, 1)]
    assert data.units == "norm"
    assert len(read("image_id,PredictionString\na,dog 1 0 0 1 1\n", units="norm").boxes) == 1


def test_ground_truth_without_findings_has_empty_cells_and_no_class_for_them(read: Load) -> None:
    header = "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max"
    data = read(f"{header}\na,No finding,14,R11,,,,\nb,Cardiomegaly,3,R9,10,20,110,220\n", "gt")
    assert data.images.keys == ("a", "b")
    assert [row[3:] for row in rows(data)] == [(10, 20, 100, 200)]
    assert data.labels.names == ("Cardiomegaly",)


@pytest.mark.parametrize("image", ["image_id", "ImageID", "id", "patientId"])
def test_the_one_column_beside_the_strings_is_the_image(read: Load, image: str) -> None:
    assert rows(read(f"{image},PredictionString\na,0.5 1 2 3 4\n")) == [("a", 0, 0.5, 1, 2, 3, 4)]


def test_strings_of_thirty_fields_are_told_apart_by_what_the_fields_are(read: Load) -> None:
    sixes = " ".join(["7 0.5 1 2 3 4"] * 5)  # as groups of five their confidences were 7, 4, 3, 2 and 1
    fives = " ".join(["0.5 1.5 2 3 4"] * 6)  # as groups of six the first class were 0.5
    assert len(read(f"id,PredictionString\na,{sixes}\n").boxes) == 5
    assert len(read(f"id,PredictionString\na,{fives}\n").boxes) == 6


def test_strings_that_are_no_groups_are_all_named_by_line(read: Load) -> None:
    with pytest.raises(DataError) as caught:
        read("image_id,PredictionString\na,0.9 1 2 3 4\nb,0.9 1 2 3\nc,0.9 1 2 3 4 5 6\n")
    message = str(caught.value)
    assert "csv-prediction-string" in message
    assert (
        "pred.csv:3: PredictionString: has 4 fields, not a multiple of 5 (confidence left top width height)"
    ) in message
    assert "pred.csv:4: PredictionString: has 7 fields" in message


def test_a_field_that_is_no_number_is_named_by_line_and_column(read: Load) -> None:
    with pytest.raises(DataError, match=r"pred\.csv:3: top: 'x' is not a plain finite number"):
        read("image_id,PredictionString\na,0.9 1 2 3 4\nb,0.8 1 2 3 4 0.9 1 x 3 4\n")


def test_the_order_of_numbers_can_be_asked_for(read: Load) -> None:
    text = "image_id,PredictionString\na,0.9 10 20 40 60\n"
    assert rows(read(text, box="xyxy"))[0][3:] == (10, 20, 30, 40)


def test_strings_of_the_open_images_challenge_are_fractions_of_named_classes(tmp_path: Path) -> None:
    (tmp_path / "class-descriptions-boxable.csv").write_text("/m/0bt9lr,Dog\n")
    path = tmp_path / "submission.csv"
    path.write_text("ImageID,PredictionString\na,/m/0bt9lr 0.5 0 0 1 1 /m/01g317 0.25 0.5 0.5 0.75 1\nb,\n")
    assert detect_format(path) == "openimages"
    data = load(path, role="pred")
    assert rows(data) == [("a", "/m/0bt9lr", 0.5, 0, 0, 1, 1), ("a", "/m/01g317", 0.25, 0.5, 0.5, 0.25, 0.5)]
    assert (data.units, data.labels.names) == ("norm", ("/m/01g317", "Dog"))


RSNA_GT = "patientId,x,y,width,height,Target\np0,10,20,50,60,1\np1,,,,,0\n"
RSNA_PRED = "patientId,PredictionString\np0,0.9 10 20 50 60 0.8 100 30 40 80\np1,\n"


@pytest.mark.parametrize(
    "predictions",
    [RSNA_PRED, "patientId,score,x,y,width,height\np0,0.9,10,20,50,60\np0,0.8,100,30,40,80\n"],
)
def test_predictions_without_a_class_are_of_the_only_one(read: Load, predictions: str) -> None:
    # The one object is found by the better of two predictions: precision 1 at every recall.
    result = evaluate(read(RSNA_GT, "gt"), read(predictions))
    assert result["AP50"] == pytest.approx(1)
    (note,) = (finding for finding in result.findings if finding.code == "class-only")
    assert "predictions have no class: all 2 are read as '1', the only class of the ground truth" in note.message
    assert result.correspondence.class_strategy == "only-class"


def test_predictions_without_a_class_are_none_of_several(read: Load) -> None:
    several = RSNA_GT + "p2,1,2,30,40,0\n"
    for predictions in (RSNA_PRED, "image,score,x,y,w,h\np0,0.9,10,20,50,60\n"):
        with pytest.raises(DataError) as caught:
            evaluate(read(several, "gt"), read(predictions))
        assert "class-none" in str(caught.value)
        assert "predictions have no class, and the ground truth has 2: '0', '1'" in str(caught.value)
        assert 'pred_options=ReadOptions(columns="class=COLUMN"), or pred_options=ReadOptions(names=...)' in str(
            caught.value
        )
    # Who names it, or maps it, says what it is.
    assert evaluate(read(several, "gt"), read(RSNA_PRED), class_map={"0": "1"})["AP50"] == pytest.approx(0.5)


def test_a_name_for_the_class_is_compared_as_any_other(read: Load) -> None:
    with pytest.raises(DataError, match="predictions have 'opacity'"):
        evaluate(read(RSNA_GT, "gt"), read(RSNA_PRED, names=("opacity",)))


def test_tables_with_a_column_that_may_be_the_class_still_need_one(read: Load) -> None:
    with pytest.raises(DataError, match="no column for the class"):
        read("image,x,y,w,h,phylum\na,1,2,3,4,insect\n", "gt")
    with pytest.raises(DataError, match=r"options=ReadOptions\(columns=.class=palm_class.\)"):
        read("image,palm_class,score,x,y,w,h\na,oil,0.5,1,2,3,4\n")
