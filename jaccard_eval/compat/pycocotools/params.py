"""The parameters of an evaluation, as pycocotools names them."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaccard_eval.data.protocol import BOXES, COCO, Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.similarity.keypoints import COCO_SIGMAS
from jaccard_eval.text import quoted_value

IOU_TYPES = ("segm", BOXES, "keypoints", "boundary")


class Params:
    """What `COCOeval` reads when it evaluates; every attribute may be replaced before.

    Parameters
    ----------
    iouType : {"segm", "bbox", "keypoints", "boundary"}
        What is compared.

    Raises
    ------
    UsageError
        For other types.

    Examples
    --------
    >>> Params("bbox").maxDets, Params("keypoints").maxDets
    ([1, 10, 100], [20])
    """

    def __init__(self, iouType: str = "segm") -> None:
        require_known(iouType)
        self.iouType = iouType
        self.useSegm: int | None = None  # deprecated there, but read by callers
        if iouType == "keypoints":
            self.setKpParams()
        else:
            self.setDetParams()

    def setDetParams(self) -> None:
        """Set all parameters but the type to those of COCO for boxes and masks, for all images and categories."""
        self._set(COCO)
        if self.iouType == "boundary":
            self.dilation_ratio = COCO.dilation_ratio  # the width, as a share of the diagonal of the image

    def setKpParams(self) -> None:
        """Set all parameters but the type to those of COCO for keypoints, for all images and categories."""
        self._set(COCO.comparing("keypoints"))
        self.kpt_oks_sigmas: Any = np.array(COCO_SIGMAS)

    def _set(self, protocol: Protocol) -> None:
        self.imgIds: Any = []
        self.catIds: Any = []
        self.iouThrs: Any = np.array(protocol.iou_thresholds)
        self.recThrs: Any = protocol.recall_grid
        self.maxDets: Any = list(protocol.max_dets)
        self.areaRng: Any = [[area.low, area.high] for area in protocol.areas]
        self.areaRngLbl: Any = [area.name for area in protocol.areas]
        self.useCats = 1


def rules_of(params: Any) -> Protocol:
    """Return the rules for what is compared, without thresholds, sizes, caps and classes."""
    rules = COCO.comparing(params.iouType)
    if params.iouType == "keypoints":
        share = getattr(params, "oks_box_share", None)  # which those of faster-coco-eval have
        return rules.with_options(sigmas=tuple(float(sigma) for sigma in params.kpt_oks_sigmas), oks_box_share=share)
    return rules.with_options(dilation_ratio=getattr(params, "dilation_ratio", rules.dilation_ratio))


def require_known(iou_type: str) -> None:
    """Refuse what nothing compares."""
    if iou_type not in IOU_TYPES:
        raise UsageError(f"iouType must be one of {', '.join(IOU_TYPES)}, got {quoted_value(iou_type)}")
