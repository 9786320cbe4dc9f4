"""Metric references: one canonical text per number, the same in gates, reports, JSON and on the command line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from jaccard_eval.errors import UsageError
from jaccard_eval.extensions import METRICS as ADDED
from jaccard_eval.extensions import broken_extension, extension_names, load_extension
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import AIMS, BEST_F1, score_of
from jaccard_eval.patterns import pattern
from jaccard_eval.text import did_you_mean, quoted_value

# What a metric can be taken of.
BOXES, MAPS, MAP_CLASS = "boxes", "label maps", "a class of label maps"
SEGMENTS, SEGMENT_CLASS = "segments", "a class of segments"
ANY = "every result"
# What a metric of boxes is measured on, and which keys name what to measure.
KEYS: dict[str, tuple[str, ...]] = {
    "curves": ("iou", "area", "subset", "max_dets", "class"),
    "curve": ("iou", "class"),  # the curve of one threshold, .5 by default
    "rates": ("iou", "area", "subset", "class"),  # the same, read at false positives per image
    "point": ("iou", "score", "class"),  # detections with at least a score
    "points": ("score", "class"),  # the same, at every threshold
    "images": ("score", "class"),  # how many of them each image has
    "sweep": ("iou", "score", "class"),  # the same at one threshold, or the mean over all of them
    "matches": ("iou", "score", "class"),  # the same, or without a score all of them
    "errors": ("iou", "class"),
    "findings": (),
}


@dataclass(frozen=True, slots=True)
class Metric:
    """What is known of a metric before anything is measured.

    Averages are taken of curves; ratios, counts and mean counts of what is counted at one operating point, or of
    pixels. A number after the name sets `number`: AP50 is at IoU 0.5, AR100 with at most 100 detections.
    `aliases` are other tools' names; spelled like this, they are understood wherever a metric is named.
    """

    name: str
    kind: Literal["average", "ratio", "count", "mean count", "score", "change"]
    of: tuple[str, ...]
    meaning: str
    higher_is_better: bool = True
    # Of boxes: one of `KEYS`.
    on: str = "point"
    number: Literal["iou", "max_dets"] | None = None
    aliases: tuple[str, ...] = ()
    # Of a metric that another package adds: its value at an `OperatingPoint` of so many images, NaN where undefined.
    measure: Callable[[Any, int], float] | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value."""
        ends = {"count": (0.0, math.inf), "mean count": (0.0, math.inf), "score": (-math.inf, math.inf)}
        return (-1.0, 1.0) if self.kind == "change" else ends.get(self.kind, (0.0, 1.0))


# What is measured of every class, and averaged over them.
AVERAGED = ("curves", "curve", "rates")
# What is counted of the detections with at least a score.
AT_POINTS = ("point", "points", "images", "sweep")
# Types of errors by the names that TIDE gives them.
ERROR_TYPES = {
    "Cls": "classification",
    "Loc": "localisation",
    "Both": "both",
    "Dupe": "duplicate",
    "Bkg": "background",
    "Miss": "missed",
    "FP": "false positive",
    "FN": "false negative",
}
_ALL = (
    Metric("AP", "average", (BOXES,), "area under the interpolated precision-recall curve, mean over thresholds and"
           " classes", number="iou", on="curves", aliases=("mAP", "mean average precision")),
    Metric("AR", "average", (BOXES,), "recall over all detections, mean over thresholds and classes",
           number="max_dets", on="curves", aliases=("mAR", "mean average recall")),
    Metric("AP_R11", "average", (BOXES,), "mean precision at 11 of KITTI's 41 slots, where AP is that at 40",
           on="curves"),
    Metric("wAP", "average", (BOXES,), "AP, the mean of the classes weighted by how many images hold each",
           number="iou", on="curves"),
    Metric("wAR", "average", (BOXES,), "AR, the mean of the classes weighted by how many images hold each",
           number="max_dets", on="curves"),
    Metric("P", "average", (BOXES,), "precision at the score with the highest mean F1 of the classes; their mean",
           on="curve"),
    Metric("R", "average", (BOXES,), "recall at that score; mean of the classes", on="curve"),
    Metric("LAMR", "average", (BOXES,), "log-average miss rate: geometric mean of 1 - recall at 9 values of FPPI from"
           " 0.01 to 1", higher_is_better=False, on="rates", aliases=("MR-2", "log-average miss rate")),
    Metric("CPM", "average", (BOXES,), "competition performance metric: mean recall at 1/8, 1/4, 1/2, 1, 2, 4 and 8"
           " FPPI", on="rates", aliases=("FROC score",)),
    Metric("JI", "average", (BOXES,), "Jaccard index of CrowdHuman: pairs of a best one-to-one assignment / (objects +"
           " detections - pairs), mean of the images, at the best of 10 scores", on="curve"),
    Metric("PQ", "ratio", (SEGMENTS, SEGMENT_CLASS), "sum of the IoU of matches / (TP + FP / 2 + FN / 2); mean of the"
           " classes", aliases=("panoptic quality",)),
    Metric("SQ", "ratio", (SEGMENTS, SEGMENT_CLASS), "mean IoU of the matches", aliases=("segmentation quality",)),
    Metric("RQ", "ratio", (SEGMENTS, SEGMENT_CLASS), "TP / (TP + FP / 2 + FN / 2)", aliases=("recognition quality",)),
    Metric("PQ_things", "ratio", (SEGMENTS,), "mean PQ of the classes of things"),
    Metric("SQ_things", "ratio", (SEGMENTS,), "mean SQ of the classes of things"),
    Metric("RQ_things", "ratio", (SEGMENTS,), "mean RQ of the classes of things"),
    Metric("PQ_stuff", "ratio", (SEGMENTS,), "mean PQ of the classes of stuff"),
    Metric("SQ_stuff", "ratio", (SEGMENTS,), "mean SQ of the classes of stuff"),
    Metric("RQ_stuff", "ratio", (SEGMENTS,), "mean RQ of the classes of stuff"),
    Metric("IoU", "ratio", (MAP_CLASS,), "TP / (TP + FP + FN), of pixels", aliases=("Jaccard index",)),
    Metric("precision", "ratio", (BOXES, MAP_CLASS), "TP / (TP + FP)", aliases=("positive predictive value",)),
    Metric("recall", "ratio", (BOXES, MAP_CLASS), "TP / (TP + FN)", aliases=("sensitivity", "true positive rate")),
    Metric("Dice", "ratio", (MAP_CLASS,), "2 TP / (2 TP + FP + FN), of pixels"),
    Metric("F1", "ratio", (BOXES,), "2 TP / (2 TP + FP + FN)", aliases=("F-score",)),
    Metric("wF1", "ratio", (BOXES,), "mean F1 of the IoU thresholds, each weighted by itself", on="points",
           aliases=("weighted F1",)),
    Metric("accuracy", "ratio", (BOXES,), "TP / (TP + FP + FN), mean over thresholds", number="iou", on="sweep"),
    Metric("image_accuracy", "ratio", (BOXES,), "the same of each image with objects or detections; mean of the images",
           number="iou", on="sweep"),
    Metric("TP", "count", (BOXES, SEGMENT_CLASS), "detections that match an object", aliases=("true positives",)),
    Metric("FP", "count", (BOXES, SEGMENT_CLASS), "detections that match none", higher_is_better=False,
           aliases=("false positives",)),
    Metric("FN", "count", (BOXES, SEGMENT_CLASS), "objects that no detection matches", higher_is_better=False,
           aliases=("false negatives",)),
    Metric("FPPI", "mean count", (BOXES,), "FP / images", higher_is_better=False,
           aliases=("FP per image", "false positives per image")),
    Metric("count_MAE", "mean count", (BOXES,), "mean difference of an image between its detections and its objects",
           higher_is_better=False, on="images", aliases=("MAE", "mean absolute error")),
    Metric("count_RMSE", "mean count", (BOXES,), "root of the mean square of that difference", higher_is_better=False,
           on="images", aliases=("RMSE", "root mean square error")),
    Metric("count_NAE", "mean count", (BOXES,), "mean of that difference over the objects, of the images that have any",
           higher_is_better=False, on="images", aliases=("NAE", "normalised absolute error")),
    Metric("count_exact", "ratio", (BOXES,), "images with as many detections as objects / images", on="images",
           aliases=("count accuracy",)),
    Metric("score", "score", (BOXES,), "the least score of the detections that count, as precision=, recall=, fppi= or"
           " score=best-f1 choose it"),
    Metric("mean_IoU", "ratio", (BOXES,), "mean IoU of the detections that match an object with it", on="matches"),
    Metric("ECE", "ratio", (BOXES,), "expected calibration error", higher_is_better=False, on="errors"),
    Metric("MCE", "ratio", (BOXES,), "largest calibration error", higher_is_better=False, on="errors"),
    Metric("oLRP", "ratio", (BOXES,), "optimal localisation-recall-precision error; mean of the classes",
           higher_is_better=False, on="errors"),
    Metric("oLRP_Loc", "ratio", (BOXES,), "its part of localisation: mean of 1 - IoU", higher_is_better=False,
           on="errors", aliases=("oLRP_localisation",)),
    Metric("oLRP_FP", "ratio", (BOXES,), "its part of false positives: 1 - precision", higher_is_better=False,
           on="errors"),
    Metric("oLRP_FN", "ratio", (BOXES,), "its part of misses: 1 - recall", higher_is_better=False, on="errors"),
    *(
        metric
        for short, name in ERROR_TYPES.items()
        for metric in (
            Metric(f"{name.replace(' ', '_')}_errors", "count", (BOXES,), f"errors of the type {name}",
                   higher_is_better=False, on="errors", aliases=(f"{name} errors",)),
            Metric(f"dAP_{short}", "change", (BOXES,), f"what fixing the type {name} alone adds to AP at one IoU",
                   higher_is_better=False, on="errors", aliases=(f"ΔAP_{short}",)),
        )
    ),
    Metric("warnings", "count", (ANY,), "findings that warn", higher_is_better=False, on="findings"),
    Metric("notes", "count", (ANY,), "findings that inform", higher_is_better=False, on="findings"),
    Metric("mIoU", "ratio", (MAPS,), "mean IoU of the classes", aliases=("mean IoU",)),
    Metric("fwIoU", "ratio", (MAPS,), "mean IoU of the classes, weighted by their ground truth"),
    Metric("pixel_accuracy", "ratio", (MAPS,), "pixels of the right class / pixels that count", aliases=("aAcc",)),
    Metric("mean_accuracy", "ratio", (MAPS,), "mean recall of the classes", aliases=("mAcc",)),
)  # fmt: skip
# The one list: what is known, in which bounds it lies, whether a drop is a loss, and the order of columns.
METRICS = {metric.name: metric for metric in _ALL}
BOX_METRICS, MAP_METRICS, MAP_CLASS_METRICS, SEGMENT_METRICS, SEGMENT_CLASS_METRICS, FINDING_METRICS = (
    tuple(metric.name for metric in _ALL if subject in metric.of)
    for subject in (BOXES, MAPS, MAP_CLASS, SEGMENTS, SEGMENT_CLASS, ANY)
)
# Before the name of a value that is measured elsewhere.
EXTERNAL = "external."
QUALIFIERS = ("iou", "area", "subset", "max_dets", "score", *AIMS, "class")
SIZES = ("all", "small", "medium", "large")  # AP[small] is AP_small, whatever a class is called
COCO_SUMMARY = (
    "AP",
    "AP50",
    "AP75",
    "AP_small",
    "AP_medium",
    "AP_large",
    "AR1",
    "AR10",
    "AR100",
    "AR_small",
    "AR_medium",
    "AR_large",
)

_ADDED_NAME = pattern(
    r"[A-Za-z][A-Za-z0-9_]*"
)  # In the place of an area range, how frequent classes are: AP_r, AP_c and AP_f are of rare, common and frequent ones.
LVIS_SUMMARY = (*COCO_SUMMARY[:6], "AP_r", "AP_c", "AP_f", "AR300", *COCO_SUMMARY[9:])

# Thresholds that differ beyond are one: 0.9 is 0.8999999999999999 among COCO's.
IOU_DIGITS = 9

_AREA_SUFFIX = pattern(r"[A-Za-z]\w*")
# The longest name first: oLRP_FP is not an area of oLRP.
_KNOWN = sorted((*BOX_METRICS, *FINDING_METRICS), key=len, reverse=True)
_HEAD = pattern(rf"(?P<name>{'|'.join(_KNOWN)})(?P<number>\d+)?(?:_(?P<area>{_AREA_SUFFIX.pattern}))?")
_ITEM = pattern(r'\s*(?:(?P<key>\w+)\s*=\s*)?(?P<value>"(?:[^"\\]|\\.)*"|(?(key)[^,"]|[^,"=])*?)\s*(?:,|$)')
# The thresholds of plain AP, as YOLO trainers write them: mAP50-95, mAP@.5:.95.
_FULL_RANGE = pattern(r"@?0?\.50?:0?\.95|50-95")
_AT_IOU = pattern(r"@0?\.(\d)(\d?)")
# A reference up to its own bracket; that of mAP@[.5:.95] is a part of the name.
_CUT = pattern(r"(?P<head>(?:[^\[]|(?<=@)\[[^\]]*\])*)(?P<bracket>\[?)(?P<tail>.*)", re.DOTALL)
# Every name in lower case, which nobody has to remember.
_NAMED = {alias.casefold(): metric.name for metric in _ALL for alias in (metric.name, *metric.aliases)}
# The longest name first: "FP per image" begins with another one. Behind it thresholds, as other tools write them.
_SPELLED = pattern(
    rf"(?P<name>{'|'.join(sorted(_NAMED, key=len, reverse=True))})(?![A-Za-z])"
    r"(?P<at>@\[[^\]]*\]|@[\d.:-]+|\d+[:-]\d+)?(?P<rest>\w*)",
    re.IGNORECASE,
)
# Metrics at the score with the best F1, by the names of reports.
_AT_BEST = {"best_f1": "F1", "best f1": "F1", "best_score": "score", "best score": "score"}
_IOU_NUMBER = pattern(r"\d*\.\d+|(?<!\d)\d\d(?![\d.])")  # 0.5, .5 or 50
_SEPARATORS = pattern(r"[^a-z0-9]")
_NAME_BY_ALIAS = {
    _SEPARATORS.sub("", alias.casefold()): _SEPARATORS.sub("", metric.name.casefold())
    for metric in _ALL
    for alias in metric.aliases
}
_PLAIN_VALUE = pattern(r"[^\s\[\],=\"]+(?: [^\s\[\],=\"]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRef:
    """A metric and the slice of the evaluation that it is taken over; None means all, or the protocol's default.

    Parameters
    ----------
    name : str
        One of `METRICS`, or of a value that is measured elsewhere, with ``external.`` before it.
    iou : float, optional
        One IoU threshold, kept to 9 decimals; None averages over all of the protocol's.
    area : str, optional
        Name of an area range.
    subset : str, optional
        Name of a subset of the objects that the protocol has.
    max_dets : int, optional
        Cap on detections per image and class; None takes the protocol's largest.
    score : float or str, optional
        Operating point of precision, recall, F1, the counts, and FPPI, the false positives per image: a score,
        "best-f1", or what it is to reach, such as "precision=0.9". None takes that of the evaluation.
    class_name : str, optional
        One class; None averages over classes (AP, AR) or pools them (operating points).

    Examples
    --------
    >>> str(MetricRef.parse("AP[iou=0.5, class=dog]"))
    'AP50[class=dog]'
    """

    name: str
    iou: float | None = None
    area: str | None = None
    max_dets: int | None = None
    score: float | str | None = None
    class_name: str | None = None
    subset: str | None = None
    # Whether the text named COCO's thresholds, as mAP50-95 does: those of the evaluation have to be these.
    coco_ious: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Rounded once, so that 0.9 and COCO's 0.8999999999999999 are equal references, and hash alike.
        if self.iou is not None:
            object.__setattr__(self, "iou", round(float(self.iou), IOU_DIGITS))

    @property
    def higher_is_better(self) -> bool:
        """Whether more of it is better, as of most metrics."""
        return METRICS[self.name].higher_is_better

    @classmethod
    def parse(cls, text: str) -> MetricRef:
        """Parse a reference such as ``AP50``, ``AR_small`` or ``recall[iou=0.5,score=0.4,class=dog]``.

        Other tools' names are understood as `METRICS` lists them: ``mAP50``, ``mAP50-95``, ``mAP@0.5``,
        ``mAP@[.5:.95]``.

        Raises
        ------
        UsageError
            If the text is not a reference, with a suggestion.
        """
        head, items = split_ref(text)
        fields = _parse_head(head, text)
        coco_ious = _spelled(_cut(text)[0], text)[2]
        for key, value in items.items():
            # AP50[iou=0.5] sets the same key twice, even if the values agree.
            if fields.get(key) is not None:
                raise UsageError(f"metric {quoted_value(text)}: {key} is given twice")
            fields[key] = value
        fields["class_name"] = fields.pop("class", None)
        return cls(**fields, coco_ious=coco_ious)  # type: ignore[arg-type]

    def __str__(self) -> str:
        # The short form if it is complete: two digits of a percentage (AP50), a cap (AR100), a plain area (AP_small).
        # Never two at once: COCO has no name such as AP50_small.
        text, hidden = self.name, ""
        number = METRICS[self.name].number if self.name in METRICS else None
        if number == "iou" and self.iou is not None and self.iou < 1 and self.iou == round(self.iou * 100) / 100:
            text, hidden = f"{self.name}{round(self.iou * 100):02d}", "iou"
        if number == "max_dets" and self.max_dets is not None:
            text, hidden = f"{self.name}{self.max_dets}", "max_dets"
        if number and not hidden and _AREA_SUFFIX.fullmatch(self.area or ""):
            text, hidden = f"{text}_{self.area}", "area"
        items = {"iou": self.iou, "area": self.area, "subset": self.subset, "max_dets": self.max_dets}
        items["score"], items["class"] = self.score, self.class_name
        parts = _items_text({key: value for key, value in items.items() if key != hidden})
        return f"{text}[{','.join(parts)}]" if parts else text

    # What documents have of it.
    to_document = __str__


def find_metric(name: str) -> Metric | None:
    """Return a metric of this package, or of an installed one that adds it; None where there is none of this name."""
    if name in METRICS or not _ADDED_NAME.fullmatch(name):
        return METRICS.get(name)
    added = load_extension(ADDED, name)
    if added is None:
        return None
    if not isinstance(added, Metric) or added.name != name:
        raise broken_extension(ADDED, name, "is not a Metric of that name")
    if added.kind == "average" or added.of != (BOXES,) or added.measure is None or added.number or added.aliases:
        fault = "must be a ratio, a count or a mean count of boxes, with measure and without number and aliases"
        raise broken_extension(ADDED, name, fault)
    return METRICS.setdefault(name, added)


def split_ref(text: str) -> tuple[str, dict[str, str | float | int]]:
    """Return the part of a reference before its bracket, and the keys and values in it; raise if it is malformed.

    Of other tools' names, the part is ours: ``AP``, with the IoU threshold among the keys, of ``mAP@0.5``.
    """
    written, bracket, tail = _cut(text)
    if bracket and not tail.endswith("]"):
        raise UsageError(f"metric {quoted_value(text)}: the bracket is not closed")
    body = tail.removesuffix("]")
    head, iou, _ = _spelled(written, text)
    found: list[tuple[str, str | float | int]] = [] if iou is None else [("iou", iou)]
    if written.strip().casefold() in _AT_BEST:
        found.append(("score", BEST_F1))
    position = 0
    # Item by item, not split at commas: a quoted class name may hold commas and brackets.
    while position < len(body):
        match = _ITEM.match(body, position)
        if match is None or not match["value"]:
            raise UsageError(
                f"metric {quoted_value(text)}: cannot read {quoted_value(body[position:])}; expected key=value"
            )
        key, value = match["key"], match["value"]
        if key is None and value not in QUALIFIERS:
            key = "area" if value in SIZES else "class"
        elif key is None:
            raise UsageError(f"metric {quoted_value(text)}: cannot read {quoted_value(value)}; expected key=value")
        if key not in QUALIFIERS:
            known = _keys_of(head)
            fix = f" Choose from {', '.join(known)}.{did_you_mean(key, known)}" if known else f" {head} has none."
            if key == "slice":
                fix = f" A slice is named by a rule of a configuration: slice = {quoted_value(match['value'])}."
            raise UsageError(f"metric {quoted_value(text)}: unknown key {quoted_value(key)}.{fix}")
        parsed = _parse_value(key, value, text)
        if key in AIMS and (aim := score_of(f"{key}={parsed!r}")) is None:
            raise UsageError(f"metric {quoted_value(text)}: {key} must be between 0 and 1, got {parsed}")
        found.append(("score", aim or "") if key in AIMS else (key, parsed))
        position = match.end()
    # After the last value was read: what cannot be read is the worse fault.
    items: dict[str, str | float | int] = {}
    for key, value in found:
        if key in items:
            raise UsageError(f"metric {quoted_value(text)}: {key} is given twice")
        items[key] = value
    return head, items


def _keys_of(head: str) -> tuple[str, ...]:
    """Return the keys that a metric may have; those of label maps and segments have no thresholds."""
    metric = METRICS.get(head)
    if metric is None or BOXES in metric.of:
        return QUALIFIERS
    return ("class",) if {MAP_CLASS, SEGMENT_CLASS} & {*metric.of} else ()


def qualified(metric: str, items: Mapping[str, float | str | None]) -> str:
    """Return the text of a metric with further keys; keys that are None are omitted.

    Examples
    --------
    >>> qualified("recall[iou=0.5]", {"score": 0.4, "class": "traffic light, red"})
    'recall[iou=0.5,score=0.4,class="traffic light, red"]'
    """
    parts = _items_text(items)
    if not parts:
        return metric
    head, bracket, tail = _cut(metric)
    return f"{head}[{','.join([tail.removesuffix(']')] * bool(bracket) + parts)}]"


def canonical(text: str) -> str:
    """Return a reference by our names, where it has those of other tools; any other one stays as it is.

    Examples
    --------
    >>> canonical("mAP@0.5[class=dog]"), canonical("mAP50-95"), canonical("recall[iou=0.50]")
    ('AP50[class=dog]', 'AP', 'recall[iou=0.50]')
    """
    head, items = split_ref(text)
    if head == _cut(text)[0].strip():
        return text
    named = qualified(head, items)
    return str(MetricRef.parse(named)) if _HEAD.fullmatch(head) else named


def as_subset(text: str) -> str:
    """Return a reference with the area that it names as a subset: the long name of ``AP_easy``.

    Examples
    --------
    >>> as_subset("AP_easy"), as_subset("AP50")
    ('AP[subset=easy]', 'AP50')
    """
    match = _HEAD.fullmatch(split_ref(text)[0])
    if match is None or not match["area"]:
        return text
    ref = MetricRef.parse(text)
    return str(replace(ref, area=None, subset=ref.area))


def _cut(text: str) -> tuple[str, str, str]:
    """Return the name of a reference, the bracket behind it, or nothing, and the rest."""
    match = _CUT.fullmatch(text.strip())
    # Anything matches.
    return (match["head"], match["bracket"], match["tail"]) if match else (text, "", "")


def _spelled(head: str, text: str) -> tuple[str, float | None, bool]:
    """Return the name that is ours, the IoU threshold behind another tool's, and whether that named those of COCO."""
    head = head.strip()
    head = _AT_BEST.get(head.casefold(), head)
    match = _SPELLED.fullmatch(head)
    if match is None:
        return head, None, False
    name, at = _NAMED[match["name"].casefold()], match["at"]
    if at is None:
        return f"{name}{match['rest']}", None, False
    if METRICS[name].number == "max_dets" and at[1:].isdecimal() and at[0] == "@":  # AR@300 of lvis-api
        return f"{name}{at[1:]}{match['rest']}", None, False
    ious = [float(number) / (1 if "." in number else 100) for number in _IOU_NUMBER.findall(at)]
    is_range = ious in ([0.5, 0.95], [0.5, 0.05, 0.95], [0.5, 0.95, 0.05])
    if METRICS[name].number == "iou" and (is_range or len(ious) == 1):
        return f"{name}{match['rest']}", None if is_range else ious[0], is_range
    raise UsageError(
        f"metric {quoted_value(text)}: cannot read {quoted_value(at)}; write AP50, AP[iou=0.5], or AP for the mean over"
        " all thresholds"
    )


def metric_bounds(text: str) -> tuple[float, float]:
    """Return the least and the largest value that a metric can have; unknown metrics have no bounds.

    Examples
    --------
    >>> metric_bounds("AP50[class=dog]"), metric_bounds("FPPI"), metric_bounds("external.fps")
    ((0.0, 1.0), (0.0, inf), (-inf, inf))
    """
    # Not parsed: a reference whose class or area is unknown still has bounds.
    head = _cut(text)[0].strip()
    head = _AT_BEST.get(head.casefold(), head)
    match = _SPELLED.fullmatch(head)
    metric = METRICS[_NAMED[match["name"].casefold()]] if match else find_metric(head)
    return metric.bounds if metric else (-math.inf, math.inf)


def suggest_metric(word: str, known: Sequence[str]) -> str:
    """Return " Did you mean 'AP50'?" for another tool's spelling of a known metric, else for a similar word.

    Examples
    --------
    >>> suggest_metric("map50", COCO_SUMMARY), suggest_metric("mAP@0.5:0.95", COCO_SUMMARY)
    (" Did you mean 'AP50'?", " Did you mean 'AP'?")
    """
    alike = [name for name in known if name == _NAMED.get(word.casefold())]
    alike = alike or [name for name in known if _bare(name) == _bare(word)]
    return f" Did you mean {quoted_value(alike[0])}?" if alike else did_you_mean(word, known)


def _bare(name: str) -> str:
    """Spell a metric without what tools differ in: case, separators, their own names, how thresholds are written."""
    text = _AT_IOU.sub(lambda match: match[1] + (match[2] or "0"), _FULL_RANGE.sub("", name.casefold()))
    bare = _SEPARATORS.sub("", text.removeprefix("class."))
    # An alias may have a threshold or an area behind it: map50, mapsmall. The longest one that fits is meant.
    alias = max((alias for alias in _NAME_BY_ALIAS if bare.startswith(alias)), key=len, default="")
    return _NAME_BY_ALIAS.get(alias, "") + bare.removeprefix(alias)


def _parse_head(head: str, text: str) -> dict[str, str | float | int | None]:
    match = _HEAD.fullmatch(head)
    number = METRICS[match["name"]].number if match else None
    if match is None or ((match["number"] or match["area"]) and number is None):
        if (added := find_metric(head)) is not None and BOXES in added.of:
            return {"name": added.name}
        named = (*BOX_METRICS, *FINDING_METRICS, *extension_names(ADDED))
        suggested = suggest_metric(head, (*named, *LVIS_SUMMARY, *COCO_SUMMARY))
        raise UsageError(f"unknown metric {quoted_value(text)}; choose from {', '.join(named)}.{suggested}")
    fields: dict[str, str | float | int | None] = {"name": match["name"], "area": match["area"]}
    if number and match["number"]:
        fields[number] = int(match["number"]) / 100 if number == "iou" else int(match["number"])
    return fields


def _parse_value(key: str, value: str, text: str) -> str | float | int:
    # Quoted as in JSON, which canonical texts use for names with spaces at their ends, commas or brackets.
    if value.startswith('"'):
        try:
            value = str(json.loads(value))
        except ValueError as error:
            raise UsageError(f"metric {quoted_value(text)}: cannot read {quoted_value(value)}: {error}") from None
    if key in ("class", "area", "subset"):
        return value
    if key == "score" and isinstance(found := score_of(value), str):
        return found
    try:
        number = int(value) if key == "max_dets" else float(value)
    except ValueError:
        raise UsageError(f"metric {quoted_value(text)}: {key} must be a number, got {quoted_value(value)}") from None
    if not math.isfinite(number):
        raise UsageError(f"metric {quoted_value(text)}: {key} must be a finite number, got {quoted_value(value)}")
    return number


def _items_text(items: Mapping[str, float | str | None]) -> list[str]:
    """Write keys and values as a bracket has them; those that are None are omitted."""
    given = {key: value for key, value in items.items() if value is not None}
    # What a score is to reach is a key of its own: recall[precision=0.9].
    return [
        value if key == "score" and isinstance(value, str) and "=" in value else f"{key}={_text(value)}"
        for key, value in given.items()
    ]


def _text(value: float | str) -> str:
    """Write a value as it is read; a text is quoted unless it is plain."""
    if not isinstance(value, str):
        return repr(float(value)).removesuffix(".0")
    return value if _PLAIN_VALUE.fullmatch(value) else json.dumps(value, ensure_ascii=False)
