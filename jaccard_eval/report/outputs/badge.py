"""The badge: an endpoint of shields.io, which draws the headline metric in the colour of the gates."""

from __future__ import annotations

import itertools
import json

from jaccard_eval.data.result import Status
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.checks import GATES, checks_of, overall
from jaccard_eval.report.numbers import fixed, measures_of
from jaccard_eval.text import pluralise, printable

UNJUDGED = "blue"  # a number is neither good nor bad without a gate
COLORS = {Status.PASS: "brightgreen", Status.WARN: "yellow", Status.FAIL: "red"}
WORDS = {Status.PASS: "passed", Status.WARN: "passed with warnings", Status.FAIL: "failed"}


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the document of shields' endpoint schema 1; `options` change nothing."""
    checks = checks_of(result)
    verdicts = [check for check in checks if check.group == GATES]
    verdict = overall(verdicts) if verdicts else None
    # The headline metric; where there is none the verdict, else how many findings there are.
    label, message = result.kind, pluralise(len(checks), "finding")
    if verdict is not None:
        label, message = "quality gates", WORDS[verdict]
    for name, value in itertools.islice(measures_of(result).overall.items(), 1):
        label, message = printable(name), fixed(value)
    color = UNJUDGED if verdict is None else COLORS[verdict]
    badge = {"schemaVersion": 1, "label": label, "message": message, "color": color}
    return json.dumps(badge, indent=2, ensure_ascii=True) + "\n"


REPORTERS = (Reporter(names=("badge.json",), about="badge for shields.io", render=render),)
