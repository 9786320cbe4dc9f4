"""GitLab's Code Quality report: what gates and findings complain of, each at a line of a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

from jaccard_eval.data.result import Status
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.checks import GATES, Check, checks_of

# GitLab knows info, minor, major, critical and blocker.
SEVERITIES = {
    (GATES, Status.FAIL): "critical",
    ("findings", Status.FAIL): "major",
    (GATES, Status.WARN): "minor",
    ("findings", Status.WARN): "minor",
    (GATES, Status.INFO): "info",
    ("findings", Status.INFO): "info",
}
UNPLACED = "jaccard-eval"


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the array of issues; what passes or is skipped has none, `options` change nothing."""
    return render_checks(checks_of(result))


def render_checks(checks: Iterable[Check]) -> str:
    """Return the array of issues of some checks."""
    issues = list(_issues(check for check in checks if (check.group, check.status) in SEVERITIES))
    return json.dumps(issues, indent=2, ensure_ascii=True) + "\n"


def _issues(checks: Iterable[Check]) -> Iterator[dict[str, Any]]:
    """Make one issue per check; of several with one name each has a fingerprint of its own, or one would be shown."""
    seen: dict[str, int] = {}
    for check in checks:
        seen[check.name] = seen.get(check.name, 0) + 1
        # Of what is asked, never of what was measured: another value would be another issue to GitLab.
        identity = "\0".join((check.group, check.name, str(seen[check.name])))
        # As GitLab wants a path: with slashes, without a dot in front. It drops an issue without a path or a line.
        path = PurePath(check.where.path).as_posix() if check.where and check.where.path else UNPLACED
        line = check.where.line if check.where and check.where.line else 1
        yield {
            "description": check.message,
            "check_name": f"jaccard-eval/{check.key}",
            "fingerprint": hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest(),
            "severity": SEVERITIES[check.group, check.status],
            "location": {"path": path, "lines": {"begin": line}},
        }


# By the name that GitLab's documentation gives it.
REPORTERS = (Reporter(names=("gl-code-quality-report.json",), about="GitLab code quality report", render=render),)
