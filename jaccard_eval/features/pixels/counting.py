"""From pairs of label maps to a result: counted on all processors, scored, and checked for other numberings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.signature import FINGERPRINT, FINGERPRINT_DIGITS
from jaccard_eval.features.pixels import MapsSummary, PixelMetrics, PixelProtocol, PixelsResult, map_text, pixel_metrics
from jaccard_eval.findings import DataError, Example, Finding, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.pixel_counts import NO_CLASS, ConfusionCounts, IntArray
from jaccard_eval.progress import tracked
from jaccard_eval.reading.labelmaps import (
    ArrayMap,
    ArrayMaps,
    ColorTable,
    EncodedImage,
    LabelImage,
    MapPair,
    color_text,
    pair_maps,
)
from jaccard_eval.text import pluralise

MOST_VALUES = 512  # of a side; more are not classes
FITS = 0.5  # IoU from which a value lies on one of the other side, and is its class
OWN_AT_LEAST = 0.25  # IoU with its own value, from which a value keeps it
OWN_AT_MOST = 0.1  # IoU with its own value, or share of all pixels that agree as given, that is next to none
FEWEST_PIXELS = 100  # that values share, from which they are evidence
FEWEST_GREYS = 16  # of predictions for a mask of two values, from which they may be probabilities
SURE_VALUES = 3  # that must fit others; no network confuses so many classes completely, one with one
NEVER = 0.01  # IoU of values with their own, of which two that fit others are as sure
GREYS = {127, 128, 254, 255}  # that masks of one class are stored with, next to 0
HELD = 0.8  # share of the pixels of a value that lie in one of the predictions, from which it is that one there
NEARLY = 0.05  # share of the pixels by which a free map may fit better than one that has a rule
VOID = 255  # of PASCAL VOC, ignore_index of most training code: no rule counts it as a class
# Of Cityscapes: the labelId of each trainId, 0 to 18. Source: cityscapesScripts, labels.py.
TRAIN_IDS = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
_TO_LABEL = dict(enumerate(TRAIN_IDS))
_TO_TRAIN = {label: value for value, label in _TO_LABEL.items()}
TO_LABEL, TO_TRAIN = "trainIds-labelIds", "labelIds-trainIds"
RULES: dict[str, Callable[[int], int]] = {  # maps of values that have a name
    "id+1": lambda value: value if value == VOID else value + 1,
    "id-1": lambda value: value if value == VOID else value - 1,
    TO_LABEL: lambda value: _TO_LABEL.get(value, value),
    TO_TRAIN: lambda value: _TO_TRAIN.get(value, VOID),  # classes that are not evaluated are void
    "grey-1": lambda value: int(value > 127),  # of masks: probabilities as greys, or what JPEG made of two values
    "grey-255": lambda value: 255 * (value > 127),
}
GREY_RULES = ("grey-1", "grey-255")  # which only masks need
ValueMap = str | tuple[tuple[int, int], ...]  # one of these, or pairs; values that no pair names stay as they are


@dataclass(frozen=True, slots=True, eq=False)
class Numbering:
    """Values of predictions, each with the value of the ground truth that it means."""

    values: Mapping[int, int]  # those that change
    rule: str  # the name of the map, where it has one
    is_decisive: bool  # whether no weakness of a network explains it
    merged: Mapping[int, int] = field(default_factory=dict)  # values of the ground truth that predictions have as one

    @property
    def value_map(self) -> ValueMap:
        """The map by its name, else its pairs."""
        return self.rule or tuple(sorted(self.values.items()))


def renumbered(values: IntArray, by: ValueMap) -> IntArray:
    """Replace values, (n,), by those that they mean."""
    if not by:
        return values
    goals = {} if isinstance(by, str) else dict(by)
    known, place = np.unique(values, return_inverse=True)
    meant = [RULES[by](value) if isinstance(by, str) else goals.get(value, value) for value in known.tolist()]
    return np.array(meant, dtype=np.int64)[place]


def better_numbering(counts: ConfusionCounts) -> Numbering | None:
    """Return the numbering under which both sides agree far better, None where there is none.

    A value fits another one if their pixels have IoU .5, and it has next to none with its own. One that holds several
    values means all of them: with either alone it may have less.
    """
    counts = counts.take((counts.gt != NO_CLASS) & (counts.pred != NO_CLASS))
    if _has_void(counts):
        counts = counts.take(counts.gt != VOID)  # which no value means
    gt_values, pred_values = np.unique(counts.gt), np.unique(counts.pred)
    if not 0 < len(gt_values) <= MOST_VALUES or not 0 < len(pred_values) <= MOST_VALUES:
        return None
    if len(gt_values) <= 2 < FEWEST_GREYS <= len(pred_values):
        return _at_half(counts, int(gt_values[-1]))
    shared = np.zeros((len(gt_values), len(pred_values)))
    np.add.at(shared, (np.searchsorted(gt_values, counts.gt), np.searchsorted(pred_values, counts.pred)), counts.pixels)
    pixels_of = shared.sum(axis=1)
    held = np.where(shared.max(axis=1) >= HELD * pixels_of, shared.argmax(axis=1), -1)  # column of each row
    merged = _merged(shared, held, gt_values.tolist(), pred_values.tolist())
    for value, goal in merged.items():
        row, joined = np.searchsorted(gt_values, (value, goal)).tolist()
        shared[joined] += shared[row]
        shared[row] = 0
    iou = shared / (shared.sum(axis=1)[:, None] + shared.sum(axis=0) - shared)
    place = {value: row for row, value in enumerate(gt_values.tolist())}

    def share(numbering: Mapping[int, int], of: FloatArray = shared) -> list[float]:
        """Return what each predicted value has in common with the one that it means."""
        goals = [numbering.get(value, value) for value in pred_values.tolist()]
        return [float(of[place[goal], at]) if goal in place else 0.0 for at, goal in enumerate(goals)]

    pairs = _pairs_that_overlap_most(shared, gt_values.tolist(), pred_values.tolist())
    # A value that has much of its own may have as much of another, and means both.
    free = {
        value: pairs[value]
        for value, own in zip(pred_values.tolist(), share({}, iou), strict=True)
        if value in pairs and own < OWN_AT_LEAST
    }
    total = float(shared.sum())
    rule, best = max(_rules(pred_values.tolist()), key=lambda named: sum(share(named[1])))
    rule, chosen = (rule, best) if sum(share(best)) >= sum(share(free)) - NEARLY * total else ("", free)
    changed = {value: goal for value, goal in chosen.items() if value != goal}
    compared = [*zip(pred_values.tolist(), share({}, iou), share(changed, iou), share(changed), strict=True)]
    fits = [
        value
        for value, own, other, pixels in compared
        if value in changed and other >= FITS and own <= OWN_AT_MOST and pixels >= FEWEST_PIXELS
    ]
    are_strangers = all(value not in place and changed[value] not in pred_values for value in fits)
    is_mask = len(pred_values) == 2 and bool(GREYS & {*fits, *(changed[value] for value in fits)})
    # The value that one has in place of its own lies in another: a network that is weak has it as nothing, or as any.
    is_chain = bool(fits) and fits[0] in place and held[place[fits[0]]] >= 0
    # A mask of 0 and 255 may meet void, which 255 marks in the ground truth.
    if not fits or (len(fits) == 1 and not (are_strangers or is_mask or is_chain)):
        return None
    disagree = len(fits) > 1 and sum(share({})) <= OWN_AT_MOST * total
    never = len(fits) > 1 and max(own for value, own, *_ in compared if value in fits) <= NEVER
    is_decisive = is_mask or disagree or never or len(fits) >= SURE_VALUES
    return Numbering(changed, rule, is_decisive, merged)


def _merged(shared: FloatArray, held: npt.NDArray[np.int64], gt: list[int], pred: list[int]) -> dict[int, int]:
    """Return values of the ground truth that lie in one of the predictions, with the one there for all of them.

    One that holds its own value and others misses these, as a weak network does; a small value may be too rare to be
    learnt; all values in one are a network that knows one class.
    """
    merged: dict[int, int] = {}
    for column, value in enumerate(pred):
        rows = np.flatnonzero((held == column) & (shared.sum(axis=1) >= OWN_AT_MOST * shared[:, column].sum()))
        members = [gt[row] for row in rows.tolist()]
        if not 1 < len(rows) < len(gt) or value in members:
            continue
        meant = [numbering[value] for _, numbering in _rules(pred) if value in numbering]
        kept = next((goal for goal in meant if goal in members), members[0])
        merged |= {member: kept for member in members if member != kept}
    return merged


def _has_void(counts: ConfusionCounts) -> bool:
    """Whether 255 marks pixels to ignore: what both sides use is a class, and one of two values is the object."""
    return VOID in counts.gt and VOID not in counts.pred and len(np.unique(counts.gt)) > 2


def _at_half(counts: ConfusionCounts, mask: int) -> Numbering | None:
    """Return the greys of predictions as the two values of a mask, where those from 128 on fit it."""
    rule = f"grey-{mask}"
    if rule not in RULES or counts.pred.max() > VOID:
        return None
    gt, pred = counts.gt == mask, renumbered(counts.pred, rule) == mask
    fits = counts.pixels[gt & pred].sum() >= FITS * counts.pixels[gt | pred].sum()
    changed = {value: RULES[rule](value) for value in np.unique(counts.pred).tolist() if RULES[rule](value) != value}
    return Numbering(changed, rule, is_decisive=True) if fits else None


def _rules(values: list[int]) -> Iterator[tuple[str, dict[int, int]]]:
    """Yield numberings that have a rule with its name: off by one, Cityscapes' ids, 0 and 1 against 0 and 255."""
    for name, rule in RULES.items():
        if name not in GREY_RULES:
            yield name, {value: rule(value) for value in values}
    yield "", {1: VOID}
    yield "", {VOID: 1}


def _pairs_that_overlap_most(shared: FloatArray, gt: list[int], pred: list[int]) -> dict[int, int]:
    """Pair values one to one, those that share most pixels first."""
    pairs: dict[int, int] = {}
    for cell in np.argsort(-shared, axis=None, kind="stable").tolist():
        row, column = divmod(cell, len(pred))
        if not shared[row, column]:
            break
        if pred[column] not in pairs and gt[row] not in pairs.values():
            pairs[pred[column]] = gt[row]
    return pairs


Color = tuple[int, ...]
Source = TypeVar("Source")
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCount:
    """What one pair adds to the whole."""

    pair: MapPair
    counts: ConfusionCounts = field(default_factory=lambda: ConfusionCounts.merge(()))  # nothing when there are errors
    digests: tuple[bytes, bytes] = (b"", b"")  # of the two files
    # By file: the colours that its palette, if any, gives to the values that occur
    palettes: Mapping[str, Mapping[int, Color]] = field(default_factory=dict)
    errors: tuple[Finding, ...] = ()


def count_pair(pair: MapPair, *, protocol: PixelProtocol, colors: ColorTable | None) -> PairCount:
    """Read two label maps and count their pixels; what is wrong with them is in the result's errors."""
    findings = FindingLog()
    reads = [partial(EncodedImage, path, greys=rule in GREY_RULES) for path, rule in _rules_of(pair, protocol)]
    encoded = _each(lambda read: read(), reads, findings)
    # Sizes stand in the head of a file: a mismatch is reported before any pixel is decoded.
    if not findings.has_errors and encoded[0].shape != encoded[1].shape:
        gt_file, pred_file = encoded
        (gt_height, gt_width), (height, width) = gt_file.shape, pred_file.shape
        detail = f"is {width} x {height} pixels, but its ground truth {gt_file.where.path} is {gt_width} x {gt_height}"
        fix = "Resize the prediction to the size of the ground truth (nearest neighbour)."
        findings.error("map-size", pred_file.where, detail, fix=fix)
    decode = partial(EncodedImage.decode, by_color=colors is not None)
    images = [] if findings.has_errors else _each(decode, encoded, findings)
    if findings.has_errors:
        return PairCount(pair=pair, errors=findings.findings())
    # Values are counted first and understood afterwards: there are far fewer distinct ones than pixels.
    strips = zip(images[0].strips(), images[1].strips(), strict=True)
    raw = ConfusionCounts.merge(ConfusionCounts.from_maps(gt, pred) for gt, pred in strips)
    sides = (
        _Side("gt", str(pair.gt), images[0], raw.gt, raw.pixels),
        _Side("pred", str(pair.pred), images[1], raw.pred, raw.pixels),
    )
    gt_classes, pred_classes = (_classes_of(side, protocol, colors, findings) for side in sides)
    if findings.has_errors:
        return PairCount(pair=pair, errors=findings.findings())
    is_raw = gt_classes is raw.gt and pred_classes is raw.pred
    return PairCount(
        pair=pair,
        counts=raw if is_raw else ConfusionCounts.from_pairs(gt_classes, pred_classes, raw.pixels),
        digests=(encoded[0].digest, encoded[1].digest),
        palettes={side.path: side.colors_in_use() for side in sides},
    )


def _rules_of(pair: MapPair, protocol: PixelProtocol) -> tuple[tuple[Path | ArrayMap, ValueMap | None], ...]:
    return (pair.gt, protocol.gt_class_map), (pair.pred, protocol.class_map)


@dataclass(frozen=True, slots=True)
class MapDifference:
    """How many of a pair's pixels count, and how many of these differ."""

    pair: MapPair
    wrong: int
    pixels: int


@dataclass(frozen=True, slots=True, eq=False)
class MapReader:
    """Reads a pair again that was counted, by the same rules."""

    protocol: PixelProtocol
    table: ColorTable | None
    palette: Mapping[int, Color]  # colours of values, where the files have them

    @property
    def colours(self) -> dict[int, tuple[int, int, int]]:
        """The colours of classes, where a table or the files have them."""
        if self.table is not None:
            return {
                row: (code & 255, code >> 8 & 255, code >> 16 & 255)
                for row, code in enumerate(self.table.codes.tolist())
            }
        rules = self.protocol
        by_value = self.palette if rules.reduce_zero is None and not rules.gt_class_map else {}
        return {value: (red, green, blue) for value, (red, green, blue) in by_value.items()}

    def read(self, pair: MapPair) -> tuple[LabelImage, LabelImage]:
        """Return both maps."""
        gt, pred = (
            EncodedImage(path, greys=rule in GREY_RULES).decode(by_color=self.table is not None)
            for path, rule in _rules_of(pair, self.protocol)
        )
        return gt, pred

    def classes_of(
        self, pair: MapPair, images: tuple[LabelImage, LabelImage], strips: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    ) -> tuple[IntArray, IntArray]:
        """Return the class of each pixel of a strip on both sides, `NO_CLASS` where there is none."""
        classes = []
        for role, path, image, strip in zip(("gt", "pred"), (pair.gt, pair.pred), images, strips, strict=True):
            values, places = np.unique(strip, return_inverse=True)
            pixels = np.ones(len(values), dtype=np.int64)
            side = _Side(role, str(path), image, values.astype(np.int64), pixels)
            numbers = _classes_of(side, self.protocol, self.table, FindingLog())
            classes.append(numbers[places.reshape(strip.shape)])
        return classes[0], classes[1]

    def counted(self, gt: IntArray, pred: IntArray) -> npt.NDArray[np.bool_]:
        """Return which pixels count, by their classes on both sides."""
        rules = self.protocol
        counts: npt.NDArray[np.bool_] = gt != NO_CLASS
        for side, classes in (("gt", gt), ("pred", pred)):
            if rules.drop_background in (side, "both"):
                counts = counts & (classes != rules.background)
        return counts

    def difference(self, counted: PairCount) -> MapDifference:
        """Return how much a pair that was counted differs."""
        counts = counted.counts
        kept = self.counted(counts.gt, counts.pred)
        wrong = kept & (counts.gt != counts.pred)
        return MapDifference(counted.pair, int(counts.pixels[wrong].sum()), int(counts.pixels[kept].sum()))


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One map of a pair; `values` of the file and how many `pixels` have them, shape (n,) each, values may repeat."""

    role: str
    path: str
    image: LabelImage
    values: IntArray
    pixels: IntArray

    def colors_in_use(self) -> dict[int, Color]:
        """Return the palette's colours of the values that occur."""
        palette = self.image.palette
        if palette is None:
            return {}
        used = np.unique(self.values)
        used = used[used < len(palette)]
        colors = map(tuple, palette[used].tolist())
        return dict(zip(used.tolist(), colors, strict=True))


def _each(read: Callable[[Source], Read], sources: Iterable[Source], findings: FindingLog) -> list[Read]:
    """Read both sides, so that what is wrong with either is found."""
    done = []
    for source in sources:
        try:
            done.append(read(source))
        except DataError as error:
            findings.extend(error.findings)
    return done


def _classes_of(side: _Side, protocol: PixelProtocol, colors: ColorTable | None, findings: FindingLog) -> IntArray:
    """Return the class of each of a side's values, `NO_CLASS` for ignored ones; those that are neither are errors."""
    number = colors.classes_of(side.values) if colors is not None and side.image.is_colored else side.values
    is_gt = side.role == "gt"
    number = renumbered(number, protocol.gt_class_map if is_gt else protocol.class_map)
    # Ignored values are those of the file, so that they are marked before the values are reduced; of maps without
    # colours, none is a colour of no class.
    ignored = {*protocol.ignore} - {*(() if colors is None or side.image.is_colored else colors.void)}
    is_ignored = np.isin(number, list(ignored)) if ignored else np.zeros(len(number), dtype=np.bool_)
    if protocol.reduce_zero == "both" or (is_gt and protocol.reduce_zero is not None):
        is_ignored |= number == 0
        number = np.where(number > 0, number - 1, number)
    is_unknown = ~is_ignored & (number < 0)
    if protocol.classes is not None:
        is_unknown |= ~is_ignored & (number >= len(protocol.classes))
    if is_unknown.any():
        _report_unknown(side, np.unique(side.values[is_unknown]), protocol, findings)
    return np.where(is_ignored, NO_CLASS, number) if is_ignored.any() else number


def _report_unknown(side: _Side, unknown: IntArray, protocol: PixelProtocol, findings: FindingLog) -> None:
    is_colored = side.image.is_colored

    def describe(row: int) -> tuple[Where, str]:
        value = int(unknown[row])
        what = f"colour {color_text(value)}" if is_colored else f"value {value}"
        pixels = int(side.pixels[side.values == value].sum())
        where = Where(side.path, record="({}, {})".format(*side.image.first_place(value)))
        return where, f"{what} is not a class; {pluralise(pixels, 'pixel')} of it, first one here"

    code = "map-color" if is_colored else "map-value"
    fix = Fix.missing("Add it to the {colors}.", colors=None)
    if not is_colored:
        words = (
            f"Classes are {protocol.known_classes}. Name them all with {{classes}}, map values with {{gt_class_map}} or"
            " {class_map}, or skip them with {ignore}."
        )
        fix = Fix.missing(words, classes=None, gt_class_map=None, class_map=None, ignore=None)
        if protocol.colors and side.role == "gt" and np.isin(unknown, TRAIN_IDS).all():
            words = "If these are labelIds of Cityscapes, pass {gt_class_map} and {ignore}."
            fix = Fix.missing(words, gt_class_map=TO_TRAIN, ignore=str(VOID))
    findings.add_rows(Severity.ERROR, code, range(len(unknown)), describe, fix=fix)


MOST_SHOWN = 200  # pairs that a page can show
AT_ONCE = 256  # counts that wait to be merged; each is small, and merging one by one would sort again and again


class Tally:
    """The sum of pairs."""

    def __init__(self) -> None:
        self._parts: list[ConfusionCounts] = []
        self.by_image: list[tuple[str, ConfusionCounts]] = []
        self._digests: list[tuple[str, bytes, bytes]] = []
        self._errors: dict[tuple[str, Fix | None], list[Finding]] = {}
        self._colors: dict[int, tuple[Color, str]] = {}
        self._clashes: list[Example] = []
        self._worst: list[MapDifference] = []

    @property
    def colors(self) -> dict[int, Color]:
        """The colours that palettes give to values, those of the first file that has each."""
        return {value: color for value, (color, _) in self._colors.items()}

    def keep_worst(self, difference: MapDifference) -> None:
        """Remember a pair while it is among those that differ most."""
        self._worst.append(difference)
        if len(self._worst) > 2 * MOST_SHOWN:
            self._worst = list(self.worst)

    @property
    def worst(self) -> tuple[MapDifference, ...]:
        """The pairs that differ most, by the share of their pixels."""
        order = sorted(self._worst, key=lambda row: (-row.wrong / max(row.pixels, 1), row.pair.name))
        return tuple(order[:MOST_SHOWN])

    def add(self, counted: PairCount) -> None:
        """Add one pair."""
        self.by_image.append((counted.pair.name, counted.counts))
        self._parts.append(counted.counts)
        if len(self._parts) == AT_ONCE:
            self._parts = [ConfusionCounts.merge(self._parts)]
        self._digests.append((counted.pair.name, *counted.digests))
        for error in counted.errors:
            self._errors.setdefault((error.code, error.fix), []).append(error)
        for path, colors in counted.palettes.items():
            self._compare_colors(path, colors.items())

    @property
    def counts(self) -> ConfusionCounts:
        """Pixels by pair of classes."""
        return ConfusionCounts.merge(self._parts)

    @property
    def fingerprints(self) -> tuple[str, str]:
        """Digests of the two sides: of the names and bytes of their files, in no order."""
        rows = sorted(self._digests)
        return _digest((name, gt) for name, gt, _ in rows), _digest((name, pred) for name, _, pred in rows)

    def report_to(self, findings: FindingLog) -> None:
        """Add errors and warnings to `findings`, each kind once over all files."""
        for (code, fix), same in self._errors.items():
            examples = list(chain.from_iterable(error.examples for error in same))
            findings.add_rows(Severity.ERROR, code, range(sum(error.count for error in same)), _of(examples), fix=fix)
        advice = Fix.missing("Pixel values decide. If the colours are right, pass {colors}.", colors=None)
        findings.add_rows(Severity.WARNING, "map-palette", range(len(self._clashes)), _of(self._clashes), fix=advice)

    def _compare_colors(self, path: str, colors: Iterable[tuple[int, Color]]) -> None:
        """Remember a file whose palette gives a value another colour than the files before it."""
        for value, color in colors:
            first, other = self._colors.setdefault(value, (color, path))
            if first != color:
                here, there = (" ".join(map(str, parts)) for parts in (color, first))
                detail = f"value {value} is colour {here} here, but {there} in {other}"
                self._clashes.append(Example(Where(path), detail))
                return  # one clash a file: palettes that differ mostly differ throughout


def _digest(rows: Iterable[tuple[str, bytes]]) -> str:
    state = hashlib.sha256()
    # The length of a name marks where it ends: no two lists of files are written alike.
    for name, digest in rows:
        state.update(f"{len(name)} {name}".encode("utf-8", "surrogatepass") + digest)
    return f"{FINGERPRINT}{state.hexdigest()[:FINGERPRINT_DIGITS]}"


def _of(examples: Sequence[Example]) -> Callable[[int], tuple[Where, str]]:
    """Return what describes a row of examples; errors keep as many as are ever described."""

    def describe(row: int) -> tuple[Where, str]:
        return examples[row].where, examples[row].detail

    return describe


SHOWN_CLASSES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedMaps:
    """Label maps of both sides after counting."""

    counts: ConfusionCounts
    paths: tuple[str, str]  # the two inputs as the user named them
    formats: tuple[str, str]
    fingerprints: tuple[str, str]
    n_pairs: int
    strategy: str
    # Files that were ignored on each side, by reason
    ignored: tuple[Mapping[str, int], Mapping[str, int]] = field(default_factory=lambda: ({}, {}))
    findings: tuple[Finding, ...] = ()
    worst: tuple[MapDifference, ...] = ()
    reader: MapReader | None = None
    by_image: tuple[tuple[str, ConfusionCounts], ...] = ()  # name and counts of each pair


def pixels_result(
    maps: CountedMaps, protocol: PixelProtocol, version: str, *, doubts: bool = False, stops: bool = False
) -> PixelsResult:
    """Return the scores of counted label maps, with their signature and with what is odd.

    Where the numbering of the predictions is open to `doubts`, one that is beyond doubt another `stops` files.
    """
    classes = maps.counts.classes if protocol.classes is None else np.arange(len(protocol.classes))
    names = protocol.classes or tuple(map(str, classes.tolist()))
    counts = maps.counts.indexed(classes)
    places = [] if protocol.background is None else np.flatnonzero(classes == protocol.background).tolist()
    background = places[0] if places else None
    rules: dict[str, Any] = {"background": background, "drop_background": protocol.drop_background}
    metrics = pixel_metrics(counts, names, **rules)
    by_image = [(name, part.indexed(classes)) for name, part in maps.by_image]
    # Ignored ground truth belongs to no class; a prediction of none is a column of its own.
    kept = counts.take(counts.gt != NO_CLASS)
    rows = zip(kept.gt.tolist(), kept.pred.tolist(), kept.pixels.tolist(), strict=True)
    confusion = tuple((names[gt], None if pred == NO_CLASS else names[pred], pixels) for gt, pred, pixels in rows)
    gt_maps, pred_maps = _summaries(maps, protocol)
    parts = [*protocol.signature_parts(), f"gt={gt_maps.fingerprint}", f"pred={pred_maps.fingerprint}", f"v={version}"]
    return PixelsResult(
        protocol=protocol,
        signature="|".join(parts),
        version=version,
        gt=gt_maps,
        pred=pred_maps,
        image_strategy=maps.strategy,
        metrics=metrics.overall,
        per_class=metrics.per_class,
        confusion=confusion,
        measured=PixelMetrics.of(by_image, names, **rules),
        findings=(*maps.findings, *_audit(maps, protocol, metrics.overall["mIoU"].value, doubts, stops)),
    )


def _summaries(maps: CountedMaps, protocol: PixelProtocol) -> tuple[MapsSummary, MapsSummary]:
    counts = maps.counts
    is_ignored = counts.gt == NO_CLASS
    is_background = {"gt": counts.gt == protocol.background, "pred": counts.pred == protocol.background}
    is_background["both"] = is_background["gt"] | is_background["pred"]
    # An ignored pixel is not background as well: each is reported once.
    dropped = ~is_ignored & (False if protocol.drop_background is None else is_background[protocol.drop_background])
    aside = {
        "pixels-ignored": int(counts.pixels[is_ignored].sum()),
        "pixels-background": int(counts.pixels[dropped].sum()),
    }
    gt, pred = (
        MapsSummary(
            path=path,
            format=format_name,
            images=maps.n_pairs,
            pixels=int(counts.pixels.sum()),
            classes=len(np.setdiff1d(side, [NO_CLASS])),
            fingerprint=fingerprint,
            ignored=ignored,
        )
        for path, format_name, side, fingerprint, ignored in zip(
            maps.paths,
            maps.formats,
            (counts.gt, counts.pred),
            maps.fingerprints,
            maps.ignored,
            strict=True,
        )
    )
    return replace(gt, ignored={**gt.ignored, **{reason: n for reason, n in aside.items() if n}}), pred


def _audit(maps: CountedMaps, protocol: PixelProtocol, given: float, doubts: bool, stops: bool) -> tuple[Finding, ...]:
    findings = FindingLog()
    gt, pred = (Where(path) for path in maps.paths)
    # A folder may have the maps of both sides; arrays have no path.
    if maps.paths[0] == maps.paths[1] and not maps.paths[0].startswith("<"):
        detail = "is given as ground truth and as predictions: each map is compared with itself"
        findings.warning("pred-copies-gt", pred, detail, fix="Pass the predictions of a model.")
    counts = maps.counts.take(maps.counts.gt != NO_CLASS)
    if doubts and protocol.reduce_zero != "gt":
        _check_numbering(counts, protocol, given, pred, findings, stops=stops)
        findings.raise_errors()
    if protocol.classes is None:
        _warn_of_unnamed(counts, given, gt, pred, findings)
        are_ids = any(worst.pair.name.endswith("_gtFine_labelIds.png") for worst in maps.worst)
        if are_ids and not (protocol.ignore or protocol.gt_class_map):
            _warn_of_labels(counts, given, gt, findings)
    undecided = int(counts.pixels[counts.pred == NO_CLASS].sum())
    if undecided:
        detail = f"the predictions have an ignored value at {pluralise(undecided, 'pixel')}; counted as misses"
        findings.warning("map-undecided", pred, detail, fix="Predict a class for every pixel.")
    if protocol.background is not None and protocol.background not in maps.counts.classes:
        detail = f"background {protocol.background} does not occur in any label map"
        findings.warning(
            "map-background",
            gt,
            detail,
            fix=Fix.missing("Check {background}; use a class number from the report.", background=None),
        )
    return findings.findings()


def _check_numbering(
    counts: ConfusionCounts, protocol: PixelProtocol, given: float, pred: Where, findings: FindingLog, *, stops: bool
) -> None:
    """Report values that both sides number differently, with the mIoU of either reading."""
    better = better_numbering(counts)
    # Maps are of values as the files have them: reduced ones can only have counted from 0 before.
    if better is None or (protocol.reduce_zero and better.rule != "id+1"):
        return
    mean = _mean_with(better.value_map, counts)
    if not mean > given:
        return
    merged = {} if protocol.gt_class_map or better.rule == TO_LABEL else better.merged  # what is given was meant
    detail = f"the values of both sides number classes differently: mIoU {given:.4f} as given, {evidence(better, mean)}"
    text = better.rule or (map_text(better.value_map) if len(better.values) <= SHOWN_CLASSES * 2 else "auto")
    options, after = {"class_map": text}, mean
    if merged:
        joined = map_text(tuple(sorted(merged.items())))
        counts = replace(counts, gt=renumbered(counts.gt, tuple(merged.items())))
        after = _mean_with(better.value_map, counts)
        options |= {"gt_class_map": joined}
        detail += f", {after:.4f} with {joined} in the ground truth too, where predictions have one value for both"
    has_void = not np.isin(counts.gt, TRAIN_IDS).all()
    if better.rule == TO_LABEL and has_void and protocol.classes is None and not protocol.ignore:
        # The benchmark evaluates 19 of the 34 labels, which the ground truth's map knows: the others are in no mean.
        evaluated = replace(counts, gt=renumbered(counts.gt, TO_TRAIN))
        after = _mean_with((), evaluated.take(evaluated.gt != VOID))
        options = {"gt_class_map": TO_TRAIN, "ignore": str(VOID)}
        detail += f", {after:.4f} with the ground truth by {TO_TRAIN} and {VOID} ignored"
    unreached = counts.gt == 0 if better.rule == "id+1" and not protocol.reduce_zero else np.zeros(0, dtype=np.bool_)
    if unreached.any() and protocol.classes is None and not protocol.ignore and not protocol.gt_class_map:
        # As ADE20K has it: no prediction can mean 0, which marks what belongs to no class.
        after = _mean_with(better.value_map, counts.take(~unreached))
        options |= {"ignore": "0"}
        detail += f", {after:.4f} without the pixels that are 0 in the ground truth, which no prediction means"
    words = "Rerun {changes}."
    if stops and better.is_decisive:
        words += " To go on as it is, pass {class_map:id}." if "class_map" in options else ""
    fix = Fix.reading(options, metric="mIoU", before=given, after=after)
    severity = Severity.ERROR if stops and better.is_decisive else Severity.WARNING
    findings.add_one(severity, "class-mapping", pred, detail, fix=replace(fix, words=words))


def note_numbering(found: Numbering | None, raw: ConfusionCounts, pred: Where, findings: FindingLog) -> None:
    """Note what `auto` decided on the values of predictions, and what mIoU either reading has."""
    if found is None:
        findings.note("class-map-auto", pred, "values are read as given: no other numbering fits the pixels better")
        return
    given, mean = _mean_with((), raw), _mean_with(found.value_map, raw)
    detail = f"values are read by {found.rule or 'shared pixels'}: mIoU {given:.4f} as given, {evidence(found, mean)}"
    findings.note("class-map-auto", pred, detail)


def evidence(found: Numbering, mean: float) -> str:
    """Return a numbering with the mIoU that it gives, in words."""
    pairs = sorted(found.values.items())
    more = ",..." if len(pairs) > SHOWN_CLASSES * 2 else ""
    return f"{mean:.4f} with {map_text(tuple(pairs[: SHOWN_CLASSES * 2]))}{more}"


def _mean_with(by: ValueMap, counts: ConfusionCounts) -> float:
    """Return the mIoU of counted values whose predictions are renumbered, where every value is a class."""
    again = ConfusionCounts.from_pairs(counts.gt, renumbered(counts.pred, by), counts.pixels)
    names = tuple(map(str, again.classes.tolist()))
    return pixel_metrics(again.indexed(again.classes), names).overall["mIoU"].value


def _warn_of_unnamed(counts: ConfusionCounts, given: float, gt: Where, pred: Where, findings: FindingLog) -> None:
    """Warn of values that may be no classes, where no names show which are."""
    void = int(counts.pixels[counts.gt == VOID].sum())
    if _has_void(counts):
        detail = f"{VOID} counts as a class ({pluralise(void, 'pixel')}), but it usually marks pixels to ignore"
        after = _mean_with((), counts.take(counts.gt != VOID))
        words = "Skip them with {ignore}."
        fix = Fix.choice({"ignore": str(VOID)}, metric="mIoU", before=given, after=after, words=words)
        findings.warning("map-void", gt, detail, fix=fix)
    extra = [str(value) for value in np.setdiff1d(counts.pred, [*counts.gt, NO_CLASS]).tolist()]
    if extra:
        listed = ", ".join(extra[:SHOWN_CLASSES]) + (", ..." if len(extra) > SHOWN_CLASSES else "")
        what = pluralise(len(extra), "class occurs", "classes occur")
        detail = f"{what} in the predictions only, each with IoU 0 in the mean: {listed}"
        findings.warning(
            "map-class-extra",
            pred,
            detail,
            fix=Fix.missing("Name the classes with {classes}, or check the values.", classes=None),
        )


def _warn_of_labels(counts: ConfusionCounts, given: float, gt: Where, findings: FindingLog) -> None:
    """Warn of labels of Cityscapes that its benchmark ignores."""
    others = [str(value) for value in np.setdiff1d(counts.gt, TRAIN_IDS).tolist()]
    if not others:
        return
    again = replace(counts, gt=renumbered(counts.gt, TO_TRAIN), pred=renumbered(counts.pred, TO_TRAIN))
    after = _mean_with((), again.take(again.gt != VOID))
    options = {"gt_class_map": TO_TRAIN, "class_map": TO_TRAIN, "ignore": str(VOID)}
    fix = Fix.choice(options, metric="mIoU", before=given, after=after, words="Rerun {changes}.")
    detail = f"labels that Cityscapes does not evaluate count as classes: {', '.join(others[:SHOWN_CLASSES])}"
    findings.warning("map-void", gt, detail, fix=fix)


Run = Callable[[Callable[[MapPair], PairCount], Iterable[MapPair]], Iterable[PairCount]]


def count_label_maps(
    gt: Path | ArrayMaps,
    pred: Path | ArrayMaps,
    protocol: PixelProtocol,
    *,
    colors: ColorTable | None = None,
    list_file: Path | None = None,
    run: Run = map,
) -> CountedMaps:
    """Count the pixels of all pairs of label maps, and keep those of each pair."""
    findings = FindingLog()
    pairing = pair_maps(gt, pred, list_file, findings)
    tally, reader = Tally(), MapReader(protocol, colors, {})
    done = run(partial(count_pair, protocol=protocol, colors=colors), pairing.pairs)
    for pair in tracked(done, "counting pixels", len(pairing.pairs)):
        tally.add(pair)
        tally.keep_worst(reader.difference(pair))
    tally.report_to(findings)
    findings.raise_errors()
    return CountedMaps(
        counts=tally.counts,
        paths=(str(gt), str(pred)),
        formats=(
            ", ".join(sorted({pair.gt.suffix.lower().lstrip(".") for pair in pairing.pairs})),
            ", ".join(sorted({pair.pred.suffix.lower().lstrip(".") for pair in pairing.pairs})),
        ),
        fingerprints=tally.fingerprints,
        n_pairs=len(pairing.pairs),
        strategy=pairing.strategy,
        ignored=pairing.ignored,
        findings=findings.findings(),
        worst=tally.worst,
        reader=replace(reader, palette=tally.colors),
        # By name: the order of files changes no draw.
        by_image=tuple(sorted(tally.by_image, key=itemgetter(0))),
    )
