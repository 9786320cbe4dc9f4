"""The line of progress on a terminal, drawn by rich, which is loaded once work takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import timedelta

from rich.filesize import decimal
from rich.progress import Progress, ProgressColumn, Task
from rich.progress_bar import ProgressBar
from rich.table import Column
from rich.text import Text

from jaccard_eval.cli import streams
from jaccard_eval.progress import BYTES, Stage
from jaccard_eval.report.terminal import PathEnd, draw_bar, make_console
from jaccard_eval.text import printable

BAR_FROM, COUNT_FROM = 60, 72  # columns of a terminal that has room for the bar, and for the count and its rate


class ProgressLine:
    """What is being done, as a bar and in numbers, in a line that comes and goes."""

    def __init__(self, stages: Callable[[], Sequence[tuple[Stage, float]]], now: Callable[[], float]) -> None:
        # The stages that are open, each with when it began by the clock.
        self._stages, self._stage = stages, Stage("")
        self._progress = Progress(
            _Name(Column()),
            _Bar(Column(no_wrap=True)),
            _Facts(Column(no_wrap=True)),
            console=make_console(sys.stderr, streams.line_width(), color=streams.has_color()),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            get_time=now,
        )
        self.erase = self._progress.stop

    def draw(self) -> None:
        """Draw the stages that are open, the innermost one in numbers; nothing where there is none."""
        progress, stages = self._progress, self._stages()
        if not stages:
            self.erase()
            return
        stage, progress.console.width = stages[-1][0], streams.line_width()
        if stage is not self._stage:
            self._stage = stage
            for known in progress.task_ids:
                progress.remove_task(known)
            name, began = ": ".join(entry.name for entry, _ in stages), stages[0][1]
            progress.add_task(name, total=stage.total or None, unit=stage.unit, began=began)
        progress.update(progress.task_ids[0], completed=stage.done)
        progress.start()
        progress.refresh()


class _Name(ProgressColumn):
    """What is being done; a path in it loses its beginning."""

    def render(self, task: Task) -> PathEnd:
        return PathEnd(printable(task.description))


class _Bar(ProgressColumn):
    """The share that is done, where that is known."""

    def render(self, task: Task) -> ProgressBar | Text:
        is_drawn = task.total and streams.line_width() >= BAR_FROM
        return draw_bar(task.completed / (task.total or 1)) if is_drawn else Text()


class _Facts(ProgressColumn):
    """How much is done of how much, how fast, and how long that takes: on a narrow terminal, the share and the time."""

    def render(self, task: Task) -> Text:
        speed, seconds = task.speed or 0, task.time_remaining
        show = decimal if task.fields["unit"] == BYTES else "{:,}".format
        whole = f"/{show(int(task.total))}" if task.total else ""
        count = f"{show(int(task.completed))}{whole}" if task.completed or whole else ""
        rate = f"{show(int(speed)) if speed >= 10 else format(speed, '.1f')}/s" if speed else ""
        share = f"{min(100 * task.completed // task.total, 100):.0f} %" if task.total else ""
        time = f"{timedelta(seconds=seconds)} left" if seconds is not None else ""
        if not task.total:
            time = f"{task.get_time() - task.fields['began']:.0f} s"
        is_wide = streams.line_width() >= COUNT_FROM
        return Text("  ".join(filter(None, (count, share, rate, time) if is_wide else (share, time))))
