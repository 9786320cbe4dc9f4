"""torchmetrics' mean average precision where torchvision is missing: of that it needs one function on boxes."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


def load_mean_average_precision() -> Any:
    """Return ``torchmetrics.detection.MeanAveragePrecision``; raise a ModuleNotFoundError without torchmetrics."""
    mean_ap = importlib.import_module("torchmetrics.detection.mean_ap")
    if "torchvision" not in sys.modules:
        vision, ops = ModuleType("torchvision"), ModuleType("torchvision.ops")
        ops.box_convert = _box_convert  # type: ignore[attr-defined]
        vision.ops = ops  # type: ignore[attr-defined]
        sys.modules |= {"torchvision": vision, "torchvision.ops": ops}
        mean_ap._TORCHVISION_AVAILABLE = True  # type: ignore[attr-defined]
    return mean_ap.MeanAveragePrecision


def _box_convert(boxes: Any, in_fmt: str, out_fmt: str) -> Any:
    """Convert boxes to left, top, width and height by torchvision's documented formulas."""
    torch = sys.modules["torch"]
    if out_fmt != "xywh":
        raise NotImplementedError(out_fmt)
    if in_fmt == "cxcywh":
        cx, cy, w, h = boxes.unbind(-1)
        boxes = torch.stack([cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h], dim=-1)
    if in_fmt == "xywh":
        return boxes
    x1, y1, x2, y2 = boxes.unbind(-1)
    return torch.stack([x1, y1, x2 - x1, y2 - y1], dim=-1)
