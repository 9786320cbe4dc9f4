"""What a protocol is: every rule that can change a number is a field. The known ones are in `known_protocols`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.document import fields_document, written_as
from jaccard_eval.data.known_protocols import RULES
from jaccard_eval.errors import UsageError
from jaccard_eval.options import require_lists
from jaccard_eval.text import did_you_mean, quoted_value

BOXES = "bbox"  # the `iou_type` of all files that name none
USUAL_IOU = 0.5  # of AP50; PASCAL VOC's only one

MAX_RECALL_POINTS = 100_001  # a curve of them per class, area and threshold has to fit into memory


@dataclass(frozen=True, slots=True)
class AreaRange:
    """Boxes whose area in px² lies in [low, high], both ends included.

    Examples
    --------
    >>> from jaccard_eval import AreaRange
    >>> AreaRange("small", 0, 32**2).high
    1024
    """

    name: str
    low: float
    high: float

    @staticmethod
    def document_fields(document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ends that JSON cannot hold: they are null there."""
        ends = {"low": -math.inf, "high": math.inf}
        return {name: end for name, end in ends.items() if document.get(name, name) is None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Every rule of an evaluation.

    Parameters
    ----------
    name : str
        Key of the protocol.
    iou_thresholds : tuple of float
        A pair matches when its IoU is at least the threshold.
    areas : tuple of AreaRange
        The first is the one that headline metrics use. Empty names are not allowed.
    max_dets : tuple of int, or empty
        Caps on detections per image and class, ascending; empty: no cap.
    assignment : {"best_free", "best_any"}
        What a detection may match: the best ground truth that is still free (COCO), or only the best of all, so that a
        detection whose best is taken is a false positive (VOC).
    iou_ties : {"last", "first"}
        Which of several ground truths with equal IoU wins, in file order.
    score_ties : {"image", "file"}
        How detections with equal scores of different images are ordered: by image, or as in the file.
    pixel_offset : float
        Added to width and height before areas and overlaps: 1 where coordinates are inclusive pixels.
    crowd_overlap : {"ioa", "iou"}
        Overlap with a crowd box: intersection over the area of the detection, or plain IoU.
    ignored_flags : tuple of str
        Ground truth with any of these flags is ignored: it neither counts nor makes false positives.
    reusable_flags : tuple of str
        Ignored ground truth with any of these flags can absorb any number of detections.
    interpolation : {"grid", "area"}
        Average precision as the mean of interpolated precision at `recall_points`, or as the area below it.
    recall_points : int
        How many equally spaced recall values from 0 to 1.
    precision_epsilon : float
        Added to the number of detections in precision.
    class_agnostic : bool
        Whether all classes are pooled.
    iou_type : str
        What is compared, and how: "bbox", or another of `jaccard_eval.similarity.KINDS`.
    sources : tuple of (field, text)
        Where each rule comes from.

    Examples
    --------
    >>> from jaccard_eval import get_protocol
    >>> strict = get_protocol("coco").with_options(iou_thresholds=(0.75,), max_dets=(10,))
    >>> strict.name, strict.iou_thresholds
    ('coco', (0.75,))
    """

    name: str
    iou_thresholds: tuple[float, ...]
    areas: tuple[AreaRange, ...]
    max_dets: tuple[int, ...]
    assignment: Literal["best_free", "best_any"]
    iou_ties: Literal["last", "first"]
    score_ties: Literal["image", "file"]
    pixel_offset: float
    crowd_overlap: Literal["ioa", "iou"]
    ignored_flags: tuple[str, ...]
    reusable_flags: tuple[str, ...]
    interpolation: Literal["grid", "area"]
    recall_points: int
    precision_epsilon: float
    class_agnostic: bool = False
    iou_type: str = BOXES
    sources: tuple[tuple[str, str], ...] = field(default=(), metadata=written_as(None))

    def __post_init__(self) -> None:
        _require_valid(self)

    @property
    def recall_grid(self) -> FloatArray:
        """The recall values, as ``numpy.linspace`` makes them: ten of COCO's 101 lie one ulp above i/100."""
        return np.linspace(0.0, 1.0, self.recall_points)

    @property
    def judged_threshold(self) -> int:
        """Place of the threshold that boxes are judged at where one must be chosen: 0.5, or else the lowest."""
        return self.iou_thresholds.index(USUAL_IOU) if USUAL_IOU in self.iou_thresholds else 0

    def with_options(self, **changes: Any) -> Protocol:
        """Return the protocol with fields replaced."""
        return replace(self, **changes)

    def to_document(self) -> dict[str, Any]:
        """Return the rules as JSON documents have them, without their sources."""
        document = fields_document(self)
        if self.iou_type == BOXES:  # so that a document of boxes is what it was before there was anything else
            del document["iou_type"]
        return document


def _require_valid(protocol: Protocol) -> None:
    thresholds = protocol.iou_thresholds
    if not thresholds or not all(0 < t <= 1 for t in thresholds):
        raise UsageError(f"IoU thresholds must lie in (0, 1], got {list(thresholds)}")
    if list(thresholds) != sorted(set(thresholds)):
        raise UsageError(f"IoU thresholds must ascend without repetition, got {list(thresholds)}")
    names = [area.name for area in protocol.areas]
    if not names or not all(names) or len(set(names)) != len(names):
        raise UsageError("area ranges need at least one range, and distinct names that are not empty")
    for area in protocol.areas:
        if not area.low <= area.high:
            raise UsageError(f"area range {area.name!r}: {area.low:g} is above {area.high:g}")
    if any(cap < 1 for cap in protocol.max_dets) or list(protocol.max_dets) != sorted(set(protocol.max_dets)):
        raise UsageError(f"caps on detections must be positive and ascend, got {list(protocol.max_dets)}")
    least = 2 if protocol.interpolation == "grid" else 0
    if not least <= protocol.recall_points <= MAX_RECALL_POINTS:
        raise UsageError(f"recall_points must be from {least} to {MAX_RECALL_POINTS:,}, got {protocol.recall_points:,}")
    for name in ("pixel_offset", "precision_epsilon"):
        if not 0 <= getattr(protocol, name) <= 1:
            raise UsageError(f"{name} must lie in [0, 1], got {getattr(protocol, name):g}")


# A protocol is added in `known_protocols`, and nowhere else.
PROTOCOLS = {
    name: Protocol(
        **{
            **rules,
            "name": name,
            "areas": tuple(AreaRange(area, low, high) for area, (low, high) in rules["areas"].items()),
            "sources": tuple(rules["sources"].items()),
        }
    )
    for name, rules in RULES.items()
}
COCO, VOC2007, VOC2012 = (PROTOCOLS[name] for name in ("coco", "voc2007", "voc2012"))


def get_protocol(name: str) -> Protocol:
    """Return a named protocol.

    Raises
    ------
    UsageError
        When there is no such protocol.

    Examples
    --------
    >>> from jaccard_eval import get_protocol
    >>> get_protocol("voc2007").recall_points
    11
    """
    if name not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise UsageError(f"unknown protocol {quoted_value(name)}; choose from {known}.{did_you_mean(name, PROTOCOLS)}")
    return PROTOCOLS[name]


DIFFICULT = ("count", "ignore")  # how objects with that flag are treated, overriding the protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolOptions:
    """Which rules count, and what is changed of them; `evaluate` explains each."""

    protocol: str | Protocol = "coco"
    iou: Sequence[float] | float | None = None
    max_dets: Sequence[int] | None = None
    areas: Sequence[AreaRange] | None = None
    class_agnostic: bool = False
    difficult: str | None = None

    def rules(self) -> Protocol:
        """Return the protocol with the changes."""
        thresholds: Any = (self.iou,) if isinstance(self.iou, Real) else self.iou
        require_lists(iou=thresholds, max_dets=self.max_dets, areas=self.areas)
        rules = get_protocol(self.protocol) if isinstance(self.protocol, str) else self.protocol
        changes: dict[str, Any] = {"class_agnostic": self.class_agnostic or rules.class_agnostic}
        if thresholds is not None:
            changes["iou_thresholds"] = tuple(float(value) for value in thresholds)
        if self.max_dets is not None:
            changes["max_dets"] = tuple(sorted(int(value) for value in self.max_dets))
        if self.areas is not None:
            changes["areas"] = tuple(self.areas)
        if self.difficult not in (None, *DIFFICULT):
            raise UsageError(f"difficult must be one of {', '.join(DIFFICULT)}, got {quoted_value(self.difficult)}")
        if self.difficult is not None:
            # Ignored and reusable, as in VOC: no number of detections of such an object makes false positives.
            for name in ("ignored_flags", "reusable_flags"):
                others = tuple(flag for flag in getattr(rules, name) if flag != "difficult")
                changes[name] = others if self.difficult == "count" else ("difficult", *others)
        return rules.with_options(**changes)
