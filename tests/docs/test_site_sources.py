"""The sources of the site: commands, options, names, metrics, outputs and findings have pages; links lead somewhere."""

import re
from pathlib import Path

import click
import pytest
import reference_pages
import written_pages
from test_readme import PAGES, read_blocks

import jaccard_eval
from jaccard_eval.cli import COMMAND_TABLE
from jaccard_eval.codes import CODES
from jaccard_eval.data.metricref import METRICS
from jaccard_eval.formats import format_names
from jaccard_eval.report import describe_outputs

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
# Pages whose blocks another file of tests runs: those that a module has as its PAGE.
NAMED = re.compile(r'^PAGE = .*"(docs/[\w/-]+\.md)"', re.MULTILINE)
TESTED_ELSEWHERE = {
    "docs/gates.md",  # features/gates/test_gates_page.py
    *(page for path in ROOT.glob("tests/**/test_*.py") for page in NAMED.findall(path.read_text("utf-8"))),
}
# Blocks that cost more than they prove: each has the reason.
NOT_RUN = {
    "CONTRIBUTING.md": "commands of a checkout",
    "benchmarks/README.md": "measurements",
}


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference_pages.generated_pages(written_pages.written_pages())


def test_every_visible_option_of_every_command_is_on_the_page_of_the_command(pages: dict[str, str]) -> None:
    context = click.Context(COMMAND_TABLE)
    for name in COMMAND_TABLE.list_commands(context):
        command = COMMAND_TABLE.get_command(context, name)
        assert command is not None
        declared = " ".join(re.findall(r"^````\{option\} (.*)", pages[f"commands/{name}.md"], re.MULTILINE)).split()
        wanted = {
            option
            for param in command.params
            if isinstance(param, click.Option) and not param.hidden
            for option in (*param.opts, *param.secondary_opts)
        }
        assert wanted - {word.rstrip(",") for word in declared} == set(), name
        assert wanted - set(re.findall(r"^`(--[\w-]+)`$", pages["options.md"], re.MULTILINE)) <= {
            "-o",
            "-q",
            "-v",
            "-h",
        }
        assert f"[`{name}`]({name}.md)" in pages["commands/index.md"]


def test_every_public_name_metric_output_and_code_has_its_place(pages: dict[str, str]) -> None:
    for name in jaccard_eval.__all__:
        assert name.startswith("_") or f"library/{name}.md" in pages
        assert name.startswith("_") or f"[`{name}`]({name}.md)" in pages["library/index.md"]
    assert [name for name in METRICS if f"| `{name}` |" not in pages["metrics.md"]] == []
    outputs = [one for rows in describe_outputs() for names, _ in rows for one in names.split()]
    assert [one for one in outputs if f"`{one}`" not in pages["outputs.md"]] == []
    assert {f"formats/{name}.md" for name in format_names()} | {f"findings/{code}.md" for code in CODES} <= set(pages)
    formats = written_pages.written_pages()["formats.md"]
    assert [name for name in format_names() if f"| [`{name}`](formats/{name}.md) |" not in formats] == []
    findings = written_pages.written_pages()["findings.md"]
    assert [code for code in CODES if f"[`{code}`](findings/{code}.md)" not in findings] == []


def test_the_sidebar_has_every_page_and_names_those_that_the_first_page_does_not_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    index = "# Home\n\n## Tasks\n\n* [One](tasks/one.md): text\n"
    names = {"index.md", "tasks/one.md", "later.md", "findings/a.md"}
    text = written_pages.with_contents(index, names, {"Reference": ["options.md"]}, unlisted={"findings/a.md"})
    trees = re.findall(r":caption: (\w+)\n\n(.*?)```", text, re.DOTALL)
    assert trees == [("Tasks", "tasks/one\n"), ("More", "later\n"), ("Reference", "options\n")]
    assert "## Reference\n\n* [](/options.md)\n" in text
    assert "later.md" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"tasks/one\.md"):
        written_pages.with_contents(index, {"index.md"}, {}, unlisted=set())


@pytest.mark.parametrize("page", [path.relative_to(ROOT).as_posix() for path in written_pages.repository_pages()])
def test_links_of_a_page_lead_to_files_and_headings_of_the_repository(page: str) -> None:
    path = ROOT / page
    for target, anchor in re.findall(
        r"\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)", FENCED.sub("", path.read_text("utf-8"))
    ):
        linked = (path.parent / target).resolve() if target else path
        assert linked.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in headings(linked.read_text("utf-8")), f"{page}: {target}#{anchor}"


def test_every_console_and_python_block_of_the_docs_runs_in_some_test() -> None:
    with_blocks = {
        page
        for path in written_pages.repository_pages()
        for page in [path.relative_to(ROOT).as_posix()]
        for block in read_blocks(path.read_text("utf-8"), page)
        if block.language in ("console", "python")
    }
    assert with_blocks - {*PAGES, *TESTED_ELSEWHERE, *NOT_RUN} == set(), "add the pages to RUN in test_readme.py"


@pytest.mark.parametrize("page", [path.relative_to(ROOT).as_posix() for path in written_pages.DOCS.rglob("*.md")])
def test_a_page_begins_with_whom_it_helps(page: str) -> None:
    assert re.match(r"# .+\n\nFor (those|anyone|programs|projects|new users)\b", (ROOT / page).read_text("utf-8")), page


def headings(text: str) -> set[str]:
    """Return the anchors of a page, as GitHub and the site make them."""
    found: dict[str, int] = {}
    anchors = set()
    for title in re.findall(r"^#{1,6} (.*)", FENCED.sub("", text), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()).strip().replace(" ", "-")
        anchors.add(f"{slug}-{found[slug]}" if slug in found else slug)
        found[slug] = found.get(slug, 0) + 1
    return anchors
