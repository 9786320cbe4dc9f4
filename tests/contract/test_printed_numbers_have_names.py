"""Every number that a command prints is asked for, gated and exported by its name, whatever classes are called."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaccard_eval import BoxTable, evaluate, panoptic, pixels
from jaccard_eval.api.results import log_metrics
from jaccard_eval.data.metricref import KEYS, METRICS, MetricRef
from jaccard_eval.features.gates.judging import SavedAnswers, answers_of

SAMPLE = Path(__file__).parents[2] / "sample_data"
# What a class may be called that also means something else, or is in the way of a bracket.
ODD = (
    *(
        "a[b]",
        "]",
        "[",
        "small",
        "all",
        "large",
        "50",
        "0.5",
        "a,b",
        "a=b",
        "class=x",
        'say "x"',
        "two words",
        " first",
    ),
    *("iou", "iou=0.5", "best-f1", "AP", "mAP", "класс", "a|b", "a\\b", "%2C", "score=0.5,class=dog", "x" * 70),
)


@pytest.fixture(scope="module")
def odd() -> Any:
    """Each class has an object that is found and one that is missed; the scores differ by class."""
    rows = np.arange(len(ODD))
    boxes = np.column_stack((10.0 * rows, rows * 0.0, 10.0 * rows + 9, rows * 0.0 + 9))
    gt = BoxTable.from_arrays(
        [0] * len(ODD) + [1] * len(ODD), [*rows, *rows], np.concatenate((boxes, boxes)), names=ODD
    )
    pred = BoxTable.from_arrays([0] * len(ODD), rows, boxes, score=0.9 - rows / 100, names=ODD)
    return evaluate(gt, pred, errors=True, score=0.5)


def documented(document: Any) -> dict[str, Any]:
    """The numbers of a document that have names of their own."""
    return document["metrics"] | document.get("errors", {}).get("metrics", {})


def equal(first: Any, second: Any) -> bool:
    first, second = (math.nan if value is None else value for value in (first, second))
    return first == second or (math.isnan(first) and math.isnan(second))


@pytest.mark.parametrize("name", ODD)
def test_a_class_of_any_name_is_asked_for_and_gated(odd: Any, name: str) -> None:
    saved = SavedAnswers(json.loads(json.dumps(odd.to_dict())), "result.json")
    row = next(row for row in odd.to_dict()["per_class"] if row["class"] == name)
    for metric in ("AP", "AP50", "recall", "mean_IoU", "oLRP", "missed_errors"):
        head = MetricRef.parse(metric)
        text = str(MetricRef(name=head.name, iou=head.iou, class_name=name))
        values = [odd[text], *(answers.value(text).value for answers in (answers_of(odd), saved))]
        assert all(equal(value, values[0]) for value in values), (text, values)
        assert not math.isnan(values[0])
        if metric in row:
            assert values[0] == row[metric], text


def test_every_name_of_a_document_is_understood_where_classes_have_odd_names(odd: Any) -> None:
    document = odd.to_dict()
    saved = SavedAnswers(json.loads(json.dumps(document)), "result.json")
    names = documented(document)
    assert len(names) > len(ODD) * 10
    for text, value in names.items():
        assert equal(odd[text], value), text
        assert equal(saved.value(text).value, value), text


def sample_of(kind: str) -> Any:
    if kind == "pixels":
        rng = np.random.default_rng(0)
        maps = [np.kron(rng.integers(0, 4, (5, 6)), np.ones((4, 4), int)).astype(np.uint8) for _ in range(2)]
        return pixels(maps, [np.roll(one, 1, axis=1) for one in maps])
    folder = SAMPLE / "panoptic"
    masks = {"gt_masks": folder / "gt", "pred_masks": folder / "worse"}
    return panoptic(folder / "gt.json", folder / "worse.json", **masks)


@pytest.mark.parametrize("kind", ["pixels", "panoptic"])
def test_numbers_of_maps_and_segments_have_names(kind: str) -> None:
    result = sample_of(kind)
    document = json.loads(json.dumps(result.to_dict()))
    saved, live = SavedAnswers(document, "result.json"), answers_of(result)
    logged = log_metrics(result, prefix="")
    assert document["metrics"]
    for text, value in documented(document).items():
        for spelled in (text, text.lower(), text.upper(), *METRICS[text].aliases):
            assert equal(result[spelled], value), spelled
            assert equal(live.value(spelled).value, value), spelled
            assert equal(saved.value(spelled).value, value), spelled
        assert value is None or logged[text] == value
    for row in document["per_class"]:
        name = row.get("class", row.get("name"))
        for metric, value in row.items():
            if metric not in METRICS or "class" not in KEYS[METRICS[metric].on]:
                continue
            text = str(MetricRef(name=metric, class_name=name))
            for found in (result[text], live.value(text).value, saved.value(text).value):
                assert equal(found, value), text
