"""Who matched whom, one row per detection or missed box: the match table as columns for people and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import IntArray
from jaccard_eval.metrics.counts import ALL_SIZES
from jaccard_eval.metrics.curves import MatchCurves


def match_columns(curves: MatchCurves, images: Sequence[str], classes: Sequence[str]) -> Mapping[str, Any]:
    """Return one row per detection kept, in the order of the predictions; columns (n,) or (n, T)."""
    table, outcome = curves.table, curves.outcome(ALL_SIZES)
    order = np.argsort(table.source, kind="stable")
    n, n_thresholds = len(table), len(outcome.hits)
    gt = np.full((n, n_thresholds), -1, dtype=np.int64)
    overlap = np.full((n, n_thresholds), np.nan)
    hits = np.zeros((n, n_thresholds), dtype=np.bool_)
    counts = np.repeat(outcome.unmatched[:, None], n_thresholds, axis=1)
    choice = table.choice[ALL_SIZES].T  # (c, T)
    c, t = np.nonzero(choice >= 0)
    gt[table.candidate[c], t] = table.gt_source[table.pair_gt[choice[c, t]]]
    overlap[table.candidate[c], t] = table.pair_overlap[choice[c, t]]
    hits[table.candidate], counts[table.candidate] = outcome.hits.T, outcome.counts.T
    columns = {"score": table.score, "source": table.source, "gt": gt, "iou": overlap}
    columns |= {"tp": hits, "fp": counts & ~hits, "ignored": ~counts}
    return _named(table.image, table.label, images, classes, order) | {k: v[order] for k, v in columns.items()}


def missed_columns(table: MatchTable, images: Sequence[str], classes: Sequence[str]) -> Mapping[str, Any]:
    """Return one row per ground-truth box that counts and that some threshold leaves unmatched."""
    found = _found(table)
    missed = ~found & ~table.gt_ignored[ALL_SIZES][:, None]
    rows = np.flatnonzero(missed.any(axis=1))
    named = _named(table.gt_image, table.gt_label, images, classes, rows)
    return named | {"source": table.gt_source[rows], "missed": missed[rows]}


def _found(table: MatchTable) -> BoolArray:
    """Mark ground truth that a detection matched, shape (m, T)."""
    choice = table.choice[ALL_SIZES]
    found = np.zeros((len(table.gt_image), len(choice)), dtype=np.bool_)
    t, c = np.nonzero(choice >= 0)
    found[table.pair_gt[choice[t, c]], t] = True
    return found


def _named(
    image: IntArray, label: IntArray, images: Sequence[str], classes: Sequence[str], rows: IntArray
) -> dict[str, Any]:
    return {
        "image": np.array(images, dtype=object)[image[rows]] if len(rows) else np.array([], dtype=object),
        "class": np.array(classes, dtype=object)[label[rows]] if len(rows) else np.array([], dtype=object),
    }
