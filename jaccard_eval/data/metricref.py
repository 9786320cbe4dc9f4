"""Metric references: one canonical text per number, the same in gates, reports, JSON and on the command line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaccard_eval.errors import UsageError
from jaccard_eval.text import did_you_mean, shown

METRIC_NAMES = ("AP", "AR", "precision", "recall", "F1", "TP", "FP", "FN", "FPPI")
SHARES = ("AP", "AR", "precision", "recall", "F1")  # of these; the others are counts and their means
QUALIFIERS = ("iou", "area", "max_dets", "score", "class")
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

IOU_DIGITS = 9  # thresholds that differ beyond are one: 0.9 is 0.8999999999999999 among COCO's

_AREA_SUFFIX = re.compile(r"[A-Za-z]\w*")
_HEAD = re.compile(rf"(?P<name>{'|'.join(METRIC_NAMES)})(?P<number>\d+)?(?:_(?P<area>{_AREA_SUFFIX.pattern}))?")
_ITEM = re.compile(r'\s*(?P<key>\w+)\s*=\s*(?P<value>"(?:[^"\\]|\\.)*"|[^,"]*?)\s*(?:,|$)')
_FULL_RANGE = re.compile(r"@?0?\.50?:0?\.95|50-95")  # of the thresholds that plain AP stands for
_AT_IOU = re.compile(r"@0?\.(\d)(\d?)")
_SAME = {"fpperimage": "fppi"}
_PLAIN_VALUE = re.compile(r"[^\s\[\],=\"]+(?: [^\s\[\],=\"]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRef:
    """A metric and the slice of the evaluation that it is taken over; None means all, or the protocol's default.

    Parameters
    ----------
    name : str
        One of `METRIC_NAMES`.
    iou : float, optional
        One IoU threshold, kept to 9 decimals; None averages over all of the protocol's.
    area : str, optional
        Name of an area range.
    max_dets : int, optional
        Cap on detections per image and class; None takes the protocol's largest.
    score : float or "best-f1", optional
        Operating point of precision, recall, F1, the counts, and FPPI, the false positives per image.
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

    def __post_init__(self) -> None:
        if self.iou is not None:
            object.__setattr__(self, "iou", round(float(self.iou), IOU_DIGITS))

    @classmethod
    def parse(cls, text: str) -> MetricRef:
        """Parse a reference such as ``AP50``, ``AR_small`` or ``recall[iou=0.5,score=0.4,class=dog]``.

        Raises
        ------
        UsageError
            When the text is no reference, with a suggestion.
        """
        head, items = split_ref(text)
        fields = _parse_head(head, text)
        for key, value in items.items():
            if fields.get(key) is not None:
                raise UsageError(f"metric {shown(text)}: {key} is given twice")
            fields[key] = value
        fields["class_name"] = fields.pop("class", None)
        return cls(**fields)  # type: ignore[arg-type]

    def __str__(self) -> str:
        text, hidden = self._head()
        items = {"iou": self.iou, "area": self.area, "max_dets": self.max_dets, "score": self.score}
        items["class"] = self.class_name
        parts = [f"{key}={_text(value)}" for key, value in items.items() if value is not None and key not in hidden]
        return f"{text}[{','.join(parts)}]" if parts else text

    def _head(self) -> tuple[str, set[str]]:
        """Return the name with the number and area that its short form can hold, and which fields those are."""
        text, hidden = self.name, set()
        if self.name == "AP" and self.iou is not None and self.iou < 1 and self.iou == round(self.iou * 100) / 100:
            text, hidden = f"AP{round(self.iou * 100):02d}", {"iou"}
        if self.name == "AR" and self.max_dets is not None:
            text, hidden = f"AR{self.max_dets}", {"max_dets"}
        if self.name in ("AP", "AR") and not hidden and _AREA_SUFFIX.fullmatch(self.area or ""):
            text, hidden = f"{text}_{self.area}", {"area"}
        return text, hidden


def split_ref(text: str) -> tuple[str, dict[str, str | float | int]]:
    """Return the part of a reference before its bracket, and the keys and values in it.

    Raises
    ------
    UsageError
        When the bracket cannot be read, or a key in it is unknown or given twice.
    """
    head, bracket, tail = text.strip().partition("[")
    if bracket and not tail.endswith("]"):
        raise UsageError(f"metric {shown(text)}: the bracket is not closed")
    items: dict[str, str | float | int] = {}
    for key, value in _parse_items(tail.removesuffix("]"), text):
        if key in items:
            raise UsageError(f"metric {shown(text)}: {key} is given twice")
        items[key] = value
    return head.strip(), items


def qualified(metric: str, items: Mapping[str, float | str | None]) -> str:
    """Return the text of a metric with further keys; those that are None are left out.

    Examples
    --------
    >>> qualified("recall[iou=0.5]", {"score": 0.4, "class": "traffic light, red"})
    'recall[iou=0.5,score=0.4,class="traffic light, red"]'
    """
    parts = [f"{key}={_text(value)}" for key, value in items.items() if value is not None]
    if not parts:
        return metric
    head, bracket, tail = metric.strip().partition("[")
    return f"{head}[{','.join([tail.removesuffix(']')] * bool(bracket) + parts)}]"


def metric_bounds(text: str) -> tuple[float, float]:
    """Return the least and the largest value that a metric can have; what is no metric of ours has no bounds.

    Examples
    --------
    >>> metric_bounds("AP50[class=dog]"), metric_bounds("FPPI"), metric_bounds("external.fps")
    ((0.0, 1.0), (0.0, inf), (-inf, inf))
    """
    match = _HEAD.fullmatch(text.partition("[")[0].strip())
    if match is None:
        return -math.inf, math.inf
    return 0.0, 1.0 if match["name"] in SHARES else math.inf


def suggest_metric(word: str, known: Sequence[str]) -> str:
    """Return " Did you mean 'AP50'?" for another tool's spelling of a known metric, else for a similar word.

    Examples
    --------
    >>> suggest_metric("map50", COCO_SUMMARY), suggest_metric("mAP@0.5:0.95", COCO_SUMMARY)
    (" Did you mean 'AP50'?", " Did you mean 'AP'?")
    """
    alike = [one for one in known if _bare(one) == _bare(word)]
    return f" Did you mean {shown(alike[0])}?" if alike else did_you_mean(word, known)


def _bare(name: str) -> str:
    """Spell a metric without what tools differ in: case, separators, an m for mean, how thresholds are written."""
    text = _AT_IOU.sub(lambda match: match[1] + (match[2] or "0"), _FULL_RANGE.sub("", name.casefold()))
    bare = re.sub(r"[^a-z0-9]", "", text.removeprefix("class."))
    return _SAME.get(bare, re.sub(r"^m(?=a[pr])", "", bare))


def _parse_head(head: str, text: str) -> dict[str, str | float | int | None]:
    match = _HEAD.fullmatch(head)
    if match is None or (match["number"] and match["name"] not in ("AP", "AR")):
        known = (*METRIC_NAMES, *COCO_SUMMARY)
        raise UsageError(
            f"unknown metric {shown(text)}; known are {', '.join(METRIC_NAMES)}.{suggest_metric(head, known)}"
        )
    fields: dict[str, str | float | int | None] = {"name": match["name"], "area": match["area"]}
    if match["number"]:
        number = int(match["number"])
        fields |= {"iou": number / 100} if match["name"] == "AP" else {"max_dets": number}
    return fields


def _parse_items(body: str, text: str) -> list[tuple[str, str | float | int]]:
    items: list[tuple[str, str | float | int]] = []
    position = 0
    while position < len(body):
        match = _ITEM.match(body, position)
        if match is None or not match["value"]:
            raise UsageError(f"metric {shown(text)}: cannot read {shown(body[position:])}; expected key=value")
        key, value = match["key"], match["value"]
        if key not in QUALIFIERS:
            known = ", ".join(QUALIFIERS)
            raise UsageError(
                f"metric {shown(text)}: unknown key {shown(key)}; known are {known}.{did_you_mean(key, QUALIFIERS)}"
            )
        items.append((key, _parse_value(key, value, text)))
        position = match.end()
    return items


def _parse_value(key: str, value: str, text: str) -> str | float | int:
    if value.startswith('"'):
        value = _unquoted(value, text)
    if key in ("class", "area") or (key == "score" and value == "best-f1"):
        return value
    try:
        number = int(value) if key == "max_dets" else float(value)
    except ValueError:
        raise UsageError(f"metric {shown(text)}: {key} must be a number, got {shown(value)}") from None
    if not math.isfinite(number):
        raise UsageError(f"metric {shown(text)}: {key} must be a finite number, got {shown(value)}")
    return number


def _unquoted(value: str, text: str) -> str:
    try:
        return str(json.loads(value))
    except ValueError as error:
        raise UsageError(f"metric {shown(text)}: cannot read {shown(value)}: {error}") from None


def _text(value: float | str) -> str:
    """Write a value as it is read; a text is quoted unless it is plain."""
    if not isinstance(value, str):
        return repr(float(value)).removesuffix(".0")
    return value if _PLAIN_VALUE.fullmatch(value) else json.dumps(value, ensure_ascii=False)
