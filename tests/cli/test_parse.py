import math
from pathlib import Path

import pytest

from jaccard_eval.cli.parse import (
    parse_areas,
    parse_class_map,
    parse_iou,
    parse_max_dets,
    parse_names,
    parse_number,
    parse_score,
    parse_sort,
)
from jaccard_eval.data.protocol import COCO, AreaRange
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError


def test_the_range_of_coco_is_cocos_to_the_last_bit() -> None:
    assert parse_iou("0.5:0.95:0.05") == COCO.iou_thresholds


@pytest.mark.parametrize(
    ("text", "thresholds"),
    [
        ("0.5", (0.5,)),
        (".5,0.75", (0.5, 0.75)),
        ("0.5:0.5:0.1", (0.5,)),
        ("0.1:0.5:0.1", (0.1, 0.2, 0.30000000000000004, 0.4, 0.5)),  # numpy.linspace(.1, .5, 5)
    ],
)
def test_thresholds_are_a_number_a_list_or_a_range(text: str, thresholds: tuple[float, ...]) -> None:
    assert parse_iou(text) == thresholds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("half", "'half' is not a number"),
        ("0.5,", "'' is not a number"),
        ("nan", "not a number"),
        ("inf", "not a number"),
        ("1_0", "not a number"),
        ("\uff10.\uff15", "not a number"),
        ("0.5:0.95", "start:stop:step"),
        ("0.5:0.9:0.3", r"steps of 0.3 from 0.5 do not meet 0.9; stop at 0.8 instead"),
        ("0.9:0.5:0.1", "ascends"),
        ("0.5:0.9:0", "ascends"),
        ("0:1:1e-300", "more than 1,001 thresholds"),
    ],
)
def test_other_thresholds_are_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_iou(text)


def test_caps_are_whole_numbers_or_none() -> None:
    assert parse_max_dets("1,10,100") == (1, 10, 100)
    assert parse_max_dets("none") == ()
    for text in ("0", "1.5", "-1", "many", "1e400"):
        with pytest.raises(UsageError):
            parse_max_dets(text)


@pytest.mark.parametrize("square", ["32²", "32^2", "32**2", "1024", "1.024e3"])
def test_an_area_is_a_number_or_a_square(square: str) -> None:
    assert parse_areas(f"small=0:{square},large={square}:inf") == (
        AreaRange("small", 0.0, 1024.0),
        AreaRange("large", 1024.0, math.inf),
    )


@pytest.mark.parametrize("text", ["small", "small=1", "=0:1", "a b=0:1", "small=0:x", "small=0:²", ""])
def test_other_area_ranges_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_areas(text)


def test_a_name_with_a_comma_stands_in_quotes() -> None:
    assert parse_names('dog, "traffic light, red",cat') == ("dog", "traffic light, red", "cat")
    for text in ("", "a,,b", '"a', "a\nb"):
        with pytest.raises(UsageError):
            parse_names(text)


def test_a_score_is_a_number_or_best_f1() -> None:
    assert (parse_score("0.25"), parse_score("best-f1")) == (0.25, "best-f1")
    with pytest.raises(UsageError, match="Did you mean 'best-f1'"):
        parse_score("best_f1")


def test_classes_sort_by_a_column_or_any_metric() -> None:
    assert [parse_sort(text) for text in ("name", "gt", "map", "mAP@0.5")] == ["name", "gt", "AP", "AP50"]
    with pytest.raises(UsageError, match="unknown metric 'mapp'"):
        parse_sort("mapp")


def test_numbers_may_stand_between_blanks() -> None:
    assert parse_number(" -1.5e-3 ") == -0.0015


def test_a_class_map_maps_predictions_to_ground_truth() -> None:
    assert parse_class_map("kitty=cat, hound = dog") == {"kitty": "cat", "hound": "dog"}
    with pytest.raises(UsageError, match="'kitty'"):
        parse_class_map("kitty")
    with pytest.raises(UsageError, match="classes mapped more than once: 'a'"):
        parse_class_map("a=b,a=c")


@pytest.mark.parametrize(
    ("name", "text"),
    [("map.json", '{"no": "yes", "1": "a=b"}'), ("map.yaml", "no: yes\n1: a=b\n"), ("map.yml", "{no: yes, 1: a=b}")],
)
def test_a_class_map_can_be_a_file_whose_values_stay_text(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert parse_class_map(str(tmp_path / name)) == {"no": "yes", "1": "a=b"}


def test_whole_numbers_of_a_class_map_are_ids_or_values_of_pixels(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text('{"11": 2, "7": "0"}')
    assert parse_class_map(str(tmp_path / "map.json")) == {"11": "2", "7": "0"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list.json", '["a"]'),
        ("pairs.json", '[["a", "b"]]'),
        ("number.json", '{"a": 1.0}'),
        ("flag.json", '{"a": true}'),
        ("twice.json", '{"a": "b", "a": "c"}'),
        ("cut.json", '{"a": '),
        ("deep.json", "[" * 100_000),
        ("list.yaml", "- a\n"),
        ("nested.yaml", "a: [b]\n"),
        ("twice.yaml", "a: b\na: c\n"),
        ("empty.yaml", ""),
    ],
)
def test_a_file_that_is_no_mapping_of_texts_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=name):
        parse_class_map(str(tmp_path / name))
