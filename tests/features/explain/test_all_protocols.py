"""The way from any protocol to any other that compares the same: every rule is in one of the steps."""

from itertools import permutations

import pytest

from jaccard_eval.data.protocol import BOXES, POINTS, PROTOCOLS, Protocol
from jaccard_eval.features.explain.compute import Question, protocol_steps

PAIRS = [
    pytest.param(start, end.comparing(start.iou_type), id=f"{start.name}-{end.name}")
    for start, end in permutations(PROTOCOLS.values(), 2)
    if end.overlap not in POINTS or start.iou_type == BOXES
]


@pytest.mark.parametrize(("start", "end"), PAIRS)
def test_the_last_step_has_all_rules_of_the_other_protocol(start: Protocol, end: Protocol) -> None:
    steps = list(protocol_steps(start, end))
    now = steps[-1][2] if steps else start
    assert now == end.with_options(name=start.name, sources=start.sources)
    assert len({rule for rule, *_ in steps}) == len(steps)


def test_a_recall_within_a_cap_is_asked_of_protocols_with_other_caps() -> None:
    asked = Question.of("AR300", PROTOCOLS["lvis"], against="coco", boxes=1)
    assert asked.against is not None
    assert (asked.against.max_dets, asked.against.max_dets_per) == ((300,), "image and class")
    asked = Question.of("AR100", PROTOCOLS["coco"], against="lvis", boxes=1)
    assert asked.against is not None
    assert (asked.against.max_dets, asked.against.max_dets_per) == ((100,), "image")
