"""AP and mean IoU of each image are those of an evaluation of this image alone."""

import math
from pathlib import Path

import numpy as np
import pytest
from resampled import as_drawn, draw_scene

from jaccard_eval import evaluate
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO

THREE = COCO.with_options(iou_thresholds=(0.5, 0.6, 0.75))
SAMPLE = Path(__file__).parents[3] / "sample_data/coco"


@pytest.mark.parametrize("protocol", ["coco", "voc2007", "voc2012"])
@pytest.mark.parametrize("seed", range(6))
def test_the_values_of_an_image_are_those_of_it_alone(seed: int, protocol: str) -> None:
    result = as_drawn(draw_scene(seed), protocol=protocol, score=0.3, worst_images=1)
    images = result.worst_images
    for row in range(len(images.names)):
        alone = result.measured.restrict([row])
        for value, name in ((images.ap[row], "AP"), (images.mean_iou[row], "mean_IoU[score=0.3]")):
            assert value == pytest.approx(alone.value(MetricRef.parse(name)).value, abs=1e-12, nan_ok=True), name


def test_an_image_without_objects_has_no_value() -> None:
    result = evaluate(SAMPLE / "gt.json", SAMPLE / "worse.json", worst_images=2)
    rows = result.worst_images.rows()
    empty = [row for row in rows if row["gt"] == 0]
    assert all(math.isnan(float(row["AP"])) for row in empty)
    assert empty
    listed = result.to_dict()["worst_images"]["rows"]
    assert [row["AP"] for row in listed] == [row["AP"] for row in rows[:2]]


def test_a_normalised_confusion_matrix_has_the_shares_of_each_row() -> None:
    confusion = evaluate(SAMPLE / "gt.json", SAMPLE / "worse.json", score=0.5, errors=True).confusion
    for counts, shares in zip(confusion.counts, confusion.normalised, strict=True):
        if counts.sum():
            assert shares.tolist() == [count / counts.sum() for count in counts]
        else:
            assert np.isnan(shares).all()
    assert [*confusion.tables()] == ["confusion", "confusion_normalised"]


def test_curves_at_other_thresholds_are_the_operating_points_there() -> None:
    result = evaluate(SAMPLE / "gt.json", SAMPLE / "worse.json", protocol=THREE, errors=True)
    rows = result.errors.tables()["curves"].rows
    assert {row[5] for row in rows} == {0.5, 0.6, 0.75}
    for name, score, precision, recall, f1, iou in rows[::37]:
        of_class = "" if name == "all" else f",class={name}"
        asked = f"[iou={iou},score={score}{of_class}]"
        expected = [result[f"{metric}{asked}"] for metric in ("precision", "recall", "F1")]
        assert [precision, recall, f1] == pytest.approx(expected, abs=1e-12, nan_ok=True), asked
