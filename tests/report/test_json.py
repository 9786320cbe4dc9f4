import json
import math

from result_builder import make_result

from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.json_ import render


def test_the_document_holds_full_precision_and_null_where_undefined() -> None:
    document = json.loads(render(make_result(metrics={"AP": 0.1 + 0.2, "AP_small": math.nan}), ReportOptions()))
    assert document["metrics"] == {"AP": 0.30000000000000004, "AP_small": None}
    assert document["undefined"] == {"AP_small": "no small ground truth"}
    assert document["schema"] == 1


def test_keys_are_sorted_and_the_text_ends_with_a_newline() -> None:
    text = render(make_result(), ReportOptions())
    assert text.endswith("}\n")
    keys = [line.strip().split('"')[1] for line in text.splitlines() if line.startswith('  "')]
    assert keys == sorted(json.loads(text))


def test_lists_of_numbers_take_one_line() -> None:
    lines = [line.strip() for line in render(make_result(), ReportOptions()).splitlines()]
    assert '"recall_points": 101,' in lines
    assert '"max_dets": [1, 10, 100],' in lines


def test_any_stream_can_hold_the_document() -> None:
    name = "日本\udcff😀\x1b"
    text = render(make_result(classes={name: {"AP": 0.5}}), ReportOptions())
    assert text.isascii()
    assert json.loads(text)["per_class"][0]["class"] == name
