"""A number that another tool printed: which of its protocol's rules give it on the same boxes."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from drawn_boxes import columns, drawn_images

from jaccard_eval import BoxTable, ExplanationResult, UsageError, evaluate, explain, get_protocol
from jaccard_eval.features.explain.compute import RULES
from jaccard_eval.features.explain.result import Printed

SAMPLE = Path(__file__).parents[3] / "sample_data" / "coco"
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def asked(number: str, against: str = "ultralytics") -> ExplanationResult:
    return explain(SAMPLE / "gt.json", SAMPLE / "worse.json", against=f"{against}={number}", boxes=1)


def test_one_combination_is_named_where_one_fits_and_digits_suffice() -> None:
    told = evaluate(SAMPLE / "gt.json", SAMPLE / "worse.json", protocol="ultralytics")["AP"]
    printed = asked(f"{told:.4f}").printed
    assert printed is not None
    # Of seven rules that differ two change AP here: a crowd that is no label, and straight lines.
    assert printed.tried == 4
    assert [fit.rules for fit in printed.fits] == [("crowd and ignored boxes", "interpolation")]
    assert printed.fits[0].value == told
    assert printed.undecided is None


@pytest.mark.parametrize(
    ("number", "why", "n"),
    [("0.319", "3 decimals of a share", 1), ("31.9", "3 decimals of a share", 1), ("0.5", "no combination fits", 0)],
)
def test_nothing_is_decided_below_four_digits_or_without_a_fit(number: str, why: str, n: int) -> None:
    printed = asked(number).printed
    assert printed is not None
    assert len(printed.fits) == n
    assert why in (printed.undecided or "")


def test_a_percentage_is_read_as_one() -> None:
    assert Printed("31.90", 0, (), None).digits == 4
    assert Printed("31.90", 0, (), None).has(0.31902)
    assert not Printed("31.90", 0, (), None).has(0.31906)


@pytest.mark.parametrize("number", ["x", "", "-1", "101", "nan"])
def test_what_is_no_number_is_refused(number: str) -> None:
    with pytest.raises(UsageError, match=r"such as 'ultralytics=0\.532'"):
        asked(number)


def test_it_is_in_the_document_and_the_signature() -> None:
    result = asked("0.3190")
    assert "against=ultralytics=0.3190" in result.signature
    document = result.to_dict()["printed"]
    assert (document["text"], document["tried"], document["undecided"]) == ("0.3190", 4, None)
    assert document["fits"][0]["rules"] == ["crowd and ignored boxes", "interpolation"]
    assert asked("0.3190").to_dict() == result.to_dict()


def tables(seed: int) -> tuple[BoxTable, BoxTable]:
    labels, detected = (columns(images) for images in drawn_images(seed))
    gt = BoxTable.from_arrays(*labels, encoding="xywh", difficult=np.arange(len(labels[0])) % 5 == 0)
    return gt, BoxTable.from_arrays(*detected[:3], score=detected[3], encoding="xywh")


def test_planted_causes_are_found_or_left_undecided() -> None:
    coco, goal = (get_protocol(name).with_options(iou_thresholds=(0.5,)) for name in ("coco", "voc2012"))
    rng, decided, false = np.random.default_rng(5), 0, 0
    differing = [
        {name: getattr(goal, name) for name in names if getattr(goal, name) != getattr(coco, name)}
        for _, names in RULES
    ]
    differing = [changes for changes in differing if changes]
    for seed in range(40):
        gt, pred = tables(seed)
        chosen = [changes for changes in differing if rng.random() < 0.5]
        planted = coco.with_options(**dict(itertools.chain.from_iterable(changes.items() for changes in chosen)))
        told = evaluate(gt, pred, protocol=planted, extra_images="empty")["AP50"]
        if math.isnan(told):  # no object counts
            continue
        found = explain(gt, pred, "AP50", against=f"voc2012={told:.4f}", boxes=1, extra_images="empty").printed
        assert found is not None
        assert any(abs(fit.value - told) < 1e-12 for fit in found.fits), seed
        if found.undecided is None:
            decided += 1
            false += abs(found.fits[0].value - told) > 1e-12
    # At most 2 % of single answers may be false: of these none is.
    assert decided >= 10
    assert false == 0
