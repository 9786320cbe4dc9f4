"""Predictions of another split than the one that is read."""

from pathlib import Path

import pytest
from planting import run_evaluate, suggested_flags

COLUMNS = ("--pred-columns", "box-conf", "--pred-box", "cxcywh")


def _data_set(root: Path) -> tuple[str, str]:
    """Write a YOLO data set with the splits train, val and test, and predictions of test."""
    for split, first in (("train", 0), ("val", 10), ("test", 20)):
        for row in range(first, first + 10):
            (image := root / "images" / split / f"{row}.jpg").parent.mkdir(parents=True, exist_ok=True)
            image.write_bytes(b"")
            (label := root / "labels" / split / f"{row}.txt").parent.mkdir(parents=True, exist_ok=True)
            label.write_text("0 0.5 0.5 0.2 0.4\n")
    (root / "data.yaml").write_text(
        "train: images/train\nval: images/val\ntest: images/test\nnames:\n  0: dog\n", encoding="utf-8"
    )
    pred = root / "predictions"
    pred.mkdir()
    for row in range(20, 30):
        (pred / f"{row}.txt").write_text(f"0 0.5 0.5 0.2 0.4 0.{row}\n")
    return str(root / "data.yaml"), str(pred)


def test_the_split_that_has_the_images_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = _data_set(tmp_path)
    errors = run_evaluate(capsys, *paths, *COLUMNS).errors
    assert suggested_flags(errors["image-unknown"]) == ["--split", "test"]
    assert errors["image-unknown"].endswith("All images of the predictions are in that split, not in val.")
    assert run_evaluate(capsys, *paths, *COLUMNS, *suggested_flags(errors["image-unknown"])).ap == 1.0


def test_no_split_is_named_where_none_has_all_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gt, pred = _data_set(tmp_path)
    (Path(pred) / "99.txt").write_text("0 0.5 0.5 0.2 0.4 0.9\n")
    assert "--split" not in run_evaluate(capsys, gt, pred, *COLUMNS).said
