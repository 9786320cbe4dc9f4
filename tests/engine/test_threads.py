import threading
from collections.abc import Iterator

import pytest

from jaccard_eval.engine.threads import AHEAD, map_in_order


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_partitions(workers: int) -> None:
    assert list(map_in_order(lambda n: n * n, range(50), workers=workers)) == [n * n for n in range(50)]


def test_no_partition_gives_no_result() -> None:
    assert list(map_in_order(abs, [], workers=2)) == []


def test_only_a_few_partitions_are_taken_ahead_of_the_consumer() -> None:
    taken: list[int] = []

    def partitions() -> Iterator[int]:
        for n in range(100):
            taken.append(n)
            yield n

    results = map_in_order(abs, partitions(), workers=2)
    assert next(results) == 0
    assert len(taken) == 2 * AHEAD + 1  # one more, for the place of the result that was given out


def test_tasks_run_at_the_same_time_on_several_threads() -> None:
    meeting = threading.Barrier(2, timeout=10)  # passed only when two tasks wait at it together
    assert list(map_in_order(lambda n: (meeting.wait(), n)[1], [1, 2], workers=2)) == [1, 2]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_task_raises_reaches_the_consumer_and_no_thread_is_left(workers: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda n: 1 // n, [1, 0, 1, 1, 1], workers=workers))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("jaccard-eval")]


def test_a_consumer_that_stops_early_leaves_no_thread() -> None:
    results = map_in_order(abs, range(1000), workers=2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("jaccard-eval")]
