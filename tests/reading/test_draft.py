from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.data.dataset import Dataset, Reading
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Severity, Where
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.rawboxes import Keys, RawBoxes

BOX = (10.0, 20.0, 30.0, 40.0)


def _draft(role: str = "gt", **options: object) -> Draft:
    return Draft("file.txt", "test", ReadOptions(role=role, **options))  # type: ignore[arg-type]


def _boxes(images: Keys, labels: Keys | None = None, **columns: object) -> RawBoxes:
    n = len(images)
    given_columns: dict[str, object] = {
        "image": images,
        "label": ["dog"] * n if labels is None else labels,
        "coords": np.array([BOX] * n).reshape(-1, 4),
        "encoding": "xywh",
        "units": "px",
        "place": lambda row: Where("file.txt", line=row + 1),
    }
    return RawBoxes(**(given_columns | columns))  # type: ignore[arg-type]


def _build(draft: Draft, boxes: RawBoxes) -> Dataset:
    draft.add_boxes(boxes)
    return draft.build()


def _error(draft: Draft, boxes: RawBoxes) -> str:
    with pytest.raises(DataError) as caught:
        _build(draft, boxes)
    return str(caught.value)


def test_keys_become_rows_numbers_first_then_texts() -> None:
    dataset = _build(_draft(), _boxes(["b", 10, "a", 9], ["x", "x", "y", "x"]))
    assert dataset.images.keys == (9, 10, "a", "b")
    assert dataset.boxes.image.tolist() == [3, 1, 2, 0]
    assert dataset.labels.keys == ("x", "y")
    assert dataset.boxes.label.tolist() == [0, 0, 1, 0]


def test_integer_arrays_of_keys_give_what_lists_give() -> None:
    sparse = np.array([2**40, 3, 2**40, -5])
    dataset = _build(_draft(), _boxes(sparse, np.array([7, 7, 1, 1])))
    assert dataset.images.keys == (-5, 3, 2**40)
    assert dataset.boxes.image.tolist() == [2, 1, 2, 0]
    assert dataset.labels.keys == (1, 7)


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 20), max_size=30))
def test_every_box_finds_its_image_again(keys: list[int]) -> None:
    for images in (keys, np.array(keys, dtype=np.int64)):
        dataset = _build(_draft(), _boxes(images, [1] * len(keys)))
        assert [dataset.images.keys[row] for row in dataset.boxes.image] == keys
        assert list(dataset.images.keys) == sorted(set(keys))


@pytest.mark.parametrize("as_keys", [np.array, list])
def test_images_that_only_boxes_name_stand_among_those_that_are_listed(as_keys: Callable[[list[int]], Keys]) -> None:
    draft = _draft("pred", assume_score=1.0)
    draft.set_images([9, 2], file_names=["i.png", "b.png"], sizes=np.array([[90.0, 9.0], [20.0, 2.0]]), listed=False)
    dataset = _build(draft, _boxes(as_keys([5, 9, 1])))
    assert dataset.images.keys == (1, 2, 5, 9)
    assert dataset.images.file_names == (None, "b.png", None, "i.png")
    assert dataset.images.sizes[[1, 3]].tolist() == [[20, 2], [90, 9]]
    assert np.isnan(dataset.images.sizes[[0, 2]]).all()
    assert dataset.boxes.image.tolist() == [2, 3, 0]


def test_listed_images_without_boxes_are_kept_with_names_and_sizes() -> None:
    draft = _draft()
    draft.set_images([2, 1], file_names=["b.png", None], sizes=np.array([[20.0, 10.0], [np.nan, np.nan]]))
    dataset = _build(draft, _boxes([2]))
    assert dataset.images.keys == (1, 2)
    assert [dataset.images.name(row) for row in (0, 1)] == ["1", "b.png"]
    assert dataset.images.sizes.tolist()[1] == [20, 10]
    assert np.isnan(dataset.images.sizes[0]).all()
    assert dataset.images.listed


def test_ground_truth_on_images_that_are_not_listed_is_set_aside_and_counted() -> None:
    draft = _draft()
    draft.set_images([1])
    dataset = _build(draft, _boxes([1, 7, 8]))
    (warning,) = dataset.findings
    assert len(dataset.boxes) == 1
    assert dataset.ignored == {"image-unlisted": 2}
    assert (warning.severity, warning.count) == (Severity.WARNING, 2)
    assert "ignored 2 boxes: their image is not among the file's images; first: file.txt:2: image 7" in str(warning)


@pytest.mark.parametrize("listed", [[3, 5], [3, 2**40]], ids=["dense", "sparse"])
def test_ids_below_between_and_above_the_listed_ones_are_not_among_them(listed: list[int]) -> None:
    draft = _draft()
    draft.set_images(listed)
    used = np.array([-1, 2, 3, 4, listed[1], listed[1] + 1, 2**50])
    dataset = _build(draft, _boxes(used, [1] * len(used)))
    assert dataset.boxes.source.tolist() == [2, 4]
    assert dataset.boxes.image.tolist() == [0, 1]


def test_ground_truth_of_classes_that_are_not_listed_is_set_aside_and_counted() -> None:
    draft = _draft()
    draft.set_classes([1], ["dog"])
    dataset = _build(draft, _boxes([1, 1], [1, 9]))
    assert len(dataset.boxes) == 1
    assert dataset.ignored == {"class-unlisted": 1}


@pytest.mark.parametrize(
    ("listed", "used", "is_shifted"),
    [
        ([1, 2, 3], [0, 1, 2], True),
        ([1, 2, 3], [0, 2], True),
        ([1, 2, 3], [0, 1, 3], False),  # 3 is the last of the list: 0 is something else
        ([1, 2, 3], [1, 2, 9], False),
        ([1, 2, 3], [-1, 0, 1], False),
    ],
)
def test_a_list_of_classes_that_is_shifted_by_one_is_said_to_be(
    listed: list[int], used: list[int], is_shifted: bool
) -> None:
    draft = _draft()
    draft.set_classes(listed, ["cat", "dog", "bird"])
    (warning,) = _build(draft, _boxes([1] * len(used), used)).findings
    assert warning.code == "class-unlisted"
    assert ("shifted by one: check every class name" in warning.message) == is_shifted
    if used == [0, 1, 2]:
        assert "boxes use 0 to 2, the categories are 1 to 3. The list seems shifted" in warning.message
        assert "Subtract 1 from the category ids" in warning.message


def test_a_class_with_quotes_and_without_is_two_classes_with_a_warning() -> None:
    (warning,) = _build(_draft(), _boxes([1, 1, 1], ["'dog'", "dog", "dog"])).findings
    assert str(warning) == (
        "warning[class-quoted]: file.txt: class: 'dog' (1 box) and dog (2 boxes) are two classes. "
        "Delete the quotes if they are the same class."
    )
    assert not _build(_draft(), _boxes([1, 1], ["'dog'", "cat"])).findings


@pytest.mark.parametrize(
    ("sizes", "is_kept"),
    [([[1, 1], [1, 1]], False), ([[1, 1], [2, 1]], True), ([[8, 8], [8, 8]], False), ([[9, 9], [9, 9]], True)],
)
def test_sizes_that_are_placeholders_are_unknown(sizes: list[list[float]], is_kept: bool) -> None:
    draft = _draft()
    draft.set_images([1, 2], sizes=np.array(sizes, dtype=np.float64))
    dataset = _build(draft, replace(_boxes([1, 2]), coords=np.array([[0.0, 0, 10, 20], [5, 5, 10, 10]])))
    assert np.isfinite(dataset.images.sizes).all() == is_kept
    assert [finding.code for finding in dataset.findings] == ([] if is_kept else ["size-placeholder"])


def test_predictions_on_images_that_are_not_listed_are_kept_for_the_comparison() -> None:
    draft = _draft("pred")
    draft.set_images([1], listed=True)
    dataset = _build(draft, _boxes([1, 7], score=np.array([0.5, 0.5])))
    assert dataset.images.keys == (1, 7)
    assert dataset.ignored == {}


def test_images_that_are_not_listed_are_added_where_the_list_may_be_incomplete() -> None:
    draft = _draft()
    draft.set_images(["a"], listed=False)
    dataset = _build(draft, _boxes(["a", "b"]))
    assert dataset.images.keys == ("a", "b")
    assert not dataset.images.listed


def test_repeated_ids_are_an_error_that_names_them() -> None:
    draft = _draft()
    draft.set_images([1, 2, 1, 2])
    message = _error(draft, _boxes([1]))
    assert "error[image-duplicate]: file.txt: images.id: duplicate image id 1" in message
    assert "duplicate image id 2" in message


def test_names_given_for_indices_are_taken_where_the_input_has_none() -> None:
    dataset = _build(_draft(names=("cat", "dog", "emu")), _boxes([1, 1], [2, 0]))
    assert dataset.labels.names == ("cat", "emu")
    assert dataset.labels.named


def test_an_index_without_a_name_is_an_error() -> None:
    message = _error(_draft(names=("cat", "dog")), _boxes([1, 1], [2, 0]))
    assert "class 2 has no name: the 2 given names are for classes 0 to 1" in message


def test_classes_are_called_by_their_number_where_nothing_names_them() -> None:
    dataset = _build(_draft(), _boxes([1], [17]))
    assert (dataset.labels.names, dataset.labels.named) == (("17",), False)


@pytest.mark.parametrize(
    ("encoding", "xywh"),
    [("xywh", [10, 20, 30, 40]), ("xyxy", [10, 20, 20, 20]), ("cxcywh", [-5, 0, 30, 40])],
)
def test_the_encoding_of_the_file_is_undone_unless_another_is_asked_for(encoding: str, xywh: list[float]) -> None:
    assert _build(_draft(), _boxes([1], encoding=encoding)).boxes.xywh.tolist() == [xywh]
    asked = _build(_draft(box=encoding), _boxes([1], encoding="xywh"))
    assert (asked.boxes.xywh.tolist(), asked.reading) == ([xywh], Reading(encoding, "px"))


def _fractions(*, sizes: list[list[float]], role: str = "gt", **columns: Any) -> Dataset:
    draft = _draft(role)
    draft.set_images([1, 2], sizes=np.array(sizes))
    return _build(draft, _boxes([1], coords=np.array([[0.1, 0.2, 0.5, 0.5]]), units="norm", **columns))


def test_fractions_become_pixels_where_the_size_of_every_image_with_boxes_is_known() -> None:
    dataset = _fractions(sizes=[[100, 50], [np.nan, np.nan]], area=np.array([0.25]))
    assert dataset.units == "px"
    assert dataset.boxes.xywh.tolist() == [[10, 10, 50, 25]]  # 0.1 · 100, 0.2 · 50, 0.5 · 100, 0.5 · 50
    assert dataset.boxes.area.tolist() == [1250]  # an area in fractions says nothing in pixels


def test_fractions_stay_where_a_size_is_unknown() -> None:
    dataset = _fractions(sizes=[[np.nan, np.nan], [100, 50]])
    assert dataset.units == "norm"
    assert dataset.boxes.xywh.tolist() == [[0.1, 0.2, 0.5, 0.5]]


def test_areas_of_the_file_are_kept_and_missing_ones_computed() -> None:
    dataset = _build(_draft(), _boxes([1, 1], area=np.array([7.0, np.nan])))
    assert dataset.boxes.area.tolist() == [7, 1200]


def test_flags_and_rows_of_the_file_are_kept() -> None:
    draft = _draft()
    draft.set_images([1])
    boxes = _boxes([7, 1, 1], crowd=np.array([False, True, False]), ignore=np.array([False, False, True]))
    table = _build(draft, boxes).boxes
    assert table.crowd.tolist() == [True, False]
    assert table.ignore.tolist() == [False, True]
    assert table.source.tolist() == [1, 2]


def test_scores_belong_to_predictions_alone() -> None:
    assert _build(_draft(), _boxes([1], score=np.array([0.5]))).boxes.score is None
    predicted = _build(_draft("pred"), _boxes([1], score=np.array([0.5]))).boxes.score
    assert predicted is not None
    assert predicted.tolist() == [0.5]


def test_predictions_without_scores_are_an_error_unless_one_is_assumed() -> None:
    message = _error(_draft("pred"), _boxes([1]))
    assert "error[score-missing]: file.txt:1: predictions have no score" in message
    assert "--assume-score" in message
    assumed = _build(_draft("pred", assume_score=1.0), _boxes([1, 1])).boxes.score
    assert assumed is not None
    assert assumed.tolist() == [1, 1]


def test_predictions_without_boxes_have_an_empty_column_of_scores() -> None:
    score = _build(_draft("pred"), _boxes([])).boxes.score
    assert score is not None
    assert len(score) == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_errors_with_their_place(value: float) -> None:
    coords, score = np.array([BOX, BOX]), np.array([value, 0.5])
    coords[1, 2] = value
    message = _error(_draft("pred"), _boxes([1, 1], coords=coords, score=score))
    assert (
        f"error[number-not-finite]: file.txt:2: bbox: is [10.0, 20.0, {value}, 40.0]; numbers must be finite" in message
    )
    assert f"error[number-not-finite]: file.txt:1: score: is {value}; numbers must be finite" in message


def test_all_problems_are_told_at_once() -> None:
    coords = np.array([BOX, (np.nan, 0, 1, 1), BOX])
    message = _error(_draft("pred", names=("cat",)), _boxes([1, 1, 1], [0, 0, 5], coords=coords))
    assert "error[number-not-finite]" in message
    assert "error[score-missing]" in message
    assert "error[class-index]" in message


def test_negative_sizes_are_an_error_that_doubts_the_encoding() -> None:
    message = _error(_draft(), _boxes([1, 1, 1], coords=np.array([(5, 5, -1, 2), BOX, (5, 5, 1, -2)])))
    assert "error[box-negative]: file.txt:1: bbox has width -1 and height 2" in message
    assert "file.txt:3: bbox has width 1 and height -2" in message
    assert "(--gt-box xywh|xyxy|cxcywh|xxyy|yxyx)" in message


def test_negative_sizes_are_kept_with_a_warning_where_the_format_allows_them() -> None:
    boxes = _boxes([1], coords=np.array([(5, 5, -1, 2)]), negative_size=Severity.WARNING)
    dataset = _build(_draft(), boxes)
    assert len(dataset.boxes) == 1
    assert [(one.severity, one.code) for one in dataset.findings] == [(Severity.WARNING, "box-negative")]


def test_empty_boxes_are_kept_with_a_warning() -> None:
    dataset = _build(_draft(), _boxes([1, 1], coords=np.array([(5, 5, 0, 2), (5, 5, 0, 0)])))
    (warning,) = dataset.findings
    assert len(dataset.boxes) == 2
    assert (warning.code, warning.count) == ("box-empty", 2)
    assert "2 degenerate boxes have zero width or height and cannot match" in warning.message


def test_a_size_whose_area_overflows_is_an_error() -> None:
    assert "error[box-too-large]" in _error(_draft(), _boxes([1], coords=np.array([(0, 0, 1e200, 1e200)])))


@pytest.mark.parametrize(
    ("encoding", "box"),
    [
        ("xywh", (1.7e308, 0, 1.7e308, 1e-10)),  # the area is finite, the right edge is not
        ("xyxy", (-1.7e308, 0, 1.7e308, 1)),  # the width is not finite
        ("cxcywh", (-1.7e308, 0, 1.7e308, 1)),  # the left edge is not finite
        ("xywh", (0, 0, 1.3e154, 1.3e154)),  # the area is finite, the sum of two such areas is not
    ],
)
def test_numbers_that_overflow_on_the_way_to_a_match_are_an_error(encoding: str, box: tuple[float, ...]) -> None:
    text = _error(_draft(), _boxes([1], coords=np.array([box]), encoding=encoding))
    assert text.startswith("error[box-too-large]: file.txt:1: bbox: is too large")


def test_fractions_that_overflow_when_made_pixels_are_an_error() -> None:
    draft = _draft()
    draft.set_images([1], sizes=np.array([(1000.0, 1000.0)]))
    boxes = _boxes([1], coords=np.array([(1e308, 0, 1, 1)]), units="norm")
    assert "left, top, width and height are inf, 0, 1000, 1000" in _error(draft, boxes)


def test_scores_and_areas_whose_sums_overflow_are_an_error() -> None:
    boxes = _boxes([1, 1], score=np.array([0.5, -1.7e308]), area=np.array([1e308, 1.0]))
    text = _error(_draft("pred"), boxes)
    assert "error[number-not-finite]: file.txt:2: score: is -1.7e+308; numbers above 1e+150 overflow" in text
    assert "error[number-not-finite]: file.txt:1: area: is 1e+308; numbers above 1e+300 overflow" in text


def test_sizes_whose_product_is_rounded_to_zero_are_empty_boxes() -> None:
    dataset = _build(_draft(), _boxes([1], coords=np.array([(0, 0, 1e-200, 1e-200)])))
    assert [one.code for one in dataset.findings] == ["box-empty"]


def test_negative_areas_are_kept_with_a_warning() -> None:
    dataset = _build(_draft(), _boxes([1, 1, 1], area=np.array([-1.0, 0.0, np.nan])))
    assert dataset.boxes.area.tolist() == [-1, 0, BOX[2] * BOX[3]]
    (warning,) = dataset.findings
    assert (warning.severity, warning.code, warning.count) == (Severity.WARNING, "area-negative", 1)
    assert "file.txt:1: area: is -1" in warning.message


def test_a_draft_that_nothing_was_added_to_is_an_empty_dataset() -> None:
    dataset = _draft().build()
    assert (len(dataset.images), len(dataset.labels), len(dataset.boxes)) == (0, 0, 0)


@pytest.mark.parametrize(("role", "code"), [("gt", "gt-empty"), ("pred", "pred-empty")])
def test_a_side_without_any_box_is_told_once(role: str, code: str) -> None:
    draft = _draft(role)
    assert [one.code for one in draft.build().findings] == [code]
    draft = _draft(role)
    draft.findings.warning(code, Where("a.csv", line=1), "a format may know more")
    assert [one.count for one in draft.build().findings] == [1]


def test_columns_are_read_only() -> None:
    table = _build(_draft("pred"), _boxes([1], score=np.array([0.5]))).boxes
    assert not any(column.flags.writeable for column in table.columns().values() if column is not None)


def test_what_a_loader_noted_is_in_the_dataset() -> None:
    draft = _draft()
    draft.details.append("normalised")
    draft.ignored["other_file"] += 2
    draft.findings.note("split-train", Where("file.txt"), "the split 'train' is read")
    dataset = _build(draft, _boxes([1]))
    assert (dataset.path, dataset.format, dataset.role) == ("file.txt", "test", "gt")
    assert dataset.details == ("normalised",)
    assert dataset.ignored == {"other_file": 2}
    assert [one.code for one in dataset.findings] == ["split-train"]


def test_guessed_units_are_no_guess_where_they_are_given() -> None:
    assert _build(_draft(), _boxes([1], units_guessed=True)).units_guessed
    assert not _build(_draft(units="px"), _boxes([1], units_guessed=True)).units_guessed


def test_pixels_counted_from_one_are_moved_to_zero_whatever_the_encoding() -> None:
    # The box that covers pixels 1 to 40 and 1 to 60 of a file that counts from 1 starts at 0; its size stays.
    for encoding, coords in (("xyxy", [1.0, 1, 40, 60]), ("xywh", [1.0, 1, 39, 59]), ("cxcywh", [20.5, 30.5, 39, 59])):
        dataset = _build(_draft(origin=1), _boxes(["a"], coords=np.array([coords]), encoding=encoding))
        assert dataset.boxes.xywh.tolist() == [[0, 0, 39, 59]]
        assert dataset.details == ("pixels counted from 1",)


def test_fractions_have_no_first_pixel() -> None:
    fractions = np.array([[0.1, 0.2, 0.3, 0.4]])
    dataset = _build(_draft(origin=1), _boxes(["a"], coords=fractions, units="norm"))
    assert dataset.boxes.xywh.tolist() == fractions.tolist()
    (warning,) = dataset.findings
    assert (warning.severity, warning.code) == ("warning", "origin-unused")
    assert "Remove --gt-origin, or pass --gt-units px" in warning.message


def test_pixels_are_counted_from_zero_or_one_and_nothing_else() -> None:
    with pytest.raises(UsageError, match="origin must be 0 or 1, got 2"):
        _build(_draft(origin=2), _boxes(["a"]))
