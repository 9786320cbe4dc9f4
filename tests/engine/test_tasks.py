"""Tasks, items and answers go to another process and back without a change of the result, and are small."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine.test_disk_engine import OPTIONS, document, write_scene

from jaccard_eval import evaluate
from jaccard_eval.engine import disk

MOST_ITEM, MOST_ANSWER = 2_000, 300_000  # bytes; an answer has a number for each recall value, threshold and class


@pytest.mark.parametrize("name", ["coco", "voc2012", "slices", "caps"])
def test_pickled_tasks_give_the_same_bytes(
    name: str, tmp_path: Path, small_parts: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gt, pred = write_scene(tmp_path, 2, 300, 1)
    memory = evaluate(gt, pred, engine="memory", **OPTIONS[name])
    tasks = set()

    def through_pickles(_: Any, task: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        tasks.add(type(task).__name__)
        packed = pickle.dumps(task)
        for item in map(pickle.dumps, items):
            answer = pickle.dumps(pickle.loads(packed)(pickle.loads(item)))
            assert len(item) < MOST_ITEM
            assert len(answer) < MOST_ANSWER
            yield pickle.loads(answer)

    monkeypatch.setattr(disk.DiskEngine, "map", through_pickles)
    small_parts(40, 40)
    assert document(evaluate(gt, pred, engine="disk", **OPTIONS[name])) == document(memory)
    assert {"MatchPart", "ReduceCurves"} <= tasks
    assert ("SplitByScore" in tasks) == ("BestOfScores" in tasks) == (name == "voc2012")
