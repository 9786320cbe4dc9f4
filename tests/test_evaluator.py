"""Batches on any number of ranks give what a file of their boxes gives, to the byte; bad batches change nothing."""

import copy
import importlib
import inspect
import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import fields
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from array_likes import Capsule, Tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO  # type: ignore[import-untyped]
from pycocotools.cocoeval import COCOeval  # type: ignore[import-untyped]

from jaccard_eval import (
    BoxTable,
    DataError,
    Evaluator,
    JaccardEvalWarning,
    ReadOptions,
    UsageError,
    evaluate,
    gate,
    load,
)
from jaccard_eval.api import streaming
from jaccard_eval.api.streaming import DOCUMENT
from jaccard_eval.codes import EXPLAINED
from jaccard_eval.data.protocol import ProtocolOptions
from jaccard_eval.findings import Severity
from jaccard_eval.options import EvaluateOptions, SideOptions

COCO_FILES = Path(__file__).parents[1] / "sample_data" / "coco"
GT, BETTER = (json.loads((COCO_FILES / f"{name}.json").read_text()) for name in ("gt", "better"))
NAMES = {category["id"]: category["name"] for category in GT["categories"]}

Image = tuple[Any, dict[str, Any], dict[str, Any]]  # its key, predictions and objects


def sample_images(make: Callable[[Any], Any] = np.array, key: str = "file_name") -> list[Image]:
    """The images of the sample, with classes by their COCO ids."""

    def boxes(records: list[dict[str, Any]], image: int, column: str, name: str) -> dict[str, Any]:
        own = [record for record in records if record["image_id"] == image]
        return {
            "boxes": make([record["bbox"] for record in own]),
            "labels": make([record["category_id"] for record in own]),
            name: make([record[column] for record in own]),
            "encoding": "xywh",
        }

    images = []
    for image in GT["images"]:
        own = [record for record in GT["annotations"] if record["image_id"] == image["id"]]
        target = boxes(GT["annotations"], image["id"], "area", "area")
        target["iscrowd"] = make([record["iscrowd"] for record in own])
        images.append((image[key], boxes(BETTER, image["id"], "score", "scores"), target))
    return images


def fed(evaluator: Evaluator, images: Sequence[Image], batch: int = 3) -> Evaluator:
    for start in range(0, len(images), batch):
        keys, preds, targets = zip(*images[start : start + batch], strict=True)
        evaluator.update(keys, preds, targets)
    return evaluator


def box(x: float = 0.0, size: float = 10.0, label: Any = 1, score: float = 0.9) -> dict[str, Any]:
    return {"boxes": [[x, x, x + size, x + size]], "labels": [label], "scores": [score]}


def target(x: float = 0.0, size: float = 10.0, label: Any = 1) -> dict[str, Any]:
    return {name: values for name, values in box(x, size, label).items() if name != "scores"}


def codes(result: Any) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in result.findings}


@pytest.mark.parametrize("make", [np.array, Tensor, Capsule, list])
def test_batches_give_the_numbers_and_the_signature_of_the_files(make: Callable[[Any], Any]) -> None:
    result = fed(Evaluator(NAMES), sample_images(make)).compute()
    expected = evaluate(COCO_FILES / "gt.json", COCO_FILES / "better.json")
    assert result.signature == expected.signature
    assert {name: value.value for name, value in result.metrics.items()} == {
        name: value.value for name, value in expected.metrics.items()
    }


def test_batches_give_the_numbers_of_pycocotools() -> None:
    with redirect_stdout(io.StringIO()):
        truth = COCO(str(COCO_FILES / "gt.json"))
        peer = COCOeval(truth, truth.loadRes(str(COCO_FILES / "better.json")), "bbox")
        peer.evaluate()
        peer.accumulate()
        peer.summarize()
    result = fed(Evaluator(NAMES), sample_images()).compute()
    assert [metric.value for metric in result.metrics.values()] == pytest.approx(peer.stats, abs=1e-12)


@pytest.mark.parametrize("names", [None, tuple(f"class {number}" for number in range(2000))])
@pytest.mark.parametrize(
    "rules", [{}, {"protocol": "voc2012"}, {"iou": [0.5], "max_dets": [5], "class_agnostic": True}]
)
def test_batches_give_the_document_of_the_same_dicts_in_one_list(names: Any, rules: dict[str, Any]) -> None:
    images = sample_images()
    options = None if names is None else ReadOptions(names=names)
    preds, targets = (
        [{**image[side], "image_id": image[0]} for image in sorted(images, key=lambda image: image[0])]
        for side in (1, 2)
    )
    parts: dict[str, Any] = {"score": 0.5, "errors": True, "bootstrap": 20, "worst_images": 3}
    expected = evaluate(targets, preds, **rules, **parts, gt_options=options, pred_options=options)
    assert fed(Evaluator(names, **rules), images).compute(**parts).to_dict() == expected.to_dict()


@pytest.mark.parametrize("key", ["id", "file_name"])
def test_ground_truth_of_a_file_needs_predictions_alone(key: str) -> None:
    evaluator = Evaluator(gt=COCO_FILES / "gt.json")
    for image, pred, _ in sample_images(key=key):
        evaluator.update([image], [pred])
    result = evaluator.compute()
    assert result.signature == evaluate(COCO_FILES / "gt.json", COCO_FILES / "better.json").signature
    again = Evaluator.from_state(evaluator.state())
    assert again.compute().to_dict() == result.to_dict()
    # Where the file is stays on this machine.
    assert result.gt.path == "gt.json"
    assert str(COCO_FILES).encode() not in evaluator.state()
    assert evaluator.merge(again).state() != evaluator.state()  # every image was seen twice
    with pytest.raises(UsageError, match="call update without targets"):
        evaluator.update([1], [box()], [target()])
    with pytest.raises(UsageError, match="evaluator 1 differs in gt"):
        evaluator.merge(Evaluator(gt=load(COCO_FILES.parent / "csv" / "gt.csv")))


CELL = st.integers(0, 6).map(float)


@st.composite
def scenes(draw: st.DrawFn) -> list[Image]:
    """Images with boxes on a grid and scores of few values, so that IoUs and scores are often equal."""
    kind = draw(st.sampled_from([int, str]))
    keys: list[Any] = draw(st.lists(st.integers(-3, 40), min_size=1, max_size=9, unique=True))

    def column(n: int, values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    def boxes(**others: st.SearchStrategy[Any]) -> dict[str, Any]:
        n = draw(st.integers(0, 4))
        corners = np.array([[x, y, x + w + 1, y + h + 1] for x, y, w, h in column(n, st.tuples(*[CELL] * 4))])
        record = {"boxes": corners.reshape(n, 4), "labels": np.array(column(n, st.integers(0, 2)), dtype=np.int64)}
        return record | {name: np.array(column(n, values)) for name, values in others.items()}

    return [
        (
            key if kind is int else f"{key}.jpg",
            boxes(scores=st.sampled_from([0.25, 0.5, 1.0])),
            boxes(iscrowd=st.booleans()) if draw(st.booleans()) else boxes(),
        )
        for key in keys
    ]


def document(evaluator: Evaluator) -> bytes:
    return json.dumps(evaluator.compute(score=0.5).to_dict()).encode()


@given(scenes(), st.sampled_from([1, 2, 7]), st.randoms(use_true_random=False), st.integers(1, 4), st.data())
def test_any_split_over_ranks_and_any_order_of_batches_give_the_same_bytes(
    scene: list[Image], ranks: int, random: Any, batch: int, data: st.DataObject
) -> None:
    # A sampler pads: some images come twice, on any rank.
    sightings = [*scene, *data.draw(st.lists(st.sampled_from(scene), max_size=3))]
    whole = fed(Evaluator(), sightings, len(sightings))
    random.shuffle(sightings)
    parts = [fed(Evaluator(), sightings[rank::ranks], batch) for rank in range(ranks)]
    sent = [Evaluator.from_state(part.state()) for part in parts]
    random.shuffle(sent)
    merged = sent[0].merge(*sent[1:])
    assert merged.state() == whole.state()
    assert document(merged) == document(whole)
    assert [part.state() for part in parts] == [
        fed(Evaluator(), sightings[rank::ranks]).state() for rank in range(ranks)
    ]


@given(scenes())
@settings(max_examples=40)
def test_any_scene_gives_the_document_of_the_same_dicts_in_one_list(scene: list[Image]) -> None:
    ordered = sorted(scene, key=lambda image: image[0])
    preds, targets = ([{**image[side], "image_id": image[0]} for image in ordered] for side in (1, 2))
    # With names, as predictions whose classes are those of no object stop a list, and no training.
    names = ("a", "b", "c")
    options = ReadOptions(names=names)
    expected = evaluate(targets, preds, score="best-f1", gt_options=options, pred_options=options)
    assert fed(Evaluator(names), scene).compute(score="best-f1").to_dict() == expected.to_dict()


@given(scenes(), st.sampled_from(["coco", "voc2007"]))
@settings(max_examples=30)
def test_pickle_copy_and_state_are_one(scene: list[Image], protocol: str) -> None:
    evaluator = fed(Evaluator({0: "a", 1: "b", 2: "c", 7: "z"}, protocol=protocol), scene)
    copies = [
        pickle.loads(pickle.dumps(evaluator)),
        copy.deepcopy(evaluator),
        Evaluator.from_state(evaluator.state()),
    ]
    assert {one.state() for one in copies} == {evaluator.state()}
    assert {document(one) for one in copies} == {document(evaluator)}


def test_joined_batches_are_those_that_were_not(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fed(Evaluator(), sample_images(), 1).state()
    monkeypatch.setattr(streaming, "JOINED_BYTES", 1000)
    assert fed(Evaluator(), sample_images(), 1).state() == expected


def test_joined_batches_of_float32_take_half_the_memory_and_change_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    images: list[Image] = []
    for key in range(8):
        corners = np.cumsum(rng.uniform(1, 9, (500, 4)), axis=1).astype(np.float32)
        labels = rng.integers(0, 80, 500)
        pred = {"boxes": corners, "labels": labels, "scores": rng.uniform(size=500).astype(np.float32)}
        images.append((key, pred, {"boxes": corners[:9], "labels": labels[:9]}))
    expected = fed(Evaluator(), images)
    monkeypatch.setattr(streaming, "JOINED_BYTES", 1)
    joined = fed(Evaluator(), images, 1)
    per_detection = sum(part.nbytes for part in joined._parts["pred"]) / 4000
    assert 21 <= per_detection < 21.1
    assert joined.state() == expected.state()
    assert joined.compute(score=0.5, errors=True).to_dict() == expected.compute(score=0.5, errors=True).to_dict()
    fed(joined, [images[0], ("other", {**images[0][1], "labels": images[0][1]["labels"] + 2**40}, images[0][2])])
    assert len(joined) == 9
    assert Evaluator.from_state(joined.state()).state() == joined.state()


def test_tensors_on_a_gpu_are_copied_once_for_each_type_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[str] = []

    class OnGpu(Tensor):
        device = SimpleNamespace(type="cuda")

        @property
        def dtype(self) -> Any:
            return self.values.dtype

        @property
        def shape(self) -> Any:
            return self.values.shape

        def reshape(self, *shape: int) -> "OnGpu":
            return OnGpu(self.values.reshape(*shape))

        def cpu(self) -> Tensor:
            copies.append(str(self.dtype))
            return super().cpu()

    library = ModuleType("gpu_library")
    library.cat = lambda tensors: OnGpu(np.concatenate([tensor.values for tensor in tensors]))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gpu_library", library)
    monkeypatch.setattr(OnGpu, "__module__", "gpu_library.tensors")
    evaluator = fed(Evaluator(NAMES), sample_images(lambda values: OnGpu(np.array(values))), batch=1000)
    assert evaluator.state() == fed(Evaluator(NAMES), sample_images()).state()
    # Boxes, scores and areas; labels and flags. Without the batch it would be seven an image.
    assert sorted(copies) == ["float64", "float64", "int64", "int64"]


def test_compute_can_be_called_at_any_time_and_reset_forgets() -> None:
    evaluator = fed(Evaluator(), [(1, box(), target())])
    # One object, found: 1. Then one of two: recall 1/2, precision 1 up to the 51st of 101 recall points.
    assert evaluator.compute()["AP50"] == pytest.approx(1, abs=1e-12)
    fed(evaluator, [(2, box(50), target(0))])
    assert evaluator.compute()["AP50"] == pytest.approx(51 / 101, abs=1e-12)
    assert evaluator.compute().to_dict() == evaluator.compute().to_dict()
    assert len(evaluator) == 2
    evaluator.reset()
    assert len(evaluator) == 0
    with pytest.raises(UsageError, match="nothing to compute: no image was added"):
        evaluator.compute()
    assert fed(evaluator, [(1, box(), target())]).compute()["AP50"] == pytest.approx(1, abs=1e-12)


def test_gates_judge_what_a_loop_measured() -> None:
    result = fed(Evaluator(), [(1, box(), target())]).compute()
    assert [verdict.failed for verdict in gate(result, ["AP50>=0.99", "AP50<=0.5"])] == [False, True]


def test_what_may_change_a_number_is_a_warning_in_the_name_of_the_caller() -> None:
    evaluator = fed(Evaluator(), [(1, box(label=1), target(label=1)), (2, box(label=7), target(label=1))])
    with pytest.warns(JaccardEvalWarning, match="class-unknown") as issued:
        evaluator.compute()
    assert {warning.filename for warning in issued} == {__file__}


def test_rules_and_parts_are_those_of_evaluate() -> None:
    rules, parts, own = (set(inspect.signature(verb).parameters) for verb in (Evaluator, Evaluator.compute, evaluate))
    assert rules - {"classes", "gt"} == {item.name for item in fields(ProtocolOptions)} & own
    common = {item.name for item in fields(SideOptions)}
    assert parts - {"self"} == {item.name for item in fields(EvaluateOptions)} - common


def test_difficult_objects_are_what_the_rules_make_of_them() -> None:
    # Two objects, one of them difficult and not found: all that counts is found, or one of two.
    both = {"boxes": [[0, 0, 10, 10], [50, 50, 60, 60]], "labels": [1, 1], "difficult": [False, True]}
    for rules, expected in (({"protocol": "voc2012"}, 1), ({}, 51 / 101), ({"difficult": "ignore"}, 1)):
        result = fed(Evaluator(**rules), [(1, box(), both)]).compute()
        assert result["AP50"] == pytest.approx(expected, abs=1e-12)


def test_padding_of_a_sampler_counts_once_with_a_note() -> None:
    images = [("a", box(), target()), ("b", box(50), target())]
    once, padded = fed(Evaluator(), images), fed(Evaluator(), [*images, images[0]], batch=1)
    assert padded.compute().metrics == once.compute().metrics
    [note] = [finding for finding in padded.compute().findings if finding.code == "image-repeated"]
    assert (note.count, note.severity) == (1, Severity.NOTE)
    assert "'a'" in note.message
    ranks = [fed(Evaluator(), [image, images[0]], batch=2) for image in images]
    assert len(ranks[0].merge(ranks[1])) == 2
    [note] = [f for f in ranks[0].merge(ranks[1]).compute().findings if f.code == "image-repeated"]
    assert note.count == 2  # four sightings of two images


def test_an_evaluator_merged_with_itself_has_the_same_images() -> None:
    evaluator = fed(Evaluator(NAMES), sample_images())
    merged = evaluator.merge(evaluator, evaluator)
    assert merged.compute().metrics == evaluator.compute().metrics
    [note] = [finding for finding in merged.compute().findings if finding.code == "image-repeated"]
    assert note.count == 2 * len(evaluator)
    images = sample_images()
    images[7] = (images[7][0], images[6][1], images[7][2])
    with pytest.raises(DataError, match=f"preds: image '{images[7][0]}': was added before"):
        evaluator.merge(fed(Evaluator(NAMES), images))


def test_a_merge_changes_nobody() -> None:
    one, two = (fed(Evaluator(), [(key, box(), target())]) for key in (1, 2))
    before = one.state(), two.state()
    assert len(one.merge(two)) == 2
    assert (one.state(), two.state()) == before
    fed(one.merge(two), [(3, box(), target())])
    assert (one.state(), two.state()) == before
    assert one.merge().state() == one.state()


def test_numbers_stand_for_classes_without_names_and_labels_of_no_object_are_a_warning() -> None:
    result = fed(Evaluator(), [(1, box(label=1), target(label=1)), (2, box(label=7), target(label=1))]).compute()
    assert [row.name for row in result.per_class] == ["1"]
    assert codes(result)["class-unknown"] is Severity.WARNING
    # A network that has learnt nothing yet ends no training.
    result = fed(Evaluator(), [(1, box(label=7), target(label=1))]).compute()
    assert codes(result)["class-unknown"] is Severity.WARNING
    assert result["AP50"] == 0


def test_classes_have_names_by_index_by_number_or_as_labels() -> None:
    for classes, label in ((["cat", "dog"], 1), ({1: "dog", 3: "cat"}, 1), (["cat", "dog"], "dog"), (None, "dog")):
        result = fed(Evaluator(classes), [(1, box(label=label), target(label=label))]).compute()
        assert result["AP50[class=dog]"] == pytest.approx(1, abs=1e-12)
    assert np.isnan(fed(Evaluator(["cat", "dog"]), [(1, box(), target())]).compute()["AP[class=cat]"])


def test_single_precision_is_widened_and_said_once_a_side() -> None:
    narrow = {name: np.array(values, dtype=np.float32) for name, values in box().items()} | {"labels": np.array([1])}
    evaluator = fed(Evaluator(), [(key, narrow, target()) for key in range(4)], batch=1)
    notes = [finding for finding in evaluator.compute().findings if finding.code == "precision-single"]
    assert [(note.severity, note.count) for note in notes] == [(Severity.NOTE, 1)]
    assert "precision-single" not in codes(fed(Evaluator(), [(1, box(), target())]).compute())
    # Widening changes no bit: the same numbers in float64.
    wide = fed(Evaluator(), [(key, {**narrow, "scores": narrow["scores"].astype(float)}, target()) for key in range(4)])
    assert wide.compute().metrics == evaluator.compute().metrics


@pytest.mark.needs("torch")
def test_tensors_of_torch_are_taken_with_their_gradients_and_in_half_precision() -> None:
    torch = importlib.import_module("torch")

    def tensors(dtype: Any) -> Evaluator:
        numbers = torch.tensor([[0.0, 0.0, 10.5, 10.0]], dtype=dtype, requires_grad=True)
        label, score = torch.tensor([1]), torch.tensor([0.5], dtype=dtype, requires_grad=True)
        pred = {"boxes": numbers, "labels": label, "scores": score}
        return fed(Evaluator(), [(torch.tensor([7]), pred, {"boxes": numbers.detach(), "labels": label})])

    plain = {"boxes": [[0.0, 0.0, 10.5, 10.0]], "labels": [1], "scores": [0.5]}
    expected = fed(Evaluator(), [(7, plain, {name: plain[name] for name in ("boxes", "labels")})])
    assert tensors(torch.float64).state() == expected.state()
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert tensors(dtype).compute().metrics == expected.compute().metrics
        assert "precision-single" in codes(tensors(dtype).compute())


def test_float32_takes_half_the_bytes_of_a_state() -> None:
    rng = np.random.default_rng(0)
    corners = np.cumsum(rng.uniform(1, 9, (50_000, 4)), axis=1)
    record = {"boxes": corners, "labels": rng.integers(0, 80, 50_000), "scores": rng.uniform(size=50_000)}
    narrow = record | {name: record[name].astype(np.float32) for name in ("boxes", "scores")}
    wide, half = (len(fed(Evaluator(), [(1, given, target())]).state()) / 50_000 for given in (record, narrow))
    assert (round(wide), round(half)) == (41, 21)


def test_images_are_keyed_by_numbers_texts_or_any_hashable() -> None:
    keys = [7, 7.0, np.int64(7), np.array([7]), Tensor([7]), True]
    evaluator = Evaluator()
    for key in keys:
        evaluator.update([key], [box()], [target()])
    assert len(evaluator) == 2  # True is no number
    for key in ("7", ("a", 7), b"7", 2**70, None, np.str_("7")):
        evaluator.update([key], [box()], [target()])
    assert len(evaluator) == 7
    assert Evaluator.from_state(evaluator.state()).state() == evaluator.state()
    evaluator.update(np.arange(100, 103), [box()] * 3, [target()] * 3)
    assert len(evaluator) == 10


def wrong(**changes: Any) -> dict[str, Any]:
    return {**box(label="dog"), **changes}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([9], [wrong(boxes=[[0, 0, 1]])], [target()]), r"preds\[image 9\]\['boxes'\] has shape \(1, 3\); expected"),
        (([9], [wrong(labels=[0, 1])], [target()]), r"preds\[image 9\]\['labels'\] has shape \(2,\); expected \(1,\)"),
        (([9], [wrong(scores=[[0.5]])], [target()]), r"\['scores'\] has shape \(1, 1\)"),
        (([9], [box()], [wrong(area=[1, 2])]), r"targets\[image 9\]\['area'\] has shape \(2,\)"),
        (([9], [wrong(labels=[2])], [target()]), r"preds: \[image 9\].boxes\[0\]: label is 2, but there are 2 class"),
        (([9], [box()], [wrong(labels=[-1])]), r"targets: \[image 9\].boxes\[0\]: label is -1; expected whole numbers"),
        (([9], [box()], [wrong(labels=[0.5])]), r"label is 0.5; expected whole numbers"),
        (([9], [wrong(labels=["cow"])], [target()]), r"preds: label 'cow' is not among the classes: 'cat', 'dog'"),
        (([9], [target()], [target()]), r"preds\[image 9\] has no scores; it has boxes, labels"),
        (
            ([9], [target()], [target() | {"scores": [0.5]}]),
            r"preds\[image 9\] has no scores; the targets have: preds and targets are exchanged",
        ),
        (([9], [{"boxes": [[0, 0, 1, 1]]}], [target()]), r"preds\[image 9\] has no labels; it has boxes"),
        (([9], [[0, 0, 1, 1]], [target()]), r"preds\[image 9\] is 'list'; expected a dict per image"),
        (([9], box(), [target()]), "preds must be a list of dicts, one per image, got 'dict'"),
        (([9, 10], [box()], [target()]), "there are 2 images and 1 preds; expected one dict per image"),
        (([9], [box()], [target(), target()]), "there are 1 images and 2 targets"),
        (([9], [box()]), "update needs targets, unless the evaluator has them"),
        (([9], [wrong(encoding="xywh")], [target()]), "preds came as xyxy before, now as xywh"),
        (("9", [box()], [target()]), "images must be a list, one key per image, got '9'"),
        (([[9]], [box()], [target()]), r"images\[0\] is 'list'; expected a number or a text"),
        (([object()], [box()], [target()]), r"images\[0\] is an object of 'object', which no other process knows"),
        (([9], [wrong(boxes=[["a"] * 4])], [target()]), r"\['boxes'\] must hold numbers, got 'a'"),
        (([1], [box(5)], [target()]), r"\[image-conflict\]: preds: image 1: was added before with other boxes"),
        (([1], [box()], [target(5)]), r"targets: image 1: was added before with other boxes"),
        (([9, 1], [box(), box(score=0.5)], [target(), target()]), "image 1: was added before with other boxes"),
        (([9, 9], [box(), box(5)], [target(), target()]), "image 9: was added before with other boxes"),
    ],
)
def test_a_bad_batch_is_refused_with_its_place_and_changes_nothing(arguments: Any, message: str) -> None:
    evaluator = fed(Evaluator(["cat", "dog"]), [(1, box(), target()), (2, box(50), target())])
    before = evaluator.state()
    with pytest.raises((UsageError, DataError), match=message):
        evaluator.update(*arguments)
    assert evaluator.state() == before
    assert fed(evaluator, [(9, box(), target())]).compute()["AP50"] > 0


def test_names_and_numbers_of_classes_do_not_mix() -> None:
    evaluator = fed(Evaluator(), [(1, box(), target())])
    with pytest.raises(UsageError, match="labels are numbers in one place and names in another"):
        evaluator.update([2], [box(label="dog")], [target(label="dog")])
    assert fed(evaluator, [(2, box(), target())]).compute()["AP50"] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (box(float("nan")), "number-not-finite"),
        (box(score=float("nan")), "number-not-finite"),
        (box(score=float("inf")), "number-not-finite"),
        (box(size=-5.0), "box-negative"),
        (box(1e200), "box-too-large"),
    ],
)
def test_bad_numbers_are_refused_with_their_image(bad: dict[str, Any], code: str) -> None:
    evaluator = fed(Evaluator(), [("a.jpg", box(), target())])
    before = evaluator.state()
    with pytest.raises(DataError, match=rf"\[{code}\]: preds: \[image 'b.jpg'\]\.boxes\[0\]"):
        evaluator.update(["b.jpg"], [bad], [target()])
    objects = {name: values for name, values in bad.items() if name != "scores"}
    if "score" not in code and np.isfinite(np.asarray(bad["scores"])).all():
        with pytest.raises(DataError, match=rf"\[{code}\]: targets: \[image 'b.jpg'\]\.boxes\[0\]"):
            evaluator.update(["b.jpg"], [box()], [objects])
    assert evaluator.state() == before
    assert evaluator.compute()["AP50"] == pytest.approx(1, abs=1e-12)


def test_scores_out_of_range_are_found_as_in_files() -> None:
    images = [(key, box(score=500.0 + key), target()) for key in range(3)]
    assert "score-range" in codes(fed(Evaluator(), images).compute())


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Evaluator(["cat", "cow"]), "cannot merge: evaluator 1 differs in classes"),
        (Evaluator(), "differs in classes"),
        (Evaluator(["cat", "dog"], protocol="voc2012"), r"differs in protocol \(name\), protocol \(iou_thresholds\)"),
        (Evaluator(["cat", "dog"], iou=0.5), r"differs in protocol \(iou_thresholds\)\. Make all with equal"),
        (5, "merge takes evaluators, got 'int'"),
    ],
)
def test_evaluators_that_differ_are_not_merged(other: Any, message: str) -> None:
    evaluator = fed(Evaluator(["cat", "dog"]), [(1, box(), target())])
    before = evaluator.state()
    with pytest.raises(UsageError, match=message):
        evaluator.merge(other)
    assert evaluator.state() == before


def test_ranks_that_saw_an_image_with_other_boxes_are_not_merged() -> None:
    one, two = (fed(Evaluator(), [(1, box(x), target())]) for x in (0, 5))
    with pytest.raises(DataError, match=r"\[image-conflict\]: preds: image 1: was added before with other boxes"):
        one.merge(two)


def test_ranks_without_an_image_are_fine() -> None:
    evaluator = fed(Evaluator(), [(1, box(), target())])
    for merged in (evaluator.merge(Evaluator(), Evaluator()), Evaluator().merge(Evaluator(), evaluator)):
        assert merged.state() == evaluator.state()
    assert len(Evaluator.from_state(Evaluator().state())) == 0


def test_versions_are_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = fed(Evaluator(), [(1, box(), target())])
    monkeypatch.setattr(streaming, "__version__", "9.9")
    with pytest.raises(UsageError, match="differs in version"):
        Evaluator.from_state(evaluator.state()).merge(Evaluator())


@pytest.mark.parametrize("classes", ["dog", ["dog", "dog"], [], [1], {"a": "dog"}, {-1: "dog"}, {True: "dog"}, 5])
def test_classes_that_are_not_names_are_refused(classes: Any) -> None:
    with pytest.raises(UsageError, match="classes must be"):
        Evaluator(classes)


def test_a_state_of_another_schema_or_of_anything_else_is_refused() -> None:
    state = fed(Evaluator(), [(1, box(), target())]).state()
    newer = rewritten(state, lambda content: content | {"schema": 2})
    for data, message in (
        (newer, "has schema 2; this version reads 1"),
        (b"", "is not a state of an Evaluator"),
        (pickle.dumps({}), "is not a state of an Evaluator"),
        (state[:-30], "npz-damaged"),
    ):
        with pytest.raises(DataError, match=message):
            Evaluator.from_state(data)
    with pytest.raises(UsageError, match="a state must be bytes, got 'str'"):
        Evaluator.from_state("state")  # type: ignore[arg-type]


def test_findings_are_explained_with_the_messages_of_an_evaluator() -> None:
    narrow = {**box(), "boxes": np.array([[0, 0, 10, 10]], dtype=np.float32)}
    evaluator = fed(Evaluator(), [(key, narrow, target()) for key in (1001, 1004, 1001, 1004)])
    shown = [str(finding) for finding in evaluator.compute().findings if finding.severity is Severity.NOTE]
    for call in (
        lambda: fed(Evaluator(), [(7, box(), target()), (7, box(5), target())]),
        lambda: Evaluator.from_state(rewritten(evaluator.state(), lambda content: content | {"schema": 2})),
    ):
        with pytest.raises(DataError) as error:
            call()
        shown.append(str(error.value))
    assert len(shown) == 4
    explained = "".join(path.read_text(encoding="utf-8") for path in EXPLAINED.glob("*.md"))
    assert [message for message in shown if message not in explained] == []


def rewritten(state: bytes, change: Callable[[dict[str, Any]], Any] = dict, **arrays: Any) -> bytes:
    with np.load(io.BytesIO(state)) as archive:
        content = dict(archive)
    document = json.dumps(change(json.loads(content.pop(DOCUMENT).tobytes()))).encode()
    file = io.BytesIO()
    np.savez(file, **{**content, DOCUMENT: np.frombuffer(document, dtype=np.uint8), **arrays})
    return file.getvalue()


@pytest.mark.parametrize(
    "edit",
    [
        {"pred.sizes": np.array([2, 0])},
        {"pred.sizes": np.array([2**61, 2**61])},
        {"pred.sizes": np.array([1.0, 1.0])},
        {"pred.labels": np.array([1])},
        {"pred.labels": np.array([1, -1])},
        {"target.coords": np.zeros((2, 3))},
        {"target.area": np.array(["a", "b"])},
        {"seen": np.array([1, 2, 3])},
    ],
)
def test_a_state_with_edited_arrays_is_refused(edit: dict[str, Any]) -> None:
    state = fed(Evaluator(), [(1, box(), target()), (2, box(), target())]).state()
    assert Evaluator.from_state(rewritten(state)).state() == state
    if edit.get("pred.sizes", np.zeros(1)).tolist() == [2, 0]:  # as many boxes, of another image
        assert Evaluator.from_state(rewritten(state, **edit)).state() != state
        return
    with pytest.raises(DataError, match="state-invalid"):
        Evaluator.from_state(rewritten(state, **edit))


@given(st.data())
@settings(max_examples=200)
def test_damaged_bytes_are_refused_or_harmless(data: st.DataObject) -> None:
    state = bytearray(fed(Evaluator(["cat", "dog"]), [(1, box(), target()), ("a", box(), target())]).state())
    for _ in range(data.draw(st.integers(1, 3))):
        state[data.draw(st.integers(0, len(state) - 1))] = data.draw(st.integers(0, 255))
    try:
        evaluator = Evaluator.from_state(bytes(state))
    except DataError:
        return
    assert Evaluator.from_state(evaluator.state()).state() == evaluator.state()


def test_a_state_holds_no_object() -> None:
    state = fed(Evaluator(["cat", "dog"]), [(1, box(), target())]).state()
    with zipfile.ZipFile(io.BytesIO(state)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    with np.load(io.BytesIO(state), allow_pickle=False) as archive:
        assert {array.dtype.kind for array in archive.values()} <= {"u", "f", "b"}


def test_ground_truth_of_arrays_is_known_by_its_numbers() -> None:
    gt = BoxTable.from_arrays([0, 1], [0, 0], [[0, 0, 10, 10], [0, 0, 10, 10]])
    evaluator = Evaluator(gt=gt)
    evaluator.update([0, 1], [box(label=0), box(50, label=0)])
    assert evaluator.compute()["AP50"] == pytest.approx(51 / 101, abs=1e-12)
    with pytest.raises(DataError, match="image-unknown"):
        fed(Evaluator(gt=gt), []).merge(evaluator_of(gt, 5)).compute()


def evaluator_of(gt: BoxTable, image: int) -> Evaluator:
    evaluator = Evaluator(gt=gt)
    evaluator.update([image], [box(label=0)])
    return evaluator


class Group:
    """torch.distributed, as far as a rank sees it: objects of all ranks are gathered on each."""

    def __init__(self, rank: int, sent: list[Any]) -> None:
        self.rank, self.sent = rank, sent

    def get_rank(self) -> int:
        return self.rank

    def get_world_size(self) -> int:
        return len(self.sent)

    def all_gather_object(self, parts: list[Any], one: Any) -> None:
        assert pickle.loads(pickle.dumps(one)) == self.sent[self.rank]
        parts[:] = self.sent


def test_the_recipe_for_several_gpus_gives_rank_0_the_whole() -> None:
    page = (Path(__file__).parents[1] / "docs" / "training-loop.md").read_text(encoding="utf-8")
    [recipe] = [block for block in page.split("```") if "dist.all_gather_object" in block]
    names: dict[str, Any] = {}
    exec(recipe.removeprefix("python\n"), names)
    images = sample_images()
    ranks = [fed(Evaluator(NAMES), images[rank::3]) for rank in range(3)] + [Evaluator(NAMES)]
    sent = [rank.state() for rank in ranks]
    gathered = [names["gather"](rank, Group(number, sent)) for number, rank in enumerate(ranks)]
    assert gathered[1:] == [None, None, None]
    assert gathered[0].compute().to_dict() == fed(Evaluator(NAMES), images).compute().to_dict()


RANK = """
import sys, warnings
warnings.simplefilter("ignore")
import torch, torch.distributed as dist
from jaccard_eval import Evaluator, MeanAveragePrecision

rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
RECIPE
evaluator, metric = Evaluator(), MeanAveragePrecision(strict=True)
boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0]])
for image in [[1, 2], [3, 1]][rank]:  # the sampler pads the second rank
    score = torch.tensor([image / 4])
    pred = {"boxes": boxes + 20 * (image == 2), "labels": torch.tensor([1]), "scores": score}
    target = {"boxes": boxes, "labels": torch.tensor([1]), "image_id": torch.tensor([image])}
    evaluator.update([image], [pred], [target])
    metric.update([pred], [target])
everything = gather(evaluator, dist)
print(rank, everything and (len(everything), everything.compute()["AP50"]), float(metric.compute()["map_50"]))
dist.destroy_process_group()
"""


@pytest.mark.needs("torch")
@pytest.mark.slow
def test_two_processes_of_torch_meet_over_the_recipe(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "training-loop.md").read_text(encoding="utf-8")
    [recipe] = [block for block in page.split("```") if "dist.all_gather_object" in block]
    program = tmp_path / "rank.py"
    program.write_text(RANK.replace("RECIPE", recipe.removeprefix("python\n")))
    ranks = [
        subprocess.Popen([sys.executable, program, str(rank), tmp_path], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    first, second = (rank.communicate(timeout=120)[0].split(maxsplit=1)[1].rsplit(maxsplit=1) for rank in ranks)
    # Three objects; by score: found, not found, found. Precision 1 up to recall 1/3, then 2/3 up to 2/3, then nothing.
    expected = (34 * 1 + 33 * 2 / 3) / 101
    assert first[0].startswith("(3, ")
    assert float(first[0].removeprefix("(3, ").removesuffix(")")) == pytest.approx(expected, abs=1e-12)
    assert second[0] == "None"
    assert float(first[1]) == float(second[1]) == pytest.approx(expected, abs=1e-6)
