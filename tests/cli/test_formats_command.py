import json

import pytest

from jaccard_eval.cli import run
from jaccard_eval.formats import format_names


def test_every_format_is_listed_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["formats"]) == 0
    text = capsys.readouterr().out
    assert [line.split(":")[0] for line in text.splitlines() if line[:1].strip()] == format_names()
    assert text.count("  example:\n    ") == len(format_names())


def test_the_list_is_one_json_document_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["formats", "--json"]) == 0
    formats = json.loads(capsys.readouterr().out)["formats"]
    assert [one["name"] for one in formats] == format_names()
    texts = {"name", "summary", "source", "example", "suffixes", "member"}
    assert set(formats[0]) == {*texts, "carries", "shapes", "shapes_if_asked"}
