import json
import re
from pathlib import Path

import pytest

from jaccard_eval.cli import run
from jaccard_eval.formats import SHAPES, format_module, format_names
from jaccard_eval.reading.peek import Peek


def test_every_format_is_listed_once_for_each_kind_of_shape(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["formats"]) == 0
    sections = re.findall(r"^(\w.*) \((\w+)\):\n((?:  .+\n)+)", capsys.readouterr().out, re.MULTILINE)
    assert [kind for _, kind, _ in sections] == [*SHAPES]
    for _, kind, lines in sections:
        named = [line.split()[0] for line in lines.splitlines()]
        assert named == [name for name in format_names() if kind in format_module(name).FORMAT.reads]
    assert [line.split()[0] for line in sections[0][2].splitlines()] == format_names()


def test_one_format_is_described_with_its_example(capsys: pytest.CaptureFixture[str]) -> None:
    for name in format_names():
        assert run.run(["formats", name]) == 0
        text = capsys.readouterr().out
        about = format_module(name).FORMAT
        assert text.startswith(f"{name}: {about.summary}\n")
        assert text.count("  example:\n    ") == 1
        assert all(where in text for where in about.reads.values())
    assert run.run(["formats", "yolov8"]) == 2
    assert "unknown format 'yolov8'" in capsys.readouterr().err


@pytest.mark.parametrize("name", format_names())
def test_a_format_is_listed_under_what_can_be_compared_of_it(name: str, tmp_path: Path) -> None:
    module = format_module(name)
    about = module.FORMAT
    if not hasattr(module, "iou_types"):
        assert set(about.reads) == {"bbox"}
        return
    path = tmp_path / f"street{(about.suffixes or (about.member,))[0]}"
    if hasattr(module, "write_example"):
        module.write_example(path)
    else:
        path.write_text(about.example)
    found = module.iou_types(Peek(path if about.suffixes else tmp_path))
    assert found
    assert found <= set(about.reads) <= set(SHAPES)
    # What a module asks for by its patterns is what it lists.
    kinds = getattr(module, "_KINDS", None)
    assert not kinds or not {*kinds} <= {*SHAPES} or {*kinds, "bbox"} == {*about.reads}


def test_the_list_is_one_json_document_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["formats", "--json"]) == 0
    formats = json.loads(capsys.readouterr().out)["formats"]
    assert [one["name"] for one in formats] == format_names()
    texts = {"name", "summary", "source", "example", "suffixes", "member"}
    assert set(formats[0]) == {*texts, "carries", "shapes", "shapes_if_asked", "reads", "written_if_named"}
