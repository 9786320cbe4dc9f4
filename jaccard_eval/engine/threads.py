"""Threads of this process, for tasks that spend their time where the interpreter's lock is free: decoding, numpy."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from jaccard_eval.meanwhile import usable_processors

Partition = TypeVar("Partition")
Result = TypeVar("Result")

# Partitions under way per worker: one in work, one that waits, so that no worker does.
AHEAD = 2


def map_in_order(
    task: Callable[[Partition], Result], partitions: Iterable[Partition], *, workers: int | None = None
) -> Iterator[Result]:
    """Yield ``task(partition)`` for each partition, in their order, computed by several threads.

    There are as many workers as processors that this process may use, unless a number is given. When the consumer
    stops early, or a task raises, what waits is cancelled and what runs is waited for.
    """
    count = usable_processors() if workers is None else workers
    # In the caller's thread: a pool of one would only add switches.
    if count <= 1:
        yield from map(task, partitions)
        return
    waiting = iter(partitions)
    pool = ThreadPoolExecutor(count, thread_name_prefix="jaccard-eval")
    try:
        # Never all at once, as results that nobody has taken would pile up.
        ahead = islice(waiting, AHEAD * count)
        under_way: deque[Future[Result]] = deque(pool.submit(task, partition) for partition in ahead)
        while under_way:
            result = under_way.popleft().result()
            # The next one is under way before the consumer gets this one, which may take its time.
            under_way.extend(pool.submit(task, partition) for partition in islice(waiting, 1))
            yield result
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
