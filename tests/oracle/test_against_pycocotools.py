"""Fresh random scenes against pycocotools in this process: whole arrays and summaries, to the last bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import adapter
import cocoscenes
import numpy as np
import peer
import pytest
from exact import same_bits

import jaccard_eval
from jaccard_eval import AreaRange

SEEDS = range(20)
KINDS = pytest.mark.parametrize("kind", cocoscenes.KINDS, ids=lambda kind: kind.name)
MIXED = [kind for kind in cocoscenes.KINDS if kind.name in ("plain", "crowds and ties", "sparse ids", "tied scores")]
AREAS = {"all": (0.0, 1e10), "tiny": (0.0, 64.0), "little": (64.0, 256.0)}


@pytest.mark.slow
@KINDS
def test_arrays_and_summary_are_those_of_pycocotools(kind: cocoscenes.Kind, tmp_path: Path) -> None:
    for seed in SEEDS:
        document, detections = cocoscenes.draw(kind, seed)
        result = _ours(tmp_path, document, detections)
        expected = peer.evaluate(document, detections)
        _require_equal(result, expected, seed)
        assert same_bits(adapter.stats(result), expected["stats"]), seed


@pytest.mark.parametrize("use_cats", [1, 0], ids=["classes apart", "pooled classes"])
@pytest.mark.parametrize("name", cocoscenes.SPECIAL)
def test_scenes_made_for_one_rule_agree(name: str, use_cats: int, tmp_path: Path) -> None:
    document, detections = cocoscenes.SPECIAL[name]
    expected = peer.evaluate(document, detections, useCats=use_cats)
    _require_equal(_ours(tmp_path, document, detections, class_agnostic=not use_cats), expected, seed=0)


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ({"class_agnostic": True}, {"useCats": 0}),
        ({"iou": (0.3, 0.55, 0.8, 1.0)}, {"iouThrs": np.array([0.3, 0.55, 0.8, 1.0])}),
        ({"max_dets": (1, 3, 7)}, {"maxDets": [1, 3, 7]}),
        (
            {"areas": tuple(AreaRange(name, *limits) for name, limits in AREAS.items())},
            {"areaRng": [list(limits) for limits in AREAS.values()], "areaRngLbl": list(AREAS)},
        ),
        # aitodpycocotools and SODA-D's evaluator are pycocotools with these.
        (
            {"protocol": "aitod"},
            {
                "areaRng": [[0, 1e10], [0, 64], [64, 256], [256, 1024], [1024, 1e10]],
                "areaRngLbl": ["all", "verytiny", "tiny", "small", "medium"],
                "maxDets": [1, 100, 1500],
            },
        ),
        (
            {"protocol": "soda"},
            {
                "areaRng": [[0, 1e10], [0, 1024], [0, 144], [144, 400], [400, 1024], [1024, 2000]],
                "areaRngLbl": ["all", "Small", "eS", "rS", "gS", "Normal"],
                "maxDets": [20000],
            },
        ),
    ],
    ids=["pooled classes", "IoU thresholds", "caps", "area ranges", "aitod", "soda"],
)
@pytest.mark.parametrize("kind", MIXED, ids=lambda kind: kind.name)
def test_options_are_the_parameters_of_pycocotools(
    kind: cocoscenes.Kind, options: dict[str, Any], params: dict[str, Any], tmp_path: Path
) -> None:
    # A benchmark's rules on a hundred sets, of all kinds together.
    for seed in range(-(-100 // len(MIXED)) if "protocol" in options else 4):
        document, detections = cocoscenes.draw(kind, seed)
        expected = peer.evaluate(document, detections, summarize=False, **params)
        _require_equal(_ours(tmp_path, document, detections, **options), expected, seed)


@pytest.mark.parametrize("kind", MIXED, ids=lambda kind: kind.name)
def test_chosen_classes_are_the_category_ids_of_pycocotools(kind: cocoscenes.Kind, tmp_path: Path) -> None:
    for seed in range(4):
        document, detections = cocoscenes.draw(kind, seed)
        chosen = document["categories"][1:]
        result = _ours(tmp_path, document, detections, classes=[one["name"] for one in chosen])
        _require_equal(result, peer.evaluate(document, detections, catIds=[one["id"] for one in chosen]), seed)


@pytest.mark.parametrize("kind", MIXED, ids=lambda kind: kind.name)
def test_ground_truth_of_some_images_is_the_image_ids_of_pycocotools(kind: cocoscenes.Kind, tmp_path: Path) -> None:
    for seed in range(4):
        document, detections = cocoscenes.draw(kind, seed)
        last = detections[0]["image_id"]
        chosen = [one for one in document["images"] if one["id"] != last]
        expected = peer.evaluate(document, detections, imgIds=[one["id"] for one in chosen])
        fewer = {**document, "images": chosen}
        _require_equal(_ours(tmp_path, fewer, detections, extra_images="ignore"), expected, seed)


@pytest.mark.parametrize("kind", MIXED, ids=lambda kind: kind.name)
def test_images_in_common_are_the_image_ids_of_pycocotools(kind: cocoscenes.Kind, tmp_path: Path) -> None:
    for seed in range(4):
        document, detections = cocoscenes.draw(kind, seed)
        first, *rest = document["images"]
        seen = [*rest, {**first, "id": 10**6, "file_name": "elsewhere.png"}]
        elsewhere = [{**one, "image_id": 10**6} for one in detections if one["image_id"] == first["id"]]
        found = [one for one in detections if one["image_id"] != first["id"]]
        expected = peer.evaluate(document, found, imgIds=[one["id"] for one in rest])
        categories = document["categories"]
        listed = {"images": seen, "annotations": [*elsewhere, *found], "categories": categories}
        result = _ours(tmp_path, document, listed, images_in_common=True)
        assert [one.code for one in result.findings if "in-common" in one.code] == ["images-in-common"]
        _require_equal(result, expected, seed)


def _ours(folder: Path, document: peer.Document, detections: peer.Records | dict[str, Any], **options: Any) -> Any:
    gt, dt = folder / "gt.json", folder / "dt.json"
    gt.write_text(json.dumps(document))
    dt.write_text(json.dumps(detections))
    return jaccard_eval.evaluate(gt, dt, **options)


def _require_equal(result: jaccard_eval.EvaluationResult, expected: dict[str, Any], seed: int) -> None:
    got = adapter.arrays(result)
    assert [name for name in adapter.ARRAYS if not same_bits(got[name], expected[name])] == [], f"seed {seed}"
