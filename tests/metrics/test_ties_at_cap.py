"""Equal scores across a cap on detections: which of them counts is signed, for every kind of shape and rule."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_scenes import write_lvis, write_open_images
from shaped import give_shapes, shape_options

from jaccard_eval import BoxTable, evaluate
from jaccard_eval.data.protocol import COCO
from jaccard_eval.data.signature import signature_fields
from jaccard_eval.matching.judging import _tied_at_cap

BOX, FAR = [0, 0, 10, 10], [50, 50, 60, 60]

# The rules, and the kind of shape that is compared; `max_dets` low enough to cut many ties.
RULES: dict[str, tuple[dict[str, Any], str]] = {
    "boxes": ({"max_dets": (2,)}, ""),
    "boxes, three caps": ({"max_dets": (1, 2, 4)}, ""),
    "boxes, one class": ({"max_dets": (3,), "class_agnostic": True}, ""),
    "voc": ({"protocol": "voc2012", "max_dets": (2,)}, ""),
    "masks": ({"max_dets": (1, 2)}, "segm"),
    "boundaries": ({"max_dets": (1, 2)}, "boundary"),
    "poses": ({"max_dets": (2,)}, "keypoints"),
    "oriented": ({"max_dets": (1, 2)}, "obb"),
    "lvis": ({"protocol": "lvis", "max_dets": (4,)}, ""),
    "lvis-fixed": ({"protocol": "lvis-fixed", "max_dets": (4,)}, ""),
    "openimages": ({"protocol": "openimages", "max_dets": (2,)}, ""),
    "openimages-challenge": ({"protocol": "openimages-challenge", "max_dets": (2,)}, ""),
}


def shuffle(path: Path, rng: random.Random) -> None:
    """Put the rows of predictions in another order."""
    if path.suffix == ".json":
        rows = json.loads(path.read_text())
        path.write_text(json.dumps(rng.sample(rows, len(rows))))
    else:
        header, *lines = path.read_text().splitlines(keepends=True)
        path.write_text(header + "".join(rng.sample(lines, len(lines))))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("name", RULES)
def test_orders_with_one_signature_have_the_same_metrics(tmp_path: Path, name: str, seed: int) -> None:
    """108 scenes with scores of one digit, each in three orders."""
    (options, shape), rng = RULES[name], random.Random(seed)
    write = write_open_images if "openimages" in name else write_lvis
    sides = write(tmp_path, seed, (12, 40, 120)[seed % 3], 1)
    if shape:
        give_shapes(sides, shape, seed)
        options = options | shape_options(shape)
    known: dict[str, Any] = {}
    for _ in range(3):
        result = evaluate(*sides, engine="memory", allow=("max-dets",), **options)
        document = result.to_dict()
        found = [document["metrics"], document["per_class"]]
        np.testing.assert_equal(known.setdefault(result.signature, found), found)
        shuffle(sides[1], rng)


@pytest.mark.parametrize("protocol", ["coco", "lvis", "lvis-fixed", "openimages"])
def test_which_of_two_equal_scores_a_cap_keeps_is_signed(protocol: str) -> None:
    # One object and a cap of one: AP is 1 where the hit stands first, and 0 where the miss does.
    truth, found = BoxTable.from_arrays([0], [0], [BOX]), {}
    for name, boxes in {"hit": [BOX, FAR], "miss": [FAR, BOX]}.items():
        pred = BoxTable.from_arrays([0, 0], [0, 0], boxes, score=[0.5, 0.5])
        found[name] = evaluate(truth, pred, protocol=protocol, max_dets=(1,), allow=("max-dets",))
    assert [round(found[name]["AP"], 9) for name in ("hit", "miss")] == [1.0, 0.0]
    first, second = (signature_fields(found[name].signature) for name in ("hit", "miss"))
    assert {key for key in first | second if first.get(key) != second.get(key)} == {"ties_at_cap"}


def test_what_counts_of_a_tie_is_signed_and_not_what_a_cap_removes() -> None:
    truth, other = BoxTable.from_arrays([0], [0], [BOX]), [70, 70, 80, 80]
    signed = []
    for boxes in ([BOX, FAR], [BOX, other], [FAR, BOX]):
        pred = BoxTable.from_arrays([0, 0], [0, 0], boxes, score=[0.5, 0.5])
        signed.append(signature_fields(evaluate(truth, pred, max_dets=(1,)).signature)["ties_at_cap"])
    assert signed[0] == signed[1] != signed[2]


def test_marks_of_a_scan_that_tie_across_the_cap_go_whichever_stands_first() -> None:
    # The benchmark removes marks with the score of the first that is too many; a better one stays, and hits.
    truth = BoxTable.from_arrays([0], [0], [BOX])
    for boxes, score, cap, recalled in (
        ([BOX, FAR], [0.5, 0.5], 1, 0),
        ([FAR, BOX], [0.5, 0.5], 1, 0),
        ([BOX, FAR, FAR], [0.6, 0.5, 0.5], 2, 1),
    ):
        pred = BoxTable.from_arrays([0] * len(boxes), [0] * len(boxes), boxes, score=score)
        result = evaluate(truth, pred, protocol="froc", max_dets=(cap,))
        assert result["recall[fppi=1]"] == recalled


@pytest.mark.parametrize("pooled", [False, True])
def test_ties_at_a_cap_are_those_of_a_search_one_by_one(pooled: bool) -> None:
    rng, n, cap = np.random.default_rng(5), 400, 6
    image, label, score = rng.integers(0, 9, n), rng.integers(0, 4, n), rng.integers(-3, 4, n) / 4
    pred = BoxTable.from_arrays(image, label, [BOX] * n, score=score)
    rules = COCO.with_options(max_dets=(1, cap), class_agnostic=pooled)
    expected = []
    for key in {(int(i), 0 if pooled else int(k)) for i, k in zip(image, label, strict=True)}:
        rows = np.flatnonzero((image == key[0]) & (pooled | (label == key[1])))
        # Pooled, equal scores of an image stand class by class.
        turn = sorted(rows.tolist(), key=lambda row: (-score[row], label[row], row))
        expected += [row for row in turn[:cap] if score[row] in {score[other] for other in turn[cap:]}]
    found = _tied_at_cap(pred, protocol=rules, n_images=9).source.tolist()
    assert found == sorted(expected)
    assert len(found) > 9


def test_without_a_tie_across_the_cap_nothing_is_signed() -> None:
    truth = BoxTable.from_arrays([0, 0], [0, 1], [BOX, BOX], names=["cat", "dog"])
    for label, score, cap in (
        ([0, 0, 0], [0.5, 0.5, 0.4], 2),  # a lower score
        ([0, 0, 1], [0.5, 0.5, 0.5], 2),  # another class
        ([0, 1, 1], [0.5, 0.9, 0.5], 1),  # the last one of another class, which a cap removes
    ):
        pred = BoxTable.from_arrays([0] * 3, label, [BOX, FAR, FAR], score=score, names=["cat", "dog"])
        assert "ties_at_cap" not in signature_fields(evaluate(truth, pred, max_dets=(cap,)).signature)


def test_a_smaller_cap_that_parts_two_objects_of_a_tie_is_signed() -> None:
    # A hit and a detection in a crowd, which counts as neither: AR1 is 1 or 0, and AP the same.
    truth = BoxTable.from_arrays([0, 0], [0, 0], [BOX, FAR], crowd=[False, True])
    first, second = (
        evaluate(truth, BoxTable.from_arrays([0, 0], [0, 0], boxes, score=[0.5, 0.5]))
        for boxes in ([BOX, FAR], [FAR, BOX])
    )
    assert (first["AP"], first["AR1"], second["AP"], second["AR1"]) == pytest.approx((1, 1, 1, 0))
    assert signature_fields(first.signature)["ties"] != signature_fields(second.signature)["ties"]
