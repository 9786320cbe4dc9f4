"""What two boxes have in common. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from jaccard_eval.data.document import document_head, finding_dict, plain
from jaccard_eval.errors import Finding

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapResult:
    """Two boxes, and how they overlap.

    Parameters
    ----------
    pred, gt : tuple of 4 float
        Left, top, right and bottom of the prediction and of the ground truth.
    pred_name, gt_name : str
        What they are: class and score, where they come from files.
    image : str, optional
        The image that they are on.
    tp, fp, fn : float
        Areas in px²: of the intersection, of the prediction alone (q, extra), of the ground truth alone (p, missing).
    iou, giou, distance : float
        Jaccard index, generalised IoU, and 1 - IoU.
    ioa_pred, ioa_gt : float
        Intersection over the area of the prediction, and over that of the ground truth.
    exchange_rate : float
        How much fp must shrink to equal one px² of fn; NaN where less than that is missing.
    centre_distance, edge_error : float
        In px: between the centres; the largest one between an edge and its counterpart.
    findings : tuple of Finding
        Of the files they come from.
    """

    kind: ClassVar[str] = "overlap"

    version: str
    pred: Box
    gt: Box
    pred_name: str
    gt_name: str
    image: str | None
    tp: float
    fp: float
    fn: float
    iou: float
    giou: float
    distance: float
    ioa_pred: float
    ioa_gt: float
    exchange_rate: float
    centre_distance: float
    edge_error: float
    findings: tuple[Finding, ...] = ()

    @property
    def metrics(self) -> Mapping[str, float]:
        """The measures by name."""
        names = ("iou", "giou", "distance", "ioa_pred", "ioa_gt", "exchange_rate", "centre_distance", "edge_error")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document, schema 1: plain types, None where undefined."""
        document = asdict(self) | {
            **document_head(self.kind, self.version),
            "metrics": self.metrics,
            "areas": {"TP": self.tp, "FP": self.fp, "FN": self.fn},
            "warnings": [finding_dict(finding) for finding in self.findings],
        }
        for name in ("version", "findings", "tp", "fp", "fn", *self.metrics):
            del document[name]
        plain_document: dict[str, Any] = plain(document)
        return plain_document
