"""Names from the data are text and nothing else: in a terminal, CSV, Markdown, JSON, pictures and messages."""

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import box, write_json
from hostile_strings import STRINGS
from inertness import active_characters
from markdown_it import MarkdownIt
from markdown_it.token import Token

from jaccard_eval.cli import run as _run
from jaccard_eval.report import all_reporters
from jaccard_eval.text import printable

NAMES = tuple(STRINGS.values())
COMMANDS = ("evaluate", "inspect", "sensitivity", "compare")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # what the report itself may write: SGR
AUTOLINK = re.compile(r"(?:https?|ftp)://\w|www\.\w|\w@\w", re.IGNORECASE)
JUNIT = {"testsuites", "testsuite", "testcase", "failure", "error", "skipped", "properties", "property", "system-out"}
SAMPLE = re.compile(r'# (?:TYPE|HELP|UNIT) .*|[a-zA-Z_][a-zA-Z0-9_]*(?:\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})? \S+')
COMMAND = re.compile(r"^::|##\[")
OURS = "<!-- -->"  # an empty comment, which parts what GitHub would link


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One picture, one class and one object for each name; predictions add a class of every name that is unknown."""
    folder = tmp_path_factory.mktemp("pair")
    objects = [box(i, i, [10, 10, 20, 20]) for i in range(len(NAMES))]
    gt = {
        "images": [{"id": i, "file_name": name, "width": 100, "height": 100} for i, name in enumerate(NAMES)],
        "annotations": [one | {"id": i, "area": 400, "iscrowd": 0} for i, one in enumerate(objects)],
        "categories": [{"id": i, "name": name} for i, name in enumerate(NAMES)],
    }
    pred = [one | {"score": 0.9 - i / 1000} for i, one in enumerate(objects)]
    return write_json(folder / "gt.json", gt), write_json(folder / "pred.json", pred)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Tables whose classes and images have nothing in common but one, so that most names are in messages."""
    folder = tmp_path_factory.mktemp("tables")
    rows = [(f"{name}.jpg", name) for name in NAMES if encodable(name) and "\0" not in name and name.strip()]
    header = ["image", "class", "xmin", "ymin", "xmax", "ymax"]
    numbers = ["1", "2", "30", "40"]
    known, unknown = ["a.jpg", "dog", *numbers], [[image, name, *numbers, "0.5"] for image, name in rows]
    gt = [header, known, *([f"gt {image}", f"gt {name}", *numbers] for image, name in rows)]
    return (
        write_table(folder / "gt.csv", gt),
        write_table(folder / "pred.csv", [[*header, "score"], [*known, "0.5"], *unknown]),
    )


def encodable(text: str) -> bool:
    return text.encode("utf-8", "replace").decode() == text


def write_table(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return path


def run(command: str, *argv: str | Path) -> int:
    """Run a command on two sides and options; what compares predictions gets them twice."""
    again = argv[1:2] if command == "compare" else ()
    return _run.run([command, *map(str, (*argv[:2], *again, *argv[2:]))])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("color", ["always", "never"])
def test_nothing_acts_on_a_terminal(
    command: str, color: str, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, *pair, "--per-class", "--color", color) == 0
    shown = capsys.readouterr()
    assert (COLOURS.search(shown.out) is not None) == (color == "always")
    assert active_characters(COLOURS.sub("", shown.out + shown.err)) == set()


def test_markup_of_the_terminal_library_stands_for_itself(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("evaluate", *pair, "--per-class", "--color", "always") == 0
    shown = capsys.readouterr().out
    assert "[red]cat[/red]" in shown
    assert ":skull: cat" in shown


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("options", [[], ["--extra-images", "ignore"], ["--strict"], ["--match-images", "path"]])
def test_nothing_in_a_message_acts_on_a_terminal(
    command: str, options: list[str], tables: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(command, *tables, *options)
    shown = capsys.readouterr()
    assert code in (0, 3)
    assert r"\r=1+1" in shown.out + shown.err  # the first by code point, and escaped
    assert active_characters(shown.out + shown.err) == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_json_gives_the_names_back_and_is_ascii(
    command: str, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, *pair, "--json") == 0
    text = capsys.readouterr().out
    assert text.isascii()
    assert active_characters(text) == set()
    assert {one for one in NAMES if one.strip()} <= set(strings_in(json.loads(text)))


def strings_in(document: object) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict | list):
        for value in document.values() if isinstance(document, dict) else document:
            yield from strings_in(value)


def test_a_spreadsheet_takes_no_name_for_a_formula(pair: tuple[Path, Path], tmp_path: Path) -> None:
    assert run("evaluate", *pair, "-o", tmp_path / "out.csv") == 0
    text = (tmp_path / "out.csv").read_bytes().decode("utf-8", "surrogatepass")
    header, everything, *rows = csv.reader(io.StringIO(text, newline=""))
    assert {len(row) for row in (everything, *rows)} == {len(header)}
    assert [row[0].removeprefix("'") for row in rows] == [escaped(name).removeprefix("'") for name in NAMES]
    assert [row[0] for row in rows if row[0].startswith(tuple("=+-@\t\r\n\uff1d"))] == []
    assert active_characters(text) <= {"\t", "\r"}


def escaped(name: str) -> str:
    """Return a name as a cell holds it: tabs and line ends stand within its quotes, the rest is escaped."""
    return "".join(part if part in ("\t", "\r", "\n") else printable(part) for part in re.split(r"([\t\r\n])", name))


@pytest.mark.parametrize("mark", [";", "\t"])
def test_no_cell_of_a_csv_is_cut_where_another_mark_separates_cells(
    mark: str, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    # A spreadsheet of another country opens a .csv with its own mark; a quoted cell stays whole there, too.
    assert run("evaluate", *pair, "-o", tmp_path / "out.csv") == 0
    text = (tmp_path / "out.csv").read_bytes().decode("utf-8", "surrogatepass")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    assert [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))] == []


@pytest.fixture(scope="module")
def markdown(pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("markdown") / "out.md"
    assert run("evaluate", *pair, "--per-class", "-o", path) == 0
    text = path.read_text(encoding="utf-8")
    assert "```" not in text  # no block of code, in which escapes would not count
    return text


def parsed(markdown: str) -> list[Token]:
    """Return all tokens that a parser of its own makes of a document, those within lines included."""
    blocks = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)
    return [token for block in blocks for token in (block, *(block.children or ()))]


def test_nothing_in_markdown_is_markup_but_the_report_itself(markdown: str) -> None:
    tokens = parsed(markdown)
    inline = {token.type for token in tokens if token.level > 0 or token.children is None}
    assert not inline & {"image", "link_open", "code_inline", "em_open", "strong_open", "s_open", "html_block", "fence"}
    assert {token.content for token in tokens if token.type == "html_inline"} <= {OURS}
    assert active_characters(markdown) == set()


def test_no_name_in_markdown_is_linked_mentioned_or_numbered(markdown: str) -> None:
    assert AUTOLINK.findall(markdown) == []
    assert re.findall(r"(?<![\\&\w])#\w|(?<![\w`])@\w", markdown) == []


def test_a_table_in_markdown_has_a_row_for_each_name(markdown: str) -> None:
    cells = [
        "".join(part.content for part in token.children or () if part.type in ("text", "text_special"))
        for token in parsed(markdown)
        if token.type == "inline"
    ]
    missing = [name for name in NAMES if printable(name).strip() not in cells]
    assert missing == []
    widths = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in markdown.splitlines() if line.startswith("|")]
    by_table = [block.splitlines() for block in markdown.split("\n\n") if block.startswith("|")]
    assert sum(map(len, by_table)) == len(widths)
    assert all(len({line.count(" | ") for line in table[:2]}) == 1 for table in by_table)


def text_outputs() -> list[str]:
    """Return a name of a file for every reporter that writes text."""
    reporters = [reporter for reporter in all_reporters() if not reporter.requires]
    names = {f"out{suffix}" for reporter in reporters for suffix in reporter.suffixes}
    names |= {name for reporter in reporters for name in reporter.names if not name.endswith("/")}  # a folder of images
    return sorted(names - {"out.npz"})  # arrays, not text


@pytest.mark.parametrize("output", text_outputs())
@pytest.mark.parametrize("inputs", ["pair", "tables"])
def test_no_output_holds_what_acts_on_a_terminal_or_breaks_its_format(
    output: str, inputs: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    argv = [*request.getfixturevalue(inputs), "--extra-images", "ignore", "-o", tmp_path / output]
    assert run("evaluate", *argv) == 0
    text = (tmp_path / output).read_bytes().decode("utf-8")
    assert active_characters(text) <= ({"\t", "\r"} if output.endswith(".csv") else set())
    if output.endswith(".json"):
        json.loads(text)
    elif output.endswith(".xml"):
        assert {element.tag for element in ElementTree.fromstring(text).iter()} <= JUNIT
    elif output.endswith((".prom", ".om")) or output == "metrics.txt":
        *samples, end = text.splitlines()
        assert (end, [line for line in samples if not SAMPLE.fullmatch(line)]) == ("# EOF", [])


def commands_in(log: str) -> list[str]:
    """Return what GitHub's runner takes for commands: lines that begin with ``::``, and ``##[`` anywhere."""
    lines = (line.strip() for line in log.splitlines())
    return [
        re.split(r"[\s:]", line[2:])[0] if line.startswith("::") else "##" for line in lines if COMMAND.search(line)
    ]


@pytest.mark.parametrize("inputs", ["pair", "tables"])
@pytest.mark.parametrize("options", [[], ["--extra-images", "ignore"]])
def test_no_name_is_a_command_to_a_workflow(
    inputs: str,
    options: list[str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    files = {name: tmp_path / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for name, path in files.items():
        path.touch()
        monkeypatch.setenv(name, str(path))
    code = run("evaluate", *request.getfixturevalue(inputs), *options, "--per-class")
    shown = capsys.readouterr()
    assert code in (0, 3)
    assert set(commands_in(shown.err)) <= {"error", "warning", "notice"}
    assert commands_in(shown.out) == []
    outputs = files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
    assert [line for line in outputs if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_-]*=.*", line)] == []
    assert active_characters(shown.err + files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")) == set()


@pytest.mark.skipif(os.name == "nt", reason="names that Windows does not have")
@pytest.mark.parametrize("command", COMMANDS)
def test_names_of_files_and_folders_are_inert(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for name in NAMES if "/" not in name and "\0" not in name and encodable(name) and len(name) < 100]
    for side, line in (("gt", "0 0.5 0.5 0.2 0.2\n"), ("pred\x1b[2J\u202e", "0 0.5 0.5 0.2 0.2 0.9\n")):
        (tmp_path / side).mkdir()
        for name in names:
            (tmp_path / side / f"{name}.txt").write_text(line)
        (tmp_path / side / "broken\x1b[2J\n.bak").write_text("")
        Path(os.fsdecode(bytes(tmp_path / side) + b"/\xff\xfe.txt")).write_text(line)
    sides = (tmp_path / "gt", tmp_path / "pred\x1b[2J\u202e")
    for options in ([], ["--json"], ["--names", "\x1b[31mcat,\u202edog"]):
        assert run(command, *sides, *options) == (3 if command == "sensitivity" else 0)  # which needs pixels
        shown = capsys.readouterr()
        assert active_characters(shown.out + shown.err) == set()


def test_a_wrong_call_is_repeated_inert(capsys: pytest.CaptureFixture[str]) -> None:
    for name in (name for name in NAMES if encodable(name) and "\0" not in name):
        for argv in (["evaluate", f"{name}.json", "b"], ["evaluate", "a", "b", "--protocol", name], [f"x{name}", "b"]):
            assert _run.run(argv) in (2, 3, 4)  # a name may be an address, which cannot be reached
            shown = capsys.readouterr()
            assert active_characters(shown.out + shown.err) == set()
            assert shown.out == ""


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_list_of_formats_is_inert(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("formats", *options) == 0
    assert active_characters(capsys.readouterr().out) <= {"\t"}
