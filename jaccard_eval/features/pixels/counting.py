"""Counting one pair of label maps: read, checked, values taken for classes. Pairs may be counted in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from jaccard_eval.errors import DataError, Finding, FindingLog, Severity, Where, counted
from jaccard_eval.features.pixels.compute import NO_CLASS, ConfusionCounts
from jaccard_eval.features.pixels.result import PixelProtocol
from jaccard_eval.reading.labelmaps.colors import ColorTable, color_text
from jaccard_eval.reading.labelmaps.images import EncodedImage, LabelImage
from jaccard_eval.reading.labelmaps.sides import MapPair

IntArray = npt.NDArray[np.int64]
Color = tuple[int, ...]
Source = TypeVar("Source")
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCount:
    """What one pair adds to the whole.

    Parameters
    ----------
    pair : MapPair
    counts : ConfusionCounts
        Of classes; of nothing when there are errors.
    digests : tuple of bytes
        Of the two files.
    palettes : mapping of str to (mapping of int to tuple of int)
        By file: the colours that its palette, if any, gives to the values that occur.
    errors : tuple of Finding
    """

    pair: MapPair
    counts: ConfusionCounts = field(default_factory=lambda: ConfusionCounts.merge(()))
    digests: tuple[bytes, bytes] = (b"", b"")
    palettes: Mapping[str, Mapping[int, Color]] = field(default_factory=dict)
    errors: tuple[Finding, ...] = ()


def count_pair(pair: MapPair, *, protocol: PixelProtocol, colors: ColorTable | None) -> PairCount:
    """Read two label maps and count their pixels; what is wrong with them is in the result's errors."""
    findings = FindingLog()
    encoded = _each(EncodedImage, (pair.gt, pair.pred), findings)
    if not findings.has_errors:
        _require_one_size(encoded[0], encoded[1], findings)
    decode = partial(EncodedImage.decode, by_color=colors is not None)
    images = [] if findings.has_errors else _each(decode, encoded, findings)
    if findings.has_errors:
        return PairCount(pair=pair, errors=findings.findings())
    strips = zip(images[0].strips(), images[1].strips(), strict=True)
    raw = ConfusionCounts.merge(ConfusionCounts.from_maps(gt, pred) for gt, pred in strips)
    sides = (
        _Side(str(pair.gt), images[0], raw.gt, raw.pixels, is_reduced=protocol.reduce_zero is not None),
        _Side(str(pair.pred), images[1], raw.pred, raw.pixels, is_reduced=protocol.reduce_zero == "both"),
    )
    gt_classes, pred_classes = (_classes_of(side, protocol, colors, findings) for side in sides)
    if findings.has_errors:
        return PairCount(pair=pair, errors=findings.findings())
    return PairCount(
        pair=pair,
        counts=ConfusionCounts.from_pairs(gt_classes, pred_classes, raw.pixels),
        digests=(encoded[0].digest, encoded[1].digest),
        palettes={side.path: side.colors_in_use() for side in sides},
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One map of a pair; `values` of the file and how many `pixels` have them, shape (n,) each, values may repeat."""

    path: str
    image: LabelImage
    values: IntArray
    pixels: IntArray
    is_reduced: bool

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


def _require_one_size(gt: EncodedImage, pred: EncodedImage, findings: FindingLog) -> None:
    if gt.shape != pred.shape:
        (gt_height, gt_width), (height, width) = gt.shape, pred.shape
        detail = f"is {width} x {height} pixels; its ground truth {gt.where.path} is {gt_width} x {gt_height}"
        fix = "Scale the prediction to the ground truth's size, with the nearest neighbour."
        findings.error("map-size", pred.where, detail, fix=fix)


def _classes_of(side: _Side, protocol: PixelProtocol, colors: ColorTable | None, findings: FindingLog) -> IntArray:
    """Return the class of each of a side's values, `NO_CLASS` for ignored ones; those that are neither are errors."""
    number = colors.classes_of(side.values) if colors is not None and side.image.is_colored else side.values
    is_ignored = np.isin(number, protocol.ignore)
    if side.is_reduced:
        is_ignored |= number == 0
        number = np.where(number > 0, number - 1, number)
    is_unknown = ~is_ignored & (number < 0)
    if protocol.classes is not None:
        is_unknown |= ~is_ignored & (number >= len(protocol.classes))
    _report_unknown(side, np.unique(side.values[is_unknown]), protocol, findings)
    return np.where(is_ignored, NO_CLASS, number)


def _report_unknown(side: _Side, unknown: IntArray, protocol: PixelProtocol, findings: FindingLog) -> None:
    is_colored = side.image.is_colored

    def describe(row: int) -> tuple[Where, str]:
        value = int(unknown[row])
        what = f"colour {color_text(value)}" if is_colored else f"value {value}"
        pixels = int(side.pixels[side.values == value].sum())
        where = Where(side.path, record="({}, {})".format(*side.image.first_place(value)))
        return where, f"{what} is no class; {counted(pixels, 'pixel')} of it, this is the first"

    code = "map-color" if is_colored else "map-value"
    classes = f"Classes are {protocol.known_classes}; name them all with --classes, or leave values out with --ignore."
    fix = "Add it to the table of --colors." if is_colored else classes
    findings.add_rows(Severity.ERROR, code, range(len(unknown)), describe, fix=fix)
