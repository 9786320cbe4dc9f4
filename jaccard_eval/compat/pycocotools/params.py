"""The parameters of an evaluation, as pycocotools names them."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaccard_eval.data.protocol import BOXES, COCO

NO_MASKS = "Install pycocotools and use it for masks and keypoints."


class Params:
    """What `COCOeval` reads when it evaluates; every attribute may be replaced before.

    Parameters
    ----------
    iouType : {"bbox"}
        What is compared.

    Raises
    ------
    NotImplementedError
        For masks and keypoints, which pycocotools evaluates.

    Examples
    --------
    >>> Params("bbox").maxDets
    [1, 10, 100]
    """

    def __init__(self, iouType: str = "segm") -> None:
        require_boxes(iouType)
        self.iouType = iouType
        self.useSegm: int | None = None  # deprecated there, but read by callers
        self.setDetParams()

    def setDetParams(self) -> None:
        """Set all parameters but the type to those of COCO, for all images and categories."""
        self.imgIds: Any = []
        self.catIds: Any = []
        self.iouThrs: Any = np.array(COCO.iou_thresholds)
        self.recThrs: Any = COCO.recall_grid
        self.maxDets: Any = list(COCO.max_dets)
        self.areaRng: Any = [[area.low, area.high] for area in COCO.areas]
        self.areaRngLbl: Any = [area.name for area in COCO.areas]
        self.useCats = 1

    def setKpParams(self) -> None:
        """Raise a NotImplementedError: keypoints are pycocotools' own."""
        require_boxes("keypoints")


def require_boxes(iou_type: str) -> None:
    """Refuse what is not about boxes."""
    if iou_type != BOXES:
        raise NotImplementedError(f"COCOeval evaluates iouType='bbox' here, got {iou_type!r}. {NO_MASKS}")
