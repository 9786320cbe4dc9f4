"""Counts of every image beside those of pycocotools: its matches at IoU .5 of detections above the score."""

import contextlib
import copy
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cocoscenes
import numpy as np
import peer
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import jaccard_eval

NAMES = (
    "plain",
    "tied scores",
    "crowds",
    "crowds and ties",
    "areas of masks",
    "more than 100, two images",
    "sparse ids",
)
KINDS = [kind for kind in cocoscenes.KINDS if kind.name in NAMES]


@pytest.mark.parametrize("score", [0.25, 0.6])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_counts_of_images_are_those_of_pycocotools(kind: cocoscenes.Kind, score: float, tmp_path: Path) -> None:
    gt, dt = tmp_path / "gt.json", tmp_path / "dt.json"
    for seed in range(4):
        document, detections = cocoscenes.draw(kind, seed)
        gt.write_text(json.dumps(document))
        dt.write_text(json.dumps(detections))
        images = jaccard_eval.evaluate(gt, dt, score=score, worst_images=1).worst_images
        expected = _by_image(document, detections, score)
        assert len(expected) == len(images.names)
        for row, name in enumerate(images.names):
            counts = [int(count[row]) for count in (images.gt, images.tp, images.fp, images.fn)]
            assert counts == expected[name][:4], (seed, name)
            assert images.cost[row] == pytest.approx(expected[name][4], abs=1e-9)


def _by_image(document: peer.Document, detections: peer.Records, score: float) -> dict[str, Sequence[Any]]:
    """Return objects, true and false positives, misses and cost, by the name of the image."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = copy.deepcopy(dict(document))
        truth.createIndex()
        coco = COCOeval(truth, truth.loadRes([dict(found) for found in detections]), "bbox")
        coco.evaluate()
    totals = {image["id"]: np.zeros(4) for image in document["images"]}
    whole = [part for part in coco.evalImgs if part is not None and part["aRng"] == coco.params.areaRng[0]]
    for part in whole:
        scores = np.array(part["dtScores"])
        matched, ignored = (np.array(part[name][0], dtype=bool) for name in ("dtMatches", "dtIgnore"))
        counts = (scores >= score) & ~ignored
        wrong = counts & ~matched
        objects = np.count_nonzero(~np.array(part["gtIgnore"], dtype=bool))
        totals[part["image_id"]] += [objects, np.sum(counts & matched), np.sum(wrong), np.sum(scores[wrong])]
    files = {image["id"]: image["file_name"] for image in document["images"]}
    return {
        files[image]: [*map(int, (objects, tp, fp, objects - tp)), objects - tp + lost]
        for image, (objects, tp, fp, lost) in totals.items()
    }
