"""Work of a thread beside: its result is the same wherever it is computed, and errors are those of who asks for it."""

import json
import os
import threading
from pathlib import Path

import pytest
from command_line import box, run_here, write_pair

from jaccard_eval import evaluation, meanwhile
from jaccard_eval.meanwhile import Meanwhile, usable_processors


def test_work_is_done_once_and_by_the_thread_that_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanwhile, "usable_processors", lambda: 2)
    names: list[str] = []
    work = Meanwhile(lambda: names.append(threading.current_thread().name) or len(names))
    work.begin()
    assert (work(), work()) == (1, 1)
    assert names == ["jaccard-eval-meanwhile"]


def test_one_processor_does_it_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanwhile, "usable_processors", lambda: 1)
    work = Meanwhile(threading.current_thread)
    work.begin()
    assert work() is threading.current_thread()


def test_where_no_thread_is_to_be_had_it_is_done_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanwhile, "usable_processors", lambda: 2)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    work = Meanwhile(threading.current_thread)
    work.begin()
    assert work() is threading.current_thread()


def test_what_goes_wrong_is_raised_where_the_result_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanwhile, "usable_processors", lambda: 2)
    work = Meanwhile(lambda: 1 // 0)
    work.begin()
    with pytest.raises(ZeroDivisionError):
        work()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_whose_thread_is_gone_does_it_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanwhile, "usable_processors", lambda: 2)
    may_end = threading.Event()
    work = Meanwhile(lambda: may_end.wait() and 7)
    work.begin()
    if (child := os.fork()) == 0:
        may_end.set()  # of the child alone
        os._exit(work())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    may_end.set()
    assert work() == 7


def test_usable_processors_are_at_least_one() -> None:
    assert usable_processors() >= 1


@pytest.mark.parametrize("words", [[], ["--errors"], ["--protocol", "crowdhuman"], ["--bootstrap", "20"]])
def test_a_run_writes_the_same_with_one_thread_and_with_two(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = [box(1, 1, [10, 10, 30, 30], score=0.5)] * 2  # which the hashes of rows find
    gt, pred = write_pair(tmp_path)
    pred.write_text(json.dumps([*json.loads(pred.read_text()), *twice]))
    begun: list[str] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        begun.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    reports = []
    for n in (1, 2):
        monkeypatch.setattr(meanwhile, "usable_processors", lambda n=n: n)
        monkeypatch.setattr(evaluation, "MANY_BOXES", 1)
        done = run_here(gt, pred, "--json", *words)
        reports.append((done.returncode, done.stdout, done.stderr))
        assert ("jaccard-eval-meanwhile" in begun) == (n == 2)
    assert reports[0] == reports[1]
    assert "pred-duplicate" in reports[0][1] and reports[0][0] == 0
