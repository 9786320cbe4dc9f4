"""Published data in the JSON of annotation tools: the number of all other forms, or a telling refusal."""

from pathlib import Path

import pytest

from jaccard_eval import DataError, ReadOptions, evaluate, load
from jaccard_eval.data.protocol import VOC2012

SCENE = "padilla-review/data/database"


def test_the_scene_gives_its_published_number_from_labelme(shared_data: Path) -> None:
    names = tuple((shared_data / SCENE / "voc.names").read_text(encoding="utf-8").split())
    gt = load(shared_data / SCENE / "gts/labelme_format")
    pred = load(shared_data / SCENE / "dets/abs_xywh", role="pred", options=ReadOptions(names=names))
    assert (gt.format, len(gt.images), len(gt.boxes), len(gt.labels)) == ("labelme", 100, 273, 20)
    assert round(evaluate(gt, pred, protocol=VOC2012)["AP"], 6) == 0.610913


def test_lists_of_images_with_boxes_of_a_script_are_read_as_the_message_says(shared_data: Path) -> None:
    folder = shared_data / "yfpeng-odm/deprecated/sample_2"
    with pytest.raises(DataError, match=r"columns=\"image=COLUMN\"") as caught:
        load(folder / "groundtruths.json")
    assert [one.code for one in caught.value.findings] == ["csv-column-missing"]
    named = ReadOptions(columns="image=name")
    gt = load(folder / "groundtruths.json", options=named)
    pred = load(folder / "detections.json", role="pred", options=named)
    assert (gt.format, len(gt.images), len(gt.boxes), len(pred.boxes)) == ("records", 85, 686, 494)
