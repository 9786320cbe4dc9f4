"""Stages of work: what a listener is told, by which threads, and what becomes of exceptions."""

import shutil
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from time import monotonic, sleep

import pytest
from command_line import repeat_images

from jaccard_eval import Bootstrap, BoxTable, DataError, convert, evaluate
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.progress import INTERVAL, Stage, listening, staged, tracked

Told = tuple[str, int, int | None, bool]


def told_of(stage: Stage) -> Told:
    return stage.name, stage.done, stage.total, stage.ended


def names(told: list[Told]) -> list[str]:
    """The stages in the order in which they began."""
    return list(dict.fromkeys(name for name, *_ in told))


@pytest.fixture
def pair(sample_data: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The sample with every image twice: of fewer than 20 nothing is resampled."""
    sides = tmp_path / "gt.json", tmp_path / "better.json"
    for side in sides:
        shutil.copy(sample_data / "coco" / side.name, side)
    repeat_images(*sides, times=2)
    return sides


def test_without_a_listener_nothing_is_counted() -> None:
    with Stage("matching", 10) as stage:
        stage.advance(3)
    assert stage.done == 0
    assert list(tracked("abc", "letters")) == ["a", "b", "c"]


def test_a_listener_is_told_of_the_beginning_and_of_the_end() -> None:
    told: list[Told] = []
    with listening(lambda stage: told.append(told_of(stage))), Stage("matching", 10) as stage:
        stage.advance(4)
        stage.advance(6)
    assert told == [("matching", 0, 10, False), ("matching", 10, 10, True)]


def test_a_listener_is_called_ten_times_a_second_however_often_a_stage_advances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("jaccard_eval.progress.monotonic", lambda: now)
    calls: list[tuple[int, float]] = []
    with listening(lambda stage: calls.append((stage.done, now))), Stage("matching") as stage:
        for _ in range(1000):  # a step takes 0.5 ms
            now += INTERVAL / 200
            stage.advance()
    first, *between, last = calls
    assert (first[0], last[0]) == (0, 1000)
    assert 4 <= len(between) <= 5  # a sum of floats may fall short of the fifth interval
    assert all(later - earlier >= INTERVAL * 0.999 for (_, earlier), (_, later) in pairwise(calls[:-1]))


def test_items_are_counted_as_the_consumer_is_done_with_them() -> None:
    told: list[Told] = []
    stages: list[Stage] = []

    def listener(stage: Stage) -> None:
        told.append(told_of(stage))
        stages.append(stage)

    seen: list[tuple[str, int]] = []
    with listening(listener):
        seen += [(letter, stages[-1].done) for letter in tracked("abc", "letters")]
    assert seen == [("a", 0), ("b", 1), ("c", 2)]
    assert told == [("letters", 0, 3, False), ("letters", 3, 3, True)]


def test_items_without_a_length_have_no_total_unless_one_is_given() -> None:
    totals: list[int | None] = []
    with listening(lambda stage: totals.append(stage.total)):
        list(tracked(iter("abc"), "letters"))
        list(tracked(iter("abc"), "letters", 3))
        list(tracked([], "nothing"))  # no stage at all
    assert totals == [None, None, 3, 3]


def test_many_threads_advance_one_stage_and_no_step_is_lost() -> None:
    with listening(lambda _: None), Stage("counting", 80_000) as stage:
        threads = [threading.Thread(target=lambda: [stage.advance() for _ in range(10_000)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert stage.done == 80_000


def test_a_listener_is_never_called_by_two_threads_at_once() -> None:
    at_work, most = 0, 0

    def listener(_: Stage) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        sleep(2 * INTERVAL)  # another call is due before this one ends
        at_work -= 1

    with listening(listener), Stage("counting") as stage:
        end = monotonic() + 8 * INTERVAL

        def count(_: int) -> None:
            while monotonic() < end:
                stage.advance()

        list(map_in_order(count, range(4), workers=4))
    assert most == 1


def test_a_stage_that_begins_in_a_thread_of_a_pool_is_silent() -> None:
    told: list[Told] = []

    def work(_: int) -> None:
        with Stage("inner"):
            pass

    with listening(lambda stage: told.append(told_of(stage))):
        list(map_in_order(work, range(4), workers=2))
    assert told == []


def test_threads_that_listen_each_to_a_run_of_its_own_hear_nothing_of_the_other() -> None:
    heard: dict[str, list[str]] = {"a": [], "b": []}
    meeting = threading.Barrier(2, timeout=10)

    def run(name: str) -> None:
        with listening(lambda stage: heard[name].append(stage.name)):
            meeting.wait()  # both listen now
            with Stage(name):
                meeting.wait()

    threads = [threading.Thread(target=run, args=(name,)) for name in heard]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {"a": ["a", "a"], "b": ["b", "b"]}


def test_stages_lie_in_each_other() -> None:
    told: list[tuple[str, bool]] = []

    @staged("outer")
    def work(n: int) -> int:
        return sum(tracked(range(n), "inner"))

    with listening(lambda stage: told.append((stage.name, stage.ended))):
        assert work(4) == 6
    assert told == [("outer", False), ("inner", False), ("inner", True), ("outer", True)]


def test_a_stage_that_an_exception_ends_has_failed() -> None:
    told: list[tuple[str, bool, bool]] = []
    with (
        listening(lambda stage: told.append((stage.name, stage.ended, stage.failed))),
        pytest.raises(ZeroDivisionError),
        Stage("dividing"),
    ):
        1 / 0  # noqa: B018 - for what it raises
    assert told == [("dividing", False, False), ("dividing", True, True)]


def test_listening_ends_with_its_block_even_by_an_exception() -> None:
    told: list[Told] = []
    with pytest.raises(ZeroDivisionError), listening(lambda stage: told.append(told_of(stage))):
        1 / 0  # noqa: B018
    with Stage("later"):
        pass
    assert told == []


class Cancelled(Exception):  # noqa: N818 - what a program calls it
    """What a listener raises to end a run."""


def test_what_a_listener_raises_ends_the_run_and_reaches_the_caller(pair: tuple[Path, Path]) -> None:
    def listener(stage: Stage) -> None:
        if stage.name == "matching":
            raise Cancelled

    with pytest.raises(Cancelled), listening(listener):
        evaluate(*pair)


def test_what_a_listener_raises_while_threads_work_ends_them(pair: tuple[Path, Path]) -> None:
    def listener(stage: Stage) -> None:
        if stage.name == "resampling" and stage.done:
            raise Cancelled

    with pytest.raises(Cancelled), listening(listener):
        evaluate(*pair, bootstrap=100_000)  # minutes, were it not cancelled
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("jaccard-eval")]


def test_an_evaluation_tells_its_stages_in_order_and_gives_the_same_result(pair: tuple[Path, Path]) -> None:
    gt, pred = pair
    told: list[Told] = []
    settings = Bootstrap(n_resamples=20)
    with listening(lambda stage: told.append(told_of(stage))):
        heard = evaluate(gt, pred, errors=True, bootstrap=settings)
    assert heard.to_dict() == evaluate(gt, pred, errors=True, bootstrap=settings).to_dict()
    reading = [f"reading {gt}", f"reading {pred}", "decoding"]
    work = ["aligning", "fingerprinting", "matching", "measuring", "finding errors", "checking", "resampling"]
    assert names(told) == [*reading, *work]
    ends = {name: (done, total) for name, done, total, ended in told if ended}
    assert ends["resampling"] == (20, 20)
    # The compiled reader counts all bytes, that of Python those behind the bracket that begins the list.
    size = len(pred.read_bytes())
    assert ends["decoding"] in {(size, size), (size - 2, size - 2)}


def test_runs_that_are_resampled_alike_are_one_stage(pair: tuple[Path, Path], sample_data: Path) -> None:
    from jaccard_eval import CompareOptions, compare

    told: list[Told] = []
    with listening(lambda stage: told.append(told_of(stage))):
        compare(*pair, sample_data / "coco" / "worse.json", options=CompareOptions(bootstrap=Bootstrap(n_resamples=15)))
    assert [entry for entry in told if entry[0] == "resampling" and entry[3]] == [("resampling", 30, 30, True)]


def test_folders_are_listed_read_and_written_file_by_file(tmp_path: Path, sample_data: Path) -> None:
    told: list[Told] = []
    labels = sample_data / "yolo" / "better"
    n_files = len([*labels.rglob("*.txt")])
    out = tmp_path / "out"
    with listening(lambda stage: told.append(told_of(stage))):
        convert(BoxTable.from_arrays([0, 1], [0, 0], [[0, 0, 10, 10], [0, 0, 5, 5]]), out, to="voc", lossy=True)
    assert [entry for entry in told if entry[3]] == [("files", 2, 2, True), (f"writing {out}", 0, None, True)]
    told.clear()
    with listening(lambda stage: told.append(told_of(stage))):
        evaluate(sample_data / "coco" / "gt.json", labels)
    ended = {name: (done, total) for name, done, total, is_over in told if is_over}
    assert ended["files"] == (n_files, n_files)
    assert ended["listing files"][0] >= n_files


def test_a_problem_of_the_input_ends_its_stage_as_failed(tmp_path: Path) -> None:
    (tmp_path / "gt.json").write_text("{")
    failed: list[str] = []
    with listening(lambda stage: failed.append(stage.name) if stage.failed else None), pytest.raises(DataError):
        evaluate(tmp_path / "gt.json", tmp_path / "gt.json")
    assert set(failed) == {f"reading {tmp_path / 'gt.json'}"}


def test_a_consumer_that_stops_early_ends_the_stage() -> None:
    ended: list[bool] = []

    def take_one() -> Iterator[str]:
        yield from tracked("abc", "letters")

    with listening(lambda stage: ended.append(stage.ended)):
        letters = take_one()
        next(letters)
        letters.close()  # type: ignore[attr-defined]
    assert ended == [False, True]
