"""What is explained about findings: each example prints the message of its file, and docs/findings.md lists all.

`python docs/site/reference_pages.py` rewrites it.
"""

import re
from pathlib import Path

import pytest
from reference_pages import findings_page

from jaccard_eval.cli.run import run
from jaccard_eval.codes import CODES, EXPLAINED, explanation

PAGE = Path(__file__).parents[1] / "docs" / "findings.md"
# Numbers, and what follows a number: these are of the data.
NUMBER = re.compile(r"(?<![\w.])[-+±]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?\b")
EXAMPLES = {
    code: example
    for code in sorted(CODES)
    if (example := (EXPLAINED / f"{code}.md").read_text("utf-8").partition("\n## Example\n")[2])
}
FENCED = re.compile(r"^```(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GT = '{"images": [{"id": 1}], "annotations": [], "categories": [{"id": 1, "name": "dog"}]}'
# Those of files that hold no text.
BYTES: dict[str, tuple[dict[str, bytes], str]] = {
    "encoding": ({"labels.txt": b"a\nb\nc\xe9", "gt.json": GT.encode()}, "inspect gt.json --gt-names labels.txt"),
    "gzip": ({"gt.json.gz": b"\x1f\x8b\x08\x00broken"}, "inspect gt.json.gz"),
    "wrong-content": (
        {"gt.json": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "pred.json": b"[]"},
        "evaluate gt.json pred.json",
    ),
}


def words(message: str) -> str:
    """Return a message without its numbers."""
    return NUMBER.sub("#", message)


def files_and_command(code: str) -> tuple[dict[str, bytes], str]:
    """Return the files of an example by their paths, and the command that reads them."""
    if code in BYTES:
        return BYTES[code]
    blocks = dict(FENCED.findall(EXAMPLES[code]))
    command = blocks.pop("console").removeprefix("$ jaccard-eval ").rstrip("\n")
    return {name: text.encode() for name, text in blocks.items()}, command


@pytest.mark.parametrize("code", [*EXAMPLES, *BYTES])
def test_the_example_of_a_code_prints_its_message(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files, command = files_and_command(code)
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    run(command.split())
    printed = "".join(capsys.readouterr())
    # In full by `evaluate`; `inspect` lists codes and texts below a heading for their severity.
    pattern = rf"^(?:\w+\[{code}\]: | +{code} {{2,}})(.*(?:\n {{10,}}\S.*)*)"
    messages = [re.sub(r"\n +", " ", message) for message in re.findall(pattern, printed, re.MULTILINE)]
    assert messages, printed
    (expected,) = re.findall(rf"^\w+\[{code}\]: (.*?)\n```$", explanation(code), re.MULTILINE | re.DOTALL)[:1]
    assert words(" ".join(expected.split())) == words(messages[0])


def test_the_page_is_that_of_the_files() -> None:
    # `python docs/site/reference_pages.py` writes it.
    assert PAGE.read_text(encoding="utf-8") == findings_page()


def test_an_example_names_its_command_and_all_files_that_the_command_reads() -> None:
    for code, example in EXAMPLES.items():
        assert re.match(r"\n```console\n\$ jaccard-eval \w+ .+\n```\n", example), code
        assert f"$ jaccard-eval {files_and_command(code)[1]}\n" in explanation(code)
