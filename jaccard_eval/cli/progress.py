"""Progress on standard error: one line that comes and goes on a terminal, elsewhere a line for each long stage."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

from jaccard_eval.cli import streams
from jaccard_eval.progress import BYTES, Stage, listening
from jaccard_eval.text import aligned, columns_of, printable

if TYPE_CHECKING:
    from jaccard_eval.cli.parse import RunOptions

CHOICES = ("auto", "always", "never")
DELAY = 0.5  # seconds that a run takes before anything is drawn
TICK = 0.1  # seconds between two looks at what is done
LONG = 10.0  # seconds from which a stage is worth a line of its own where nothing is drawn
SETTLED = 0.5  # seconds that a stage takes before its rate means anything
SHORTEST_NAME = 12  # columns that a name keeps next to share and time
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


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
        self._began = clock()
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
                self._open.append((stage, self._clock()))

    def _end(self, place: int) -> None:
        stage, began = self._open[place]
        del self._open[place:]  # those in it that an exception left open
        if place:
            return
        seconds = self._clock() - began
        self._seconds[stage.name] = self._seconds.get(stage.name, 0.0) + seconds
        if self._report is not None and seconds >= self._shortest and not stage.failed:
            self._report(f"{printable(stage.name)} took {seconds:.1f} s")

    def leave_out(self, seconds: float) -> None:
        """Ignore a time in which nothing was done."""
        with self._lock:
            self._began += seconds
            self._open = [(stage, began + seconds) for stage, began in self._open]

    def line(self, columns: int) -> str:
        """Return what is being done, in at most so many columns; empty where that is nothing with a name."""
        with self._lock:
            now = self._clock()
            stages = [(stage, now - began) for stage, began in self._open]
        return describe(stages, columns) if stages else ""

    def timings(self) -> str:
        """Return a table of the stages: their seconds, which sum to those of the whole, and their share."""
        total = self._clock() - self._began
        rows = [*self._seconds.items(), ("other", total - sum(self._seconds.values())), ("total", total)]
        cells = ((name, f"{seconds:.2f}", f"{100 * seconds / (total or 1):.0f} %") for name, seconds in rows)
        return "\n".join(aligned((("stage", "seconds", "share"), *cells)))


def describe(stages: Sequence[tuple[Stage, float]], columns: int) -> str:
    """Return a line about open stages, outermost first, each with its seconds; where it is narrow, with less.

    >>> stage = Stage("resampling", 1000)
    >>> stage.done = 430
    >>> describe([(stage, 2.0)], 79)
    'resampling  430/1,000  43 %  215/s  0:03 left'
    >>> describe([(stage, 2.0)], 30)
    'resampling  43 %  0:03 left'
    """
    stage, seconds = stages[-1]
    names = [printable(entry.name) for entry, _ in stages]
    full, first = ": ".join(names), names[0]
    count = rate = share = time = ""
    if stage.done or stage.total:
        count = _count(stage)
    if stage.done and seconds >= SETTLED:
        rate = f"{_rate(stage, stage.done / seconds)}/s"
    if stage.total:
        share = f"{100 * min(stage.done, stage.total) // stage.total} %"
        time = f"{_duration(max(stage.total - stage.done, 0) * seconds / stage.done)} left" if rate else ""
    elif stages[0][1] >= 1:
        time = f"{stages[0][1]:.0f} s"
    widest = ((full, count, share, rate, time), (full, count, share, time), (full, share, time), (first, share, time))
    for layout in widest:
        text = "  ".join(filter(None, layout))
        if columns_of(text) <= columns:
            return text
    # A long path must not cost the share.
    layouts = ((share, time), (share,), ())
    texts = ("".join(f"  {field}" for field in layout if field) for layout in layouts)
    beside = next((text for text in texts if len(text) + SHORTEST_NAME <= columns), "")
    return shortened(first, columns - len(beside)) + beside


def shortened(name: str, columns: int) -> str:
    """Return a name in at most so many columns: its first word, then the end of the rest.

    >>> shortened("reading runs/2026/predictions.json", 24)
    'reading ...dictions.json'
    """
    if columns_of(name) <= columns:
        return name
    verb, _, rest = name.partition(" ")
    if not rest:
        return name[:columns]
    start = f"{verb} ..."
    start = start if columns_of(start) + SHORTEST_NAME <= columns else ""
    while rest and columns_of(start + rest) > columns:
        rest = rest[1:]
    return start + rest


def _count(stage: Stage) -> str:
    """Return how much is done, of how much there is."""
    if stage.unit != BYTES:
        return f"{stage.done:,}/{stage.total:,}" if stage.total else f"{stage.done:,}"
    if not stage.total:
        return "{:.0f} {}".format(*_sized(stage.done))
    whole, prefix = _sized(stage.total)
    return f"{stage.done * whole / stage.total:.0f}/{whole:.0f} {prefix}"


def _rate(stage: Stage, rate: float) -> str:
    if stage.unit == BYTES:
        return "{:.0f} {}".format(*_sized(rate))
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def _sized(n_bytes: float) -> tuple[float, str]:
    """Return a number of bytes in the unit that suits it."""
    size, unit = next((pair for pair in _UNITS if n_bytes >= pair[0]), (1.0, BYTES))
    return n_bytes / size, unit


def _duration(seconds: float) -> str:
    """Return a duration as a clock shows it."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextlib.contextmanager
def _drawn(stages: OpenStages) -> Iterator[None]:
    """Draw a line about the stages for as long as they are at work."""
    over = threading.Event()

    def draw() -> None:
        pause = DELAY
        while not over.wait(pause):
            pause = TICK
            streams.draw_line(stages.line(streams.line_width()), unless=over)

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
