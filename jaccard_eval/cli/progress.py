"""Progress on standard error: one line that comes and goes on a terminal, elsewhere a line for each long stage."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

from jaccard_eval.cli import streams
from jaccard_eval.progress import Stage, listening
from jaccard_eval.text import aligned, printable

if TYPE_CHECKING:
    from jaccard_eval.cli.parse import RunOptions

CHOICES = ("auto", "always", "never")
DELAY = 0.5  # seconds that a run takes before anything is drawn
TICK = 0.1  # seconds between two looks at what is done
LONG = 10.0  # seconds from which a stage is worth a line of its own where nothing is drawn


@contextlib.contextmanager
def shown_progress(options: RunOptions) -> Iterator[None]:
    """Show what is being done inside, as the options choose; with ``--verbose``, how long each stage took as well."""
    is_shown = options.progress == "always" or (options.progress == "auto" and not options.quiet)
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    # Logs of CI keep every state of a line that is drawn anew, even where they pretend to be a terminal.
    is_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    is_drawn = is_shown and is_terminal and (options.progress == "always" or not is_ci)
    if not (is_shown or options.verbose):
        yield
        return
    lines = is_shown and not is_drawn
    shortest = 0.0 if options.progress == "always" else LONG
    stages = OpenStages(report=streams.say if lines else None, shortest=shortest)
    with listening(stages), _drawn(stages) if is_drawn else contextlib.nullcontext():
        yield
    if options.verbose:
        streams.say(stages.timings())


class OpenStages:
    """A listener that knows what is being done, and keeps how long it took."""

    def __init__(
        self,
        *,
        report: Callable[[str], object] | None = None,
        shortest: float = LONG,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        # Called for each outermost stage that took at least the shortest time.
        self._report, self._shortest, self._clock = report, shortest, clock
        self._lock = threading.RLock()  # the drawing thread reads; a signal's handler may come upon its own thread
        self._open: list[tuple[Stage, float]] = []
        self._left_out = 0.0
        self._began = self.now()
        self._seconds: dict[str, float] = {}

    def __call__(self, stage: Stage) -> None:
        """Take the state of a stage."""
        with self._lock:
            known = [entry for entry, _ in self._open]
            if stage.ended:
                if stage in known:
                    self._end(known.index(stage))
            # What lies in a stage with a total is a part of it: shares would start over again and again.
            elif stage not in known and not any(entry.total for entry in known):
                self._open.append((stage, self.now()))

    def _end(self, place: int) -> None:
        stage, began = self._open[place]
        del self._open[place:]  # those in it that an exception left open
        if place:
            return
        seconds = self.now() - began
        self._seconds[stage.name] = self._seconds.get(stage.name, 0.0) + seconds
        if self._report is not None and seconds >= self._shortest and not stage.failed:
            self._report(f"{printable(stage.name)} took {seconds:.1f} s")

    def now(self) -> float:
        """Return the time, less what was spent doing nothing."""
        return self._clock() - self._left_out

    def leave_out(self, seconds: float) -> None:
        """Ignore a time in which nothing was done."""
        self._left_out += seconds

    def open(self) -> list[tuple[Stage, float]]:
        """Return what is being done, outermost first, each with the time at which it began."""
        with self._lock:
            return [*self._open]

    def timings(self) -> str:
        """Return a table of the stages: their seconds, which sum to those of the whole, and their share."""
        total = self.now() - self._began
        rows = [*self._seconds.items(), ("other", total - sum(self._seconds.values())), ("total", total)]
        cells = ((name, f"{seconds:.2f}", f"{100 * seconds / (total or 1):.0f} %") for name, seconds in rows)
        return "\n".join(aligned((("stage", "seconds", "share"), *cells)))


@contextlib.contextmanager
def _drawn(stages: OpenStages) -> Iterator[None]:
    """Draw a line about the stages for as long as they are at work."""
    over = threading.Event()

    def draw() -> None:
        if over.wait(DELAY):
            return
        from jaccard_eval.cli.progress_line import ProgressLine

        line = ProgressLine(stages.open, stages.now)
        while not over.is_set():
            with contextlib.suppress(OSError, ValueError), streams.line_drawn(line.erase):
                if not (over.is_set() or streams.is_in_background()):
                    line.draw()
            over.wait(TICK)

    # A thread of its own, as many stages are one long call that lets others run. It holds nothing that has to be put in
    # order, so that the process may end around it.
    thread = threading.Thread(target=draw, name="jaccard-eval-progress", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread to be had: the work itself needs none
        yield
        return
    try:
        with _erased_when_suspended(stages):
            yield
    finally:
        over.set()
        with streams.line_erased():
            pass
        thread.join()


@contextlib.contextmanager
def _erased_when_suspended(stages: OpenStages) -> Iterator[None]:
    """Leave no line behind when the user suspends the process (Ctrl-Z)."""
    number = getattr(signal, "SIGTSTP", None)
    # Only the main thread may set handlers, and one that another program set has reasons of its own.
    is_ours = threading.current_thread() is threading.main_thread()
    if number is None or not is_ours or signal.getsignal(number) is not signal.SIG_DFL:
        yield
        return

    def suspend(number: int, _: FrameType | None) -> None:
        began = monotonic()
        with streams.line_erased():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)  # here the process stands still until it is continued
            signal.signal(number, suspend)
        stages.leave_out(monotonic() - began)

    signal.signal(number, suspend)
    try:
        yield
    finally:
        signal.signal(number, signal.SIG_DFL)
