"""Were the four numbers of boxes read correctly? Other readings are tried if something looks wrong.

Trials cost a matching pass each, so they are made only where predictions lie on few of the objects, or boxes of both
sides leave their images.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from jaccard_eval.data.boxtable import ENCODINGS, BoxTable, FloatArray, freeze, from_xywh, to_xywh
from jaccard_eval.data.dataset import Dataset, Reading
from jaccard_eval.features.audit.agreement import (
    Agreement,
    Sample,
    advised,
    is_better,
    is_decisive,
    pair_by_place,
    place_agreement,
    take_sample,
)
from jaccard_eval.features.audit.box_places import image_sizes, leaving
from jaccard_eval.features.audit.context import AuditContext, average_precision
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import Fix, Value
from jaccard_eval.frozen import dataclass

DOUBTED = 0.5  # share of objects in the place of a prediction below which readings are tried; sound sets reach .63
TRIAL_BOXES = 4_000  # boxes of either side that a trial looks at, at most about
FEWEST_GAINED = 4  # objects that another reading must find beyond those found as given
CLEAR_GAIN = 0.1  # AP50 by which another reading must be better
LEAVING, STAYING = 0.2, 0.02  # share of boxes outside from which a reading is doubted, to which another one is believed
FEWEST_BOXES = 3  # from which numbers alone are evidence
LARGEST_FRACTION = 1.01  # exporters of fractions overshoot a little
SMALLEST_IMAGE = 16.0  # px; boxes of a smaller image may well be a pixel wide
IOU = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """How the numbers of a file became the boxes of one side: nothing but this goes to another process."""

    given: Reading
    sizes: FloatArray
    units: str

    def of(self, boxes: BoxTable) -> FloatArray:
        """Return the four numbers of each box as the file has them, up to rounding; NaN where that needs a size."""
        given = self.given
        if given.resized is not None:
            return from_xywh(given.resized.apply(boxes.xywh, self.sizes[boxes.image]), given.encoding)
        scaled = self.units == "px" and given.units == "norm"
        return from_xywh(boxes.xywh / self._scale(boxes) if scaled else boxes.xywh, given.encoding)

    def read_anew(self, boxes: BoxTable, *, reading: Reading) -> BoxTable:
        """Read the numbers as something else."""
        if boxes.shapes is not None and reading.resized is not None and self.given.resized is None:
            return reading.resized.mapped_back(boxes, self.sizes)
        xywh = to_xywh(self.of(boxes), reading.encoding)
        if self.units == "px" and reading.units == "norm":
            xywh = xywh * self._scale(boxes)
        if reading.resized is not None:
            xywh = reading.resized.undo(xywh, self.sizes[boxes.image])
        with np.errstate(over="ignore"):  # of numbers that no reading makes boxes of
            area = xywh[:, 2] * xywh[:, 3]
        return freeze(replace(boxes, xywh=xywh, area=area))

    def _scale(self, boxes: BoxTable) -> FloatArray:
        size = self.sizes[boxes.image]
        return np.concatenate((size, size), axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The boxes of both sides as they are, with what is needed to read them anew."""

    gt: BoxTable
    pred: BoxTable
    readings: dict[str, Reading]
    sizes: FloatArray
    units: str

    @classmethod
    def of(cls, context: AuditContext, gt: BoxTable, pred: BoxTable) -> View:
        """Return boxes in the rows of the alignment with how both sides were read."""
        readings = {side.role: side.reading for side in (context.gt, context.pred)}
        return cls(gt, pred, readings, image_sizes(context), context.aligned.units)

    def numbers(self, role: str) -> FloatArray:
        """Return the four numbers of each box as the file has them, up to rounding; NaN where that needs a size."""
        return _Numbers(self.readings[role], self.sizes, self.units).of(self.boxes(role))

    def reread(self, role: str, reading: Reading) -> View:
        """Take the numbers of one side for something else."""
        given = _Numbers(self.readings[role], self.sizes, self.units)
        changed = self.boxes(role).mapped(partial(given.read_anew, reading=reading))
        readings = {**self.readings, role: reading}
        if role == "gt":
            return replace(self, gt=changed, readings=readings)
        return replace(self, pred=changed, readings=readings)

    def boxes(self, role: str) -> BoxTable:
        """Return the boxes of one side."""
        return self.gt if role == "gt" else self.pred

    def leaving(self, role: str) -> float:
        """Share of the boxes that leave their image or are turned inside out."""
        boxes = self.boxes(role)
        size = self.sizes[boxes.image]
        wrong = np.concatenate((leaving(boxes.xywh, size, self.units), boxes.xywh[:, 2:] < 0), axis=1)
        known = np.flatnonzero(~np.isnan(size).any(axis=1))
        return np.count_nonzero(wrong[known].any(axis=1)) / len(known) if len(known) else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """One side read anew, and how well both sides then agree by place."""

    role: str
    view: View
    agreement: Agreement
    is_decisive: bool = False

    @property
    def reading(self) -> Reading:
        return self.view.readings[self.role]


def check_readings(context: AuditContext, findings: FindingLog) -> None:
    """Warn of boxes that look like another encoding or other units than they were read as."""
    if findings.has("box-resized"):
        return
    view = View.of(context, context.sample.gt, context.sample.pred)
    if place_agreement(context.sample).share >= DOUBTED:
        if all(view.leaving(role) > LEAVING or _are_fractions(view, role) for role in ("gt", "pred")):
            _check_alone(context, view, findings)  # both sides are wrong alike
        return
    best = _best_trial(context)
    if best is None or not _confirm(context, best, findings):
        _check_alone(context, view, findings)


def _best_trial(context: AuditContext) -> _Trial | None:
    """Return the reading of one side under which predictions lie on far more objects; None where there is none.

    Two readings can agree alike, as mirrored boxes agree with mirrored objects: then fewer boxes outside the images
    decide, then that predictions are more often exported wrongly.
    """
    placed = context.aligned.placement
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table), limit=TRIAL_BOXES)
    present = place_agreement(sample)
    view = View.of(context, sample.gt, sample.pred)
    trials: list[tuple[_Trial, Sample]] = []
    for role in ("pred", "gt"):
        for reading in _readings(view, role):
            reread = view.reread(role, reading)
            with np.errstate(over="ignore", invalid="ignore"):  # boxes read wrongly can have any size
                paired = pair_by_place(reread.gt, reread.pred)
            agreement = place_agreement(paired)
            trials.append((_Trial(role, reread, agreement), paired))
    if not trials:
        return None
    best, paired = max(trials, key=lambda trial: _weight(trial[0]))
    gained = best.agreement.found - present.found
    if gained < FEWEST_GAINED or not is_better(best.agreement, present):
        return None
    return replace(best, is_decisive=is_decisive(sample, paired))


def _weight(trial: _Trial) -> tuple[float, float]:
    return round(trial.agreement.share, 2), -round(trial.view.leaving(trial.role), 2)


def _readings(view: View, role: str) -> Iterator[Reading]:
    """Yield the readings of one side that its numbers allow, other than the present one."""
    present = view.readings[role]
    for units in possible_units(view, role):
        for encoding in ENCODINGS:
            reading = replace(present, encoding=encoding, units=units)
            # Fractions are the same on images of any size.
            reading = replace(reading, resized=None) if units == "norm" else reading
            if reading != present:
                yield reading
    if present.resized is not None:
        yield replace(present, resized=None)


def possible_units(view: View, role: str) -> list[str]:
    """Return the present units, and the others where the numbers and sizes allow them."""
    present = view.readings[role].units
    numbers = view.numbers(role)
    if not len(numbers) or np.isnan(numbers).any():
        return []
    largest = np.abs(numbers).max(axis=1)  # (n,)
    others = largest > LARGEST_FRACTION if present == "norm" else largest <= LARGEST_FRACTION
    sized = not np.isnan(view.sizes[view.boxes(role).image]).any()
    plausible = view.units == "px" and sized and others.mean() > DOUBTED
    return [present, "px" if present == "norm" else "norm"] if plausible else [present]


def _confirm(context: AuditContext, trial: _Trial, findings: FindingLog) -> bool:
    """Match all boxes as given and as the trial reads them, and report a clear gain."""
    aligned = context.aligned
    view = View.of(context, aligned.gt, aligned.pred)
    other = view.reread(trial.role, trial.reading)
    for pooled in (False, True):  # if classes do not correspond either, only places are evidence
        given, reread = (
            average_precision(context, boxes.gt, boxes.pred, iou=IOU, pooled=pooled) for boxes in (view, other)
        )
        if reread - given >= CLEAR_GAIN:
            is_units = trial.reading.encoding == view.readings[trial.role].encoding
            name = f"as {UNITS[trial.reading.units] if is_units else trial.reading.encoding}"
            if trial.reading.resized != view.readings[trial.role].resized:
                name = "read without it"
            classes = " (classes pooled)" if pooled else ""
            text = f"AP50{classes} {given:.3f} as given, {reread:.3f} {name}"
            fix = _fix(side_of(context, trial.role), trial.reading, "AP50", given, reread)
            fix = advised(fix, pair_by_place(trial.view.gt, trial.view.pred))
            _report(context, trial.role, trial.reading, text, findings, fix=fix, is_decisive=trial.is_decisive)
            return True
    return False


def _check_alone(context: AuditContext, view: View, findings: FindingLog) -> None:
    """Look at each side for itself: numbers that can only be fractions, and boxes that leave their images."""
    doubts: dict[str, tuple[Reading, str]] = {}
    for role in ("gt", "pred"):
        side, n = side_of(context, role), len(view.boxes(role))
        if n < FEWEST_BOXES:
            continue
        if _are_fractions(view, role):
            reading = replace(side.reading, units="norm")
            doubts[role] = reading, f"no number of {n:,} boxes exceeds 1, but they are read as pixels"
            continue
        share = view.leaving(role)
        inside = _reading_inside(view, role) if share > LEAVING else None
        if inside is not None:
            text = f"{share:.0%} of the boxes leave their images as {side.reading.encoding}, {inside[1]:.0%} as"
            doubts[role] = inside[0], f"{text} {inside[0].encoding}"
    if not doubts:
        return
    # Sides that were written alike are read anew together: one of them alone would not fit the other.
    other, whole = view, View.of(context, context.aligned.gt, context.aligned.pred)
    reread_whole = whole
    for role, (reading, _) in doubts.items():
        other, reread_whole = other.reread(role, reading), reread_whole.reread(role, reading)
    with np.errstate(over="ignore", invalid="ignore"):
        given, reread = (
            average_precision(context, boxes.gt, boxes.pred, iou=IOU, pooled=True) for boxes in (whole, reread_whole)
        )
    # Boxes of both sides that are too large alike overlap more than they do when read rightly.
    is_worse = len(doubts) < len(view.readings) and reread < given - CLEAR_GAIN
    inside_given, inside_reread = (1 - max(boxes.leaving(role) for role in doubts) for boxes in (view, other))
    for role, (reading, text) in doubts.items():
        fix = None
        if reread > given:
            fix = _fix(side_of(context, role), reading, "AP50", given, reread)
        elif inside_reread > inside_given and not is_worse:
            fix = _fix(side_of(context, role), reading, "boxes inside their images", inside_given, inside_reread)
        elif side_of(context, role).format != "arrays" and not is_worse:
            changed = changed_options(side_of(context, role).reading, reading)
            fix = Fix.of_side(role, "If they are, pass {options}.", **changed)
        _report(context, role, reading, text, findings, fix=fix)


def _are_fractions(view: View, role: str) -> bool:
    """Whether boxes in pixels have the numbers of fractions, although images, or other boxes, are larger."""
    if view.units != "px" or view.readings[role].units != "px":
        return False
    if not (np.abs(view.numbers(role)) <= LARGEST_FRACTION).all():
        return False
    size = view.sizes[view.boxes(role).image]
    other = view.boxes("pred" if role == "gt" else "gt").xywh
    reach = size if not np.isnan(size).any() else other[:, :2] + other[:, 2:]
    return bool(len(reach)) and float(np.median(reach)) >= SMALLEST_IMAGE


def _reading_inside(view: View, role: str) -> tuple[Reading, float] | None:
    """Return the first encoding under which the boxes stay in their images, with the share that does not."""
    present = view.readings[role]
    for encoding in ENCODINGS:
        reading = replace(present, encoding=encoding)
        share = view.reread(role, reading).leaving(role)
        if reading != present and share <= STAYING:
            return reading, share
    return None


def side_of(context: AuditContext, role: str) -> Dataset:
    """Return one side as it was read."""
    return context.gt if role == "gt" else context.pred


def _report(
    context: AuditContext,
    role: str,
    reading: Reading,
    text: str,
    findings: FindingLog,
    *,
    fix: Fix | None,
    is_decisive: bool = False,
) -> None:
    side = side_of(context, role)
    given = side.reading
    changed = changed_options(given, reading)
    named = any(name in changed for name in given.named)
    code = (
        "box-resized"
        if "resized" in changed
        else "box-units"
        if "units" in changed
        else "box-axes"
        if reading.encoding in AXES
        else "box-encoding"
    )
    detail = f"boxes look like {_name(reading, given)}: {text}"
    where = Where(side.path, field="box")
    if is_decisive and fix is not None and context.stops(code, named=named):
        findings.error(code, where, detail, fix=replace(fix, allow=code))
    else:
        findings.warning(code, where, detail, fix=fix)


AXES = {"xxyy": "x1, x2, y1, y2", "yxyx": "y1, x1, y2, x2"}
UNITS = {"px": "pixels", "norm": "fractions"}
UNITS_EXPLAINED = {"px": "pixels", "norm": "fractions of the image (normalised)"}


def _name(reading: Reading, given: Reading) -> str:
    """Name what is different about a reading."""
    encoding = reading.encoding if reading.encoding != given.encoding else ""
    if encoding in AXES:
        encoding = f"{encoding} ({AXES[encoding]})"
    units = UNITS_EXPLAINED[reading.units] if reading.units != given.units else ""
    if reading.resized != given.resized:
        units = "pixels of the images"
    return " in ".join(part for part in (encoding, units) if part)


def _fix(side: Dataset, reading: Reading, metric: str, before: float, after: float) -> Fix:
    words = "Rerun {changes}."
    # What was not done is expressed by omitting the option.
    options: dict[str, Value] = {
        f"{side.role}_{name}": value for name, value in changed_options(side.reading, reading).items()
    }
    if side.format == "arrays":
        words = f'Pass encoding="{reading.encoding}" to BoxTable.from_arrays.'
        options = {}
    return Fix.reading(options, metric=metric, before=before, after=after, words=words)


def changed_options(given: Reading, reading: Reading) -> dict[str, str]:
    """Return the options of a side that make another reading of it, empty where one is to be skipped."""
    stated = [
        {
            "box": one.encoding,
            "units": one.units,
            "mask_axes": one.mask_axes,
            "resized": "" if one.resized is None else str(one.resized),
        }
        for one in (given, reading)
    ]
    return {name: value for name, value in stated[1].items() if value != stated[0][name]}
