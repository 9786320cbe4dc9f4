"""Real files, read and evaluated with the compiled core and without it: the same values, findings and documents."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, evaluate, load, native
from jaccard_eval.errors import JaccardEvalError

pytestmark = pytest.mark.skipif(native.load_core() is None, reason="no compiled core, or it is turned off")


def both_ways(ask: Any) -> list[Any]:
    """Return what is answered with the core and without; of a refusal, its text."""
    answers = []
    for core in ("1", "0"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(native.VARIABLE, core)
            try:
                answers.append(ask())
            except JaccardEvalError as error:
                answers.append((error.findings if isinstance(error, DataError) else (), str(error)))
    return answers


def contents(path: Path, role: str) -> list[object]:
    """Read a file, and return everything that came of it."""
    side = load(path, role=role)
    boxes = side.boxes
    columns = (boxes.image, boxes.label, boxes.xywh, boxes.area, boxes.crowd, boxes.ignore, boxes.source)
    arrays = [column.tobytes() for column in columns] + ([] if boxes.score is None else [boxes.score.tobytes()])
    return [*arrays, list(side.images.keys), side.labels.names, [str(finding) for finding in side.findings]]


def test_every_real_file_is_read_alike(shared_data: Path) -> None:
    read = 0
    for path in sorted(path for path in shared_data.rglob("*.json") if b'"image_id"' in path.read_bytes()):
        for role in ("gt", "pred"):
            compiled, plain = both_ways(lambda path=path, role=role: contents(path, role))
            assert compiled == plain, (path, role)
            read += isinstance(plain, list)
    assert read > 50


def test_documents_of_real_sets_are_the_same_bytes(shared_data: Path) -> None:
    pairs = [one for one in json.loads((shared_data / "EXPECTED.json").read_text()).values() if isinstance(one, dict)]
    pairs = [one for one in pairs if str(one.get("gt")).endswith(".json") and str(one.get("dets")).endswith(".json")]
    assert len(pairs) > 5
    for pair in pairs:
        gt, pred = shared_data / pair["gt"], shared_data / pair["dets"]
        compiled, plain = both_ways(lambda gt=gt, pred=pred: json.dumps(evaluate(gt, pred).to_dict()))
        assert compiled == plain, pair
