"""How a run ends: findings are reported, exceptions become an exit code and one message, never a traceback."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

from click import Context, Option, get_current_context
from click.exceptions import ClickException, Exit, NoArgsIsHelpError

from jaccard_eval.cli import COMMAND_TABLE, COMPLETE_VARIABLE, GIVEN, PROGRAM, WORDING, streams
from jaccard_eval.codes import DECISIONS
from jaccard_eval.errors import ExitCode, JaccardEvalError, UsageError
from jaccard_eval.findings import DataError, Finding, Severity, in_text_report, reason_of
from jaccard_eval.fixes import FLAGS, Wording
from jaccard_eval.patterns import pattern
from jaccard_eval.text import aligned, printable

if TYPE_CHECKING:
    from jaccard_eval.cli.parse import RunOptions

TRACEBACK_VARIABLE = "JACCARD_EVAL_TRACEBACK"
SIGNAL_EXIT_BASE = 128  # POSIX shells report 128 + the signal's number
LOOKS = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: "plain"}
HANGING = "    "  # below the first line of a finding

# At the start of a message; a plain word may be the name of a file, unless something is asked of it.
_KEYWORD = pattern(r"\A(?:[a-z]+(?:_[a-z]+)+(?=:| (?!needs ))|[a-z]+(?= must ))")
_IMPORTER = "<frozen importlib._bootstrap"
_received: list[int] = []


class _Interrupt(KeyboardInterrupt):
    """An interrupt that CPython cannot mistake for one that nobody caught.

    One that leaves the ``exec`` of a text, as dataclasses are made by, is remembered, and the process then ends by
    killing itself whatever its exit code; the check is for the very class.
    """


def run_process(argv: Sequence[str], stop: Callable[[int, FrameType | None], object]) -> int:
    """Run as the only thing in this process: signals and interpreter hooks are taken over.

    `stop` ends the process at once, for a signal during an import.
    """

    def end(number: int, frame: FrameType | None) -> None:
        # Whoever is drawing has a moment to finish, and none to begin again.
        with streams.line_erased(patience=0.2):
            _remove_scratch()
            stop(number, frame)

    def on_signal(number: int, frame: FrameType | None) -> None:
        caller, is_running = frame, False
        while caller is not None:
            # NumPy prints a traceback then, or makes an ImportError of an interrupt. No module is loaded while
            # temporary files wait for their names, so that none is left behind.
            if caller.f_code.co_filename.startswith(_IMPORTER):
                end(number, frame)
            is_running = is_running or caller.f_code is run.__code__
            caller = caller.f_back
        if not is_running:  # before the run and after it nobody would catch the exception
            end(number, frame)
        _received.append(number)  # because a library may turn the exception into one of its own
        raise _Interrupt

    ending = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    for number in ending:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup and background jobs keep what they asked for
            signal.signal(number, on_signal)
    # OpenBLAS, which NumPy loads, starts threads that wait by spinning; no product of matrices here is worth one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not os.environ.get(TRACEBACK_VARIABLE):
        sys.unraisablehook = lambda _: None  # an interrupt inside a destructor means nothing to the user
    code = run(argv)
    for number in ending:
        signal.signal(number, signal.SIG_IGN)  # the interpreter is going down; the exit code stands
    return SIGNAL_EXIT_BASE + _received[0] if _received else code


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code; no exception leaves."""
    streams.prepare()
    try:
        if COMPLETE_VARIABLE in os.environ:
            from jaccard_eval.cli.commands.completion import complete

            code: object = complete(os.environ[COMPLETE_VARIABLE])
        else:
            # Click's own main is not used, for it gives a closed pipe and an interrupt codes of its own.
            try:
                with COMMAND_TABLE.make_context(PROGRAM, list(argv), terminal_width=streams.help_width()) as context:
                    context.meta[GIVEN] = tuple(argv)
                    try:
                        code = COMMAND_TABLE.invoke(context)
                    except JaccardEvalError as error:
                        error.wording = context.meta.get(WORDING, FLAGS)  # as the context is gone when it is reported
                        if error.wording is FLAGS and isinstance(error, UsageError):
                            error.statement = _with_flag(error.statement, context)
                        raise
            except Exit as request:
                code = request.exit_code
        # What is left in the buffer may meet a full disk: that is an error of the run, and has its exit code.
        streams.flush_result()
    except BaseException as error:
        return _explain(error)
    finally:
        _remove_scratch()
    return code if isinstance(code, int) else ExitCode.OK


def _remove_scratch() -> None:
    """Remove the files of the disk engine: the process ends at once, without the interpreter's own cleaning up."""
    scratch = sys.modules.get("jaccard_eval.engine.scratch")
    if scratch is not None:
        scratch.remove_all()


def _with_flag(statement: str, context: Context) -> str:
    """Return a message that begins with a keyword of the library with the option of the command that sets it."""
    command = COMMAND_TABLE.get_command(context, context.invoked_subcommand or "")
    params = command.params if command is not None else ()
    flags = {param.name: max(param.opts, key=len) for param in params if isinstance(param, Option)}
    return _KEYWORD.sub(lambda found: flags.get(found[0], found[0]), statement)


def _explain(error: BaseException) -> int:
    """Print what went wrong, and return the exit code that it has."""
    if os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        streams.say("".join(traceback.format_exception(error)))
    # Asked first: what was raised may be what a library made of the interrupt.
    if _received or isinstance(error, KeyboardInterrupt):
        streams.say("interrupted" if _received[:1] in ([], [signal.SIGINT]) else "terminated")
        return ExitCode.INTERRUPTED
    if isinstance(error, BrokenPipeError):  # a reader such as `head` has all it wanted
        streams.discard()
        return ExitCode.OK
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else ExitCode.INTERNAL
    code, message = _diagnose(error)
    streams.discard()  # a full disk behind a stream would be met again when the interpreter ends
    streams.say(message)
    return code


def _diagnose(error: BaseException) -> tuple[int, str]:
    """Return the exit code and the message of an exception, the more specific kinds first."""
    code, message, ending = ExitCode.ENVIRONMENT, "", ""
    if isinstance(error, DataError):
        severities = (Severity.ERROR, Severity.WARNING)
        return error.exit_code, findings_text(
            error.findings, severities, width=streams.message_width(), wording=error.wording or FLAGS
        )
    if isinstance(error, NoArgsIsHelpError):  # its message is the help
        return ExitCode.USAGE, error.format_message()
    if isinstance(error, JaccardEvalError):
        code, message = error.exit_code, error.told(error.wording or FLAGS)
    elif isinstance(error, ClickException):
        context = getattr(error, "ctx", None)
        code, message = ExitCode.USAGE, error.format_message()
        ending = f"\nSee '{context.command_path if context else PROGRAM} --help'."
    elif isinstance(error, MemoryError):
        message = "out of memory"
    # A module of our own that is missing is a bug; a library that is, or cannot be loaded, is the machine's fault.
    elif isinstance(error, ImportError) and not (error.name or "").startswith("jaccard_eval"):
        message = f"a library cannot be loaded: {' '.join(str(error).split())}"
    elif isinstance(error, OSError):
        message = f"{error.filename if error.filename is not None else 'cannot read or write'}: {reason_of(error)}"
    else:
        code = ExitCode.INTERNAL
        message = (
            f"internal error: {type(error).__name__}: {error}. This is a bug, please report it with the command;"
            f" {TRACEBACK_VARIABLE}=1 shows where it happened."
        )
    # Line by line: a message may have several, and what users wrote must not act on the terminal.
    first, *others = (printable(line) for line in message.split("\n"))
    lines = [line for text in (f"error: {first}", *others) for line in _filled(text, streams.message_width())]
    tag, _, rest = "\n".join(lines).partition(":")
    return code, f"{streams.tagged(tag, LOOKS[Severity.ERROR])}:{rest}{ending}"


def report_findings(findings: Iterable[Finding], options: RunOptions, *, in_report: bool = True) -> None:
    """Print warnings and notes; with ``--strict``, a DataError when any warning is not among those of ``--allow``.

    A text report has the warnings as well (`in_report`): they are left to it where both streams end in one place.
    """
    findings = tuple(findings)
    refused = as_errors(findings, options)
    if refused:
        raise DataError(refused)
    told = in_report and not (options.as_json or options.quiet) and streams.end_in_one_place()
    said = [finding for finding in findings if not (told and in_text_report(finding)) and is_said(finding, options)]
    say_findings(said, [Severity.WARNING, Severity.NOTE])


def is_said(finding: Finding, options: RunOptions) -> bool:
    """Whether a finding is printed: with ``--quiet`` only warnings, and notes on what is evaluated at all."""
    return finding.severity is not Severity.NOTE or not options.quiet or finding.code in DECISIONS


def as_errors(findings: Iterable[Finding], options: RunOptions) -> tuple[Finding, ...]:
    """Return what ends a run: errors, with ``--strict`` also warnings; empty, or with the warnings that are allowed."""
    taken = [
        replace(finding, severity=Severity.ERROR) if options.strict and finding.code not in options.allow else finding
        for finding in findings
        if finding.severity is not Severity.NOTE
    ]
    return tuple(taken) if any(finding.severity is Severity.ERROR for finding in taken) else ()


def say_findings(findings: Iterable[Finding], severities: Collection[Severity]) -> None:
    """Write findings to the standard error, wrapped where that is a terminal."""
    context = get_current_context(silent=True)
    wording: Wording = FLAGS if context is None else context.meta.get(WORDING, FLAGS)
    text = findings_text(findings, severities, width=streams.message_width(), wording=wording)
    if text:
        streams.say(text)


def findings_text(
    findings: Iterable[Finding], severities: Collection[Severity], *, width: int | None = None, wording: Wording = FLAGS
) -> str:
    """Return the findings of some severities, errors first, wrapped at a width.

    Without a width, each message is one line, for pipes and logs.
    """
    rank = list(Severity)
    chosen = sorted(
        (finding for finding in findings if finding.severity in severities),
        key=lambda finding: rank.index(finding.severity),
    )
    texts = []
    for finding in chosen:
        tag = f"{finding.severity}[{finding.code}]"
        text = finding.in_full(wording) if width is None else "\n".join(_wrapped(finding, width, wording))
        # Coloured when all is laid out: escapes take no room.
        texts.append(streams.tagged(tag, LOOKS[finding.severity]) + text.removeprefix(tag))
    return "\n".join(texts)


def _wrapped(finding: Finding, width: int, wording: Wording) -> list[str]:
    """Lay out one finding: hanging indent, the fix in lines of its own, tables as they are."""
    head = f"{finding.severity}[{finding.code}]: "
    if len(head + finding.told(wording)) <= width:
        lines = [head + finding.told(wording)]
    else:
        lines = _filled(head + finding.statement, width)
        lines += _filled(f"{HANGING}fix: {finding.advice(wording)}", width, f"{HANGING}     ") if finding.fix else []
    lines += [line for text in finding.further for line in _filled(f"  {text}", width)]
    return lines + [f"{HANGING}{line}" for line in aligned(finding.table)]


def _filled(text: str, width: int | None, indent: str = HANGING) -> list[str]:
    """Wrap a line where it is longer than a terminal, at blanks only: paths and options stay whole, to be copied."""
    if width is None or len(text) <= width:
        return [text]
    import textwrap

    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
