from pathlib import Path
from typing import Any

import numpy as np
import pytest
from label_map_builder import label_map, write_npy, write_png

from jaccard_eval import DataError, PixelsResult, UsageError, pixels


def evaluate(folder: Path, gt: str, pred: str, **options: Any) -> PixelsResult:
    """Evaluate one pair of pictures."""
    return pixels(write_png(folder / "gt.png", gt), write_png(folder / "pred.png", pred), **options)


def confusion(result: PixelsResult) -> dict[tuple[str, str | None], int]:
    return {(gt, pred): count for gt, pred, count in result.confusion}


def codes(result: PixelsResult) -> list[str]:
    return [finding.code for finding in result.findings]


def refused(folder: Path, gt: str, pred: str, **options: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        evaluate(folder, gt, pred, **options)
    return caught.value


def test_without_names_every_value_is_a_class(tmp_path: Path) -> None:
    result = evaluate(tmp_path, "0033", "0003")
    assert [row.name for row in result.per_class] == ["0", "3"]
    assert confusion(result) == {("0", "0"): 2, ("3", "0"): 1, ("3", "3"): 1}
    assert result["IoU[class=3]"] == 1 / 2


def test_names_make_classes_that_do_not_occur_and_refuse_other_values(tmp_path: Path) -> None:
    assert [row.name for row in evaluate(tmp_path, "01", "01", classes=["a", "b", "c"]).per_class] == ["a", "b", "c"]
    error = refused(tmp_path, "0110 / 0011", "0190 / 7711", classes=["a", "b"])
    assert [str(one) for finding in error.findings for one in finding.examples] == [
        f"{tmp_path / 'pred.png'}: (0, 1): value 7 is not a class; 2 pixels of it, first one here",
        f"{tmp_path / 'pred.png'}: (2, 0): value 9 is not a class; 1 pixel of it, first one here",
    ]


def test_ignored_values_of_the_ground_truth_are_left_out_and_counted(tmp_path: Path) -> None:
    result = evaluate(tmp_path, "01x8", "0101", classes=["a", "b"], ignore=[255, 8])
    assert confusion(result) == {("a", "a"): 1, ("b", "b"): 1}
    assert result.gt.ignored == {"pixels-ignored": 2}


def test_predicting_an_ignored_value_is_a_miss_and_a_warning(tmp_path: Path) -> None:
    result = evaluate(tmp_path, "01", "0x", ignore=[255])
    assert confusion(result) == {("0", "0"): 1, ("1", None): 1}
    assert codes(result) == ["map-undecided"]
    assert result["pixel_accuracy"] == 1 / 2


def test_255_is_a_class_unless_it_is_ignored_and_that_is_a_warning(tmp_path: Path) -> None:
    result = evaluate(tmp_path, "01x", "011")
    assert codes(result) == ["map-void"]
    assert "--ignore 255" in result.findings[0].message
    # Classes 0 and 1 are right; 255 has an IoU of 0, and its pixel costs class 1 a half.
    fix, right = result.findings[0].fix, evaluate(tmp_path, "01x", "011", ignore=[255])["mIoU"]
    assert fix is not None and (fix.before, fix.after, right) == (pytest.approx((1 + 0.5 + 0) / 3), 1.0, 1.0)
    assert codes(evaluate(tmp_path, "01x", "011", ignore=[255])) == []


@pytest.mark.parametrize(
    ("gt", "pred"), [("00xx", "0xxx"), ("00xx", "0000"), ("01xx", "01x1")], ids=["binary", "missed", "used by both"]
)
def test_a_value_255_that_is_the_object_is_never_to_be_ignored(tmp_path: Path, gt: str, pred: str) -> None:
    assert codes(evaluate(tmp_path, gt, pred)) == []


def test_values_that_only_predictions_have_are_a_warning_when_no_names_are_given(tmp_path: Path) -> None:
    assert codes(evaluate(tmp_path, "00", "07")) == ["map-class-extra"]
    assert codes(evaluate(tmp_path, "00", "07", classes=list("abcdefgh"))) == []


def test_reducing_zero_ignores_it_and_takes_one_from_all_other_values(tmp_path: Path) -> None:
    both = evaluate(tmp_path, "0123", "1123", classes=["a", "b", "c"], reduce_zero="both")
    assert confusion(both) == {("a", "a"): 1, ("b", "b"): 1, ("c", "c"): 1}
    gt_only = evaluate(tmp_path, "0123", "0012", classes=["a", "b", "c"], reduce_zero="gt")
    assert confusion(gt_only) == confusion(both)


def test_an_ignored_value_is_meant_as_the_file_has_it_when_zero_is_reduced(tmp_path: Path) -> None:
    result = evaluate(tmp_path, "01x", "011", classes=["a"], reduce_zero="both", ignore=[255])
    assert result.gt.ignored == {"pixels-ignored": 2}


@pytest.mark.parametrize(("drop", "left_out"), [("gt", 3), ("pred", 3), ("both", 4)])
def test_dropped_background_is_counted_and_signed(tmp_path: Path, drop: str, left_out: int) -> None:
    result = evaluate(tmp_path, "111000", "110100", background=0, drop_background=drop)
    assert result.gt.ignored == {"pixels-background": left_out}
    assert f"|background=0|drop_background={drop}|" in result.signature


def test_background_that_never_occurs_is_a_warning(tmp_path: Path) -> None:
    assert codes(evaluate(tmp_path, "12", "12", background=0)) == ["map-background"]


def test_a_rule_that_cannot_be_is_refused(tmp_path: Path) -> None:
    for options, message in (
        ({"drop_background": "gt"}, "needs a background class"),
        ({"background": 2, "classes": ["a", "b"]}, "background 2 is not a class"),
        ({"background": 0, "drop_background": "dt"}, "drop_background must be one of gt, pred, both"),
        ({"reduce_zero": "pred"}, "reduce_zero must be one of gt, both"),
    ):
        with pytest.raises(UsageError, match=message):
            evaluate(tmp_path, "0", "0", **options)


def test_a_metric_or_class_that_does_not_exist_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    result = evaluate(tmp_path, "0", "0")
    with pytest.raises(UsageError, match="Did you mean 'mIoU'"):
        result["mIuO"]
    with pytest.raises(UsageError, match="unknown metric"):
        result["IoU[class=7]"]


def test_negative_values_are_no_classes_but_can_be_ignored(tmp_path: Path) -> None:
    gt = write_npy(tmp_path / "gt.npy", np.array([[0, -1], [1, 1]]))
    pred = write_png(tmp_path / "pred.png", "00 / 11")
    assert pixels(gt, pred, ignore=[-1])["pixel_accuracy"] == 1
    with pytest.raises(DataError, match=r"\(1, 0\): value -1 is not a class"):
        pixels(gt, pred)


def test_colours_mean_classes_by_their_table(tmp_path: Path) -> None:
    (tmp_path / "colors.txt").write_text("0 0 0 void\n128 64 128 road\n")
    road, void = [128, 64, 128], [0, 0, 0]
    gt = write_png(tmp_path / "gt.png", np.array([[road, road, void]], dtype=np.uint8))
    pred = write_png(tmp_path / "pred.png", np.array([[road, void, road]], dtype=np.uint8))
    result = pixels(gt, pred, colors=tmp_path / "colors.txt", ignore=[0])
    assert confusion(result) == {("road", "road"): 1, ("road", None): 1}
    assert result.protocol.classes == ("void", "road")


def test_colours_on_one_side_agree_with_numbers_on_the_other(tmp_path: Path) -> None:
    (tmp_path / "colors.txt").write_text("0 0 0 sky\n9 9 9 road\n")
    gt = write_png(tmp_path / "gt.png", np.array([[[9, 9, 9], [0, 0, 0]]], dtype=np.uint8))
    assert pixels(gt, write_png(tmp_path / "pred.png", "10"), colors=tmp_path / "colors.txt")["mIoU"] == 1


def test_a_colour_that_the_table_lacks_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "colors.txt").write_text("0 0 0 sky\n")
    gt = write_png(tmp_path / "gt.png", np.zeros((2, 2, 3), np.uint8))
    odd = np.zeros((2, 2, 3), np.uint8)
    odd[1, 0] = 1, 2, 3
    with pytest.raises(DataError, match=r"pred.png: \(0, 1\): colour 1 2 3 is not a class; 1 pixel of it"):
        pixels(gt, write_png(tmp_path / "pred.png", odd), colors=tmp_path / "colors.txt")


def test_another_table_gives_another_signature(tmp_path: Path) -> None:
    maps = [
        write_png(tmp_path / name, np.array([[[1, 1, 1], [2, 2, 2]]], dtype=np.uint8)) for name in ("a.png", "b.png")
    ]
    signatures = set()
    for text in ("1 1 1\n2 2 2\n", "2 2 2\n1 1 1\n"):
        (tmp_path / "colors.txt").write_text(text)
        signatures.add(pixels(*maps, colors=tmp_path / "colors.txt").signature)
    assert len(signatures) == 2


def test_palettes_that_give_a_value_different_colours_are_a_warning(tmp_path: Path) -> None:
    gt = write_png(tmp_path / "gt.png", "01", palette=[0, 0, 0, 128, 0, 0])
    same = write_png(tmp_path / "same.png", "01", palette=[0, 0, 0, 128, 0, 0, 9, 9, 9])
    other = write_png(tmp_path / "other.png", "01", palette=[0, 0, 0, 0, 128, 0])
    assert codes(pixels(gt, same)) == []
    result = pixels(gt, other)
    assert codes(result) == ["map-palette"]
    assert f"other.png: value 1 is colour 0 128 0 here, but 128 0 0 in {gt}" in result.findings[0].message


def write_folders(folder: Path, pairs: dict[str, tuple[str, str]]) -> tuple[Path, Path]:
    for name, (gt, pred) in pairs.items():
        write_png(folder / "gt" / name, gt)
        write_png(folder / "pred" / name, pred)
    return folder / "gt", folder / "pred"


def test_all_problems_of_all_files_are_reported_in_one_pass(tmp_path: Path) -> None:
    gt, pred = write_folders(
        tmp_path, {"a.png": ("00", "0"), "b.png": ("01", "02"), "c.png": ("31", "01"), "d.png": ("00 / 11", "00")}
    )
    write_png(gt / "lonely.png", "0")
    write_npy(pred / "e.npy", label_map("0").astype(float))
    write_png(gt / "e.png", "0")
    with pytest.raises(DataError) as caught:
        pixels(gt, pred, classes=["a", "b"])
    found = {finding.code: finding.count for finding in caught.value.findings}
    assert found == {"map-unpaired": 1, "map-size": 2, "map-value": 2, "map-type": 1}


def test_a_hundred_bad_files_are_one_finding(tmp_path: Path) -> None:
    gt, pred = write_folders(tmp_path, {f"{i:03}.png": ("00", "79") for i in range(100)})
    with pytest.raises(DataError) as caught:
        pixels(gt, pred, classes=["a"])
    (finding,) = caught.value.findings
    assert finding.count == 200
    assert len(finding.examples) == 20


def test_the_same_bytes_come_out_of_any_number_of_threads(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for i in range(9):
        for side in ("gt", "pred"):
            write_png(tmp_path / side / f"{i}.png", rng.integers(0, 4, (20, 30), dtype=np.uint8))
    results = [pixels(tmp_path / "gt", tmp_path / "pred", workers=n).to_dict() for n in (1, 2, 4)]
    assert results[0] == results[1] == results[2]


def test_the_fingerprint_follows_names_and_bytes(tmp_path: Path) -> None:
    first = evaluate(tmp_path / "1", "01", "01")
    assert evaluate(tmp_path / "2", "01", "01").gt.fingerprint == first.gt.fingerprint
    assert evaluate(tmp_path / "3", "10", "01").gt.fingerprint != first.gt.fingerprint
