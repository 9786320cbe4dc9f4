"""PASCAL VOC cases of the oracle as pictures, and what each detection of a class counted as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pictures
from pictures import Picture

from jaccard_eval.data.protocol import VOC2007, VOC2012
from jaccard_eval.data.result import EvaluationResult

VARIANTS = ("plus_one", "no_plus_one")  # whether coordinates are inclusive pixels, as in the devkit
PROTOCOLS = {"voc07_numpy": VOC2007, "voc12": VOC2012}  # variant in the oracle: protocol


def evaluate(
    truth: Mapping[str, Any], detections: Sequence[Mapping[str, Any]], variant: str, key: str
) -> EvaluationResult:
    """Evaluate a case under one pixel convention and one average."""
    protocol = PROTOCOLS[key]
    return pictures.evaluate(
        [_picture(one) for one in truth["objects"]],
        [_picture(one) for one in detections],
        images=truth["images"],
        names=truth["classes"],
        protocol=protocol if variant == "plus_one" else protocol.with_options(pixel_offset=0.0),
    )


def labels(result: EvaluationResult, class_name: str) -> list[int]:
    """Return 1, -1 or 0 (hit, miss, ignored) for the detections of a class by descending score."""
    rows = result.matches
    chosen = rows["class"] == class_name
    outcome = rows["tp"][chosen, 0].astype(int) - rows["fp"][chosen, 0]
    return outcome[np.argsort(-rows["score"][chosen], kind="stable")].tolist()


def _picture(one: Mapping[str, Any]) -> Picture:
    left, top, right, bottom = map(float, one["bbox"])
    return Picture(
        name=one["class"],
        xywh=(left, top, right - left, bottom - top),
        image=one["image"],
        score=one.get("score", 0.0),
        flags=("difficult",) if one.get("difficult") else (),
    )
