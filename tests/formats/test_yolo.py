"""Text labels: layouts found over the whole set, every problem with file and line, nothing dropped silently."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jaccard_eval import evaluate
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Severity
from jaccard_eval.formats import detect_format, read_dataset, yolo
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.images import ImageFolder
from jaccard_eval.reading.peek import Peek

Files = Mapping[str, str | bytes]
Load = Callable[..., Dataset]
Refuse = Callable[..., str]

BOX = "0 0.5 0.5 0.2 0.4\n"
NEAR_EDGES = "0 0.1 0.1 0.2 0.2 {}\n0 0.9 0.9 0.2 0.2 {}\n"  # boxes that touch the borders: 0.1 - 0.2/2 = 0


def lay_out(root: Path, files: Files) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def pictures(root: Path, *names: str, size: tuple[int, int] = (200, 100)) -> ImageFolder:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", size).save(root / name)
    return ImageFolder(root)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def write_and_read(files: Files | str, role: str = "gt", start: str = "labels", **options: Any) -> Dataset:
        files = {"labels/a.txt": files} if isinstance(files, str) else files
        lay_out(tmp_path, files)
        return read_dataset(tmp_path / start, ReadOptions(role=role, **options), "yolo")

    return write_and_read


@pytest.fixture
def refuse(load: Load) -> Refuse:
    def read_and_fail(*args: Any, **options: Any) -> str:
        with pytest.raises(DataError) as caught:
            load(*args, **options)
        return str(caught.value)

    return read_and_fail


def xywh(dataset: Dataset) -> list[list[float]]:
    return [[round(side, 9) for side in box] for box in dataset.boxes.xywh.tolist()]


def scores(dataset: Dataset) -> list[float]:
    assert dataset.boxes.score is not None
    return list(dataset.boxes.score.tolist())


def said(dataset: Dataset, severity: Severity | None = None) -> list[str]:
    return [finding.code for finding in dataset.findings if severity in (None, finding.severity)]


# ---- lines and classes ----


def test_a_line_is_class_centre_and_size_as_fractions(load: Load) -> None:
    data = load("1 0.5 0.5 0.2 0.4\n")
    assert xywh(data) == [[0.4, 0.3, 0.2, 0.4]]  # 0.5 - 0.2/2, 0.5 - 0.4/2
    assert (data.units, data.labels.keys, data.labels.named, data.images.keys) == ("norm", (1,), False, ("a",))
    assert data.details == ("class cx cy w h, normalised",)
    assert said(data) == []


def test_known_image_sizes_turn_fractions_into_pixels(load: Load, tmp_path: Path) -> None:
    data = load(BOX, images=pictures(tmp_path / "images", "a.png"))
    assert xywh(data) == [[80.0, 30.0, 40.0, 40.0]]  # 200 x 100: 0.4*200, 0.3*100, 0.2*200, 0.4*100
    assert (data.units, data.images.file_names, data.images.listed) == ("px", ("a.png",), True)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + BOX,
        BOX.replace("\n", "\r\n"),
        BOX.replace("\n", "\r"),
        "\n\n  \t" + BOX,
        BOX.strip(),
        "0\t0.5  .5\t2e-1 0.4",
    ],
)
def test_blanks_line_ends_and_number_spellings_do_not_matter(load: Load, text: str) -> None:
    assert xywh(load(text)) == [[0.4, 0.3, 0.2, 0.4]]


def test_an_empty_file_is_an_image_without_boxes(load: Load) -> None:
    data = load({"labels/a.txt": BOX, "labels/b.txt": "", "labels/c.txt": " \n\n"})
    assert (data.images.keys, data.images.listed, len(data.boxes)) == (("a", "b", "c"), False, 1)


def test_an_integral_float_is_a_class_index(load: Load) -> None:
    assert load("2.0 0.5 0.5 0.2 0.4\n", names=("a", "b", "c")).labels.names[2] == "c"


@pytest.mark.parametrize("mark", [",", ", ", ";", "\t"])
def test_commas_and_semicolons_separate_fields_where_most_lines_have_them(load: Load, mark: str) -> None:
    lines = (("traffic light", "10", "20", "30", "90"), ("dog", "15", "26", "70", "80"))
    data = load({"labels/a.txt": "".join(mark.join(line) + "\n" for line in lines), "labels/b.txt": ""}, box="xyxy")
    assert data.labels.names == ("dog", "traffic light")
    assert xywh(data) == [[10, 20, 20, 70], [15, 26, 55, 54]]
    assert len(load(BOX.replace(" ", mark.strip(" ") or mark)).boxes) >= 1


def test_a_folder_of_labels_with_commas_is_recognised(tmp_path: Path) -> None:
    assert detect_format(lay_out(tmp_path, {"a.txt": "dog,0.9,10,20,30,40\n"})) == "yolo"


@pytest.mark.parametrize("word", ["1.5", "-1", "0x1", "+1", "1_0", "٣", "²", "\uff11", "dog", '""', "#"])
def test_a_class_that_is_no_plain_index_is_an_error_with_its_line(refuse: Refuse, word: str) -> None:
    text = refuse(BOX * 3 + f"{word} 0.5 0.5 0.2 0.4\n")
    assert "a.txt:4: class " in text
    assert word in text


@pytest.mark.parametrize(
    "word", ["nan", "inf", "1e400", "abc", "1_000", "+0.5", "0x1F", "\uff10.5", "\u22120.5", "0,5", "1.2.3", "-"]
)
def test_a_field_that_is_no_plain_number_is_an_error_with_line_and_column(refuse: Refuse, word: str) -> None:
    assert "a.txt:2: column 3 is " in refuse(BOX + f"0 0.5 {word} 0.2 0.4\n")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("0,0.5,0.5,0.2,0.4", "spaces, not by commas"),
        ("0;0.5;0.5;0.2;0.4", "spaces, not by semicolons"),
        ("0|0.5|0.5|0.2|0.4", "spaces, not by pipes"),
        ("# made by hand", "comments"),
        ("0 0.5 0.5 0.2", "got 4 columns"),
        ("0 0.5 0.5 0.2 0.4 7.5 0.1", "got 7 columns (a polygon among boxes needs pairs of fractions)"),
        ("0 0.5 0.5 0.2 0.4 0.1 0.1 0.3", "got 8 columns (a polygon"),
        ("class x y w h", "'class'"),
    ],
)
def test_a_line_of_another_shape_is_an_error_that_names_the_mistake(refuse: Refuse, line: str, what: str) -> None:
    text = refuse(f"{BOX}{line}\n{BOX}")
    assert "a.txt:2: " in text
    assert what in text


def test_one_bad_line_never_hides_the_others(refuse: Refuse) -> None:
    text = refuse(
        {"labels/a.txt": BOX + "0 1 2\n9 0.5 0.5 0.2 0.4\n", "labels/b.txt": "0 0.5 x 0.2 0.4\n0 7 0.5 0.2 0.4\n"},
        names=("cat",),
    )
    for place in ("a.txt:2", "a.txt:3", "b.txt:1", "b.txt:2"):
        assert place in text


def test_thousands_of_bad_files_are_one_finding(refuse: Refuse) -> None:
    text = refuse({f"labels/{i}.txt": b"\xff" for i in range(2000)})
    assert text.count("error[") == 1
    assert "1,995 more" in text


def test_a_class_outside_the_names_is_an_error_that_says_where_they_come_from(refuse: Refuse) -> None:
    text = refuse({"labels/a.txt": "7 0.5 0.5 0.2 0.4\n", "data.yaml": "names: [cat, dog]\n"})
    assert "a.txt:1: class 7 is outside 0 to 1" in text
    assert "data.yaml" in text


def test_names_are_found_near_the_labels_and_said(load: Load) -> None:
    data = load({"labels/val/a.txt": BOX, "classes.txt": "cat\ndog\n"}, start="labels/val")
    assert data.labels.names == ("cat", "dog")
    assert any("classes.txt" in detail for detail in data.details)


def test_names_near_the_labels_that_cannot_be_used_are_a_warning(load: Load) -> None:
    data = load({"labels/a.txt": BOX, "data.yaml": "train: x\n"})
    assert said(data, Severity.WARNING) == ["names-unusable"]
    assert not data.labels.named


def test_class_names_may_have_blanks_and_end_with_a_number(load: Load) -> None:
    data = load("traffic light 10 20 5 5\nBoeing 737 50 60 7 3\ndog 1 2 9 1\n")
    assert data.labels.names == ("Boeing 737", "dog", "traffic light")
    assert xywh(data)[1] == [50, 60, 7, 3]


def test_names_that_all_end_with_a_number_do_not_become_boxes(load: Load) -> None:
    data = load("Boeing 737 50 60 7 3\nBoeing 747 90 90 5 5\nAirbus 320 10 20 5 5\n")
    assert data.labels.names == ("Airbus 320", "Boeing 737", "Boeing 747")


def test_a_stray_confidence_behind_a_name_is_no_part_of_it(refuse: Refuse) -> None:
    assert "a.txt:3: expected 5 columns" in refuse("dog 10 20 5 5\ncat 50 60 7 3\ndog 0.9 1 2 9 1\n")


@pytest.mark.parametrize(
    "scores", [(84.38, 12.5, 99.9, 7.25), (-2.31, 1.75, 6.9, 0.43)], ids=["percent", "outputs of a network"]
)
@pytest.mark.parametrize("place", ["conf-box", "box-conf"])
def test_scores_behind_names_may_be_of_any_range(
    load: Load, tmp_path: Path, place: str, scores: tuple[float, ...]
) -> None:
    # Four boxes in the corners of an image of 200 x 100: with a score in place of a coordinate most leave it.
    corners = [
        (150.5, 60.25, 199.5, 99.5),
        (160.5, 2.5, 198.5, 40.25),
        (120.25, 50.5, 190.5, 98.5),
        (8.5, 70.5, 40, 99),
    ]
    lines = []
    for score, corner in zip(
        scores * 3, [tuple(x - d for x in one) for d in (0, 1, 2) for one in corners], strict=True
    ):
        numbers = [score, *corner] if place == "conf-box" else [*corner, score]
        lines.append(" ".join(["traffic light", *map(str, numbers)]))
    pictures(tmp_path, "images/a.png")
    data = load({"labels/a.txt": "\n".join(lines)}, role="pred")
    assert data.labels.names == ("traffic light",)
    assert xywh(data)[0] == pytest.approx([150.5, 60.25, 49, 39.25])
    assert data.boxes.score is not None
    assert data.boxes.score.tolist()[:4] == list(scores)


def test_scores_stay_where_they_are_in_zero_to_one_although_no_encoding_fits(load: Load, tmp_path: Path) -> None:
    # Read as y before x, both boxes leave their image of 200 x 100 wherever the score stands.
    lines = "dog 0.9 150 10 190 40\ndog 0.4 160 20 195 60\n"
    pictures(tmp_path, "images/a.png")
    data = load({"labels/a.txt": lines}, role="pred", box="yxyx")
    assert data.boxes.score is not None
    assert data.boxes.score.tolist() == [0.9, 0.4]


def test_the_word_difficult_behind_an_object_is_a_flag(load: Load) -> None:
    data = load("dog 10 20 30 40 difficult\ntraffic light 50 60 70 90\ncat 1 2 9 10 difficult\n")
    assert data.boxes.difficult.tolist() == [True, False, True]
    assert xywh(data)[0] == [10, 20, 20, 20]
    assert data.labels.names == ("cat", "dog", "traffic light")


def test_any_other_word_behind_an_object_is_an_error_that_guesses_no_encoding(refuse: Refuse) -> None:
    text = refuse("dog 10 20 30 40\ncat 1 2 9 10 hard\n")
    assert "a.txt:2: expected 5 columns (class box), got 6 columns: 'cat 1 2 9 10 hard'" in text


def test_difficult_objects_neither_count_nor_harm(tmp_path: Path) -> None:
    lay_out(
        tmp_path,
        {
            "ground-truth/a.txt": "dog 10 10 50 50\ndog 100 100 150 150 difficult\n",
            "ground-truth/b.txt": "dog 0 0 40 40\n",
            "detection-results/a.txt": "dog 0.9 10 10 50 50\ndog 0.8 100 100 150 150\ndog 0.7 200 200 220 220\n",
            "detection-results/b.txt": "dog 0.6 0 0 40 40\n",
        },
    )
    pred = ReadOptions(role="pred", box="xyxy")
    result = evaluate(tmp_path / "ground-truth", tmp_path / "detection-results", protocol="voc2012", pred_options=pred)
    # Two objects count. Ranked: found, (difficult), false, found: precision 1 up to recall 1/2, 2/3 up to recall 1.
    # With the difficult one it would be 2/3 * 1 + 1/3 * 3/4 = 0.917.
    assert result["AP"] == pytest.approx(1 / 2 * 1 + 1 / 2 * 2 / 3, abs=1e-12)


def test_given_names_order_the_classes_of_a_set_with_names(load: Load) -> None:
    data = load("dog 10 20 5 5\ncat 50 60 7 3\n", names=("zebra", "dog"))
    assert set(data.labels.names) == {"zebra", "dog", "cat"}
    assert said(data, Severity.WARNING)[0] == "class-unknown"


# ---- columns ----


def test_the_sixth_column_is_the_confidence(load: Load) -> None:
    data = load(NEAR_EDGES.format(0.9, 0.8), role="pred")
    assert scores(data) == [0.9, 0.8]
    assert data.details == ("class cx cy w h conf, normalised",)


def test_the_second_column_is_the_confidence_where_boxes_would_leave_the_image_otherwise(load: Load) -> None:
    # Read as cx cy w h conf, the second box would reach from 0.3 - 0.9/2 = -0.15, the third from 0.2 - 0.5/2 = -0.05.
    data = load("0 0.9 0.1 0.1 0.2 0.2\n0 0.3 0.9 0.9 0.2 0.2\n0 0.2 0.1 0.5 0.2 0.3\n", role="pred")
    assert scores(data) == [0.9, 0.3, 0.2]
    assert xywh(data)[0] == [0.0, 0.0, 0.2, 0.2]


def test_in_pixels_the_column_within_0_and_1_is_the_confidence(load: Load) -> None:
    first = load("dog 0.9 10 20 5 5\ndog 1 50 60 7 3\n", role="pred")
    last = load("dog 10 20 5 5 0.9\ndog 50 60 7 3 1\n", role="pred")
    assert scores(first) == scores(last) == [0.9, 1.0]
    assert xywh(first) == xywh(last)


def test_a_tie_between_second_and_last_goes_to_the_last_with_a_note(load: Load) -> None:
    data = load("0 0.5 0.5 0.2 0.2 0.3\n", role="pred")
    assert scores(data) == [0.3]
    assert said(data) == ["columns-assumed"]


def test_the_columns_that_the_user_names_win(load: Load) -> None:
    data = load("0 0.5 0.5 0.2 0.2 0.3\n", role="pred", columns="conf-box")
    assert scores(data) == [0.5]
    assert said(data) == ["box-assumed"]  # a note: one box in the middle is also x y w h


def test_the_columns_and_the_encoding_that_the_user_names_leave_nothing_to_say(load: Load) -> None:
    assert said(load("0 0.5 0.5 0.2 0.2 0.3\n", role="pred", columns="conf-box", box="cxcywh")) == []


def test_unknown_columns_are_a_usage_error(load: Load) -> None:
    with pytest.raises(UsageError, match="box-conf"):
        load(BOX, columns="box-confidence")


def test_track_ids_never_become_scores(refuse: Refuse, load: Load) -> None:
    tracks = NEAR_EDGES.format(1, 17)
    text = refuse(tracks, role="pred")
    assert "error[score-missing]" in text
    assert "track ids" in text
    data = load(tracks, role="gt")
    assert data.ignored == {"track_id": 2}


def test_a_seventh_column_of_whole_numbers_is_a_track_id_and_may_be_missing(load: Load) -> None:
    data = load("0 0.5 0.5 0.2 0.4 0.9 3\n0 0.5 0.5 0.2 0.4 0.8\n0 0.5 0.5 0.2 0.4 0.7 12\n", role="pred")
    assert scores(data) == [0.9, 0.8, 0.7]


def test_confidences_of_ground_truth_are_counted_and_not_used(load: Load) -> None:
    data = load(NEAR_EDGES.format(0.9, 0.8))
    assert data.boxes.score is None
    assert data.ignored == {"score": 2}
    assert said(data) == ["gt-scores"]


def test_six_columns_in_pixels_without_any_confidence_are_ambiguous(refuse: Refuse) -> None:
    assert "--pred-columns" in refuse("0 87.5 10 20 30.5 40.5\n0 12.5 10 20 30.5 40.5\n", role="pred")


def test_predictions_without_confidence_are_refused_unless_one_is_assumed(refuse: Refuse, load: Load) -> None:
    assert "error[score-missing]" in refuse(BOX, role="pred")
    assert scores(load(BOX, role="pred", assume_score=1.0)) == [1.0]


def test_polygons_become_the_boxes_around_them(load: Load) -> None:
    data = load("0 0.1 0.5 0.3 0.2 0.5 0.9\n1 0.2 0.2 0.4 0.2 0.4 0.6 0.3 0.7 0.2 0.6\n")
    assert xywh(data) == [[0.1, 0.2, 0.4, 0.7], [0.2, 0.2, 0.2, 0.5]]
    assert said(data) == ["outline"]


def test_polygons_of_predictions_end_with_the_confidence(load: Load) -> None:
    data = load("0 0.1 0.5 0.3 0.2 0.5 0.9 0.75\n0 0.2 0.2 0.4 0.2 0.4 0.6 0.2 0.6 0.5\n", role="pred")
    assert scores(data) == [0.75, 0.5]
    assert xywh(data) == [[0.1, 0.2, 0.4, 0.7], [0.2, 0.2, 0.2, 0.4]]


def test_a_dangling_coordinate_of_a_ground_truth_polygon_is_an_error(refuse: Refuse) -> None:
    assert "a.txt:2" in refuse("0 .1 .5 .3 .2 .5 .9\n0 .1 .5 .3 .2 .5 .9 .4\n0 .1 .5 .3 .2 .5 .9\n")


@pytest.mark.parametrize("n_boxes", [1, 3])
def test_polygons_among_boxes_become_the_boxes_around_them(load: Load, n_boxes: int) -> None:
    # Corners (0.1, 0.2) to (0.5, 0.9) and (0.2, 0.2) to (0.4, 0.7).
    data = load(BOX * n_boxes + "0 0.1 0.5 0.3 0.2 0.5 0.9\n1 0.2 0.2 0.4 0.2 0.4 0.6 0.3 0.7 0.2 0.6\n")
    assert xywh(data) == [[0.4, 0.3, 0.2, 0.4]] * n_boxes + [[0.1, 0.2, 0.4, 0.7], [0.2, 0.2, 0.2, 0.5]]
    assert data.details == ("class cx cy w h, normalised",)
    assert said(data) == ["outline"]
    assert "2 polygons among the boxes" in str(data.findings[0])


def test_polygons_among_boxes_of_predictions_end_with_the_confidence(load: Load) -> None:
    data = load(NEAR_EDGES.format(0.9, 0.8) + "0 0.1 0.5 0.3 0.2 0.5 0.9 0.75\n", role="pred")
    assert scores(data) == [0.9, 0.8, 0.75]
    assert xywh(data)[2] == [0.1, 0.2, 0.4, 0.7]


def test_a_named_encoding_is_that_of_the_boxes_among_polygons(load: Load) -> None:
    data = load("0 0.1 0.2 0.3 0.6\n0 0.1 0.5 0.3 0.2 0.5 0.9\n", box="xyxy")
    assert xywh(data) == [[0.1, 0.2, 0.2, 0.4], [0.1, 0.2, 0.4, 0.7]]


def test_oriented_boxes_become_the_boxes_around_them(load: Load) -> None:
    data = load("0 0.5 0.1 0.9 0.5 0.5 0.9 0.1 0.5\n")
    assert xywh(data) == [[0.1, 0.1, 0.8, 0.8]]
    assert data.details == ("class x1 y1 x2 y2 x3 y3 x4 y4, normalised",)


def test_a_box_encoding_for_polygons_is_refused(refuse: Refuse) -> None:
    assert "--gt-box" in refuse("0 0.1 0.5 0.3 0.2 0.5 0.9\n", box="xywh")


# ---- units and encodings ----


def test_a_set_in_pixels_is_found_by_its_numbers(load: Load) -> None:
    data = load("dog 25 16 38 56\ndog 129 123 41 62\ndog 10 90 41 30\n")
    assert (data.units, xywh(data)[0]) == ("px", [25, 16, 38, 56])
    assert data.details == ("class x y w h, pixels",)


def test_corners_are_found_by_their_order(load: Load) -> None:
    lines = [f"dog {x} {y} {x + 10} {y + 20}\n" for x in range(0, 50, 10) for y in range(0, 50, 10)]
    data = load("".join(lines))
    assert xywh(data)[7] == [10, 20, 10, 20]
    assert data.details == ("class x1 y1 x2 y2, pixels",)
    assert said(data) == []


def test_few_ordered_boxes_are_read_as_corners_with_a_warning_that_names_the_flag(load: Load) -> None:
    data = load("dog 10 20 30 40\n")
    assert xywh(data) == [[10, 20, 20, 20]]
    assert said(data, Severity.WARNING) == ["box-assumed"]
    assert "--gt-box" in str(data.findings[0])


def test_image_sizes_settle_few_boxes(load: Load, tmp_path: Path) -> None:
    data = load("dog 150 20 190 90\n", images=pictures(tmp_path / "images", "a.png"))  # 150 + 190 > 200
    assert xywh(data) == [[150, 20, 40, 70]]
    assert said(data, Severity.WARNING) == []


def test_image_sizes_tell_centre_size_from_left_top_size(load: Load, tmp_path: Path) -> None:
    data = load("0 180 50 40 20\n0 20 80 40 40\n", images=pictures(tmp_path / "images", "a.png"))  # 180 + 40 > 200
    assert xywh(data) == [[160, 40, 40, 20], [0, 60, 40, 40]]


def test_the_encoding_that_the_user_names_wins(load: Load) -> None:
    data = load("dog 10 20 30 40\n", box="xywh")
    assert xywh(data) == [[10, 20, 30, 40]]
    assert said(data) == []


def test_one_file_in_pixels_among_fractions_is_an_error(refuse: Refuse) -> None:
    text = refuse({"labels/a.txt": BOX * 2, "labels/b.txt": "0 240 80 80 60\n"})
    assert "b.txt:1: cx is 240, outside 0..1 (looks like pixels)" in text


def test_one_file_of_fractions_among_pixels_is_an_error(refuse: Refuse) -> None:
    text = refuse({"labels/a.txt": "0 25 16 38 56\n0 129 123 41 62\n", "labels/b.txt": BOX})
    assert "b.txt:1: the box [0.5, 0.5, 0.2, 0.4] looks normalised" in text


def test_a_hair_beyond_the_image_is_fine(load: Load) -> None:
    assert said(load("0 1.0000001 0.5 0.1 0.1\n" + BOX)) == []


def test_ground_truth_outside_the_image_is_an_error_and_a_detection_there_a_warning(refuse: Refuse, load: Load) -> None:
    assert "h is 1.2, outside 0..1" in refuse(BOX * 2 + "0 0.5 0.5 0.1 1.2\n")
    data = load("0 0.5 0.5 0.1 1.2 0.9\n0 0.2 0.1 0.2 0.2 0.9\n0 0.9 0.9 0.2 0.2 0.1\n", role="pred")
    assert said(data, Severity.WARNING) == ["coordinate-range"]
    assert len(data.boxes) == 3


def test_a_negative_width_is_an_error_on_both_sides(refuse: Refuse) -> None:
    assert "width is -0.1; it cannot be negative" in refuse("0 0.5 0.5 -0.1 0.1\n")
    assert "a.txt:2: bbox has width -5" in refuse("0 50 50 5 5\n0 60 10 -5 5\n0 20 10 5 5\n", box="xywh")


def test_one_box_a_little_outside_is_not_taken_for_pixels(refuse: Refuse) -> None:
    assert "cx is 1.2, outside 0..1" in refuse("0 1.2 0.5 0.1 0.1\n")


def test_duplicate_rows_are_kept(load: Load) -> None:
    data = load({"labels/a.txt": BOX * 3 + "1 0.5 0.5 0.2 0.4\n", "labels/b.txt": BOX})
    assert len(data.boxes) == 5


# ---- files and images ----


def test_nested_folders_are_part_of_the_key(load: Load) -> None:
    data = load({"labels/a.txt": BOX, "labels/sub/a.txt": BOX, "labels/sub/deep/b.TXT": BOX})
    assert data.images.keys == ("a", "sub/a", "sub/deep/b")


def test_other_files_are_passed_over_and_odd_ones_counted(load: Load) -> None:
    usual = {
        "classes.txt": "cat\n",
        "notes.json": "{}",
        "README.dataset.txt": "hello",
        "a.jpg": "",
        "train.txt": "x/a.jpg\n",
    }
    odd = {"a.txt~": "old", "a.txt.bak": "old"}
    data = load({f"labels/{name}": text for name, text in (usual | odd | {"a.txt": BOX}).items()})
    assert data.images.keys == ("a",)
    assert data.ignored == {"other_file": 2}


def test_labels_named_like_documents_are_labels(load: Load) -> None:
    data = load({"labels/license_plate_1.txt": BOX, "labels/test.txt": BOX})
    assert data.images.keys == ("license_plate_1", "test")


def test_a_folder_named_like_a_label_file_is_a_folder(load: Load) -> None:
    assert load({"labels/a.txt/b.txt": BOX}).images.keys == ("a.txt/b",)


def test_two_label_files_for_one_image_are_an_error(refuse: Refuse) -> None:
    assert "'a' has two label files" in refuse({"labels/a.txt": BOX, "labels/a.TXT": BOX})


def test_a_link_in_a_circle_is_followed_once(load: Load, tmp_path: Path) -> None:
    lay_out(tmp_path, {"labels/a.txt": BOX})
    (tmp_path / "labels" / "loop").symlink_to(tmp_path / "labels")
    assert load({}).images.keys == ("a",)


def test_files_that_cannot_be_read_are_all_named(refuse: Refuse, tmp_path: Path) -> None:
    labels = lay_out(tmp_path, {"labels/a.txt": BOX, "labels/b.txt": b"\xff\n", "labels/c.txt": b"0\x00"}) / "labels"
    (labels / "d.txt").symlink_to("nowhere")
    (labels / "e.txt").symlink_to("e.txt")
    text = refuse({})
    for name in ("b.txt:1", "c.txt:1", "d.txt", "e.txt"):
        assert name in text


def test_no_label_file_is_an_error_of_ground_truth_and_a_warning_of_predictions(refuse: Refuse, load: Load) -> None:
    assert "no .txt label files" in refuse({"labels/notes.json": "{}"})
    data = load({}, role="pred")
    assert (len(data.boxes), said(data)) == (0, ["pred-empty"])


def test_a_file_in_place_of_the_folder_is_refused(refuse: Refuse) -> None:
    assert "folder" in refuse(BOX, start="labels/a.txt")


def test_an_image_without_label_file_has_no_objects(load: Load, tmp_path: Path) -> None:
    data = load(BOX, images=pictures(tmp_path / "images", "a.png", "sub/b.png"))
    assert (data.images.keys, data.images.file_names) == (("a", "sub/b"), ("a.png", "sub/b.png"))
    assert said(data) == ["image-without-label"]


def test_ground_truth_without_its_image_is_set_aside_with_a_warning(load: Load, tmp_path: Path) -> None:
    data = load({"labels/a.txt": BOX, "labels/zzz.txt": BOX}, images=pictures(tmp_path / "images", "a.png"))
    assert len(data.boxes) == 1
    assert data.ignored == {"image-unlisted": 1}


def test_images_of_another_set_are_an_error(refuse: Refuse, tmp_path: Path) -> None:
    assert "images-mismatch" in refuse(BOX, images=pictures(tmp_path / "images", "x.png", "y.png"))


# ---- images beside labels ----


@pytest.mark.parametrize(
    ("labels", "images", "start"),
    [
        ("labels", "images", "labels"),
        ("labels", "images", "."),
        ("labels/val", "images/val", "labels/val"),
        ("labels/val", "images/val", "labels"),
        ("valid/labels", "valid/images", "valid"),
        ("both", "both", "both"),
    ],
)
def test_images_beside_labels_give_sizes_and_images_without_objects(
    load: Load, tmp_path: Path, labels: str, images: str, start: str
) -> None:
    pictures(tmp_path / images, "a.png", "empty.png", size=(200, 100))
    data = (
        load({f"{labels}/a.txt": BOX, "data.yaml": "nc: 1\nnames: [cat]\nval: elsewhere\n"}, start=start)
        if (start != ".")
        else load({f"{labels}/a.txt": BOX, "classes.txt": "cat\n"}, start=start)
    )
    assert [key.rpartition("/")[2] for key in data.images.keys] == ["a", "empty"]
    assert xywh(data) == [[80, 30, 40, 40]]  # fractions of 200 x 100
    assert (data.units, data.images.listed, data.labels.names) == ("px", True, ("cat",))
    assert any(detail.startswith("images from ") and detail.endswith(images) for detail in data.details)
    assert said(data) == ["image-without-label"]


def test_images_of_other_splits_are_no_images_without_objects(load: Load, tmp_path: Path) -> None:
    pictures(tmp_path / "images", "train/t.png", "train/u.png", "val/a.png", "val/b.png")
    data = load({"labels/val/a.txt": BOX, "labels/val/b.txt": ""}, start="labels")
    assert data.images.keys == ("val/a", "val/b")
    both = load({"labels/val/a.txt": BOX, "labels/val/b.txt": "", "labels/train/t.txt": BOX}, start="labels")
    assert both.images.keys == ("val/a", "val/b")


def test_images_in_two_places_are_not_guessed_from(load: Load, tmp_path: Path) -> None:
    pictures(tmp_path, "labels/a.png", "images/a.png")
    data = load(BOX)
    assert (data.units, data.images.listed) == ("norm", False)
    assert said(data) == ["images-beside"]
    assert "--gt-images" in str(data.findings[0])


def test_images_that_are_not_those_of_the_labels_are_not_used(load: Load, tmp_path: Path) -> None:
    pictures(tmp_path / "images", "a.png", "c.png")
    data = load({"labels/a.txt": BOX, "labels/b.txt": BOX})
    assert (data.units, data.images.keys) == ("norm", ("a", "b"))
    assert "has no image for 1 of 2 label files; it is not used. First: 'b'" in str(data.findings[0])


def test_images_beside_predictions_give_sizes_and_no_further_images(load: Load, tmp_path: Path) -> None:
    pictures(tmp_path / "images", "a.png", "c.png")
    data = load(NEAR_EDGES.format(0.9, 0.8), role="pred")
    assert (data.units, data.images.keys, data.images.listed) == ("px", ("a",), False)


def test_given_images_go_before_those_that_lie_beside(load: Load, tmp_path: Path) -> None:
    pictures(tmp_path / "images", "a.png", size=(10, 10))
    data = load(BOX, images=pictures(tmp_path / "given", "a.png", size=(200, 100)))
    assert xywh(data) == [[80, 30, 40, 40]]


# ---- descriptions of data sets ----

DATA_SET = {
    "data.yaml": "path: .\ntrain: images/train\nval: images/val\nnames: {0: cat, 1: dog}\n",
    "labels/train/t.txt": BOX,
    "labels/val/a.txt": BOX,
    "labels/val/sub/b.txt": BOX,
}


def test_a_data_yaml_may_be_written_as_json(load: Load, tmp_path: Path) -> None:
    written = json.dumps({"path": ".", "train": "images", "val": "images", "names": {"0": "cat", "1": "dog"}})
    files = {"labels/a.txt": BOX, "images/a.jpg": b"", "data.yaml": written}
    assert detect_format(lay_out(tmp_path, files) / "data.yaml") == "yolo"
    assert load(files, start="data.yaml").labels.names[0] == "cat"


@pytest.mark.parametrize("start", [".", "data.yaml"])
def test_a_data_yaml_leads_to_labels_images_and_names(load: Load, tmp_path: Path, start: str) -> None:
    pictures(tmp_path / "images" / "val", "a.png", "sub/b.png", "empty.png")
    data = load(DATA_SET, start=start)
    assert data.images.keys == ("a", "empty", "sub/b")
    assert (data.labels.names, data.units, data.images.listed) == (("cat", "dog"), "px", True)
    assert xywh(data)[0] == [80, 30, 40, 40]


def test_another_split_is_read_when_asked_for(load: Load) -> None:
    data = load(DATA_SET, start="data.yaml", split="train")
    assert (data.images.keys, data.images.listed) == (("t",), False)  # no images were copied along


def test_a_split_that_is_not_there_names_those_that_are(refuse: Refuse, load: Load) -> None:
    assert "there are: train, val" in refuse(DATA_SET, start="data.yaml", split="test")
    with pytest.raises(UsageError, match="val"):
        load(DATA_SET, start="data.yaml", split="vall")


def test_the_folder_of_a_data_yaml_stands_in_for_a_path_that_does_not_exist(load: Load) -> None:
    moved = DATA_SET | {"data.yaml": "path: /nonexistent/data\nval: images/val\nnames: [cat, dog]\n"}
    data = load(moved, start="data.yaml")
    assert said(data, Severity.WARNING) == ["path-missing"]
    assert "/nonexistent/data" in str(data.findings[0])


@pytest.mark.parametrize("place", ["images/val", "val.txt"])
def test_a_path_that_does_not_exist_is_a_note_where_the_images_are_found(
    load: Load, place: str, tmp_path: Path
) -> None:
    pictures(tmp_path, "images/val/a.png")
    text = f"path: /nonexistent/data\nval: {place}\nnames: [cat]\n"
    files = {"data.yaml": text, "val.txt": "images/val/a.png\n", "labels/val/a.txt": BOX}
    data = load(files, start="data.yaml")
    assert said(data, Severity.NOTE) == ["path-missing"]
    assert said(data, Severity.WARNING) == []


def test_a_path_one_level_too_high_is_tried_beside_the_file(load: Load) -> None:
    data = load({"data.yaml": "val: ../valid/images\nnames: [cat]\n", "valid/labels/a.txt": BOX}, start="data.yaml")
    assert data.images.keys == ("a",)


@pytest.mark.parametrize("prefix", ["", "./", "/srv/set/", "../set/"])
def test_a_list_of_images_is_the_list_of_images(load: Load, prefix: str) -> None:
    files = {
        "data.yaml": "val: val.txt\nnames: [cat]\n",
        "val.txt": f"{prefix}images/a.jpg\n{prefix}images/empty.jpg\n",
        "labels/a.txt": BOX,
        "labels/other.txt": BOX,
    }
    data = load(files, start="data.yaml")
    assert (data.images.keys, data.images.listed, len(data.boxes)) == (("a", "empty"), True, 1)


def test_several_folders_of_images_make_one_split(load: Load, tmp_path: Path) -> None:
    pictures(tmp_path, "images/x/a.png", "images/y/a.png")
    files = {"data.yaml": "val: [images/x, images/y]\nnames: [cat]\n", "labels/x/a.txt": BOX, "labels/y/a.txt": BOX}
    assert load(files, start="data.yaml").images.keys == ("x/a", "y/a")


def test_darknet_lists_images_with_labels_beside_them(load: Load) -> None:
    files = {
        "obj.data": "classes = 2\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n",
        "obj.names": "cat\ndog\n",
        "train.txt": "data/obj_train_data/a.jpg\ndata/obj_train_data/b.jpg\n",
        "obj_train_data/a.txt": BOX,
    }
    data = load(files, start=".")
    assert (data.images.keys, data.labels.names, len(data.boxes)) == (("a", "b"), ("cat", "dog"), 1)
    assert said(data) == ["split-train"]


def test_listed_images_lie_below_the_description_however_their_paths_begin(load: Load) -> None:
    listed = "/old/disk/images/a.jpg\n//server/share/images/b.jpg\n../../images/c.jpg\n\\\\server\\images\\d.jpg\n"
    files = {"data.yaml": "val: val.txt\nnames: [cat]\n", "val.txt": listed}
    labels = {f"labels/{name}.txt": BOX for name in "abcd"}
    assert len(load(files | labels, start="data.yaml").boxes) == 4


@pytest.mark.parametrize("place", ["x" * 10_000, '"a\\0b"'])
@pytest.mark.parametrize("text", ["val: {}\nnames: [cat]\n", "path: {}\nval: labels\nnames: [cat]\n"])
def test_a_place_that_no_file_system_has_is_missing(
    load: Load, refuse: Refuse, text: str, place: str, tmp_path: Path
) -> None:
    files = {"data.yaml": text.format(place), "labels/a.txt": BOX}
    if "path" in text:
        assert said(load(files, start="data.yaml")) == ["path-missing"]
    else:
        assert "there is no" in refuse(files, start="data.yaml")


@pytest.mark.parametrize("names", ["{outside}", "../../outside.txt"])
def test_darknet_cannot_name_a_file_outside_of_its_folder(refuse: Refuse, tmp_path: Path, names: str) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("a secret\n")
    files = {
        "set/obj.data": f"names = {names.format(outside=outside)}\ntrain = train.txt\n",
        "set/train.txt": "a.jpg\n",
    }
    message = refuse(files, start="set")
    assert "outside.txt: no such file" in message
    assert "secret" not in message


def test_a_number_that_overflows_ends_no_class_name(refuse: Refuse) -> None:
    assert "a.txt:1: expected 6 columns (class box conf), got 7 columns" in refuse(
        {"labels/a.txt": "cat 1e400 0 0 0 0 0\n"}
    )


# ---- finding the format ----


@pytest.mark.parametrize(
    "files",
    [
        {"a.txt": BOX},
        {"a.txt": "", "b.txt": BOX},
        {"labels/a.txt": BOX},
        {"labels/val/a.txt": BOX},
        {"labels/train2017/a.txt": BOX},
        {"labels/2024/front/a.txt": BOX},
        {"classes.txt": "cat\n", "street/a.txt": BOX},
        {"a.txt": "traffic light 0.9 1 2 3 4\n"},
        {"data.yaml": "val: images\nnames: [cat]\n"},
        {"obj.data": "names = obj.names\n"},
    ],
)
def test_a_folder_of_text_labels_is_recognised(tmp_path: Path, files: Files) -> None:
    assert detect_format(lay_out(tmp_path, files)) == "yolo"


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"notes.txt": "hello world\n"},
        {"a.txt": "Car 0.00 0 -1.58 587.01 173.33 614.12 200.12 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59\n"},
        {"P0001.txt": "1 2 3 4 5 6 7 8 plane 0\n"},
        {"data.yaml": "jobs: [build]\n"},
        {"detections/a.txt": BOX, "groundtruths/a.txt": BOX},
    ],
)
def test_other_folders_are_left_to_other_formats(tmp_path: Path, files: Files) -> None:
    assert not yolo.looks_like(Peek(lay_out(tmp_path, files)))


@pytest.mark.parametrize("folders", [("train", "val"), ("train2017", "val2017"), ("Train", "validation")])
def test_of_folders_called_after_splits_one_split_is_read(load: Load, folders: tuple[str, str]) -> None:
    train, val = folders
    files = {f"labels/{train}/a.txt": BOX, f"labels/{val}/b.txt": BOX, f"labels/{val}/c.txt": BOX}
    data = load(files, role="gt")
    assert data.images.keys == (f"{val}/b", f"{val}/c")
    told = [one.message for one in data.findings if one.code == "split-chosen"]
    assert "split 'val' is read: 2 label files; 1 of other splits are ignored" in told[0]
    assert load(files, role="gt", split="train").images.keys == (f"{train}/a",)


@pytest.mark.parametrize(
    "files", [("train/a.txt", "street/b.txt"), ("train/a.txt", "b.txt"), ("train/a.txt", "train/b.txt")]
)
def test_other_folders_of_labels_are_one_set(load: Load, files: tuple[str, str]) -> None:
    data = load(dict.fromkeys(files, BOX), start="")
    assert (len(data.images), [one.code for one in data.findings]) == (2, [])


def test_the_folder_of_all_labels_is_recognised_by_its_name(tmp_path: Path) -> None:
    assert detect_format(lay_out(tmp_path, {"labels/train2017/a.txt": BOX}) / "labels") == "yolo"


def test_sniffing_what_does_not_exist_is_quiet(tmp_path: Path) -> None:
    assert not yolo.looks_like(Peek(tmp_path / "nowhere"))
    assert not yolo.looks_like(Peek(tmp_path / "nowhere.yaml"))


# ---- real data, read without a single flag ----

PADILLA = "padilla-review/data/database"
REAL = [
    ("padilla-odm/groundtruths", "gt", 15, "class x y w h, pixels"),
    ("padilla-odm/detections", "pred", 24, "class conf x y w h, pixels"),
    ("padilla-odm/groundtruths_rel", "gt", 15, "class cx cy w h, normalised"),
    ("padilla-odm/detections_rel", "pred", 24, "class conf cx cy w h, normalised"),
    ("padilla-odm/samples/sample_2/groundtruths", "gt", 15, "class x y w h, pixels"),
    ("padilla-odm/samples/sample_2/detections", "pred", 24, "class conf x y w h, pixels"),
    ("cartucho-map/input/ground-truth", "gt", 686, "class x1 y1 x2 y2, pixels"),
    ("cartucho-map/input/detection-results", "pred", 494, "class conf x1 y1 x2 y2, pixels"),
    (f"{PADILLA}/dets/abs_xywh", "pred", 452, "class conf x y w h, pixels"),
    (f"{PADILLA}/dets/abs_xyx2y2", "pred", 452, "class conf x1 y1 x2 y2, pixels"),
    (f"{PADILLA}/dets/rel_xywh", "pred", 452, "class conf cx cy w h, normalised"),
    (f"{PADILLA}/gts/yolo_format", "gt", 273, "class cx cy w h, normalised"),
    ("padilla-review/toyexample/dets_classid_abs_xywh", "pred", 12, "class conf x y w h, pixels"),
    ("padilla-review/toyexample/dets_classid_abs_xyx2y2", "pred", 12, "class conf x1 y1 x2 y2, pixels"),
    ("padilla-review/toyexample/dets_classid_rel_xcycwh", "pred", 12, "class conf cx cy w h, normalised"),
    ("padilla-review/toyexample/dets_classname_abs_xywh", "pred", 12, "class conf x y w h, pixels"),
    ("padilla-review/toyexample/dets_classname_abs_xyx2y2", "pred", 12, "class conf x1 y1 x2 y2, pixels"),
    ("padilla-review/toyexample/dets_classname_rel_xcycwh", "pred", 12, "class conf cx cy w h, normalised"),
]


@pytest.mark.parametrize(("folder", "role", "n_boxes", "layout"), REAL)
def test_published_sets_are_read_without_flags(
    shared_data: Path, folder: str, role: str, n_boxes: int, layout: str
) -> None:
    assert detect_format(shared_data / folder) == "yolo"
    data = read_dataset(shared_data / folder, ReadOptions(role=role))
    assert (len(data.boxes), data.details[-1]) == (n_boxes, layout)


def test_one_scene_is_the_same_in_pixels_and_as_fractions(shared_data: Path) -> None:
    images = ImageFolder(shared_data / PADILLA / "images")
    forms = [
        read_dataset(shared_data / PADILLA / "dets" / name, ReadOptions(role="pred", images=images)).boxes
        for name in ("abs_xywh", "abs_xyx2y2", "rel_xywh")
    ]
    np.testing.assert_array_equal(forms[0].xywh, forms[1].xywh)
    np.testing.assert_allclose(forms[2].xywh, forms[0].xywh, atol=5e-4)  # six decimals of 500 pixels
    assert [form.score.tolist() for form in forms if form.score is not None] == [scores_of(forms[0])] * 3


def scores_of(boxes: Any) -> list[float]:
    return list(boxes.score.tolist())


def test_a_darknet_folder_lists_its_images(shared_data: Path) -> None:
    data = read_dataset(shared_data / PADILLA / "gts/yolo_format", ReadOptions(role="gt"))
    assert (len(data.images), data.images.listed, len(data.labels)) == (100, True, 20)
    assert data.labels.names[:3] == ("person", "cat", "boat")


@pytest.mark.parametrize("start", [".", "data.yaml", "labels/val"])
def test_the_sample_is_the_same_by_every_entrance(sample_data: Path, start: str) -> None:
    data = read_dataset(sample_data / "yolo" / start, ReadOptions(role="gt"))
    assert (len(data.images), len(data.boxes), len(data.labels)) == (12, 38, 5)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root reads everything")
def test_a_folder_without_permission_is_an_error(refuse: Refuse, tmp_path: Path) -> None:
    lay_out(tmp_path, {"labels/a.txt": BOX, "labels/sub/b.txt": BOX})
    (tmp_path / "labels/sub").chmod(0)
    try:
        assert "cannot be listed" in refuse({})
    finally:
        (tmp_path / "labels/sub").chmod(0o755)


@pytest.mark.parametrize(
    ("place", "is_found"),
    [
        ("D:\\\\work\\\\my fruit\\\\valid\\\\images", True),
        ("/data/me/fruit/valid/images", True),
        ("/data/me/fruit set/pictures", True),  # beside the file, in a folder of that name
        ("/data/me/other/pictures", False),  # some folder of that name says nothing
        ("/data/me/fruit/test/images", False),
    ],
)
def test_folders_of_another_machine_are_looked_for_beside_the_description(
    place: str, is_found: bool, tmp_path: Path
) -> None:
    root = tmp_path / "fruit set"
    files = {"valid/labels/a.txt": BOX, "valid/images/notes.md": "", "pictures/a.txt": BOX}
    lay_out(root, {**files, "data.yaml": f'val: "{place}"\nnames: [dog]\n'})
    if is_found:
        dataset = read_dataset(root / "data.yaml", ReadOptions())
        (note,) = (finding for finding in dataset.findings if finding.code == "path-moved")
        assert dataset.images.keys == ("a",)
        assert f"{root}/" in note.message and ", where its path ends, is read instead" in note.message
    else:
        with pytest.raises(DataError, match="split-missing"):
            read_dataset(root / "data.yaml", ReadOptions())
