"""What the checks of an audit look at, and average precision of changed boxes under the same rules."""

from __future__ import annotations

from collections.abc import Callable

from jaccard_eval.data.alignment import Alignment
from jaccard_eval.data.boxtable import BoxTable, Words
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.features.audit.agreement import Sample
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import SideOptions

FEWEST_MATCHED = 8  # objects that a resizing has to explain: of fewer boxes none is estimated
Measure = Callable[..., DetectionMetrics]  # (gt, pred, protocol, *, change of the match table)
MISREAD = (
    "box-encoding",
    "box-units",
    "box-axes",
    "box-resized",
    "keypoints-mirrored",
    "mask-axes",
)  # codes of boxes read wrongly, after which all other evidence is worthless


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AuditContext:
    """What the checks look at."""

    gt: Dataset
    pred: Dataset
    aligned: Alignment
    metrics: DetectionMetrics
    sample: Sample  # boxes of some images, paired by place alone, each side with its own classes
    # Of the rows of the aligned tables: equal rows have equal hashes. Of stored boxes there are none.
    gt_hashes: Words | None
    pred_hashes: Words | None
    # Matches boxes in the rows of the alignment by other rules; the first two arguments may be changed boxes.
    measure: Measure
    # What the caller named and allows, where files may stop the run; None where everything is a warning at most.
    options: SideOptions | None = None

    def stops(self, code: str, *, named: bool) -> bool:
        """Whether a finding beyond doubt ends the run: not where the caller named what is doubted, or allows it."""
        return self.options is not None and not named and code not in self.options.allow


def average_precision(
    context: AuditContext, gt: BoxTable, pred: BoxTable, *, iou: float, pooled: bool = False
) -> float:
    """Match boxes, in the rows of the alignment, again at one threshold and return AP; NaN without ground truth.

    Where they are `pooled`, boxes of different classes may match.
    """
    rules = context.metrics.protocol
    rules = rules.with_options(
        iou_thresholds=(iou,),
        areas=rules.areas[:1],
        max_dets=rules.max_dets[-1:],
        class_agnostic=pooled or rules.class_agnostic,
    )
    return context.measure(gt, pred, rules).value(MetricRef(name="AP")).value
