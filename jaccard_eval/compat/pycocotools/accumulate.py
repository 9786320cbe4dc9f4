"""Precision, recall and scores as pycocotools tabulates them: of curves, or of dictionaries that were gathered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaccard_eval.compat.pycocotools.coco import Record
from jaccard_eval.compat.pycocotools.perimage import NO_CATEGORY
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.protocol import COCO
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.curves import Curves

UNDEFINED = -1.0


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Axes are T IoU thresholds, R recall values, K categories, A area ranges and M caps; -1 is undefined."""

    precision: FloatArray  # (T, R, K, A, M)
    recall: FloatArray  # (T, K, A, M)
    scores: FloatArray  # (T, R, K, A, M)

    @classmethod
    def undefined(cls, params: Any) -> Tables:
        """Return tables for parameters in which everything is undefined."""
        n_thresholds, n_recalls = len(params.iouThrs), len(params.recThrs)
        rest = len(params.catIds) if params.useCats else 1, len(params.areaRng), len(params.maxDets)
        precision, scores = (np.full((n_thresholds, n_recalls, *rest), UNDEFINED) for _ in range(2))
        return cls(precision, np.full((n_thresholds, *rest), UNDEFINED), scores)


def whole_tables(curves: Curves, params: Any, evaluated: Any) -> Tables | None:
    """Return the tables of an evaluation; None for parameters that differ from those it was made with."""
    # Where categories are not used, `accumulate` has replaced their ids by then.
    lists = ("imgIds", *(("catIds",) if evaluated.useCats else ()), "iouThrs", "areaRng", "maxDets")
    same = all(np.array_equal(getattr(params, name), getattr(evaluated, name)) for name in lists)
    recalls = np.asarray(params.recThrs, dtype=np.float64)
    if not same or params.useCats != evaluated.useCats or not len(recalls) or not (np.diff(recalls) >= 0).all():
        return None
    # Curves begin at recall 0, and what is below it is reached as early.
    grid = np.concatenate(([0.0], np.maximum(recalls, 0.0)))
    tables = Tables.undefined(params)
    for a in range(len(params.areaRng)):
        known = curves.positives[a] > 0
        for m in range(len(params.maxDets)):
            precision = curves.steps(a, m).interpolated_precision(grid)[:, 1:]
            scores = curves.recall_scores(a, m, grid)[:, 1:]
            tables.precision[:, :, known, a, m] = precision[..., known]
            tables.scores[:, :, known, a, m] = scores[..., known]
            tables.recall[:, known, a, m] = curves.final_recall(a, m)[:, known]
    return tables


def gathered_tables(results: Sequence[Record | None], params: Any, evaluated: Any) -> Tables:
    """Return the tables of results by category, area range and image of the parameters they were evaluated with.

    Source: pycocotools 2.0.11 ``cocoeval.py``, ``COCOeval.accumulate``.
    """
    tables = Tables.undefined(params)
    categories = set(evaluated.catIds) if evaluated.useCats else {NO_CATEGORY}
    images, areas = set(evaluated.imgIds), set(map(tuple, evaluated.areaRng))
    # Places are those among the parameters, as there, although the results lie by those that were evaluated.
    k_list = [place for place, category in enumerate(params.catIds) if category in categories]
    a_list = [place for place, area in enumerate(params.areaRng) if tuple(area) in areas]
    i_list = [place for place, image in enumerate(params.imgIds) if image in images]
    caps = [cap for cap in params.maxDets if cap in evaluated.maxDets]
    n_areas, n_images = len(evaluated.areaRng), len(evaluated.imgIds)
    for k, k_place in enumerate(k_list):
        for a, a_place in enumerate(a_list):
            start = (k_place * n_areas + a_place) * n_images
            found = [result for i in i_list if (result := results[start + i]) is not None]
            positives = sum(int(np.count_nonzero(np.asarray(result["gtIgnore"]) == 0)) for result in found)
            # Without a result there is nothing to count, and without an object no recall.
            if not positives:
                continue
            for m, cap in enumerate(caps):
                _fill(tables, (k, a, m), _Ranked.of(found, cap), positives, np.asarray(params.recThrs))
    return tables


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """Detections of all images by score, (n,), and the running counts of true and false positives, (T, n)."""

    score: FloatArray
    tp: FloatArray
    fp: FloatArray

    @classmethod
    def of(cls, found: Sequence[Record], cap: int) -> _Ranked:
        score = np.concatenate([result["dtScores"][:cap] for result in found])
        order = np.argsort(-score, kind="stable")
        matched, ignored = (
            np.concatenate([result[key][:, :cap] for result in found], axis=1)[:, order].astype(np.bool_)
            for key in ("dtMatches", "dtIgnore")
        )
        tp, fp = (np.cumsum(flags & ~ignored, axis=1).astype(np.float64) for flags in (matched, ~matched))
        return cls(score[order], tp, fp)


def _fill(tables: Tables, cell: tuple[int, int, int], ranked: _Ranked, positives: int, grid: FloatArray) -> None:
    """Write the curve of each threshold into a cell (k, a, m)."""
    recall = ranked.tp / positives
    precision = ranked.tp / (ranked.fp + ranked.tp + COCO.precision_epsilon)
    # The envelope: from the last detection to the first, precision never falls.
    precision = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    n = recall.shape[1]
    for t in range(len(recall)):
        tables.recall[(t, *cell)] = recall[t, -1] if n else 0.0
        at = np.searchsorted(recall[t], grid, side="left")
        # The first recall value that is not reached ends the search, whatever stands behind it.
        n_reached = int(np.logical_and.accumulate(at < n).sum())
        for table, values in ((tables.precision, precision[t]), (tables.scores, ranked.score)):
            table[(t, slice(None), *cell)] = 0.0
            table[(t, slice(None, n_reached), *cell)] = values[at[:n_reached]]
