"""Threads of this process, for tasks that spend their time where the interpreter's lock is free: decoding, numpy."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Partition = TypeVar("Partition")
Result = TypeVar("Result")

AHEAD = 2  # partitions under way per worker: one in work, one that waits, so that no worker does


def map_in_order(
    task: Callable[[Partition], Result], partitions: Iterable[Partition], *, workers: int | None = None
) -> Iterator[Result]:
    """Yield ``task(partition)`` for each partition, in their order, computed by several threads.

    Only a few partitions are under way at any time, so memory does not grow with their number. When the consumer
    stops early, or a task raises, what waits is cancelled and what runs is waited for.

    Parameters
    ----------
    task : callable
    partitions : iterable
    workers : int, optional
        Number of threads; that of the processors this process may use when left out. One runs in the caller's thread.

    Yields
    ------
    object
        The result of each task.

    Examples
    --------
    >>> list(map_in_order(abs, [-3, 1, -2], workers=2))
    [3, 1, 2]
    """
    count = usable_processors() if workers is None else workers
    if count <= 1:
        yield from map(task, partitions)
        return
    waiting = iter(partitions)
    pool = ThreadPoolExecutor(count, thread_name_prefix="jaccard-eval")
    try:
        under_way: deque[Future[Result]] = deque(pool.submit(task, one) for one in islice(waiting, AHEAD * count))
        while under_way:
            result = under_way.popleft().result()
            under_way.extend(pool.submit(task, one) for one in islice(waiting, 1))
            yield result
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def usable_processors() -> int:
    """Return how many processors this process may use, which a container or ``taskset`` may have limited."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
