"""Exceptions and exit codes: how a process ends. Standard library only; this module imports no other of the project."""

from __future__ import annotations

import enum
import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any


class ExitCode(enum.IntEnum):
    """Exit codes of the process; they never overlap."""

    OK = 0
    GATE_FAILED = 1
    USAGE = 2
    DATA = 3
    ENVIRONMENT = 4
    INTERNAL = 5
    INTERRUPTED = 130


class JaccardEvalError(Exception):
    """Base of all errors that the project raises on purpose; ``exit_code`` is what a process ends with.

    Examples
    --------
    >>> from jaccard_eval import JaccardEvalError, load
    >>> try:
    ...     load("no/such/file.json")
    ... except JaccardEvalError as error:
    ...     print(int(error.exit_code))
    3
    """

    exit_code = ExitCode.INTERNAL
    wording: Any = None  # of `fixes`: as flags unless set

    def __init__(self, message: str = "", *, fix: Any = None) -> None:
        # A `findings.Fix`, which is not known here.
        self.statement, self.fix = message, fix
        super().__init__(message if fix is None else f"{message} {fix}".strip())

    def told(self, wording: Any) -> str:
        """Return the message, its fix in somebody's words."""
        return self.statement if self.fix is None else f"{self.statement} {self.fix.worded(wording)}".strip()


class UsageError(JaccardEvalError):
    """The call is wrong: an option, a class or a metric that does not exist (exit code 2).

    Examples
    --------
    >>> from jaccard_eval import UsageError, get_protocol
    >>> try:
    ...     get_protocol("cocoo")
    ... except UsageError as error:
    ...     print("coco" in str(error))
    True
    """

    exit_code = ExitCode.USAGE


class MachineError(JaccardEvalError):
    """The machine is in the way: a file cannot be written, memory is out, an extra is missing (exit code 4)."""

    exit_code = ExitCode.ENVIRONMENT


def require(module: str, *, extra: str) -> ModuleType:
    """Import a module of an optional library."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        name = module.partition(".")[0]
        raise MachineError(f"{name} is not installed. Install it: pip install {_installable(extra)}") from None


def _installable(extra: str) -> str:
    """Return what pip installs for an extra, wherever this package came from: no index has it."""
    import shlex

    checkout = Path(__file__).parents[1]
    if (checkout / "pyproject.toml").is_file():
        place = "." if checkout == Path.cwd() else str(checkout)
        return shlex.quote(f"{place}[{extra}]")
    from importlib.metadata import requires  # slow to load

    mark = re.compile(rf"\s*;\s*extra\s*==\s*[\"']{extra}[\"']$")
    needed = [mark.sub("", line) for line in requires("jaccard-eval") or () if mark.search(line)]
    return " ".join(map(shlex.quote, needed))
