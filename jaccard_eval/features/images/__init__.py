"""What each image costs at the operating point, the worst first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import ClassVar

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.document import Also, Beside, Count, DataTable, Form, Known, KnownShare, Share, dig, written_as
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray, descending_order

# Why a ratio of an image is undefined.
REASONS = {
    "precision": "no predictions with at least this score",
    "recall": "no objects",
    "f1": "neither objects nor predictions with at least this score",
}
TITLES = {"f1": "F1"}  # of columns, where they are not called as in documents


def _of_rows(key: str) -> dict[str, Form]:
    """Return the metadata of a column: documents have rows, of the first images alone."""
    return written_as(None, read=lambda document: [dig(row, key) for row in document["rows"]])


@dataclass(frozen=True, kw_only=True, eq=False)
class WorstImages:
    """Counts of every image at one IoU threshold and score, over all sizes and classes.

    Parameters
    ----------
    iou, score : float
        Where a pair matches, and the least score of a prediction that counts; NaN where nothing was predicted.
    n : int
        How many images summaries and documents list; the table has all.
    names : tuple of str
    gt, tp, fp, fn : ndarray of int64, shape (n_images,)
        By row of the image: objects that count, true positives, false positives, misses.
    ap, mean_iou : ndarray of float64, shape (n_images,)
        AP of the image alone, over all scores, and mean IoU of its true positives; NaN where undefined.
    cost : ndarray of float64, shape (n_images,)
        Misses plus the sum of the scores of the false positives.
    """

    iou: KnownShare
    score: float
    n: int = field(metadata=written_as(None, read=lambda document: len(document["rows"])))
    names: tuple[str, ...] = field(metadata=_of_rows("image"))
    gt: IntArray = field(metadata=_of_rows("gt"))
    tp: IntArray = field(metadata=_of_rows("tp"))
    fp: IntArray = field(metadata=_of_rows("fp"))
    fn: IntArray = field(metadata=_of_rows("fn"))
    ap: FloatArray = field(metadata=_of_rows("AP"))
    mean_iou: FloatArray = field(metadata=_of_rows("mean_IoU"))
    cost: FloatArray = field(metadata=_of_rows("cost"))

    # Images that the table does not have: a document that was read back has the worst ones alone.
    unlisted: int = field(
        default=0, metadata=written_as(None, read=lambda document: document["images"] - len(document["rows"]))
    )

    kind: ClassVar[str] = "worst_images"
    beside: ClassVar[Beside] = {
        "images": Count,
        "undefined": Mapping[str, str],
        "rows": [
            {
                **{"image": str, "gt": Count, "tp": Count, "fp": Count, "fn": Count, "cost": Known},
                **dict.fromkeys(("precision", "recall", "f1", "AP", "mean_IoU"), Share),
            }
        ],
    }
    also: ClassVar[Also] = (
        lambda images: {
            "images": len(images.names) + images.unlisted,
            "undefined": images.undefined(),
            "rows": images.rows(images.n),
        },
    )

    @cached_property
    def order(self) -> IntArray:
        """Rows of the images, the highest cost first; equal ones in the order of the images."""
        return descending_order(self.cost)

    def rows(self, n: int | None = None) -> list[dict[str, str | int | float]]:
        """Return the first `n` images, or all, the worst first, by the names of documents; NaN where undefined."""
        rows: list[dict[str, str | int | float]] = []
        for row in self.order[:n].tolist():
            gt, tp, fp, fn = (int(count[row]) for count in (self.gt, self.tp, self.fp, self.fn))
            ratios = {"precision": (tp, tp + fp), "recall": (tp, gt), "f1": (2 * tp, 2 * tp + fp + fn)}
            rows.append(
                {
                    "image": self.names[row],
                    **{"gt": gt, "tp": tp, "fp": fp, "fn": fn},
                    **{name: part / whole if whole else math.nan for name, (part, whole) in ratios.items()},
                    "cost": float(self.cost[row]),
                    **{"AP": float(self.ap[row]), "mean_IoU": float(self.mean_iou[row])},
                }
            )
        return rows

    def undefined(self) -> dict[str, str]:
        """Return the ratios that one of the first `n` images lacks, and why."""
        rows = self.rows(self.n)
        return {name: reason for name, reason in REASONS.items() if any(row[name] != row[name] for row in rows)}

    def tables(self) -> Mapping[str, DataTable]:
        """Return all images that are known."""
        header = ("image", "gt", "tp", "fp", "fn", "precision", "recall", "F1", "cost", "AP", "mean_IoU")
        return {"images": DataTable(header, tuple(tuple(row.values()) for row in self.rows()))}
