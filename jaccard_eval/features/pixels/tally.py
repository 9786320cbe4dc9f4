"""Adding up the counts of all pairs, with what is wrong or odd about them. The order of the pairs changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from jaccard_eval.data.signature import FINGERPRINT_DIGITS
from jaccard_eval.errors import Example, Finding, FindingLog, Severity, Where
from jaccard_eval.features.pixels.compute import ConfusionCounts
from jaccard_eval.features.pixels.counting import Color, PairCount

AT_ONCE = 256  # counts that wait to be merged; each is small, and merging one by one would sort again and again


class Tally:
    """The sum of pairs."""

    def __init__(self) -> None:
        self._parts: list[ConfusionCounts] = []
        self._digests: list[tuple[str, bytes, bytes]] = []
        self._errors: dict[tuple[str, str], list[Finding]] = {}
        self._colors: dict[int, tuple[Color, str]] = {}
        self._clashes: list[Example] = []

    def add(self, one: PairCount) -> None:
        """Add one pair."""
        self._parts.append(one.counts)
        if len(self._parts) == AT_ONCE:
            self._parts = [ConfusionCounts.merge(self._parts)]
        self._digests.append((one.pair.name, *one.digests))
        for error in one.errors:
            self._errors.setdefault((error.code, error.fix), []).append(error)
        for path, colors in one.palettes.items():
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
            findings.add_rows(Severity.ERROR, code, range(sum(one.count for one in same)), _of(examples), fix=fix)
        fix = "Values count; if the colours are right instead, pass --colors FILE."
        findings.add_rows(Severity.WARNING, "map-palette", range(len(self._clashes)), _of(self._clashes), fix=fix)

    def _compare_colors(self, path: str, colors: Iterable[tuple[int, Color]]) -> None:
        """Remember a file whose palette gives a value another colour than the files before it."""
        for value, color in colors:
            first, other = self._colors.setdefault(value, (color, path))
            if first != color:
                detail = f"value {value} has the colour {_text(color)} here and {_text(first)} in {other}"
                self._clashes.append(Example(Where(path), detail))
                return


def _text(color: Color) -> str:
    return " ".join(map(str, color))


def _digest(rows: Iterable[tuple[str, bytes]]) -> str:
    state = hashlib.sha256()
    for name, digest in rows:
        state.update(f"{len(name)} {name}".encode("utf-8", "surrogatepass") + digest)
    return f"sha256:{state.hexdigest()[:FINGERPRINT_DIGITS]}"


def _of(examples: Sequence[Example]) -> Callable[[int], tuple[Where, str]]:
    """Return what describes a row of examples; errors keep as many as are ever described."""

    def describe(row: int) -> tuple[Where, str]:
        return examples[row].where, examples[row].detail

    return describe
