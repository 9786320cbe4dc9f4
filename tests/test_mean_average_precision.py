"""The signature and the keys of torchmetrics, compared key by key with it where torch is installed."""

import copy
import doctest
import pickle
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from without_torchvision import load_mean_average_precision

from jaccard_eval import DataError, JaccardEvalWarning, MeanAveragePrecision, UsageError
from jaccard_eval.compat import torchmetrics as ours

KEYS = {
    *("map", "map_50", "map_75", "map_small", "map_medium", "map_large"),
    *("mar_1", "mar_10", "mar_100", "mar_small", "mar_medium", "mar_large"),
    *("map_per_class", "mar_100_per_class", "classes"),
}
# Of torchmetrics' documentation: two boxes with an IoU of .798, so that 6 of 10 thresholds are met.
PRED = {"boxes": [[258.0, 41.0, 606.0, 285.0]], "scores": [0.536], "labels": [0]}
TARGET = {"boxes": [[214.0, 41.0, 562.0, 285.0]], "labels": [0]}


def number(value: Any) -> float:
    return float(value)


def same(found: Any, expected: float) -> None:
    assert number(found) == pytest.approx(expected, abs=1e-7, nan_ok=True)


@pytest.mark.parametrize("strict", [False, True])
def test_one_box_by_hand(strict: bool) -> None:
    metric = MeanAveragePrecision(strict=strict)
    metric.update([PRED], [TARGET])
    found = metric.compute()
    assert found.keys() == KEYS
    undefined = -1.0 if strict else float("nan")
    for key, expected in {"map": 0.6, "map_50": 1, "map_75": 1, "map_large": 0.6, "mar_1": 0.6, "mar_100": 0.6}.items():
        same(found[key], expected)
    for key in ("map_small", "mar_medium", "map_per_class", "mar_100_per_class"):
        same(found[key], undefined)
    assert np.asarray(found["classes"]).reshape(-1).tolist() == [0]


def test_the_float32_grid_is_that_of_torch() -> None:
    # The second value of torch.linspace(0, 1, 101), and the eighth of ten thresholds: float32 next to .01 and .85.
    assert ours._single_grid(0.0, 1.0, 101)[1] == 0.009999999776482582
    assert ours._single_grid(0.5, 0.95, 10)[1] == 0.550000011920929
    assert ours._single_grid(0.5, 0.95, 10)[5] == 0.75


def test_classes_of_predictions_alone_have_no_precision_and_do_not_count() -> None:
    metric = MeanAveragePrecision(class_metrics=True, strict=True)
    metric.update([{**PRED, "boxes": PRED["boxes"] * 2, "scores": [0.5, 0.6], "labels": [0, 7]}], [TARGET])
    found = metric.compute()
    assert np.asarray(found["classes"]).tolist() == [0, 7]
    assert np.asarray(found["map_per_class"]).tolist() == pytest.approx([0.6, -1])
    same(found["map"], 0.6)


def test_the_result_has_names_findings_and_the_value_of_map() -> None:
    metric = MeanAveragePrecision(class_names=["cat", "dog"])
    metric.update([PRED], [TARGET])
    assert metric.result["AP[class=cat]"] == pytest.approx(number(metric.compute()["map"]), abs=1e-7)
    metric.update([{**PRED, "boxes": [[5.0, 5.0, 5.0, 9.0]]}], [TARGET])
    with pytest.warns(JaccardEvalWarning, match="box-empty") as issued:
        metric.compute()
    assert issued[0].filename == __file__
    with pytest.raises(UsageError, match="label is 2, but there are 2 class names"):
        metric.update([{**PRED, "labels": [2]}], [TARGET])
    named = MeanAveragePrecision(class_names=["cat", "dog"])
    named.update([{**PRED, "labels": ["dog"]}], [{**TARGET, "labels": ["dog"]}])
    assert np.asarray(named.compute()["classes"]).reshape(-1).tolist() == [1]


def test_forward_gives_the_values_of_the_batch_and_adds_it() -> None:
    metric = MeanAveragePrecision()
    same(metric([PRED], [TARGET])["map_50"], 1)
    same(metric.forward([{**PRED, "boxes": [[0.0, 0.0, 9.0, 9.0]]}], [TARGET])["map_50"], 0)
    assert metric.compute()["map_50"] < 1
    expected = MeanAveragePrecision()
    expected.update([PRED, {**PRED, "boxes": [[0.0, 0.0, 9.0, 9.0]]}], [TARGET, TARGET])
    same(metric.compute()["map"], number(expected.compute()["map"]))
    assert metric.to("cuda") is metric
    metric.reset()
    assert np.isnan(number(metric.compute()["map"]))


def test_an_image_with_a_key_counts_once() -> None:
    metric = MeanAveragePrecision()
    for _ in range(2):
        metric.update([PRED, PRED], [{**TARGET, "image_id": 1}, {**TARGET, "image_id": 2}])
    assert metric.result.gt.boxes == 2
    assert copy.deepcopy(metric).result.to_dict() == metric.result.to_dict()
    assert pickle.loads(pickle.dumps(metric)).result.to_dict() == metric.result.to_dict()
    with pytest.raises(UsageError, match="some targets have an image_id and others none"):
        metric.update([PRED], [TARGET])
    with pytest.raises(DataError, match="image-conflict"):
        metric.update([{**PRED, "scores": [0.1]}], [{**TARGET, "image_id": 1}])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"box_format": "xxyy"}, "box_format must be one of xyxy, xywh, cxcywh, got 'xxyy'"),
        ({"average": "weighted"}, "average must be one of macro, micro"),
        ({"backend": "other"}, "backend must be one of"),
        ({"max_detection_thresholds": [1, 10]}, "must be a list of 3 numbers, got 2"),
        ({"rec_thresholds": [1.0, 0.5]}, "rec_thresholds must ascend"),
        ({"iou_thresholds": [0.75, 0.5]}, "IoU thresholds must ascend"),
        ({"class_metric": True}, "unknown argument 'class_metric'"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MeanAveragePrecision(**arguments)


# Of torchmetrics' documentation: 3 of 5 pixels in common. In float32 the third threshold lies above .6.
PIXELS = np.zeros((1, 5, 5), dtype=bool)
PIXELS[0, 1:3, 2:4] = True
OTHERS = np.zeros((1, 5, 5), dtype=np.uint8)
OTHERS[0, 1:4, 2] = OTHERS[0, 2, 3] = 1
MASK_PRED, MASK_TARGET = {"masks": PIXELS, "scores": [0.536], "labels": [0]}, {"masks": OTHERS, "labels": [0]}


@pytest.mark.parametrize(("strict", "expected"), [(True, 0.2), (False, 0.3)])
def test_masks_have_the_values_of_the_documentation(strict: bool, expected: float) -> None:
    metric = MeanAveragePrecision(iou_type="segm", strict=strict, extended_summary=True)
    metric.update([MASK_PRED], [MASK_TARGET])
    found = metric.compute()
    undefined = -1.0 if strict else np.nan
    values = {
        "map": expected,
        "map_50": 1,
        "map_75": 0,
        "map_small": expected,
        "map_large": undefined,
        "mar_1": expected,
    }
    for name, value in values.items():
        same(found[name], value)
    same(np.asarray(found["ious"][0, 0]).reshape(()), 0.6)
    assert metric.result.protocol.iou_type == "segm"
    assert pickle.loads(pickle.dumps(metric)).result.to_dict() == metric.result.to_dict()


def test_boxes_and_masks_have_keys_of_their_own() -> None:
    metric = MeanAveragePrecision(iou_type=("bbox", "segm"))
    metric.update([MASK_PRED | PRED], [MASK_TARGET | TARGET])
    found = metric.compute()
    assert {name.partition("_")[0] for name in found} == {"bbox", "segm", "classes"}
    same(found["bbox_map"], 0.6)
    same(found["segm_map_50"], 1)
    with pytest.raises(UsageError, match=r"preds\[image 1\] has no masks; it has boxes, scores, labels"):
        metric.update([PRED], [TARGET])
    with pytest.raises(UsageError, match="iou_type must be bbox, segm or a tuple of both, got 'keypoints'"):
        MeanAveragePrecision(iou_type="keypoints")


def test_arguments_of_every_metric_are_taken() -> None:
    MeanAveragePrecision(iou_type=("bbox",), backend="faster_coco_eval", compute_on_cpu=True, dist_sync_on_step=False)
    with pytest.raises(NotImplementedError, match=r"metric\.result\.save\('report\.html'\)"):
        MeanAveragePrecision().plot()


@pytest.mark.parametrize(
    ("pred", "target", "message"),
    [
        ({**PRED, "boxes": [[0.0, 1.0]]}, TARGET, r"\['boxes'\] has shape \(1, 2\)"),
        ({**PRED, "labels": ["dog"]}, TARGET, "labels are texts; pass numbers, or class_names"),
        ({"boxes": [], "labels": [0]}, TARGET, r"\['labels'\] has shape \(1,\)"),
        (PRED, {"labels": [0]}, "has no boxes"),
        (PRED, 5, "is 'int'; expected a dict per image"),
    ],
)
def test_a_bad_batch_changes_nothing(pred: Any, target: Any, message: str) -> None:
    metric = MeanAveragePrecision()
    metric.update([PRED], [TARGET])
    with pytest.raises(UsageError, match=message):
        metric.update([pred], [target])
    with pytest.raises(UsageError, match="there are 2 images and 1 preds"):
        metric.update([PRED], [TARGET, TARGET])
    same(metric.compute()["map"], 0.6)


class Group(SimpleNamespace):
    """torch.distributed of one of several ranks, whose states are known."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def get_rank(self, group: Any = None) -> int:
        return int(self.rank)

    def get_world_size(self, group: Any = None) -> int:
        return len(self.states)

    def all_gather_object(self, parts: list[Any], state: bytes, group: Any = None) -> None:
        self.states[self.rank] = state
        parts[:] = self.states


def test_ranks_are_gathered_and_a_missing_image_id_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = MeanAveragePrecision()
    whole.update([PRED, {**PRED, "scores": [0.9]}], [TARGET, {**TARGET, "boxes": [[0.0, 0.0, 5.0, 5.0]]}])
    expected = whole.compute()
    group = Group(rank=1, states=[b"", b""])
    monkeypatch.setitem(sys.modules, "torch.distributed", group)  # type: ignore[arg-type]
    ranks = [MeanAveragePrecision(), MeanAveragePrecision()]
    for rank, metric in reversed(list(enumerate(ranks))):
        group.rank = rank
        with pytest.warns(UserWarning, match="images that a sampler repeats on several ranks count twice"):
            metric.update(
                *([PRED], [TARGET])
                if not rank
                else ([{**PRED, "scores": [0.9]}], [{**TARGET, "boxes": [[0.0, 0.0, 5.0, 5.0]]}])
            )
        metric.update([], [])
        group.states[rank] = metric._evaluators["bbox"].state()
    for rank, metric in enumerate(ranks):
        group.rank = rank
        same(metric.compute()["map"], number(expected["map"]))
    assert ranks[0]._evaluators["bbox"].state() != ranks[1]._evaluators["bbox"].state()
    alone = MeanAveragePrecision(sync_on_compute=False)
    alone.update([PRED], [{**TARGET, "image_id": 1}])
    same(alone.compute()["map"], 0.6)


# What follows compares with torchmetrics, and runs where it is installed: `make torch`.


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch and torchmetrics."""
    # A folder of the sample bears that name, and would pass for the library.
    monkeypatch.setattr(sys, "path", [place for place in sys.path if Path(place).name != "sample_data"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SimpleNamespace(metric=load_mean_average_precision(), torch=sys.modules["torch"])


def require_equal(found: Any, expected: Any, place: str = "") -> None:
    """Compare two values of tensors: kinds, shapes, types and every bit."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for key, value in expected.items():
            require_equal(found[key], value, f"{place}{key}")
    elif isinstance(expected, list):
        assert found == expected, place
    else:
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype), place
        assert found.tolist() == expected.tolist(), place


def documented_examples(peer: Any) -> Iterator[str]:
    """The examples in torchmetrics' documentation of boxes, each as a program that leaves `found`."""
    for owner in (peer.metric, peer.metric.plot):
        examples = doctest.DocTestParser().get_examples(owner.__doc__)
        programs: list[list[str]] = []
        for example in examples:
            if (
                example.source.startswith(("from torch import", "import torch"))
                or "# Example plotting" in example.source
            ):
                programs.append([])
            programs[-1].append(example.source)
        yield from ("".join(lines) for lines in programs if "mask" not in "".join(lines))


@pytest.mark.needs("torchmetrics")
def test_their_documented_examples_give_every_key_alike(peer: Any) -> None:
    programs = list(documented_examples(peer))
    assert len(programs) == 3
    for program in programs:
        found = []
        for kind in (peer.metric, lambda **arguments: MeanAveragePrecision(**arguments, strict=True)):
            peer.torch.manual_seed(0)
            names: dict[str, Any] = {"MeanAveragePrecision": kind}
            lines = [line for line in program.splitlines() if "import MeanAveragePrecision" not in line]
            lines = [line for line in lines if "pprint" not in line and ".plot(" not in line]
            exec("\n".join(lines), names)
            found.append([names["metric"].compute(), *names.get("vals", [])])
        assert len(found[1]) in (1, 21)
        for one, expected in zip(found[1], found[0], strict=True):
            require_equal(one, expected)


def scene(peer: Any, seed: int, box_format: str) -> tuple[list[Any], list[Any]]:
    """Images with boxes of three sizes, crowds, areas given and 0, ties of scores, and images without any box."""
    rng = np.random.default_rng(seed)

    def tensor(values: Any, kind: Any = None) -> Any:
        return peer.torch.tensor(np.asarray(values), dtype=kind or peer.torch.float32)

    def encoded(corners: Any) -> Any:
        x1, y1, x2, y2 = corners.T
        if box_format == "cxcywh":
            return np.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], axis=1)
        return np.stack([x1, y1, x2 - x1, y2 - y1], axis=1) if box_format == "xywh" else corners

    preds, targets = [], []
    for _ in range(12):
        n = int(rng.integers(0, 7))
        start = rng.uniform(0, 300, (n, 2))
        truth = np.concatenate(
            [start, start + rng.choice([12, 60, 200], (n, 1)) * rng.uniform(0.8, 1.2, (n, 2))], axis=1
        )
        labels = rng.choice([0, 2, 5], n)
        found = np.concatenate([truth + rng.normal(0, 4, truth.shape), truth[:2] + 90])
        found[:, 2:] = np.maximum(found[:, 2:], found[:, :2] + 1)
        guessed = np.concatenate([labels, rng.choice([0, 2, 5, 9], len(truth[:2]))])
        scores = rng.choice(np.arange(1, 9) / 9, len(found))
        area = np.where(rng.random(n) < 0.5, 0, (truth[:, 2:] - truth[:, :2]).prod(axis=1) * 0.7)
        whole = peer.torch.int64
        preds.append({"boxes": tensor(encoded(found)), "scores": tensor(scores), "labels": tensor(guessed, whole)})
        target = {"boxes": tensor(encoded(truth)), "labels": tensor(labels, whole)}
        targets.append(target | {"iscrowd": tensor(rng.random(n) < 0.15, whole), "area": tensor(area)})
    return preds, targets


@pytest.mark.needs("torchmetrics")
@pytest.mark.parametrize("box_format", ["xyxy", "xywh", "cxcywh"])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"class_metrics": True, "extended_summary": True},
        {"average": "micro", "class_metrics": True, "extended_summary": True},
        {"iou_thresholds": [0.5], "rec_thresholds": [0.0, 0.3, 1.0]},
        {"iou_thresholds": [0.35, 0.5, 0.9], "max_detection_thresholds": [3, 1, 100], "class_metrics": True},
        {"max_detection_thresholds": [1, 2, 5], "class_metrics": True},
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_strict_values_are_those_of_torchmetrics_to_the_bit(
    peer: Any, seed: int, arguments: dict[str, Any], box_format: str
) -> None:
    preds, targets = scene(peer, seed, box_format)
    expected = peer.metric(box_format=box_format, **arguments)
    expected.warn_on_many_detections = False
    metric = MeanAveragePrecision(box_format, **arguments, strict=True)
    for start in range(0, len(preds), 5):
        for one in (expected, metric):
            one.update(preds[start : start + 5], targets[start : start + 5])
    require_equal(metric.compute(), expected.compute())


@pytest.mark.needs("torchmetrics")
@pytest.mark.parametrize("empty", ["preds", "targets", "both", "no image"])
@pytest.mark.parametrize("class_metrics", [False, True])
def test_strict_values_of_nothing_are_those_of_torchmetrics(peer: Any, empty: str, class_metrics: bool) -> None:
    preds, targets = scene(peer, 0, "xyxy")
    nothing = {"boxes": peer.torch.zeros((0, 4)), "labels": peer.torch.zeros(0, dtype=peer.torch.int64)}
    if empty in ("preds", "both"):
        preds = [{**nothing, "scores": peer.torch.zeros(0)} for _ in preds]
    if empty in ("targets", "both"):
        targets = [dict(nothing) for _ in targets]
    metrics: Sequence[Any] = [
        peer.metric(class_metrics=class_metrics),
        MeanAveragePrecision(class_metrics=class_metrics, strict=True),
    ]
    found = []
    for metric in metrics:
        if empty != "no image":
            metric.update(preds, targets)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torchmetrics warns of a compute before any update
            found.append(metric.compute())
    require_equal(found[1], found[0])


@pytest.mark.needs("torchmetrics")
def test_values_that_are_not_strict_differ_by_what_float32_costs(peer: Any) -> None:
    preds, targets = scene(peer, 1, "xyxy")
    expected, metric = peer.metric(class_metrics=True), MeanAveragePrecision(class_metrics=True)
    for one in (expected, metric):
        one.update(preds, targets)
    for key, value in expected.compute().items():
        numbers = np.where(value == -1, np.nan, value)
        assert np.asarray(metric.compute()[key]) == pytest.approx(numbers, abs=0.02, nan_ok=True), key
