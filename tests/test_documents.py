"""Saved results that are read again: what may stand in them, and what is refused."""

import json
from pathlib import Path

import pytest
from command_line import box, write_json, write_pair

from jaccard_eval import DataError, Gates, Rule, evaluate, gate, verify
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs import json_
from jaccard_eval.runs import read_document


def test_a_class_whose_name_is_no_unicode_text_is_verified_and_judged(tmp_path: Path) -> None:
    truth = {
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "annotations": [{"id": 1, "area": 100, "iscrowd": 0, **box(1, 1, [0, 0, 10, 10])}],
        "categories": [{"id": 1, "name": "dog\ud800"}],
    }
    gt = write_json(tmp_path / "gt.json", truth)
    pred = write_json(tmp_path / "pred.json", [box(1, 1, [0, 0, 10, 10], score=0.9)])
    result = tmp_path / "result.json"
    result.write_text(json_.render(evaluate(gt, pred), ReportOptions()))
    assert read_document(result)["per_class"][0]["class"] == "dog\ud800"
    assert verify(result, gt, pred).differences == ()
    rules = Gates(rules=(Rule(metric="AP[class=dog\ud800]", min=1.0),))
    assert [one.failed for one in gate(result, rules)] == [False]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", r"error\[json-syntax\]: .*result.json:1: not valid JSON, column 2: expecting property name"),
        ('{"AP": NaN}', r"error\[number-not-finite\]: .*result.json: AP: is NaN; numbers must be finite"),
        ("[" * 100_000, r"error\[json-depth\]: .*result.json: arrays or objects are nested too deep"),
    ],
    ids=["cut off", "not a number", "nested"],
)
def test_what_is_no_json_is_refused_with_the_reason(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(DataError, match=why):
        read_document(path)


def test_a_document_is_read_as_it_was_written(tmp_path: Path) -> None:
    document = evaluate(*write_pair(tmp_path)).to_dict()
    path = write_json(tmp_path / "result.json", document)
    assert read_document(path) == json.loads(json.dumps(document))
