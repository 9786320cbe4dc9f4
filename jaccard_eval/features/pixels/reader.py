"""Reading and counting all label maps of two sides. How the work is spread is the caller's choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from jaccard_eval.errors import FindingLog
from jaccard_eval.features.pixels.counting import PairCount, count_pair
from jaccard_eval.features.pixels.findings import CountedMaps
from jaccard_eval.features.pixels.result import PixelProtocol
from jaccard_eval.features.pixels.tally import Tally
from jaccard_eval.reading.labelmaps.colors import ColorTable
from jaccard_eval.reading.labelmaps.pairs import Pairing, pair_maps
from jaccard_eval.reading.labelmaps.sides import MapPair

Run = Callable[[Callable[[MapPair], PairCount], Iterable[MapPair]], Iterable[PairCount]]


def count_label_maps(
    gt: Path,
    pred: Path,
    protocol: PixelProtocol,
    *,
    colors: ColorTable | None = None,
    list_file: Path | None = None,
    run: Run = map,
) -> CountedMaps:
    """Count the pixels of all pairs of label maps.

    Parameters
    ----------
    gt, pred : Path
        A PNG or .npy file, or a folder.
    protocol : PixelProtocol
    colors : ColorTable, optional
        Classes of colours.
    list_file : Path, optional
        Which maps to compare.
    run : callable
        ``map`` or what spreads its work; one pair is under way per worker, so that memory stays bounded.

    Returns
    -------
    CountedMaps

    Raises
    ------
    DataError
        With everything that is wrong with any file, in one pass.
    """
    findings = FindingLog()
    pairing = pair_maps(gt, pred, list_file, findings)
    tally = Tally()
    for one in run(partial(count_pair, protocol=protocol, colors=colors), pairing.pairs):
        tally.add(one)
    tally.report_to(findings)
    findings.raise_errors()
    return CountedMaps(
        counts=tally.counts,
        paths=(str(gt), str(pred)),
        formats=_formats(pairing),
        fingerprints=tally.fingerprints,
        n_pairs=len(pairing.pairs),
        strategy=pairing.strategy,
        ignored=pairing.ignored,
        findings=findings.findings(),
    )


def _formats(pairing: Pairing) -> tuple[str, str]:
    """Name the kinds of files on either side."""
    suffixes = {pair.gt.suffix for pair in pairing.pairs}, {pair.pred.suffix for pair in pairing.pairs}
    gt, pred = (", ".join(sorted({suffix.lower().lstrip(".") for suffix in side})) for side in suffixes)
    return gt, pred
