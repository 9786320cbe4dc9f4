"""Stages of long work, and how much of each is done: silent unless somebody listens. Nothing is drawn here."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from contextvars import ContextVar
from functools import wraps
from time import monotonic
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

BYTES = "B"  # the unit of a stage that counts them; others count things
INTERVAL = 0.1  # seconds between two calls of a listener while a stage advances

Item = TypeVar("Item")
Given = ParamSpec("Given")
Returned = TypeVar("Returned")


class Stage:
    """A stage of work, used as a context manager; stages may lie in each other.

    Parameters
    ----------
    name : str
        What is being done, such as "matching".
    total : int, optional
        How much there is to do, where that is known.
    unit : str
        "B" when bytes are counted.

    Attributes
    ----------
    done : int
        How much is done; it never decreases.
    ended, failed : bool
        Whether the stage is over, and whether an exception ended it.
    """

    __slots__ = ("_listener", "_lock", "_next_call", "done", "ended", "failed", "name", "total", "unit")

    def __init__(self, name: str, total: int | None = None, *, unit: str = "") -> None:
        self.name, self.total, self.unit = name, total, unit
        self.done, self.ended, self.failed = 0, False, False
        self._listener = _LISTENER.get()
        if self._listener is not None:
            self._lock = threading.Lock()
            self._next_call = monotonic() + INTERVAL

    def __enter__(self) -> Self:
        if self._listener is not None:
            self._listener(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.ended, self.failed = True, kind is not None
        if self._listener is not None:
            self._listener(self)

    def advance(self, n: int = 1) -> None:
        """Count what was done; any thread may."""
        if self._listener is None:
            return
        # The listener is called under the lock, too: never by two threads at once.
        with self._lock:
            self.done += n
            now = monotonic()
            if now >= self._next_call:
                self._next_call = now + INTERVAL
                self._listener(self)


Listener = Callable[[Stage], object]
# Of a context, not of the process: two threads of a program may each listen to a run of its own. Threads of a pool
# have none, so that a stage begun there is silent; they advance the stage of whoever waits for them.
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` with each stage of the work inside: as it begins, at most ten times a second, and as it ends.

    Calls may come from other threads, but never two at a time for one stage. An exception of the listener ends the work
    and leaves the verb that does it, so that a program can cancel a run.

    Parameters
    ----------
    listener : callable
        Takes a `Stage`.
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tracked(items: Iterable[Item], name: str, total: int | None = None) -> Iterator[Item]:
    """Yield `items` as a stage that advances by one with each; without a `total`, there are as many as they have."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    # Hot loops pay for nothing, and nothing to do makes no stage.
    if _LISTENER.get() is None or total == 0:
        return iter(items)
    return _advancing(items, Stage(name, total))


def _advancing(items: Iterable[Item], stage: Stage) -> Iterator[Item]:
    with stage:
        for item in items:
            yield item
            stage.advance()


def staged(name: str) -> Callable[[Callable[Given, Returned]], Callable[Given, Returned]]:
    """Make every call of a function a stage."""

    def decorate(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
        @wraps(function)
        def run(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
            with Stage(name):
                return function(*args, **kwargs)

        return run

    return decorate
