r"""The OpenMetrics report, for GitLab's metrics report and for Prometheus: every number of a result, one a line.

The standard is version 1.0.0 of the OpenMetrics specification. GitLab compares the values of two runs as texts, so
metrics have four decimals whatever they are, and the signature, which differs in every run, stands in a help text.
"""

from __future__ import annotations

from collections.abc import Iterable

from jaccard_eval.data.result import Status
from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.checks import GATES, checks_of
from jaccard_eval.report.numbers import UNDEFINED, Measures, Number, fixed, measures_of
from jaccard_eval.text import printable

PREFIX = "jaccard_eval"
_NOT_OF_A_NAME = pattern(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class _Sample:
    family: str
    labels: tuple[tuple[str, str], ...]
    value: str
    about: str


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the document; `options` change nothing. Undefined values are NaN."""
    measures = measures_of(result)
    families: dict[str, list[_Sample]] = {}
    for sample in (*_of_measures(measures), *_of_checks(result)):
        families.setdefault(sample.family, []).append(sample)
    about = f"Signature: {measures.signature}" if measures.signature else "Version"
    lines = [f"# TYPE {PREFIX} info", f"# HELP {PREFIX} {_escaped(about)}"]
    lines.append(f'{PREFIX}_info{{version="{_escaped(measures.version)}"}} 1')
    # The standard wants the samples of a family together, below its type.
    for family, samples in families.items():
        lines += [f"# TYPE {family} gauge", f"# HELP {family} {_escaped(samples[0].about)}"]
        for sample in samples:
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)
            lines.append(f"{family}{f'{{{labels}}}' if labels else ''} {sample.value}")
    return "\n".join([*lines, "# EOF"]) + "\n"


def _of_measures(measures: Measures) -> Iterable[_Sample]:
    for name, value in measures.overall.items():
        yield _measure(PREFIX, name, (), value, f"{name} of all classes")
    for class_name, numbers in measures.per_class:
        for name, value in numbers.items():
            yield _measure(f"{PREFIX}_class", name, (("class", class_name),), value, f"{name} of one class")


def _measure(prefix: str, name: str, labels: tuple[tuple[str, str], ...], value: Number, about: str) -> _Sample:
    """Make one sample; a name that has to be spelt differently stands in a label, for two may become one."""
    plain = _NOT_OF_A_NAME.sub("_", name)
    full = labels if plain == name else (*labels, ("metric", name))
    text = fixed(value)
    return _Sample(f"{prefix}_{plain}", full, "NaN" if text == UNDEFINED else text, about)


def _of_checks(result: Reportable) -> Iterable[_Sample]:
    checks = checks_of(result)
    verdicts = [check.status for check in checks if check.group == GATES]
    for status in Status if verdicts else ():
        count = str(verdicts.count(status))
        yield _Sample(f"{PREFIX}_gates", (("status", str(status)),), count, "Verdicts of gates by status")
    findings = [check.key for check in checks if check.group != GATES]
    for code in sorted(set(findings)):
        yield _Sample(f"{PREFIX}_findings", (("code", code),), str(findings.count(code)), "Findings by code")


def _escaped(text: str) -> str:
    """Escape what ends a label or a line; control characters first, which no reader of logs expects."""
    return printable(text).replace("\\", r"\\").replace('"', r"\"")


REPORTERS = (
    # metrics.txt is GitLab's default; any other .txt is the text report.
    Reporter(suffixes=(".prom", ".om"), names=("metrics.txt",), about="OpenMetrics (Prometheus)", render=render),
)
