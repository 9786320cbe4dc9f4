"""pycocotools, run in this process without a word on stdout."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

Document = Mapping[str, Any]
Records = Sequence[Mapping[str, Any]]


def evaluate(document: Document, detections: Records, *, summarize: bool = True, **params: Any) -> dict[str, Any]:
    """Return `precision`, `recall` and `scores`, and the twelve `stats`; `params` set ``COCOeval.params``."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = copy.deepcopy(dict(document))
        truth.createIndex()
        found = truth.loadRes([copy.deepcopy(dict(one)) for one in detections])
        run = COCOeval(truth, found, "bbox")
        for name, value in params.items():
            setattr(run.params, name, value)
        run.evaluate()
        run.accumulate()
        if summarize:
            run.summarize()
    arrays = {name: np.asarray(run.eval[name], dtype=np.float64) for name in ("precision", "recall", "scores")}
    return arrays | {"stats": np.asarray(run.stats, dtype=np.float64)}


def with_plain_ids(document: Document) -> Document:
    """Number annotations 1, 2, ...: pycocotools loses matches to id 0 and mixes up repeated ids."""
    renumbered = [{**one, "id": i} for i, one in enumerate(document["annotations"], start=1)]
    return {**document, "annotations": renumbered}
