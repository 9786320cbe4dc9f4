"""What a protocol is: every rule that can change a number is a field. The known ones are in `known_protocols`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from jaccard_eval.data.boxtable import BoxTable, FloatArray
from jaccard_eval.data.document import Form, dig, fields_document, written_as
from jaccard_eval.data.known_protocols import IOU_TYPES, RULES, RULES_BY_KIND, SIGMAS, VOID, sigmas_name
from jaccard_eval.errors import UsageError
from jaccard_eval.extensions import PROTOCOLS as ADDED
from jaccard_eval.extensions import broken_extension, extension_names, load_extension
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import require_lists
from jaccard_eval.text import did_you_mean, is_numeral, quoted_value

BOXES = IOU_TYPES[0]  # the `iou_type` of all files that name none
EVERY_CLASS = "every class"  # is judged on every image, where no list of verified classes exists
# Rules that came after the first release, and their values before: where they have these, documents and signatures do
# not name them, and stay what they were.
LATER_RULES: dict[str, Any] = {
    "above_threshold": False,
    "max_dets_per": "image and class",
    "drop_empty": False,
    "judging": EVERY_CLASS,
    "frequencies": (),
    "dropped_flags": (),
    "single_precision": False,
    "union_epsilon": 0.0,
    "metrics": (),
    "clipped": False,
    "miss_rate_at": (),
    "miss_rate_reading": "last within",
    "overlap": "area",
    "region_flags": (),
    "counts_ignored": False,
    "subsets": (),
    "class_rules": (),
    "subsets_alone": False,
    "least_area": 0.0,
    "spares_covered": False,
    "drops_ties": False,
    "reach": 0.0,
}
POINTS = ("diagonal", "width", "pixels")  # overlaps of centres, near whatever their boxes are
SWEPT = ("accuracy", "image_accuracy")  # metrics of what is paired at each threshold, whatever the scores
USUAL_IOU = 0.5  # of AP50; PASCAL VOC's only one
# Rules that only one kind of similarity has.
RULES_OF = {"dilation_ratio": "boundary", "sigmas": "keypoints", "oks_box_share": "keypoints"}

MAX_SUBSETS = 15  # a box has a bit for each, and one more:
# Of a detection of another class, which takes part where it is outside of a subset, and of one that stands there again.
BYSTANDER = 1 << MAX_SUBSETS
MAX_RECALL_POINTS = 100_001  # a curve of them per class, area and threshold has to fit into memory


def _or_infinite(key: str, end: float) -> dict[str, Form]:
    """Return the metadata of an end of a range: where it is infinite, which JSON cannot hold, it is null there."""
    return written_as(key, read=lambda row: end if row.get(key, key) is None else dig(row, key))


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
    low: float = field(metadata=_or_infinite("low", -math.inf))
    high: float = field(metadata=_or_infinite("high", math.inf))


# Of boxes, in pixels; all other quantities of limits are those that formats read.
HEIGHT, OBJECT_HEIGHT, DETECTION_HEIGHT = "height", "height of objects", "height of detections"


@dataclass(frozen=True, slots=True)
class Limit:
    """A quantity of boxes or of their images that lies in [low, high], both ends included; see `Subset`."""

    of: str
    low: float = field(default=-math.inf, metadata=_or_infinite("low", -math.inf))
    high: float = field(default=math.inf, metadata=_or_infinite("high", math.inf))

    def __str__(self) -> str:
        low, high = (repr(float(end)).removesuffix(".0") for end in (self.low, self.high))
        return f"{self.of} {low} to {high}"


@dataclass(frozen=True, slots=True)
class Subset:
    """Objects and detections that are within all limits, of which metrics are taken alone: ``AP[subset=easy]``.

    Quantities of images ("crowdIndex"), and "height", limit both; "height of detections" these alone; others, which
    ground truth has of each object, and "height of objects", limit objects alone. Objects outside are ignored, and so
    are detections that match nothing.

    Examples
    --------
    >>> from jaccard_eval import get_protocol
    >>> [str(limit) for limit in get_protocol("crowdpose").subsets[2].limits]
    ['crowdIndex 0.8 to inf']
    """

    name: str
    limits: tuple[Limit, ...]

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(map(str, self.limits))}"


@dataclass(frozen=True, slots=True)
class ClassRule:
    """A class that is judged, the IoU threshold of its AP (None: all), classes whose objects are ignored, and regions.

    Names are those of the data, in upper or lower case.
    """

    name: str
    iou: float | None
    neighbours: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()

    def __str__(self) -> str:
        others = "".join(f", without {other}" for other in (*self.neighbours, *self.regions))
        return f"{self.name}{'' if self.iou is None else f' at {self.iou:g}'}{others}"


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
        Caps on detections, ascending, by `max_dets_per`; empty: no cap.
    assignment : {"best_free", "best_any", "objects_first", "every", "first_pair", "most_pairs"}
        What a detection may match: the best ground truth that is still free (COCO), or only the best of all, so that a
        detection whose best is taken is a false positive (VOC); or that, and a group otherwise (Open Images); or
        every one that it reaches, of which any number may: the first of them is a true positive, and the others are
        ignored (LUNA16); or the first object of the file that reaches it and has none before it, where no ignored
        object covers it, and all detections are one operating point (ICDAR); or an object of the largest number of
        pairs that detections with at least its score can make, one to one (crowds of points).
    iou_ties : {"last", "first"}
        Which of several ground truths with equal IoU wins, in file order.
    score_ties : {"image", "file"}
        How detections with equal scores of different images are ordered: by image, or as in the file.
    pixel_offset : float
        Added to width and height before areas and overlaps: 1 where coordinates are inclusive pixels.
    crowd_overlap : {"ioa", "iou"}
        Overlap with a crowd box: intersection over the area of the detection, or plain IoU. Where objects come first,
        all reusable boxes are groups and overlap so.
    ignored_flags : tuple of str
        Ground truth with any of these flags is ignored: it neither counts nor makes false positives.
    reusable_flags : tuple of str
        Ground truth with any of these flags can absorb any number of detections. Where objects come first and it is not
        ignored, the best of these detections is a true positive, and the others are ignored.
    interpolation : {"grid", "area", "linear", "linear to 1", "points", "slots", "scores", "lines", "hits"}
        Average precision as the mean of interpolated precision at `recall_points`, or as the area below it; or as the
        area below straight lines between its corners, by trapezoids of `recall_points`, that ends where recall does,
        or falls in a last line to (1, 0); or as the area below straight lines between the points of all detections as
        they are, from the first on; or as the mean precision at `recall_points`, 40 of KITTI's 41 slots, of detections
        that are matched anew from the score of each on; or as the area below the envelope of the points at so many
        scores, evenly spaced from the highest of all detections to the lowest; or as the area below straight lines from
        (0, 1) between the points of all scores that occur; or as the mean precision at all objects, of each hit as it
        is, and 0 of what is missed.
    recall_points : int
        How many equally spaced recall values from 0 to 1.
    precision_epsilon : float
        Added to the number of detections in precision.
    class_agnostic : bool
        Whether all classes are pooled.
    iou_type : str
        What is compared, and how: "bbox", or another of `jaccard_eval.similarity.KINDS`.
    above_threshold : bool
        Whether a pair must overlap by more than a threshold to match; at least by as much otherwise.
    dilation_ratio : float
        Width of the boundary of a mask as a share of the diagonal of its image; of "boundary" only.
    sigmas : tuple of float
        How far annotators are apart at each keypoint, in units of the square root of the area; empty: COCO's for its 17
        points. Of "keypoints" only, as is `oks_box_share`.
    oks_box_share : float, optional
        The area that distances between keypoints are measured by, as a share of the box; None: the area of the
        annotation.
    max_dets_per : {"image and class", "image", "class"}
        What a cap is one of: of an image and class, of an image over all classes, or of a class over all images, of
        which there is one cap alone.
    drop_empty : bool
        Whether boxes and masks without an area are removed from both sides before anything else looks at them.
    judging : str
        Which detections are judged, by a function of `jaccard_eval.matching.judging`: "every class", or "federated":
        on each image the classes that it has objects of, or is verified to have none of; "present": those that it has
        objects of; "verified": those that are verified at all; "with ancestors": every class, where objects count for
        the classes above theirs, as they do for "verified".
    frequencies : tuple of str
        How frequent classes are ("r", "c", "f"), as the ground truth has it, where AP of each is in the summary.
    dropped_flags : tuple of str
        Ground truth with any of these flags is removed, as if it were not in the file.
    single_precision : bool
        Whether overlaps of boxes are computed, and all are compared with thresholds, in 32 bits.
    union_epsilon : float
        px² that are added to the union of two boxes, or to the area that replaces it.
    metrics : tuple of str
        Metrics of the summary besides AP and AR; of each class those that are averages.
    clipped : bool
        Whether boxes of both sides are cut at the image: left and top edges at its last pixel, right and bottom edges
        at its size.
    miss_rate_at : tuple of float
        False positives per image that the log-average miss rate is read at; empty: nine from 0.01 to 1, evenly spaced
        in their logarithm.
    miss_rate_reading : {"last within", "first reaching", "between"}
        Which detection a miss rate is read at: the last one with at most so many false positives per image, and a miss
        rate of 0 is 1e-10; or the first one with at least as many, else the last of all, and 0 stays 0. Or recall is
        read off straight lines between the points of the scores that occur.
    overlap : {"area", "centre", "radius", "diagonal", "width", "pixels"}
        How two boxes are compared: by their areas; or by how near the centre of the detection is to that of the object:
        1 less the distance in widths and heights of the object, the larger one, so that 0.5 is the edge of its box; or
        1 less the distance over the mean of width and height, so that 0.5 is a circle in the box; or over the diagonal,
        so that 0.5 is the circle around it; or over its width; or over twice the `reach`, whatever the boxes.
    region_flags : tuple of str
        Ground truth with all of these flags is a region: it is removed, and so are boxes of both sides of whose rounded
        pixels the regions of their image cover at least half, before caps count anything.
    counts_ignored : bool
        Whether recall is a share of all objects, those included that are ignored.
    subsets : tuple of Subset
        Parts of the objects that are evaluated alone as well, by what the ground truth knows of them or their images.
    class_rules : tuple of ClassRule
        The only classes that are judged, each with the threshold that AP and AR without one are taken at, with objects
        of classes like it, which are ignored, and of regions, in which detections do not count. Detections of other
        classes take part only where limits of a subset exclude them. Empty: all classes alike.
    subsets_alone : bool
        Whether each subset is matched as if it were all: what is ignored in it overlaps as a crowd and absorbs any
        number of detections, and detections outside of it are not there.
    least_area : float
        px² below which an object is ignored, whatever its size range; detections have none.
    spares_covered : bool
        Whether a detection that matches nothing is ignored where ignored objects cover a larger share of it than the
        threshold; those that are ignored for two reasons count twice.
    drops_ties : bool
        Whether detections with the score of the first one beyond a cap per image are removed with it.
    reach : float
        px between two centres whose nearness is 0.5, where `overlap` is "pixels".
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
    assignment: Literal["best_free", "best_any", "objects_first", "every", "first_pair", "most_pairs"]
    iou_ties: Literal["last", "first"]
    score_ties: Literal["image", "file"]
    pixel_offset: float
    crowd_overlap: Literal["ioa", "iou"]
    ignored_flags: tuple[str, ...]
    reusable_flags: tuple[str, ...]
    interpolation: Literal["grid", "area", "linear", "linear to 1", "points", "slots", "scores", "lines", "hits"]
    recall_points: int
    precision_epsilon: float
    class_agnostic: bool = False
    iou_type: str = BOXES
    above_threshold: bool = False
    dilation_ratio: float = 0.02
    sigmas: tuple[float, ...] = ()
    oks_box_share: float | None = None
    max_dets_per: Literal["image and class", "image", "class"] = "image and class"
    drop_empty: bool = False
    judging: str = EVERY_CLASS
    frequencies: tuple[str, ...] = ()
    dropped_flags: tuple[str, ...] = ()
    single_precision: bool = False
    union_epsilon: float = 0.0
    metrics: tuple[str, ...] = ()
    clipped: bool = False
    miss_rate_at: tuple[float, ...] = ()
    miss_rate_reading: Literal["last within", "first reaching", "between"] = "last within"
    overlap: Literal["area", "centre", "radius", "diagonal", "width", "pixels"] = "area"
    region_flags: tuple[str, ...] = ()
    counts_ignored: bool = False
    subsets: tuple[Subset, ...] = ()
    class_rules: tuple[ClassRule, ...] = ()
    subsets_alone: bool = False
    least_area: float = 0.0
    spares_covered: bool = False
    drops_ties: bool = False
    reach: float = 0.0
    sources: tuple[tuple[str, str], ...] = field(default=(), metadata=written_as(None))

    def __post_init__(self) -> None:
        _require_valid(self)

    @property
    def recall_grid(self) -> FloatArray:
        """The recall values, as ``numpy.linspace`` makes them: ten of COCO's 101 lie one ulp above i/100."""
        return np.linspace(0.0, 1.0, self.recall_points)

    @property
    def range_names(self) -> list[str]:
        """Names of area ranges, then of subsets, as they lie along axis A of all that is counted."""
        return [*(area.name for area in self.areas), *(subset.name for subset in self.subsets)]

    @property
    def whole_bodies(self) -> bool:
        """Whether poses are those of COCO-WholeBody, whose files have a list each for body, feet, face and hands."""
        return self.iou_type == RULES_OF["sigmas"] and self.sigmas == SIGMAS["wholebody"]

    @property
    def judged_threshold(self) -> int:
        """Place of the threshold that boxes are judged at where one must be chosen (0.5, or else the lowest)."""
        return self.iou_thresholds.index(USUAL_IOU) if USUAL_IOU in self.iou_thresholds else 0

    @property
    def is_one_point(self) -> bool:
        """Whether all detections are one operating point, which needs no scores."""
        return self.assignment in ("first_pair", "most_pairs")

    @property
    def is_swept(self) -> bool:
        """Whether what is counted at each threshold is all that is of interest, and not how detections rank."""
        return self.is_one_point and any(metric.startswith(SWEPT) for metric in self.metrics)

    @property
    def judges_void(self) -> bool:
        """Whether regions that nobody judged are read, as objects of a class of their own."""
        return any(VOID in rule.neighbours for rule in self.class_rules)

    @property
    def covering_flags(self) -> tuple[str, ...]:
        """Flags of ground truth that overlaps a detection by what it covers of it, where `crowd_overlap` is "ioa"."""
        return self.reusable_flags if self.assignment == "objects_first" else ("crowd",)

    @property
    def shared_flags(self) -> tuple[str, ...]:
        """Flags of groups that count. Any number of detections match one, and the best of these is its hit."""
        flags = self.reusable_flags if self.assignment == "objects_first" else ()
        return tuple(flag for flag in flags if flag not in self.ignored_flags)

    def object_areas(self, boxes: BoxTable) -> FloatArray:
        """Return the areas (n,) that objects are sorted into ranges by, and distances between keypoints measured by."""
        if self.oks_box_share is None or self.iou_type != RULES_OF["oks_box_share"]:
            return boxes.area
        return self.oks_box_share * boxes.xywh[:, 2] * boxes.xywh[:, 3]

    def with_options(self, **changes: Any) -> Protocol:
        """Return the protocol with fields replaced."""
        return replace(self, **changes)

    def with_difficult(self, treated: str) -> Protocol:
        """Return the protocol with objects marked difficult counted; or ignored, and those marked `ignore` as well."""
        changes = {}
        # Ignored and reusable, as in VOC: no number of detections of such an object makes false positives.
        for name in ("ignored_flags", "reusable_flags"):
            others = tuple(flag for flag in getattr(self, name) if flag != "difficult")
            marked = ("difficult", *others, *(() if "ignore" in others else ("ignore",)))
            changes[name] = others if treated == "count" else marked
        return self.with_options(**changes)

    def to_document(self) -> dict[str, Any]:
        """Return the rules as JSON documents have them, without their sources."""
        document = fields_document(self)
        if self.iou_type == BOXES:  # so that a document of boxes is what it was before there was anything else
            del document["iou_type"]
        for name, before in LATER_RULES.items():
            if getattr(self, name) == before:
                del document[name]
        return {name: value for name, value in document.items() if RULES_OF.get(name, self.iou_type) == self.iou_type}

    def comparing(self, iou_type: str) -> Protocol:
        """Return the rules for another kind of similarity: those of the protocol, and what differs for that kind."""
        if iou_type == self.iou_type:
            return self
        rules = dict(RULES_BY_KIND.get((self.name, iou_type), {}))
        usual = PROTOCOLS.get(self.name)
        # What a caller changed of the protocol stays changed.
        chosen = {name for name in rules if usual is None or getattr(self, name) != getattr(usual, name)}
        if "areas" in rules:
            rules["areas"] = area_ranges(rules["areas"])
        return self.with_options(iou_type=iou_type, **{name: rules[name] for name in rules.keys() - chosen})


def _require_valid(protocol: Protocol) -> None:
    thresholds = protocol.iou_thresholds
    if not thresholds or not all(0 < t <= 1 for t in thresholds):
        got = ", ".join(f"{t:g}" for t in thresholds) or "none"
        meant = f". Did you mean {thresholds[0] / 100:g}?" if len(thresholds) == 1 and 1 < thresholds[0] <= 100 else ""
        raise UsageError(f"IoU thresholds must be above 0 and at most 1, got {got}{meant}")
    if list(thresholds) != sorted(set(thresholds)):
        raise UsageError(f"IoU thresholds must ascend without repetition, got {list(thresholds)}")
    names = [area.name for area in protocol.areas]
    if not names or not all(names) or len(set(names)) != len(names):
        raise UsageError("area ranges need at least one range, and distinct names that are not empty")
    if not len({*(subset.name for subset in protocol.subsets)}) == len(protocol.subsets) <= MAX_SUBSETS:
        raise UsageError(f"subsets need distinct names, and there may be {MAX_SUBSETS} at most")
    _require_caps(protocol)
    for area in protocol.areas:
        if not area.low <= area.high:
            raise UsageError(f"area range {area.name!r}: {area.low:g} is above {area.high:g}")
    least = 0 if protocol.interpolation in ("area", "points", "lines", "hits") else 2
    if not least <= protocol.recall_points <= MAX_RECALL_POINTS:
        raise UsageError(f"recall_points must be from {least} to {MAX_RECALL_POINTS:,}, got {protocol.recall_points:,}")
    if not all(0 < rate < math.inf for rate in protocol.miss_rate_at):
        raise UsageError(f"rates of miss_rate_at must be above 0, got {list(protocol.miss_rate_at)}")
    if not all(0 < sigma < math.inf for sigma in protocol.sigmas):
        raise UsageError(f"sigmas must be above 0, got {list(protocol.sigmas)}")
    _require_distances(protocol)
    for name in ("pixel_offset", "precision_epsilon", "dilation_ratio", "union_epsilon"):
        if not 0 <= getattr(protocol, name) <= 1:
            raise UsageError(f"{name} must be between 0 and 1, got {getattr(protocol, name):g}")


def _require_distances(protocol: Protocol) -> None:
    if not 0 <= protocol.reach < math.inf or (protocol.overlap == "pixels" and not protocol.reach):
        raise UsageError(f"reach must be finite, and above 0 where distances are pixels, got {protocol.reach:g}")
    if protocol.overlap in POINTS and protocol.iou_type != BOXES:
        kind = quoted_value(protocol.iou_type)
        what = f"protocol {protocol.name} measures distances of centres, not iou_type {kind}"
        raise UsageError(f"{what}; evaluate boxes: iou_type 'bbox'")


def _require_caps(protocol: Protocol) -> None:
    if any(cap < 1 for cap in protocol.max_dets) or list(protocol.max_dets) != sorted(set(protocol.max_dets)):
        raise UsageError(f"caps on detections must be positive and ascend, got {list(protocol.max_dets)}")
    if protocol.max_dets_per == "class" and len(protocol.max_dets) > 1:
        raise UsageError(
            f"protocol {protocol.name} caps detections per {protocol.max_dets_per}: name one cap,"
            f" got {list(protocol.max_dets)}"
        )


def area_ranges(ranges: Mapping[str, tuple[float, float]]) -> tuple[AreaRange, ...]:
    """Return size ranges from their ends by name."""
    return tuple(AreaRange(name, low, high) for name, (low, high) in ranges.items())


def subsets_of(limits: Mapping[str, Mapping[str, tuple[float, float]]]) -> tuple[Subset, ...]:
    """Return subsets from the ends of their limits by name."""
    return tuple(
        Subset(name, tuple(Limit(of, low, high) for of, (low, high) in ends.items())) for name, ends in limits.items()
    )


# A protocol is added in `known_protocols`, and nowhere else.
PROTOCOLS = {
    name: Protocol(
        **{
            **rules,
            "name": name,
            "areas": area_ranges(rules["areas"]),
            "class_rules": tuple(ClassRule(*rule) for rule in rules.get("class_rules", ())),
            "subsets": subsets_of(rules.get("subsets", {})),
            "sources": tuple(rules["sources"].items()),
        }
    )
    for name, rules in RULES.items()
}
COCO, VOC2007, VOC2012 = (PROTOCOLS[name] for name in ("coco", "voc2007", "voc2012"))


def named_sigmas(given: Sequence[float] | str) -> tuple[float, ...]:
    """Return sigmas that are given, or have a name; a UsageError where there is none of it."""
    if not isinstance(given, str):
        return tuple(float(sigma) for sigma in given)
    if sigmas_name(given) not in SIGMAS:
        known = f"choose from {', '.join(SIGMAS)}, or give numbers.{did_you_mean(given, SIGMAS)}"
        raise UsageError(f"unknown sigmas {quoted_value(given)}; {known}")
    return SIGMAS[sigmas_name(given)]


def nearness(distance: FloatArray | float, unit: FloatArray | float) -> FloatArray:
    """Return 1 less a distance in some unit, in 12 digits: what is as far as a threshold reaches it."""
    return np.asarray(1 - np.round(np.divide(distance, unit), 12))


def _within(protocol: Protocol, text: str) -> Protocol:
    """Return a protocol of points with other distances in px, such as "4,8"."""
    given = [part.strip() for part in text.split(",")]
    reaches = sorted({float(part) for part in given if is_numeral(part)}, reverse=True)
    if not all(map(is_numeral, given)) or not 0 < reaches[-1] <= reaches[0] < math.inf:
        what = f"protocol {protocol.name}: expected distances in pixels, such as {protocol.name}=4,8"
        raise UsageError(f"{what}, got {quoted_value(text)}")
    thresholds = tuple(float(nearness(reach, 2 * reaches[0])) for reach in reaches)
    others = tuple(f"F1[iou={iou:.9g}]" for iou in thresholds[1:])
    metrics = (*(name for name in protocol.metrics if "iou" not in name), *others)
    return protocol.with_options(iou_thresholds=thresholds, reach=reaches[0], metrics=metrics)


def get_protocol(name: str) -> Protocol:
    """Return a named protocol, of this package or of an installed one that adds it.

    That of points may have distances in pixels behind it, as "points=4,8".

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
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    own, is_within, distances = name.partition("=")
    if is_within and own in PROTOCOLS and PROTOCOLS[own].reach:
        return _within(PROTOCOLS[own], distances)
    added = load_extension(ADDED, name)
    if added is None:
        known = [*PROTOCOLS, *extension_names(ADDED)]
        listed = ", ".join(known)
        raise UsageError(f"unknown protocol {quoted_value(name)}; choose from {listed}.{did_you_mean(name, known)}")
    if not isinstance(added, Protocol) or added.name != name:
        raise broken_extension(ADDED, name, "is not a Protocol of that name")
    return added


DIFFICULT = ("count", "ignore")  # how objects with that flag are treated, overriding the protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolOptions:
    """Which rules count, and what is changed of them; `evaluate` explains each."""

    protocol: str | Protocol | None = None  # as the files' marks have it, and COCO's where they have none
    iou: Sequence[float] | float | None = None
    max_dets: Sequence[int] | None = None
    areas: Sequence[AreaRange] | None = None
    class_agnostic: bool = False
    difficult: str | None = None
    iou_type: str | None = None
    sigmas: Sequence[float] | str | None = None
    dilation_ratio: float | None = None

    def rules(self) -> Protocol:
        """Return the protocol with the changes."""
        thresholds: Any = (self.iou,) if isinstance(self.iou, Real) else self.iou
        require_lists(iou=thresholds, max_dets=self.max_dets, areas=self.areas)
        named = COCO.name if self.protocol is None else self.protocol
        rules = get_protocol(named) if isinstance(named, str) else named
        rules = rules if self.iou_type is None else rules.comparing(self.iou_type)
        changes: dict[str, Any] = {"class_agnostic": self.class_agnostic or rules.class_agnostic}
        if thresholds is not None:
            changes["iou_thresholds"] = tuple(float(value) for value in thresholds)
        if self.max_dets is not None:
            changes["max_dets"] = tuple(sorted(int(value) for value in self.max_dets))
        if self.areas is not None:
            changes["areas"] = tuple(self.areas)
        if self.sigmas is not None:
            changes["sigmas"] = named_sigmas(self.sigmas)
        if self.dilation_ratio is not None:
            changes["dilation_ratio"] = float(self.dilation_ratio)
        if self.difficult not in (None, *DIFFICULT):
            raise UsageError(f"difficult must be one of {', '.join(DIFFICULT)}, got {quoted_value(self.difficult)}")
        rules = rules.with_options(**changes)
        return rules if self.difficult is None else rules.with_difficult(self.difficult)
