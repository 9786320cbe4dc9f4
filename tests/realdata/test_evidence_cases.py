"""Inputs of strangers whose right numbers are known: either that number, or a stop that leads to it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from jaccard_eval.cli.run import run


@dataclass(frozen=True)
class Case:
    """A command on files below the folder of cases, and what it must end with."""

    command: str
    code: int = 0
    value: str = ""  # as the last line of stdout begins
    said: str = ""  # somewhere on stdout or stderr
    unsaid: str = ""


CASES = {
    "poses without areas": Case(
        "area_zero_poses/gt.json area_zero_poses/dt.json --iou-type keypoints", value="AP 1.0000", said="area-missing"
    ),
    "more objects than the cap": Case(
        "dense_cap/gt.json dense_cap/dt.json", value="AP 0.5545", said="AP 0.5545 with the cap, 1.0000 without"
    ),
    "no cap": Case("dense_cap/gt.json dense_cap/dt.json --max-dets none", value="AP 1.0000"),
    "equal scores across the cap": Case(
        "r14_cells/gt r14_cells/pred --assume-score 1.0", code=3, said="0.8000 without. --max-dets none counts all."
    ),
    "cells without a cap": Case(
        "r14_cells/gt r14_cells/pred --assume-score 1.0 --max-dets none",
        value="precision 1.0000  recall 1.0000  F1 1.0000  mean IoU 0.8667  AP 0.8000 to 0.8000 by the order",
    ),
    "24 boxes as corners": Case(
        "gt_xyxy_small/gt_noseg.json gt_xyxy_small/dt_noseg.json", code=3, said="Rerun with --gt-box xyxy"
    ),
    "24 corners": Case("gt_xyxy_small/gt_noseg.json gt_xyxy_small/dt_noseg.json --gt-box xyxy", value="AP 0.8737"),
    "upright boxes beside rbbox": Case("obb_upright/gt.json obb_upright/dt.json --iou-type obb", value="AP 0.8663"),
    "oriented predictions of Ultralytics": Case(
        "r05_obb/data.yaml r05_obb/predictions.json --class-map id-1", value="AP 1.0000"
    ),
    "oriented predictions of Ultralytics as they are": Case(
        "r05_obb/labels r05_obb/predictions.json", code=3, said="Rerun with --class-map id-1"
    ),
    "oriented predictions of Ultralytics without images": Case(
        "ultralytics_obb/labels ultralytics_obb/predictions.json",
        code=3,
        said="Pass the image folder with --gt-images DIR",
        unsaid="class-unknown",
    ),
    "labelIds against trainIds": Case(
        "pixels cityscapes_train_ids/gt cityscapes_train_ids/pred --list cityscapes_train_ids/list.txt",
        code=3,
        said="Rerun with --class-map trainIds-labelIds.",
    ),
    "trainIds that are mapped": Case(
        "pixels cityscapes_train_ids/gt cityscapes_train_ids/pred --list cityscapes_train_ids/list.txt"
        " --class-map 0=7,2=11,10=23,13=26",
        value="mIoU 0.7949",
    ),
    "label maps as objects": Case("r02_labelmaps/gt r02_labelmaps/pred", code=3, said="'jaccard-eval pixels GT PRED'"),
    "maps of cells": Case(
        "r14_cells/gt r14_cells/pred", value="accuracy 0.8000", said="Pass --assume-score 1.0 for COCO"
    ),
    "label maps of classes": Case("pixels r02_labelmaps/gt r02_labelmaps/pred", value="mIoU 0.7067"),
    "names in the same file": Case(
        "r11_fiftyone/gt.json r11_fiftyone/labels.json", value="AP 0.9721", said="named by the 2 names that it lists"
    ),
    "a binary mask": Case("pixels r24_binary/gt r24_binary/pred", value="mIoU 0.8757", unsaid="--ignore"),
    "another binary mask": Case("pixels binary_0_255/gt binary_0_255/pred", value="mIoU 0.8123", unsaid="--ignore"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_strangers_files_give_the_right_number_or_stop(
    name: str, shared_cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    argv = [str(shared_cases / word) if "/" in word else word for word in case.command.split()]
    code = run(argv)
    out, err = capsys.readouterr()
    assert code == case.code, err
    assert out.rstrip().rpartition("\n")[2].startswith(case.value)
    assert case.said in out + err
    assert not case.unsaid or case.unsaid not in out + err
