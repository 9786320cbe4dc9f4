"""Records and lines that cannot be used: what of them ends a run, and how they are skipped where the user shows so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from jaccard_eval.findings import DataError, Example, Finding, FindingLog, Group, Severity, SizedRows, Where
from jaccard_eval.fixes import ON, Fix
from jaccard_eval.patterns import pattern
from jaccard_eval.text import pluralise

# What can be wrong with one record while all others are sound. What a class or an image is called is not among it, nor
# what is the same mistake in all records: boxes of another encoding, a column that is missing, scores that none has.
FAULTS = frozenset(
    {"bbox-length", "bbox-type", "box-too-large", "class-invalid", "class-unknown", "columns", "coordinate-range"}
    | {
        "csv-bbox",
        "csv-box-partial",
        "csv-cell-empty",
        "csv-flag",
        "csv-number",
        "csv-prediction-string",
        "element-repeated",
    }
    | {"field-missing", "flag-value", "id-range", "id-type", "keypoints-invalid", "number-invalid"}
    | {"number-not-finite", "number-type", "record-type", "score-missing", "segmentation-invalid", "units-mixed"}
)
SKIPPED = "invalid"  # how many are counted among what is ignored of a side
# Objects of a file that are not boxes: without them boxes would lose their image or their class.
_OTHERS = pattern(r"(images|categories|licenses)(\[\d+\])?")
_DEEPEST = 99  # while no box is known
_PARTS = pattern(r"[.\[]")
Place = tuple[str, int | None, str | None]


def place_of(where: Where) -> Place:
    """Return the file, the line, and the way to the record and field in it."""
    return where.path, where.line, ".".join(filter(None, (where.record, where.field))) or None


def is_of_record(where: Where) -> bool:
    """Whether a place is a record or line that may hold a box."""
    return where.line is not None or (where.record is not None and not _OTHERS.fullmatch(where.record))


class SkippingLog(FindingLog):
    """Findings of a reader that skips records that cannot be used: errors about one record end nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = FindingLog()
        self.places: dict[Place, Where] = {}
        self._left_out: set[Place] = set()  # a record may have several boxes
        self._depth = _DEEPEST  # of the places of boxes
        self._around: set[Place] = set()  # what these lie in: a point of a polygon in its shape

    def add_rows(
        self,
        severity: Severity,
        code: str,
        rows: SizedRows,
        describe: Callable[[int], tuple[Where, str]],
        **more: Any,
    ) -> None:
        """Record one finding about many rows; of those that are skipped all are described."""
        if severity is Severity.ERROR and code in FAULTS:
            for row in rows:
                where, detail = describe(int(row))
                self.error(code, where, detail, fix=more.get("fix", ""))
        else:
            super().add_rows(severity, code, rows, describe, **more)

    def _add(self, severity: Severity, code: str, examples: list[Example], *rest: Any, **more: Any) -> Group:
        places = [example.where for example in examples]
        if severity is not Severity.ERROR or code not in FAULTS or not all(map(is_of_record, places)):
            return super()._add(severity, code, examples, *rest, **more)
        for where in places:
            self.places[place_of(where)] = where
            self._around.update(_around(where))
        return self.faults._add(severity, code, examples, *rest, **more)

    def faulty(self, places: Sequence[Where]) -> list[int]:
        """Return which boxes of these places are skipped: those of a record with a fault in it."""
        self._depth = min([self._depth, *(_depth(place_of(where)[2]) for where in places)])
        found = [row for row, where in enumerate(places) if place_of(where) in self._around]
        self._left_out.update(place_of(places[row]) for row in found)
        return found

    def settle(self, n_left: int, path: str) -> int:
        """Report how many records were skipped of a side, and return that; an error where nothing is left."""
        # What its reader added no box for is counted by its record.
        others = {
            (where.path, where.line, where.record)
            for where in self.places.values()
            if self._left_out.isdisjoint(_around(where))
        }
        # A fault of what holds boxes, such as an image, is not one of a box.
        if self._depth < _DEEPEST and any(_depth(record) < self._depth for _, _, record in others):
            self.refuse()
        n = len(self._left_out) + len(others)
        if n and not n_left:
            self.refuse()
        if n:
            found = self.faults.findings()
            kinds = ", ".join(f"{finding.count:,} {finding.code}" for finding in found)
            what = f"skipped {n:,} of {pluralise(n + n_left, 'record', 'records')} that cannot be used ({kinds})"
            self.warning("record-skipped", Where(path), f"{what}; first: {found[0].examples[0]}")
        return n

    def refuse(self) -> NoReturn:
        """Raise the errors about records, as if none might be skipped."""
        self.extend_as_they_are(self.faults.findings())
        raise DataError(self.findings())

    def extend_as_they_are(self, findings: Sequence[Finding]) -> None:
        """Take over errors that end the reading."""
        for finding in findings:
            super()._add(finding.severity, finding.code, [*finding.examples], finding.fix, finding.summary)


def _depth(record: str | None) -> int:
    return 0 if record is None else record.count("[")


def _around(where: Where) -> Iterator[Place]:
    """Yield the places that one lies in: shapes[0].points[1].x, shapes[0].points[1], shapes[0]."""
    path, line, full = place_of(where)
    yield path, line, full
    yield path, line, where.record
    for cut in _PARTS.finditer(full or ""):
        if (full or "")[: cut.start()].endswith("]"):
            yield path, line, (full or "")[: cut.start()]


def explained(error: DataError, read: Callable[[], FindingLog]) -> DataError:
    """Return an error about records with all of them, whatever stage found them, and with the way to go on without.

    `read` reads the input once more, without these records: its findings, or an error where that ends otherwise too.
    """
    errors = [finding for finding in error.findings if finding.severity is Severity.ERROR]
    if not any(finding.code in FAULTS and is_of_record(finding.examples[0].where) for finding in errors):
        return error
    try:
        log = read()
    except DataError:
        return error
    if not isinstance(log, SkippingLog) or not log.places:
        return error
    *faults, last = log.faults.findings()
    words, options = (last.fix.words, last.fix.options) if last.fix else ("", {})
    words = f"{words} To go on without such records, pass {{skip_invalid}}.".lstrip()
    last = replace(last, fix=Fix.missing(words, **options, skip_invalid=ON))
    rest = (finding for finding in log.findings() if finding.code != "record-skipped")
    return DataError((*faults, last, *rest))
