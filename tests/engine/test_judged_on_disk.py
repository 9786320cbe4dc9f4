"""Protocols that choose boxes by others of their image: the document is the same bytes whichever engine made it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judged_scenes import write_lvis, write_open_images

from jaccard_eval import Slice, evaluate

OPTIONS: dict[str, dict[str, Any]] = {
    "lvis": {},
    "lvis, few per image": {"max_dets": (3,), "classes": ["class 0", "class 2"], "score": 0.5},
    "lvis, one class": {"class_agnostic": True, "max_dets": (5,)},
    "lvis, confusion": {"confusion": True, "slices": [Slice(name="few", patterns=("000.jpg", "00[4-9].jpg"))]},
    "lvis-fixed": {"max_dets": (4,)},
    "lvis-fixed, duplicates and nms": {"max_dets": (7,), "drop_duplicates": True, "nms": 0.6},
    "coco, ties across caps": {"max_dets": (1, 3), "allow": ("max-dets",)},
    "coco, ties across the cap of one class": {"max_dets": (2,), "class_agnostic": True, "allow": ("max-dets",)},
    "openimages": {"confusion": True},
    "openimages, of a class above": {"classes": ["/m/0", "/m/4"], "score": "best-f1"},
    "openimages, one class": {"class_agnostic": True, "iou": (0.3, 0.5, 0.75)},
    "openimages-challenge": {"score": "best-f1"},
    "openimages-challenge, confusion": {"confusion": True, "score": 0.4},
}


@pytest.mark.parametrize("name", OPTIONS)
@settings(deadline=None, max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([3, 60, 300]),
    decimals=st.sampled_from([4, 1, 0]),
    parts=st.sampled_from([1, 3, 17]),
    bucket_rows=st.sampled_from([10, 10**4]),
)
def test_the_document_is_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    small_parts: Callable[..., None],
    name: str,
    seed: int,
    n: int,
    decimals: int,
    parts: int,
    bucket_rows: int,
) -> None:
    protocol = name.partition(",")[0]
    write = write_open_images if protocol.startswith("openimages") else write_lvis
    gt, pred = write(tmp_path_factory.mktemp("scene"), seed, n, decimals)
    options = {"protocol": protocol, **OPTIONS[name]}
    memory = evaluate(gt, pred, engine="memory", **options)
    small_parts(max(1, n // parts), bucket_rows)
    on_disk = evaluate(gt, pred, engine="disk", workers=1 + seed % 2, **options)
    first, second = (json.dumps(result.to_dict(), sort_keys=True) for result in (on_disk, memory))
    assert first == second


def test_scenes_have_what_the_rules_choose_by(tmp_path_factory: pytest.TempPathFactory) -> None:
    gt, pred = write_lvis(tmp_path_factory.mktemp("lvis"), 1, 300, 2)
    federated, all_classes = (evaluate(gt, pred, protocol=name) for name in ("lvis", "coco"))
    assert "not-judged" in {finding.code for finding in federated.findings}
    assert federated["AP"] != all_classes["AP"]
    assert evaluate(gt, pred, protocol="lvis", max_dets=[3])["AP"] != federated["AP"]
    gt, pred = write_open_images(tmp_path_factory.mktemp("oid"), 1, 300, 2)
    plain, challenge = (evaluate(gt, pred, protocol=name) for name in ("openimages", "openimages-challenge"))
    assert "not-judged" in {finding.code for finding in challenge.findings}
    assert len({plain["AP"], challenge["AP"], evaluate(gt, pred)["AP50"]}) == 3
