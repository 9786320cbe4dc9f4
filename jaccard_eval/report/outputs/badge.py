"""The badge: an endpoint of shields.io, which draws the headline metric in the colour of the gates."""

from __future__ import annotations

import json

from jaccard_eval.data.verdict import Status
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.checks import GATES, checks_of, overall
from jaccard_eval.report.numbers import fixed, measures_of
from jaccard_eval.text import pluralise, printable

UNJUDGED = "blue"  # a number is neither good nor bad without a gate
COLORS = {Status.PASS: "brightgreen", Status.WARN: "yellow", Status.FAIL: "red"}
WORDS = {Status.PASS: "passed", Status.WARN: "passed with warnings", Status.FAIL: "failed"}


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the document of shields' endpoint schema 1; `options` change nothing."""
    verdicts = [one for one in checks_of(result) if one.group == GATES]
    label, message = _words(result, overall(verdicts) if verdicts else None)
    color = COLORS[overall(verdicts)] if verdicts else UNJUDGED
    badge = {"schemaVersion": 1, "label": label, "message": message, "color": color}
    return json.dumps(badge, indent=2, ensure_ascii=True) + "\n"


def _words(result: Reportable, verdict: Status | None) -> tuple[str, str]:
    """Return the headline metric; where there is none the verdict, else how many findings there are."""
    for name, value in measures_of(result).overall.items():
        return printable(name), fixed(value)
    if verdict is not None:
        return "quality gates", WORDS[verdict]
    return result.kind, pluralise(len(checks_of(result)), "finding")


REPORTERS = (Reporter(names=("badge.json",), render=render),)
