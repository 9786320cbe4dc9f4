"""Work that a thread does meanwhile, where a processor is to spare; without one it is done when it is asked for."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Meanwhile(Generic[Result]):
    """The result of some work, which is done once: by a thread since it was begun, or by whoever asks first."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._done: list[Result] = []
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin in a thread; nothing happens on one processor, and where no thread is to be had."""
        if usable_processors() > 1:
            thread = threading.Thread(target=self._run, name="jaccard-eval-meanwhile", daemon=True)
            with contextlib.suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        # Whatever goes wrong here does so again where the result is asked for, which is where it can be reported.
        with contextlib.suppress(Exception):
            self._done.append(self._work())

    def __call__(self) -> Result:
        """Return the result, when it is there."""
        if self._thread is not None:
            self._thread.join()
        if not self._done:
            self._done.append(self._work())
        return self._done[0]


def usable_processors() -> int:
    """Return how many processors this process may use, which a container or ``taskset`` may have limited."""
    # Not every system reports which ones a process may use.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
