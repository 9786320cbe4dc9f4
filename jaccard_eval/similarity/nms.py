"""Suppression of boxes that rivals overlap, on pairs that are known already: hard, soft and by weighted mean.

Greedy suppression is serial only among boxes that overlap. So all boxes that no undecided rival surpasses are decided
at once, over all images and classes together, round after round; the outcome is that of serving them one by one.
"""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.frozen import dataclass
from jaccard_eval.similarity import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Rivals:
    """Pairs of boxes (p,) that overlap too much to stay side by side, each pair once."""

    # The better one has the higher score, of equal scores the earlier row. Sorted by the rank of `better`.
    better: Rows
    worse: Rows
    overlap: FloatArray

    def __len__(self) -> int:
        return len(self.better)

    def take(self, chosen: BoolArray) -> Rivals:
        """Return some of the pairs."""
        return Rivals(self.better[chosen], self.worse[chosen], self.overlap[chosen])


def keep_unrivalled(rivals: Rivals, n: int) -> BoolArray:
    """Return which of `n` boxes stay when each one that stays removes its worse rivals, shape (n,).

    Source: Felzenszwalb et al. (2010), "Object Detection with Discriminatively Trained Part-Based Models", section
    4.2: greedily by score.
    """
    kept = np.ones(n, dtype=np.bool_)
    beaten = np.zeros(n, dtype=np.bool_)
    better, worse = rivals.better, rivals.worse
    while len(better):
        # Set and unset rather than made anew: in late rounds n boxes are far more than the pairs that are left.
        beaten[worse] = True
        decided = ~beaten[better]
        beaten[worse] = False
        kept[worse[decided]] = False
        # A pair is over when either box is gone; one whose better box stays has done its work in this round.
        open_pairs = np.flatnonzero(kept[better] & kept[worse])
        better, worse = better[open_pairs], worse[open_pairs]
    return kept


def decay_scores(rivals: Rivals, scores: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the scores (n,), not negative, after each box, the best of the rest first, has lowered its rivals'.

    `weights` (p,) in [0, 1] are what each pair multiplies the score of its loser by.

    Source: Bodla et al. (2017), "Soft-NMS: Improving Object Detection With One Line of Code", figure 2. A box that
    several others decay may differ from serving one by one in the last bits, by the order of the products.
    """
    scores = scores.copy()
    beaten = np.zeros(len(scores), dtype=np.bool_)
    better, worse = rivals.better, rivals.worse
    while len(better):
        # As scores only fall, a box that no undecided rival surpasses is final. Who is better may change on the way.
        holds = scores[better] >= scores[worse]
        winner, loser = np.where(holds, better, worse), np.where(holds, worse, better)
        beaten[loser] = True
        decided = ~beaten[winner]
        beaten[loser] = False
        # One box may lose to several at once: buffered `*=` would apply one of the weights only.
        np.multiply.at(scores, loser[decided], weights[decided])
        better, worse, weights = better[~decided], worse[~decided], weights[~decided]
    return scores


def clusters(rivals: Rivals, kept: BoolArray) -> Rows:
    """Return for each box the row of the box that stays for it: itself, or the best that removed it, shape (n,)."""
    owner = np.arange(len(kept))
    removed = np.flatnonzero(kept[rivals.better] & ~kept[rivals.worse])[::-1]
    # Backwards, so that the best is written last and stays.
    owner[rivals.worse[removed]] = rivals.better[removed]
    return owner


def weighted_means(values: FloatArray, weights: FloatArray, owner: Rows) -> FloatArray:
    """Return the mean of the values (n, 4) of each cluster in the row of its owner, weighted; alone, a row stays."""
    n = len(values)
    total = np.bincount(owner, weights=weights, minlength=n)
    shared = (np.bincount(owner, minlength=n) > 1) & (total > 0)
    sums = np.stack([np.bincount(owner, weights=weights * column, minlength=n) for column in values.T], axis=1)
    # A mean of one row with itself may differ in the last bit: such rows stay as they are.
    means = values.copy()
    means[shared] = sums[shared] / total[shared, None]
    return means
