"""`jaccard_eval.torchmetrics`: a metric among those of torchmetrics, with their values to the digit."""

import copy
import json
import pickle
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from without_torchvision import load_mean_average_precision

pytestmark = pytest.mark.needs("torchmetrics")
SAMPLE = Path(__file__).parent.parent / "sample_data" / "coco"
BOX, NEAR = [[258.0, 41.0, 606.0, 285.0]], [[214.0, 41.0, 562.0, 285.0]]


@pytest.fixture
def lib(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """torch, torchmetrics, its metric and ours."""
    # A folder of the sample bears the name of the library.
    monkeypatch.setattr(sys, "path", [place for place in sys.path if Path(place).name != "sample_data"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = load_mean_average_precision()
        import torch
        import torchmetrics

        import jaccard_eval.torchmetrics as ours

        yield SimpleNamespace(torch=torch, torchmetrics=torchmetrics, theirs=theirs, ours=ours)


def dicts(lib: SimpleNamespace, boxes: Any = BOX, near: Any = NEAR, **more: Any) -> tuple[list[Any], list[Any]]:
    """One image with one box on each side; more for both sides."""
    tensor = lib.torch.tensor
    pred = {"boxes": tensor(boxes), "scores": tensor([0.536]), "labels": tensor([0])} | more
    return [pred], [{"boxes": tensor(near), "labels": tensor([0])} | more]


def plain(value: Any) -> Any:
    """Values as lists and numbers, with their types."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return (str(value.dtype), value.tolist()) if hasattr(value, "dtype") else value


def empty(lib: SimpleNamespace, **more: Any) -> dict[str, Any]:
    """An image without a box, its numbers in one dimension, labels of floats."""
    return {"boxes": lib.torch.tensor([]), "labels": lib.torch.tensor([])} | more


def cases(lib: SimpleNamespace) -> Iterator[tuple[str, dict[str, Any], list[Any], list[Any]]]:
    """Arguments and batches on which values of torchmetrics are easily missed."""
    torch = lib.torch
    preds, target = dicts(lib)
    mask = torch.zeros(1, 8, 8, dtype=torch.bool)
    mask[0, 2:5, 2:6] = True
    found = {"masks": mask, "scores": torch.tensor([0.5]), "labels": torch.tensor([0])}
    objects = {"masks": mask, "labels": torch.tensor([0])}
    none = {"masks": mask[:0], "scores": torch.tensor([]), "labels": torch.tensor([], dtype=torch.int64)}
    yield "caps without 100", {"max_detection_thresholds": [1, 10, 1000]}, preds, target
    yield "whole centres", {"box_format": "cxcywh"}, *dicts(lib, [[30, 30, 10, 11]], [[30, 30, 10, 11]])
    yield "whole corners", {}, *dicts(lib, [[3, 3, 10, 11]], [[3, 3, 10, 12]])
    yield "no object", {}, preds * 2, [*target, empty(lib)]
    yield "no prediction", {}, [*preds, empty(lib, scores=torch.tensor([]))], target * 2
    yield "true labels", {}, *dicts(lib, labels=torch.tensor([True]))
    yield "both", {"iou_type": ("bbox", "segm"), "class_metrics": True}, *dicts(lib, masks=mask)
    yield "a list of both", {"iou_type": ["bbox", "segm"]}, *dicts(lib, masks=mask)
    yield "masks", {"iou_type": "segm", "extended_summary": True}, [found], [objects]
    yield "no mask found", {"iou_type": "segm", "class_metrics": True}, [none], [objects]
    yield "no mask to find", {"iou_type": "segm"}, [found], [none]
    yield "pooled", {"average": "micro", "class_metrics": True}, preds, [target[0] | {"labels": torch.tensor([1])}]


def test_values_are_those_of_torchmetrics(lib: SimpleNamespace) -> None:
    for name, arguments, preds, target in cases(lib):
        found = []
        for kind in (lib.ours.MeanAveragePrecision, lib.theirs):
            metric = kind(**arguments)
            for pred, truth in zip(preds, target, strict=True):
                metric.update([pred], [truth])
            found.append(plain(metric.compute()))
        assert found[0] == found[1], name


def test_caps_count_as_the_backend_counts_them(lib: SimpleNamespace) -> None:
    """faster-coco-eval takes `map` at the last cap, pycocotools at 100 alone."""
    for backend, expected in ((None, -1.0), ("pycocotools", -1.0), ("faster_coco_eval", 0.6)):
        metric = lib.ours.MeanAveragePrecision(max_detection_thresholds=[1, 10, 1000], backend=backend)
        assert float(metric(*dicts(lib))["map"]) == pytest.approx(expected)


def test_many_detections_are_warned_of_when_they_are_added(lib: SimpleNamespace) -> None:
    torch = lib.torch
    preds, target = dicts(lib)
    many = [{name: torch.cat([value] * 101) for name, value in preds[0].items()}]
    metric = lib.ours.MeanAveragePrecision()
    with pytest.warns(UserWarning, match="^Encountered more than 100 detections in a single image.*left out"):
        metric.update(many, target)
    metric.warn_on_many_detections = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric.update(many, target)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("class_metrics", 0),
        ("extended_summary", 1),
        ("box_format", "corners"),
        ("iou_type", "masks"),
        ("backend", "x"),
        ("average", "mean"),
        ("max_detection_thresholds", [1, 2]),
        ("bogus", 1),
    ],
)
def test_wrong_arguments_are_value_errors(lib: SimpleNamespace, name: str, value: object) -> None:
    for kind in (lib.ours.MeanAveragePrecision, lib.theirs):
        with pytest.raises(ValueError):
            kind(**{name: value})


def test_wrong_batches_are_value_errors_and_change_nothing(lib: SimpleNamespace) -> None:
    metric = lib.ours.MeanAveragePrecision()
    preds, target = dicts(lib)
    metric.update(preds, target)
    for wrong in ((preds * 2, target), ([{"boxes": preds[0]["boxes"]}], target), (preds[0], target[0])):
        with pytest.raises(ValueError):
            metric.update(*wrong)
    assert float(metric.compute()["map"]) == pytest.approx(0.6)


def test_it_is_a_metric_in_collections_and_trackers(lib: SimpleNamespace) -> None:
    preds, target = dicts(lib)
    metric = lib.ours.MeanAveragePrecision()
    assert isinstance(metric, lib.torchmetrics.Metric)
    far = dicts(lib, near=[[0.0, 0.0, 9.0, 9.0]])
    assert float(metric(preds, target)["map"]) == pytest.approx(0.6)
    assert float(metric(*far)["map"]) == 0.0
    whole = float(metric.compute()["map"])
    assert 0.0 < whole < 0.6
    for other in (metric.clone(), copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), metric.to("cpu")):
        assert float(other.compute()["map"]) == whole
    lib.torch.jit.script(lib.ours.MeanAveragePrecision())  # which looks at every property
    metric.persistent(True)
    again = lib.ours.MeanAveragePrecision()
    again.persistent(True)
    again.load_state_dict(metric.state_dict())
    assert float(again.compute()["map"]) == whole
    again.merge_state(metric)
    assert float(again.compute()["map"]) == pytest.approx(whole, abs=0.1)
    metric.reset()
    assert float(metric.compute()["map"]) == -1.0
    collection = lib.torchmetrics.MetricCollection([lib.ours.MeanAveragePrecision()])
    tracker = lib.torchmetrics.wrappers.MetricTracker(collection, maximize=True)
    for batch in ((preds, target), far):
        tracker.increment()
        tracker.update(*batch)
    assert tracker.compute_all()["map"].tolist() == pytest.approx([0.6, 0.0])


def test_ranks_are_gathered_one_behind_the_other(lib: SimpleNamespace) -> None:
    batches = [dicts(lib), dicts(lib, near=[[0.0, 0.0, 9.0, 9.0]]), dicts(lib)]
    whole, *ranks = (lib.ours.MeanAveragePrecision() for _ in range(3))
    for batch, rank in zip(batches, (0, 1, 1), strict=True):
        whole.update(*batch)
        ranks[rank].update(*batch)
    states = [lib.torch.cat(rank.bbox_batches) for rank in ranks]
    gathered = lib.ours.MeanAveragePrecision(dist_sync_fn=lambda state, group: states, distributed_available_fn=bool)
    gathered.update(*batches[0])
    gathered.sync(dist_sync_fn=lambda state, group: states, distributed_available=lambda: True)
    assert plain(gathered._numbers.values_of(gathered._whole())) == plain(whole.compute())


def test_coco_files_are_read_and_written(lib: SimpleNamespace, tmp_path: Path) -> None:
    metric = lib.ours.MeanAveragePrecision(box_format="xywh")
    preds, target = metric.coco_to_tm(str(SAMPLE / "better.json"), str(SAMPLE / "gt.json"))
    metric.update(preds, target)
    metric.tm_to_coco(str(tmp_path / "written"))
    written = [str(tmp_path / f"written_{side}.json") for side in ("preds", "target")]
    assert isinstance(json.loads(Path(written[0]).read_text()), list)
    again = lib.ours.MeanAveragePrecision(box_format="xywh")
    again.update(*again.coco_to_tm(*written))
    assert plain(again.compute()) == plain(metric.compute())
    assert float(metric.compute()["map"]) == pytest.approx(metric.result["AP"], abs=3e-3)


def test_the_functional_form_and_the_default_that_is_not_theirs(lib: SimpleNamespace) -> None:
    found = lib.ours.mean_average_precision(*dicts(lib), class_metrics=True)
    assert float(found["map"]) == pytest.approx(0.6)
    assert float(found["map_small"]) == -1.0
    open_values = lib.ours.mean_average_precision(*dicts(lib), strict=False)
    assert open_values["map_small"].isnan()
