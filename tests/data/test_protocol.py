from dataclasses import fields

import numpy as np
import pytest

from jaccard_eval.data.protocol import (
    COCO,
    LATER_RULES,
    PROTOCOLS,
    RULES_OF,
    VOC2007,
    VOC2012,
    AreaRange,
    Protocol,
    get_protocol,
)
from jaccard_eval.errors import UsageError


def test_coco_has_the_rules_of_pycocotools() -> None:
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    params = cocoeval.Params(iouType="bbox")
    assert np.array_equal(COCO.iou_thresholds, params.iouThrs)
    assert np.array_equal(COCO.recall_grid, params.recThrs)
    assert list(COCO.max_dets) == params.maxDets
    assert [[area.low, area.high] for area in COCO.areas] == params.areaRng
    assert [area.name for area in COCO.areas] == params.areaRngLbl
    assert COCO.precision_epsilon == np.spacing(1)


def test_the_thresholds_of_coco_are_those_of_linspace_to_the_last_bit() -> None:
    assert list(COCO.iou_thresholds) == np.linspace(0.5, 0.95, int(np.round((0.95 - 0.5) / 0.05)) + 1).tolist()
    assert COCO.precision_epsilon == np.spacing(1.0)


def test_voc_has_the_rules_of_its_development_kit() -> None:
    for voc in (VOC2007, VOC2012):
        assert voc.iou_thresholds == (0.5,)
        assert (voc.assignment, voc.iou_ties, voc.score_ties) == ("best_any", "first", "file")
        assert (voc.pixel_offset, voc.max_dets) == (1.0, ())
        assert "difficult" in voc.ignored_flags
        assert "difficult" in voc.reusable_flags
    assert (VOC2007.interpolation, VOC2007.recall_points) == ("grid", 11)
    assert VOC2012.interpolation == "area"


def test_three_of_the_eleven_recalls_lie_one_bit_above_a_tenth() -> None:
    above = [i for i, recall in enumerate(VOC2007.recall_grid) if recall > i / 10]
    assert above == [3, 6, 7]
    assert all(VOC2007.recall_grid[i] == np.nextafter(i / 10, 1) for i in above)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=lambda protocol: protocol.name)
def test_every_rule_names_its_source(protocol: Protocol) -> None:
    others = {"name", "sources", "class_agnostic", "iou_type", *RULES_OF}
    # What a protocol has in common with all of the first release needs no source.
    others |= {name for name, before in LATER_RULES.items() if getattr(protocol, name) == before}
    described = {field.name for field in fields(Protocol)} - others
    unused = {"recall_points"} if protocol.interpolation in ("area", "points", "lines", "hits") else set()
    assert {name for name, _ in protocol.sources} - others == described - unused


def test_protocols_are_found_by_name() -> None:
    assert get_protocol("voc2007") is VOC2007
    with pytest.raises(
        UsageError,
        match=r"unknown protocol 'voc207'; choose from coco, voc2007, voc2012, crowdpose, .*lvis, lvis-fixed",
    ):
        get_protocol("voc207")


def test_options_make_another_protocol_and_leave_the_first() -> None:
    assert COCO.with_options(max_dets=(300,)).max_dets == (300,)
    assert COCO.max_dets == (1, 10, 100)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"iou_thresholds": ()}, r"IoU thresholds must be above 0 and at most 1, got none"),
        ({"iou_thresholds": (0.0, 0.5)}, r"IoU thresholds must be above 0 and at most 1"),
        ({"iou_thresholds": (50.0,)}, r"IoU thresholds must be above 0 and at most 1, got 50\. Did you mean 0\.5\?"),
        ({"iou_thresholds": (float("nan"),)}, r"IoU thresholds must be above 0 and at most 1"),
        ({"iou_thresholds": (0.75, 0.5)}, "must ascend without repetition"),
        ({"iou_thresholds": (0.5, 0.5)}, "must ascend without repetition"),
        ({"areas": ()}, "area ranges need at least one range, and distinct names"),
        ({"areas": (AreaRange("a", 0, 1), AreaRange("a", 1, 2))}, "distinct names"),
        ({"areas": (AreaRange("a", 2, 1),)}, "area range 'a': 2 is above 1"),
        ({"areas": (AreaRange("a", float("nan"), 1),)}, "area range 'a'"),
        ({"areas": (AreaRange("", 0, 1),)}, "distinct names that are not empty"),
        ({"max_dets": (0, 10)}, "caps on detections must be positive and ascend"),
        ({"max_dets": (100, 10)}, "caps on detections must be positive and ascend"),
    ],
)
def test_rules_that_cannot_be_followed_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        COCO.with_options(**change)
