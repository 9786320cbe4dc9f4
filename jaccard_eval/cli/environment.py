"""What a bug report needs to know of the machine; no library is imported for its version."""

from __future__ import annotations

import locale
import platform
import sys
from importlib import metadata

from jaccard_eval.native import describe_core
from jaccard_eval.patterns import pattern
from jaccard_eval.text import aligned, printable

DISTRIBUTION = "jaccard-eval"
_NEEDED = pattern(r"""(?P<name>[\w.-]+)[^;]*(?:;.*extra == ["'](?P<extra>[\w-]+)["'])?""")
_TESTS = "test"


def describe_environment() -> list[str]:
    """Return lines with Python, system, locale, the compiled core, and the version of each library that can be used."""
    rows = [
        ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("platform", platform.platform()),
        ("locale", f"{locale.setlocale(locale.LC_CTYPE)}, output {sys.stdout.encoding}"),
        ("native", describe_core()),
        *_libraries(),
    ]
    return aligned(tuple((name, printable(value)) for name, value in rows))


def _libraries() -> list[tuple[str, str]]:
    try:
        needed = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:  # run from a copy of the files
        needed = []
    found: list[tuple[str, str]] = []
    for requirement in needed:
        match = _NEEDED.match(requirement)
        if match is None or match["extra"] == _TESTS or match["name"] in dict(found):  # several extras may need one
            continue
        try:
            version = metadata.version(match["name"])
        except metadata.PackageNotFoundError:
            version = f"not installed (extra {match['extra']})" if match["extra"] else "not installed"
        found.append((match["name"], version))
    return found
