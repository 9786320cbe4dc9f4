"""The document of an evaluation is the same with every engine, and beside a page; old fingerprints are refused."""

import json
from pathlib import Path

import pytest
from command_line import run_here

from jaccard_eval.data.document import document_digest

SAMPLE = Path(__file__).parents[2] / "sample_data/coco"
PAIR = (SAMPLE / "gt.json", SAMPLE / "better.json")


@pytest.mark.parametrize("asked", [(), ("--confusion",)], ids=str)
def test_a_document_has_what_was_asked_for_with_every_engine(tmp_path: Path, asked: tuple[str, ...]) -> None:
    texts = set()
    for number, further in enumerate(
        (("--engine", "memory"), ("--engine", "disk"), ("-o", str(tmp_path / "page.html")))
    ):
        path = tmp_path / f"{number}.json"
        assert run_here(*PAIR, "-q", *asked, *further, "-o", path).returncode == 0
        texts.add(path.read_text())
    (text,) = texts
    assert ("confusion" in json.loads(text), "errors" in json.loads(text)) == (bool(asked), False)


def test_a_page_of_errors_is_refused_where_there_are_none(tmp_path: Path) -> None:
    done = run_here(*PAIR, "-q", "--engine", "disk", "-o", tmp_path / "page.html")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])


def test_a_baseline_with_fingerprints_of_an_older_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "main.json"
    assert run_here(*PAIR, "-q", "-o", path).returncode == 0
    document = json.loads(path.read_text())
    document["inputs"]["gt"]["fingerprint"] = "sha256:3f7aefea73ab1429"
    path.write_text(json.dumps(document | {"digest": document_digest(document)}))
    done = run_here("gate", path, "--fail-under", "AP=0.1")
    assert (done.returncode, "error[fingerprint-old]" in done.stderr) == (3, True)
    done = run_here(*PAIR, "-q", "--baseline", path, "--fail-drop", "AP=0.1")
    assert (done.returncode, "fingerprint-old" in done.stderr) == (2, True)
