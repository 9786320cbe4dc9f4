"""How a run ends: findings are reported, exceptions become an exit code and one message, never a traceback."""

from __future__ import annotations

import gc
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

from jaccard_eval.cli import streams
from jaccard_eval.errors import ExitCode, JaccardEvalError
from jaccard_eval.findings import DataError, Finding, Severity, reason_of
from jaccard_eval.text import aligned, printable

if TYPE_CHECKING:
    from click import ClickException

    from jaccard_eval.cli.parse import RunOptions

HANGING = "    "  # below the first line of a finding


def report_findings(findings: Iterable[Finding], options: RunOptions, *, in_report: bool = True) -> None:
    """Say warnings and notes.

    A text report has the warnings as well (`in_report`): they are left to it where both streams end in one place.

    Raises
    ------
    DataError
        With ``--strict``, when any warning is not among those of ``--allow``.
    """
    findings = tuple(findings)
    refused = as_errors(findings, options)
    if refused:
        raise DataError(refused)
    told = in_report and not options.as_json and streams.end_in_one_place()
    wanted = {Severity.WARNING: not told, Severity.NOTE: not options.quiet}
    say_findings(findings, [severity for severity, is_said in wanted.items() if is_said])


def as_errors(findings: Iterable[Finding], options: RunOptions) -> tuple[Finding, ...]:
    """Return what ends a run: errors, with ``--strict`` also warnings; empty, or with the warnings that are allowed."""
    taken = [_taken(finding, options) for finding in findings if finding.severity is not Severity.NOTE]
    return tuple(taken) if any(one.severity is Severity.ERROR for one in taken) else ()


def _taken(finding: Finding, options: RunOptions) -> Finding:
    passes = not options.strict or finding.code in options.allow
    return finding if passes else replace(finding, severity=Severity.ERROR)


def say_findings(findings: Iterable[Finding], severities: Collection[Severity]) -> None:
    """Write findings to the standard error, wrapped where that is a terminal."""
    text = findings_text(findings, severities, width=streams.message_width())
    if text:
        streams.say(text)


def findings_text(findings: Iterable[Finding], severities: Collection[Severity], *, width: int | None = None) -> str:
    """Return the findings of some severities, errors first.

    Parameters
    ----------
    findings : iterable of Finding
    severities : collection of Severity
    width : int, optional
        Columns to wrap at; None puts each message in one line, for pipes and logs.
    """
    chosen = sorted((finding for finding in findings if finding.severity in severities), key=_weight)
    return "\n".join(str(one) if width is None else "\n".join(_wrapped(one, width)) for one in chosen)


def _weight(finding: Finding) -> int:
    return list(Severity).index(finding.severity)


def _wrapped(finding: Finding, width: int) -> list[str]:
    """Lay out one finding: hanging indent, the fix in lines of its own, tables as they are."""
    head = f"{finding.severity}[{finding.code}]: "
    if len(head + finding.message) <= width:
        lines = [head + finding.message]
    else:
        lines = _fill(head + finding.statement, width, HANGING)
        lines += _fill(f"{HANGING}fix: {printable(finding.fix)}", width, f"{HANGING}     ") if finding.fix else []
    lines += [line for text in finding.further for line in _fill(f"  {text}", width, HANGING)]
    return lines + [f"{HANGING}{line}" for line in aligned(finding.table)]


def _fill(text: str, width: int, indent: str) -> list[str]:
    """Wrap at blanks only: paths and options stay whole, to be copied."""
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )


PROGRAM = "jaccard-eval"
COMPLETE_VARIABLE = "_JACCARD_EVAL_COMPLETE"
TRACEBACK_VARIABLE = "JACCARD_EVAL_TRACEBACK"
SIGNAL_EXIT_BASE = 128  # POSIX shells report 128 + the signal's number

_IMPORTER = "<frozen importlib._bootstrap"

SignalHandler = Callable[[int, "FrameType | None"], object]

_received: list[int] = []


class _Interrupt(KeyboardInterrupt):
    """An interrupt that CPython cannot mistake for one that nobody caught.

    One that leaves the ``exec`` of a text, as dataclasses are made by, is remembered, and the process then ends by
    killing itself whatever its exit code; the check is for the very class.
    """


def run_process(argv: Sequence[str], stop: SignalHandler) -> int:
    """Run as the only thing in this process: signals and interpreter hooks are taken over.

    Parameters
    ----------
    argv : sequence of str
    stop : callable
        What ends the process at once, for a signal during an import.
    """
    _take_over_signals(stop)
    gc.disable()  # one evaluation makes millions of records and no cycles worth collecting: an eighth of its time
    if not os.environ.get(TRACEBACK_VARIABLE):
        sys.unraisablehook = lambda _: None  # an interrupt inside a destructor is no news to the user
    code = run(argv)
    for number in _ending_signals():
        signal.signal(number, signal.SIG_IGN)  # the interpreter is going down; the exit code stands
    return SIGNAL_EXIT_BASE + _received[0] if _received else code


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code; no exception leaves."""
    streams.prepare()
    try:
        code = _invoke(argv)
        streams.flush_result()
    except BaseException as error:
        code = _explain(error)
    return code


def _ending_signals() -> list[signal.Signals]:
    return [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _take_over_signals(stop: SignalHandler) -> None:
    def on_signal(number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):  # NumPy prints a traceback then, or makes an ImportError of an interrupt
            stop(number, frame)
        _received.append(number)  # because a library may turn the exception into one of its own
        raise _Interrupt

    for number in _ending_signals():
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup and background jobs keep what they asked for
            signal.signal(number, on_signal)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being loaded; none is while temporary files wait for their names."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTER):
            return True
        frame = frame.f_back
    return False


def _invoke(argv: Sequence[str]) -> int:
    """Parse and run; click's own main is not used, for it gives a closed pipe and an interrupt codes of its own."""
    from click.exceptions import Exit

    from jaccard_eval.cli import COMMAND_TABLE

    if COMPLETE_VARIABLE in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(COMMAND_TABLE, {}, PROGRAM, COMPLETE_VARIABLE, os.environ[COMPLETE_VARIABLE])
    try:
        with COMMAND_TABLE.make_context(PROGRAM, list(argv)) as context:
            code = COMMAND_TABLE.invoke(context)
    except Exit as request:
        return request.exit_code
    return code if isinstance(code, int) else ExitCode.OK


def _explain(error: BaseException) -> int:
    """Say what went wrong, and return the exit code that it has."""
    if os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        streams.say("".join(traceback.format_exception(error)))
    if _received or isinstance(error, KeyboardInterrupt):
        streams.say("interrupted" if _received[:1] in ([], [signal.SIGINT]) else "terminated")
        return ExitCode.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        streams.discard()
        return ExitCode.OK
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else ExitCode.INTERNAL
    code, message = _diagnose(error)
    streams.discard()  # a full disk behind a stream would be met again when the interpreter ends
    streams.say(message)
    return code


def _diagnose(error: BaseException) -> tuple[int, str]:
    from click import ClickException

    if isinstance(error, DataError):
        severities = (Severity.ERROR, Severity.WARNING)
        return error.exit_code, findings_text(error.findings, severities, width=streams.message_width())
    if isinstance(error, JaccardEvalError):
        return error.exit_code, _line(str(error))
    if isinstance(error, ClickException):
        return ExitCode.USAGE, _usage_message(error)
    environment = _environment_message(error)
    if environment:
        return ExitCode.ENVIRONMENT, _line(environment)
    return ExitCode.INTERNAL, _line(
        f"internal error: {type(error).__name__}: {error}. This is a bug, please report it with the command;"
        f" {TRACEBACK_VARIABLE}=1 shows where it happened."
    )


def _line(message: str) -> str:
    return "error: " + "\n".join(map(printable, message.split("\n")))


def _usage_message(error: ClickException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else PROGRAM
    return f"{_line(error.format_message())}\nSee '{command} --help'."


def _environment_message(error: BaseException) -> str:
    """Say what the machine refused; empty for what it is not to blame for."""
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, ImportError) and not (error.name or "").startswith("jaccard_eval"):
        return f"a library cannot be loaded: {' '.join(str(error).split())}"
    if isinstance(error, OSError):
        return f"{error.filename if error.filename is not None else 'cannot read or write'}: {reason_of(error)}"
    return ""
