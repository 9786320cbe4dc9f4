"""Findings: how the project reports what is wrong with an input.

A *finding* is one kind of problem (code, severity, fix) with a count and its first few examples, each with its
place. Loaders collect findings in a :class:`FindingLog`, so that all problems of an input are reported in one pass.
Standard library only: every layer may import this module, and this module imports no layer.
"""

from __future__ import annotations

import contextlib
import enum
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any
from typing import Protocol as TypingProtocol

from jaccard_eval.codes import CAPS
from jaccard_eval.errors import ExitCode, JaccardEvalError, UsageError
from jaccard_eval.fixes import FLAGS, Fix, Wording
from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
from jaccard_eval.text import Rows, aligned, printable

MAX_EXAMPLES = 20  # examples kept per finding; the count goes on
LONG_FOLDER = 100  # characters, from which further examples in it do not repeat it
SHOWN_EXAMPLES = 5  # of these, a text shows the first few


class SizedRows(TypingProtocol):
    """Rows of a table: a list, a range or an array of integers."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


class Severity(enum.StrEnum):
    """How much a finding matters: an error stops the run, a warning may change a number, a note explains one."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Where:
    """A place in an input: a file, then a record or a line, then a field."""

    path: str
    record: str | None = None
    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        inner = ".".join(part for part in (self.record, self.field) if part)
        return printable(f"{place}: {inner}" if inner else place)


@dataclass(frozen=True, slots=True)
class Example:
    """One occurrence of a finding: its place and what was found there."""

    where: Where
    detail: str

    def __str__(self) -> str:
        return f"{self.where}: {printable(self.detail)}" if self.detail else str(self.where)

    def behind(self, first: Example) -> str:
        """Return the text where it stands below that of another example, without a long folder that both are in."""
        folder, slash, name = self.where.path.replace("\\", "/").rpartition("/")
        is_same = first.where.path.replace("\\", "/").startswith(f"{folder}{slash}")
        if len(folder) <= LONG_FOLDER or not is_same:
            return str(self)
        return str(Example(replace(self.where, path=f".../{name}"), self.detail))


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of problem in an input, with its count, its first examples and how to fix it."""

    severity: Severity
    code: str  # stable, in kebab-case; each is explained in docs/findings.md
    count: int
    examples: tuple[Example, ...]  # the first few
    fix: Fix | None = None
    # One line about all occurrences, where the first one alone is not enough.
    summary: str = ""
    table: Rows = ()  # evidence, shown below the message; the first row is the header

    @property
    def statement(self) -> str:
        """Place, what is wrong, and how often, in one line."""
        first = self.examples[0]
        if not self.summary:
            return str(first)
        line = f"{printable(first.where.path)}: {printable(self.summary)}"
        return f"{line}; first: {first}" if first.detail else line

    @property
    def message(self) -> str:
        """The statement and the fix, in one line, as the command line and documents have it."""
        return self.told(FLAGS)

    def told(self, wording: Wording) -> str:
        """Return the statement and the fix in one line, in somebody's words."""
        if self.fix is None:
            return self.statement
        ended = self.statement.endswith((".", "?"))  # a suggestion: "Did you mean 'AP'?"
        return f"{self.statement}{'' if ended else '.'} {self.advice(wording)}"

    def advice(self, wording: Wording = FLAGS) -> str:
        """Return what would help; empty where nothing is known."""
        return "" if self.fix is None else printable(self.fix.worded(wording))

    @property
    def further(self) -> tuple[str, ...]:
        """Lines that follow the message: some more examples, and how many there are beyond these.

        Notes have none, nor warnings that a summary counts: the first example is enough to look into.
        """
        if self.severity is Severity.NOTE or (self.summary and self.severity is not Severity.ERROR):
            return ()
        lines = [example.behind(self.examples[0]) for example in self.examples[1:SHOWN_EXAMPLES]]
        hidden = self.count - min(len(self.examples), SHOWN_EXAMPLES)
        return (*lines, f"and {hidden:,} more") if hidden > 0 else tuple(lines)

    def in_full(self, wording: Wording) -> str:
        """Return the lines of a finding: message, further examples and table."""
        below = (*self.further, *aligned(self.table))
        return "\n".join([f"{self.severity}[{self.code}]: {self.told(wording)}", *(f"  {line}" for line in below)])

    def __str__(self) -> str:
        return self.in_full(FLAGS)


def in_text_report(finding: Finding) -> bool:
    """Whether a finding stands in reports of all kinds: warnings, and notes on what a protocol does not count."""
    return finding.severity is Severity.WARNING or (finding.severity is Severity.NOTE and finding.code in CAPS)


def as_fix(fix: Fix | str | None) -> Fix | None:
    """Return a sentence without options as a fix: something is missing, or to be corrected; None if it is empty."""
    return Fix.missing(fix) if fix and isinstance(fix, str) else fix or None


def parse_finding(document: Mapping[str, Any]) -> Finding:
    """Return a finding as it was before documents had it: its message is cut into place and what is wrong."""
    message, texts = str(document["message"]), [str(text) for text in document["examples"]]
    examples = tuple(_parse_example(text) for text in texts)
    first = texts[0] if texts else message
    start = f"{examples[0].where}: " if texts else ""
    if texts and not message.startswith(start):
        # A summary is of the file, its first example of one line of it.
        path, _, line = examples[0].where.path.rpartition(":")
        if line.isdecimal() and message.startswith(f"{path}: "):
            start, place = f"{path}: ", Where(path, line=int(line))
            examples = (Example(place, examples[0].detail), *examples[1:])
    summary = ""
    if not message.startswith(first) or not examples[0].detail:
        # It has a summary, with the first example behind it where that adds anything; what follows is the fix.
        summary, quoted, _ = message.removeprefix(start).partition(f"; first: {first}")
        if not quoted:  # places alone, which the summary is about
            examples = tuple(Example(Where(one.where.path, record=one.detail), "") for one in examples)
    fix = None if document["fix"] is None else parse_fix(document["fix"])
    table = tuple(tuple(str(cell) for cell in row) for row in document["table"])
    severity, code, count = Severity(document["severity"]), str(document["code"]), int(document["count"])
    return Finding(severity, code, count, examples or (_parse_example(message),), fix, summary, table)


def _parse_example(text: str) -> Example:
    place, _, detail = text.partition(": ")
    return Example(Where(place), detail)


def parse_fix(document: Mapping[str, Any]) -> Fix:
    """Return a fix as documents have it: several values of an option are a list there."""
    fields = {name: document[name] for name in ("kind", "words", "metric", "before", "after")}
    options = {
        str(name): tuple(map(str, value)) if isinstance(value, list) else value if value is None else str(value)
        for name, value in document["options"].items()
    }
    return Fix(options=options, allow=document.get("allow", ""), **fields)


class JaccardEvalWarning(UserWarning):
    """A finding that may change a number: the verbs of the library issue one for each warning of what they return.

    The text begins with the code, so that one kind can be ignored, or made an error, by it.

    Parameters
    ----------
    finding : Finding
        Also an attribute, as is its `code`, such as "class-unknown".
    message : str, optional
        What it is about, where that is not the message of the finding.

    Examples
    --------
    >>> import warnings
    >>> from jaccard_eval import JaccardEvalWarning
    >>> warnings.filterwarnings("ignore", "class-unknown:", JaccardEvalWarning)
    """

    def __init__(self, finding: Finding, message: str = "") -> None:
        super().__init__(finding, message)
        self.finding = finding
        self.code = finding.code

    def __str__(self) -> str:
        return f"{self.code}: {self.args[1] or self.finding.message}"


def issue_warnings(findings: Iterable[Finding], *, stacklevel: int = 2, wording: Wording = FLAGS) -> None:
    """Issue a Python warning for each finding that is one; by default, in the name of the caller's caller."""
    for finding in findings:
        if finding.severity is Severity.WARNING:
            warnings.warn(JaccardEvalWarning(finding, finding.told(wording)), stacklevel=stacklevel + 1)


Group = tuple[Severity, str, str, str]  # severity, code, file and field, which findings of a group share


class FindingLog:
    """Collects findings while an input is read; one group per severity, code, file and field."""

    def __init__(self) -> None:
        # The first finding of each group, and what grows: how many there are, and some examples.
        self._groups: dict[Group, tuple[Finding, list[Example]]] = {}
        self._counts: dict[Group, int] = {}
        self._summaries: dict[Group, Callable[[int], str]] = {}  # of a count, which grows where parts are merged

    def error(self, code: str, where: Where, detail: str, *, fix: Fix | str | None = "", table: Rows = ()) -> None:
        """Record a problem that makes the data unusable."""
        self._add(Severity.ERROR, code, [Example(where, detail)], fix, table=table)

    def warning(self, code: str, where: Where, detail: str, *, fix: Fix | str | None = "", table: Rows = ()) -> None:
        """Record something that may change a number."""
        self._add(Severity.WARNING, code, [Example(where, detail)], fix, table=table)

    def note(self, code: str, where: Where, detail: str, *, fix: Fix | str | None = "", table: Rows = ()) -> None:
        """Record how the input was read, or what was assumed."""
        self._add(Severity.NOTE, code, [Example(where, detail)], fix, table=table)

    def add_one(
        self, severity: Severity, code: str, where: Where, detail: str, *, fix: Fix | str | None = "", table: Rows = ()
    ) -> None:
        """Record a problem whose weight depends on what was found."""
        self._add(severity, code, [Example(where, detail)], fix, table=table)

    def add_rows(
        self,
        severity: Severity,
        code: str,
        rows: SizedRows,
        describe: Callable[[int], tuple[Where, str]],
        *,
        fix: Fix | str | None = "",
        summary: str | Callable[[int], str] = "",
    ) -> None:
        """Record one finding about many rows; only the first few are described."""
        if len(rows):
            examples = [Example(*describe(int(row))) for row in islice(rows, MAX_EXAMPLES)]
            text = summary(len(rows)) if callable(summary) else summary
            group = self._add(severity, code, examples, fix, text, count=len(rows))
            if callable(summary):
                self._summaries[group] = summary

    def extend(self, findings: Iterable[Finding]) -> None:
        """Take over findings made elsewhere."""
        for finding in findings:
            self._add(
                finding.severity,
                finding.code,
                list(finding.examples),
                finding.fix,
                finding.summary,
                table=finding.table,
                count=finding.count,
            )

    def findings(self) -> tuple[Finding, ...]:
        """All findings so far: errors, then warnings, then notes, each in the order of arrival."""
        rank = list(Severity)
        return tuple(
            replace(first, count=self._counts[key], examples=tuple(examples))
            for key, (first, examples) in sorted(self._groups.items(), key=lambda group: rank.index(group[0][0]))
        )

    @property
    def has_errors(self) -> bool:
        """Whether any error was recorded."""
        return any(severity is Severity.ERROR for severity, *_ in self._groups)

    def has(self, *codes: str) -> bool:
        """Whether any finding of these codes was recorded."""
        return any(code in codes for _, code, *_ in self._groups)

    def raise_errors(self, *, but: Collection[str] = ()) -> None:
        """Raise :class:`DataError` with everything found, when anything was an error; some codes can wait."""
        if any(severity is Severity.ERROR and code not in but for severity, code, *_ in self._groups):
            raise DataError(self.findings())

    def _add(
        self,
        severity: Severity,
        code: str,
        examples: list[Example],
        fix: Fix | str | None,
        summary: str = "",
        *,
        table: Rows = (),
        count: int = 1,
    ) -> Group:
        where = examples[0].where
        field_name = (where.field or "").partition("[")[0]  # bbox[0] and bbox[3] are of one kind
        key = (severity, code, where.path, field_name)
        # The first finding of a group gives its fix, summary and table.
        if key not in self._groups:
            self._groups[key] = Finding(severity, code, 0, (), as_fix(fix), summary, table), []
        kept = self._groups[key][1]
        kept.extend(examples[: MAX_EXAMPLES - len(kept)])
        self._counts[key] = self._counts.get(key, 0) + count
        return key


class DataError(JaccardEvalError):
    """The data cannot be used (exit code 3); ``findings`` holds every problem found, warnings included.

    Examples
    --------
    >>> from jaccard_eval import DataError, load
    >>> try:
    ...     load("no/such/file.json")
    ... except DataError as error:
    ...     print(error.findings[0].code)
    file-missing
    """

    exit_code = ExitCode.DATA

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(map(str, self.findings)))

    def told(self, wording: Wording) -> str:
        """Return all findings, in somebody's words."""
        return "\n".join(finding.in_full(wording) for finding in self.findings)

    @classmethod
    def single(cls, code: str, where: Where, detail: str, *, fix: Fix | str | None = "") -> DataError:
        """Make the error of one problem."""
        log = FindingLog()
        log.error(code, where, detail, fix=fix)
        return cls(log.findings())


class SettingsError(UsageError, DataError):
    """A file that sets up the run, and is not measured by it, cannot be used (exit code 2)."""


@contextlib.contextmanager
def as_settings() -> Iterator[None]:
    """Take what is wrong with a file for a mistake in the settings of the run: it holds rules, names or groups."""
    try:
        yield
    except DataError as error:
        raise SettingsError(error.findings) from None


def is_address(path: object) -> bool:
    """Whether a path was written as an address: nothing is read from there, nor written."""
    return _ADDRESS.match(str(path)) is not None


def as_given(path: object) -> str:
    """Return a path as it was written: of an address, ``Path`` keeps one slash of the two behind the scheme.

    Examples
    --------
    >>> from pathlib import PurePosixPath
    >>> as_given(PurePosixPath("s3://bucket/gt.json"))
    's3://bucket/gt.json'
    """
    return _ADDRESS.sub(r"\1://", str(path))


_ADDRESS = pattern(r"([A-Za-z][A-Za-z0-9+.-]+)://?(?=[^/])")  # one letter is a drive


def reason_of(error: OSError) -> str:
    """Return why the system refused, for the end of a message."""
    return (error.strerror or str(error) or type(error).__name__).lower()
