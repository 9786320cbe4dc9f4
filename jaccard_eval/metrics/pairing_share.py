"""The Jaccard index of a set of detections: how many pairs a best one-to-one assignment finds, of all that is there."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.matching import IntArray, lengths_of_runs, stable_order, starts_of_runs
from jaccard_eval.matching.matchtable import ALL_SIZES, MatchTable, least_overlaps

SCORE_CUTS: FloatArray = np.multiply(0.1, np.arange(10), dtype=np.float64)  # detections with more than these are paired
_EPSILON = 1e-6


def pairing_shares(table: MatchTable, threshold: int, n_images: int) -> tuple[FloatArray, BoolArray]:
    """Return the index of each class and image by score cut, and whether anything is there; (S, K, n_images) each.

    It is k / (m + n - k) for k pairs of m objects and n detections, with 1e-6 added below. Pairs are those of a one-to-
    one assignment with the highest sum of overlaps. What has no partner and is covered by ignored ground truth is not
    there.

    Source: Chu et al. (2020), "Detection in Crowded Scenes: One Proposal, Multiple Predictions", section 4, with the
    cuts and the summand of its code.
    """
    least = least_overlaps(table.protocol)[threshold]
    shape = table.n_labels, n_images
    reaches = table.pair_overlap >= least
    is_object = ~table.gt_ignored[ALL_SIZES]
    of_object = is_object[table.pair_gt]
    cell = table.label.astype(np.int64) * n_images + table.image
    gt_cell = table.gt_label * n_images + table.gt_image
    covered = np.zeros(len(table), dtype=np.bool_)
    covered[table.pair_detection[reaches & ~of_object]] = True
    gt_covered = np.zeros(len(is_object), dtype=np.bool_) if table.gt_cover is None else table.gt_cover >= least
    shares, is_there = np.zeros((len(SCORE_CUTS), *shape)), np.zeros((len(SCORE_CUTS), *shape), dtype=np.bool_)
    for place, cut in enumerate(SCORE_CUTS):
        kept = table.score > cut
        edges = np.flatnonzero(reaches & of_object & kept[table.pair_detection])
        edges = edges[_assigned(table, edges, cell[table.pair_detection[edges]])]
        paired, gt_paired = np.zeros(len(table), dtype=np.bool_), np.zeros(len(is_object), dtype=np.bool_)
        paired[table.pair_detection[edges]], gt_paired[table.pair_gt[edges]] = True, True
        k, n, m = (
            np.bincount(cells, minlength=shape[0] * n_images).reshape(shape)
            for cells in (
                cell[paired],
                cell[kept & (paired | ~covered)],
                gt_cell[is_object & (gt_paired | ~gt_covered)],
            )
        )
        shares[place], is_there[place] = k / (m + n - k + _EPSILON), m + n > 0
    return shares, is_there


def _assigned(table: MatchTable, edges: IntArray, cell: IntArray) -> BoolArray:
    """Mark the pairs, of some by their class and image, of the assignments with the highest sums."""
    det, gt = table.pair_detection[edges], table.pair_gt[edges]
    # Most pairs have no rival.
    chosen: BoolArray = (np.bincount(det)[det] == 1) & (np.bincount(gt)[gt] == 1) if len(edges) else edges > 0
    rivals = np.flatnonzero(~chosen)
    rivals = rivals[stable_order(cell[rivals])] if len(rivals) else rivals
    first, size = lengths_of_runs(starts_of_runs(cell[rivals]))
    for at, n in zip(first.tolist(), size.tolist(), strict=True):
        rows = rivals[at : at + n]
        names, columns = zip(*(np.unique(side[rows], return_inverse=True) for side in (det, gt)), strict=True)
        weights = np.zeros([len(side) for side in names])
        weights[columns] = table.pair_overlap[edges[rows]]
        partner = heaviest_assignment(weights)
        chosen[rows] = partner[columns[0]] == columns[1]
    return chosen


def heaviest_assignment(weights: FloatArray) -> IntArray:
    """Return the column of each row in the one-to-one assignment with the highest sum, -1 for none.

    Source: Kuhn (1955) and Munkres (1957), by shortest augmenting paths: rows are added one by one.

    Examples
    --------
    >>> import numpy as np
    >>> heaviest_assignment(np.array([[0.9, 0.8], [0.7, 0.0]])).tolist()
    [1, 0]
    """
    n_rows, n_columns = weights.shape
    if n_rows > n_columns:
        row_of = heaviest_assignment(weights.T)
        column_of = np.full(n_rows, -1)
        column_of[row_of[row_of >= 0]] = np.flatnonzero(row_of >= 0)
        return column_of
    # The last column is where each path begins.
    prices, gains = np.zeros(n_columns + 1), np.zeros(n_rows)
    owner = np.full(n_columns + 1, -1)
    for row in range(n_rows):
        reached, at = np.zeros(n_columns + 1, dtype=np.bool_), n_columns
        distance, came_from = np.full(n_columns + 1, np.inf), np.full(n_columns + 1, n_columns)
        owner[at] = row
        while owner[at] >= 0:
            reached[at] = True
            through = np.append(-weights[owner[at]] - gains[owner[at]] - prices[:-1], np.inf)
            nearer = ~reached & (through < distance)
            distance[nearer], came_from[nearer] = through[nearer], at
            nearest = int(np.where(reached, np.inf, distance).argmin())
            step = distance[nearest]
            gains[owner[reached]] += step
            prices[reached] -= step
            distance[~reached] -= step
            at = nearest
        while at != n_columns:
            owner[at] = owner[came_from[at]]
            at = int(came_from[at])
    column_of = np.empty(n_rows, dtype=np.int64)
    column_of[owner[:-1][owner[:-1] >= 0]] = np.flatnonzero(owner[:-1] >= 0)
    return column_of
