"""Mistakes about boxes, planted into good data: what is said, and that the flag it names restores the true AP."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planting import SETS, Outcome, Pair, run_evaluate, suggested_flags

Box = list[float]
Size = tuple[float, float]

CODES = ("box-encoding", "box-units", "box-axes", "box-outside", "box-gigantic", "box-offset")
LEFT_TO_IMAGES = ("image-mismatch", "image-shifted", "image-number", "class-mapping")


def _xyxy(box: Box, _: Size) -> Box:
    x, y, w, h = box
    return [x, y, x + w, y + h]


def _cxcywh(box: Box, _: Size) -> Box:
    x, y, w, h = box
    return [x + w / 2, y + h / 2, w, h]


def _xxyy(box: Box, _: Size) -> Box:
    x, y, w, h = box
    return [x, x + w, y, y + h]


def _yxyx(box: Box, _: Size) -> Box:
    x, y, w, h = box
    return [y, x, y + h, x + w]


def _fractions(box: Box, size: Size) -> Box:
    return [value / size[axis % 2] for axis, value in enumerate(box)]


def _fractions_of_corners(box: Box, size: Size) -> Box:
    return _xyxy(_fractions(box, size), size)


def _fractions_of_centres(box: Box, size: Size) -> Box:
    return _cxcywh(_fractions(box, size), size)


READINGS = {  # mistake: what is planted, the finding's code, the name of the reading, the flags for the side
    "corners": (_xyxy, "box-encoding", "xyxy", "--{}-box xyxy"),
    "centres": (_cxcywh, "box-encoding", "cxcywh", "--{}-box cxcywh"),
    "x1 x2 y1 y2": (_xxyy, "box-axes", "xxyy", "--{}-box xxyy"),
    "y1 x1 y2 x2": (_yxyx, "box-axes", "yxyx", "--{}-box yxyx"),
    "fractions": (_fractions, "box-units", "fractions", "--{}-units norm"),
    "corners in fractions": (_fractions_of_corners, "box-units", "xyxy", "--{}-box xyxy --{}-units norm"),
    "centres in fractions": (_fractions_of_centres, "box-units", "cxcywh", "--{}-box cxcywh --{}-units norm"),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("side", ["gt", "pred"])
@pytest.mark.parametrize("mistake", READINGS)
def test_boxes_read_wrongly_are_named_with_ap50_as_given_and_as_read_rightly(
    mistake: str, side: str, name: str, good_pair: Callable[[str], Pair]
) -> None:
    pair = good_pair(name)
    true = pair.as_it_came()
    plant, code, reading, flags = READINGS[mistake]
    pair.change_boxes(side, plant)
    stopped = pair.evaluate()
    assert (stopped.code, stopped.result, list(stopped.errors)) == (3, {}, [code])
    wrong = pair.evaluate("--allow", code)
    assert wrong.code == 0
    assert wrong.ap < 0.1 * true.ap
    (warning,) = wrong.warnings(*CODES)
    assert warning["code"] == code
    given, right = wrong.result["metrics"]["AP50"], true.result["metrics"]["AP50"]
    assert f"AP50 {given:.3f} as given, {right:.3f} as {reading}" in warning["message"]
    assert f"{side}.json: box: boxes look like" in warning["message"]
    assert stopped.errors[code] == f"{warning['message']} To go on as it is, add --allow {code}."
    assert wrong.warnings(*LEFT_TO_IMAGES) == []
    assert suggested_flags(warning["message"]) == flags.replace("{}", side).split()
    mended = pair.evaluate(*suggested_flags(warning["message"]))
    # Fractions do not give back whole pixels to the last bit: an IoU that lies on a threshold falls to either side.
    assert mended.ap == pytest.approx(true.ap, rel=0, abs=5e-4 if "fractions" in mistake else 1e-12)
    assert mended.warnings(*CODES) == []


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("mistake", "code"), [(_xyxy, "box-encoding"), (_fractions, "box-units")])
def test_both_sides_read_wrongly_alike_are_named_though_they_agree(
    mistake: Callable[[Box, Size], Box], code: str, name: str, good_pair: Callable[[str], Pair]
) -> None:
    pair = good_pair(name)
    true = pair.as_it_came()
    for side in ("gt", "pred"):
        pair.change_boxes(side, mistake)
    warnings = pair.evaluate().warnings(*CODES)
    assert [one["code"] for one in warnings] == [code, code]
    mended = pair.evaluate(*suggested_flags(*(one["message"] for one in warnings)))
    assert mended.ap == pytest.approx(true.ap, rel=0, abs=1e-12)
    assert mended.warnings(*CODES) == []


@pytest.mark.parametrize("name", SETS)
def test_pixels_read_as_fractions_are_named(name: str, good_pair: Callable[[str], Pair]) -> None:
    pair = good_pair(name)
    true = pair.as_it_came()
    (warning,) = pair.evaluate("--pred-units", "norm").warnings(*CODES)
    assert warning["code"] == "box-units"
    assert re.search(r"boxes look like pixels: AP50 0\.000 as given, 0\.\d+ as pixels", warning["message"])
    assert pair.evaluate(*suggested_flags(warning["message"])).ap == true.ap


@pytest.mark.parametrize("name", SETS)
def test_an_encoding_that_was_asked_for_wrongly_is_named(name: str, good_pair: Callable[[str], Pair]) -> None:
    pair = good_pair(name)
    true = pair.as_it_came()
    (warning,) = pair.evaluate("--pred-box", "cxcywh").warnings(*CODES)
    assert (warning["code"], suggested_flags(warning["message"])) == ("box-encoding", ["--pred-box", "xywh"])
    assert pair.evaluate(*suggested_flags(warning["message"])).ap == true.ap


def test_boxes_read_wrongly_are_named_though_the_classes_are_wrong_as_well(good_pair: Callable[[str], Pair]) -> None:
    pair = good_pair("cocoapi")
    true = pair.as_it_came()
    pair.change_boxes("pred", _xyxy)
    pair.change_classes(lambda number: number - 1)
    boxes = pair.evaluate().errors
    assert "AP50 (classes pooled)" in boxes["box-encoding"]
    reading = suggested_flags(*boxes.values())
    mended = pair.evaluate(*reading)  # classes are looked at once boxes are read rightly
    assert mended.result["correspondence"]["class_strategy"] == "id+1"
    assert mended.ap == pytest.approx(true.ap, rel=0, abs=1e-12)


OFFSETS = {  # what is added to x, y, w and h of the predictions; what is said; the repair
    "counted from 1": ([1, 1, 0, 0], "shifted by +1 px in x and y", "Rerun with --pred-origin 1. It subtracts 1"),
    "counted from 0": ([-1, -1, 0, 0], "shifted by -1 px in x and y", "Rerun with --gt-origin 1. It subtracts 1"),
    "pixel centres": ([0.5, 0.5, 0, 0], "shifted by +0.5 px in x and y", "subtract 0.5 from x and y"),
    "last pixel as edge": (
        [0, 0, -1, -1], "shifted by -1 px at the right and bottom", "add 1 to width and height of the predictions"),
    "width with both ends": (
        [0, 0, 1, 1], "shifted by +1 px at the right and bottom", "subtract 1 from width and height"),
    "from 1, with both ends": (
        [1, 1, -1, -1], "shifted by +1 px at the left and top",
        "subtract 1 from x and y of the predictions and add 1 to their width and height"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", OFFSETS)
def test_a_constant_offset_is_named_with_the_ap_that_it_costs_and_its_repair(
    mistake: str, good_pair: Callable[[str], Pair]
) -> None:
    pair = good_pair("cocoapi")
    true = pair.as_it_came()
    offset, told, repair = OFFSETS[mistake]
    pair.change_boxes("pred", lambda box, _: [value + by for value, by in zip(box, offset, strict=True)])
    wrong = pair.evaluate()
    (found,) = _offsets(wrong)
    given, right = wrong.result["metrics"]["AP75"], true.result["metrics"]["AP75"]
    assert told in found["message"]
    assert f"AP75 {given:.3f} as given, {right:.3f} without" in found["message"]
    assert repair in found["message"]
    assert found["severity"] == ("warning" if right - given >= 0.01 else "note")
    pair.change_boxes("pred", lambda box, _: [value - by for value, by in zip(box, offset, strict=True)])
    assert pair.evaluate().ap == pytest.approx(true.ap, rel=0, abs=1e-12)


@pytest.mark.parametrize("side", ["gt", "pred"])
def test_the_flag_that_an_offset_names_restores_ap_where_one_side_counts_from_one(
    side: str, good_pair: Callable[[str], Pair]
) -> None:
    pair = good_pair("cocoapi")
    true = pair.as_it_came()
    pair.change_boxes(side, _from_one)
    (found,) = _offsets(pair.evaluate())
    assert suggested_flags(found["message"]) == [f"--{side}-origin", "1"]
    mended = pair.evaluate(*suggested_flags(found["message"]))
    assert mended.ap == pytest.approx(true.ap, rel=0, abs=1e-12)
    assert _offsets(mended) == []


@pytest.mark.parametrize("side", ["gt", "pred"])
def test_pixels_said_to_be_counted_from_one_that_are_not_are_named(side: str, good_pair: Callable[[str], Pair]) -> None:
    pair = good_pair("cocoapi")
    flags = [f"--{side}-origin", "1"]
    (found,) = _offsets(pair.evaluate(*flags))
    assert suggested_flags(found["message"]) == [f"--{side}-origin", "0"]
    assert pair.evaluate(*flags, *suggested_flags(found["message"])).ap == pair.evaluate().ap


def test_no_flag_is_named_for_fractions_that_were_made_of_shifted_pixels(good_pair: Callable[[str], Pair]) -> None:
    pair = good_pair("cocoapi")
    pair.change_boxes("pred", lambda box, size: _fractions(_from_one(box, size), size))
    (found,) = _offsets(pair.evaluate("--pred-units", "norm"))
    assert "-origin" not in found["message"]
    assert "subtract 1 from x and y of the predictions" in found["message"]


def _from_one(box: Box, _: Size) -> Box:
    x, y, w, h = box
    return [x + 1, y + 1, w, h]


def _offsets(outcome: Outcome) -> list[dict[str, Any]]:
    return [one for one in outcome.result["warnings"] if one["code"] == "box-offset"]


@pytest.mark.parametrize("name", SETS)
def test_ground_truth_of_another_picture_size_is_out_of_its_images(name: str, good_pair: Callable[[str], Pair]) -> None:
    pair = good_pair(name)
    for image in pair.gt["images"]:
        image["width"], image["height"] = image["width"] / 4, image["height"] / 4
    codes = {one["code"] for one in pair.evaluate().warnings()}
    assert codes & {"box-outside", "box-gigantic", "gt-unmatchable"}


def test_columns_of_a_csv_under_the_names_of_others_are_named(
    sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gt, true, wrong = sample_data / "csv/gt.csv", sample_data / "csv/better.csv", tmp_path / "wrong.csv"
    header, rows = true.read_text().split("\n", 1)
    wrong.write_text(f"{header.replace('xmin,ymin,xmax,ymax', 'ymin,xmin,ymax,xmax')}\n{rows}")
    errors = run_evaluate(capsys, str(gt), str(wrong)).errors
    assert suggested_flags(errors["box-axes"]) == ["--pred-box", "yxyx"]
    expected = run_evaluate(capsys, str(gt), str(true)).ap
    assert run_evaluate(capsys, str(gt), str(wrong), *suggested_flags(errors["box-axes"])).ap == expected


def test_label_files_with_x1_x2_y1_y2_in_the_place_of_centres_are_named(
    sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in sorted((sample_data / "yolo/better").glob("*.txt")):
        lines = [line.split() for line in file.read_text().splitlines()]
        boxes = (_xxyy(_lefttop(list(map(float, line[1:5]))), (1, 1)) for line in lines)
        text = [f"{line[0]} {' '.join(map(repr, box))} {line[5]}" for line, box in zip(lines, boxes, strict=True)]
        (tmp_path / file.name).write_text("\n".join(text))
    gt = str(sample_data / "yolo/data.yaml")
    errors = run_evaluate(capsys, gt, str(tmp_path)).errors
    assert suggested_flags(errors["box-axes"]) == ["--pred-box", "xxyy"]
    mended = run_evaluate(capsys, gt, str(tmp_path), *suggested_flags(errors["box-axes"]))
    true = run_evaluate(capsys, gt, str(sample_data / "yolo/better"))
    assert mended.ap == pytest.approx(true.ap, rel=0, abs=1e-12)


def _lefttop(box: Box) -> Box:
    x, y, w, h = box
    return [x - w / 2, y - h / 2, w, h]


@pytest.mark.parametrize("name", SETS)
def test_nothing_is_said_of_good_boxes(name: str, good_pair: Callable[[str], Pair]) -> None:
    assert good_pair(name).evaluate().warnings(*CODES) == []
