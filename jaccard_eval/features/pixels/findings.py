"""The result of counted label maps: scores, what was set aside, and what is odd about the classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from jaccard_eval.errors import Finding, FindingLog, Where, counted
from jaccard_eval.features.pixels.compute import NO_CLASS, ConfusionCounts, pixel_metrics
from jaccard_eval.features.pixels.result import MapsSummary, PixelProtocol, PixelsResult

IntArray = npt.NDArray[np.int64]

OFTEN_IGNORED = 255  # "void" of PASCAL VOC, ignore_index of most training code
SHOWN_CLASSES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedMaps:
    """Label maps of both sides after counting.

    Parameters
    ----------
    counts : ConfusionCounts
        Of classes.
    paths : tuple of str
        The two inputs as the user named them.
    formats : tuple of str
    fingerprints : tuple of str
    ignored : tuple of (mapping of str to int)
        Files that were set aside on each side, by reason.
    n_pairs : int
    strategy : str
    findings : tuple of Finding
    """

    counts: ConfusionCounts
    paths: tuple[str, str]
    formats: tuple[str, str]
    fingerprints: tuple[str, str]
    n_pairs: int
    strategy: str
    ignored: tuple[Mapping[str, int], Mapping[str, int]] = field(default_factory=lambda: ({}, {}))
    findings: tuple[Finding, ...] = ()


def pixels_result(maps: CountedMaps, protocol: PixelProtocol, version: str) -> PixelsResult:
    """Return the scores of counted label maps, with their signature and with what is odd."""
    classes = maps.counts.classes if protocol.classes is None else np.arange(len(protocol.classes))
    names = protocol.classes or tuple(map(str, classes.tolist()))
    counts = maps.counts.indexed(classes)
    background = _index_of(protocol.background, classes)
    metrics = pixel_metrics(counts, names, background=background, drop_background=protocol.drop_background)
    gt, pred = _summaries(maps, protocol)
    parts = [*protocol.signature_parts(), f"gt={gt.fingerprint}", f"pred={pred.fingerprint}", f"v={version}"]
    return PixelsResult(
        protocol=protocol,
        signature="|".join(parts),
        version=version,
        gt=gt,
        pred=pred,
        image_strategy=maps.strategy,
        metrics=metrics.overall,
        per_class=metrics.per_class,
        confusion=_named(counts, names),
        findings=(*maps.findings, *_audit(maps, protocol)),
    )


def _index_of(value: int | None, classes: IntArray) -> int | None:
    places = [] if value is None else np.flatnonzero(classes == value).tolist()
    return places[0] if places else None


def _summaries(maps: CountedMaps, protocol: PixelProtocol) -> tuple[MapsSummary, MapsSummary]:
    counts = maps.counts
    is_ignored = counts.gt == NO_CLASS
    aside = {"pixels-ignored": int(counts.pixels[is_ignored].sum()), "pixels-background": _dropped(counts, protocol)}
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


def _dropped(counts: ConfusionCounts, protocol: PixelProtocol) -> int:
    """Count the pixels that the rule on background leaves out."""
    is_background = {"gt": counts.gt == protocol.background, "pred": counts.pred == protocol.background}
    is_background["both"] = is_background["gt"] | is_background["pred"]
    if protocol.drop_background is None:
        return 0
    return int(counts.pixels[is_background[protocol.drop_background] & (counts.gt != NO_CLASS)].sum())


def _named(counts: ConfusionCounts, names: tuple[str, ...]) -> tuple[tuple[str, str | None, int], ...]:
    kept = counts.take(counts.gt != NO_CLASS)
    rows = zip(kept.gt.tolist(), kept.pred.tolist(), kept.pixels.tolist(), strict=True)
    return tuple((names[gt], None if pred == NO_CLASS else names[pred], pixels) for gt, pred, pixels in rows)


def _audit(maps: CountedMaps, protocol: PixelProtocol) -> tuple[Finding, ...]:
    findings = FindingLog()
    gt, pred = (Where(path) for path in maps.paths)
    counts = maps.counts.take(maps.counts.gt != NO_CLASS)
    if protocol.classes is None:
        _warn_of_unnamed(counts, gt, pred, findings)
    undecided = int(counts.pixels[counts.pred == NO_CLASS].sum())
    if undecided:
        detail = (
            f"{counted(undecided, 'pixel')} are predicted as an ignored value, which is no class: they count as misses"
        )
        findings.warning("map-undecided", pred, detail, fix="Predict a class for every pixel.")
    if protocol.background is not None and protocol.background not in maps.counts.classes:
        detail = f"background {protocol.background} occurs in no label map: no pixel is background"
        findings.warning("map-background", gt, detail, fix="Check --background; it is a class as the report names it.")
    return findings.findings()


def _warn_of_unnamed(counts: ConfusionCounts, gt: Where, pred: Where, findings: FindingLog) -> None:
    """Warn of values that may be no classes, where no names say which are."""
    void = int(counts.pixels[counts.gt == OFTEN_IGNORED].sum())
    if void:
        detail = f"{OFTEN_IGNORED} is counted as a class, on {counted(void, 'pixel')}; it often marks pixels to ignore"
        findings.warning("map-void", gt, detail, fix=f"Leave them out with --ignore {OFTEN_IGNORED}.")
    extra = [str(value) for value in np.setdiff1d(counts.pred, [*counts.gt, NO_CLASS]).tolist()]
    if extra:
        listed = ", ".join(extra[:SHOWN_CLASSES]) + (", ..." if len(extra) > SHOWN_CLASSES else "")
        what = counted(len(extra), "class occurs", "classes occur")
        detail = f"{what} in the predictions only, with an IoU of 0 each in the mean: {listed}"
        findings.warning("map-class-extra", pred, detail, fix="Name the classes with --classes, or check the values.")
