"""docs/formats.md is made of what the formats say of themselves.

Run as a script, this file writes the page anew.
"""

from pathlib import Path

from jaccard_eval.formats import Format, format_module, format_names, written_formats

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
HEAD = """# Formats

What can be read, and written with `jaccard-eval convert IN OUT [--to FORMAT]`. The format of an input is found by
looking; `--gt-format` and `--pred-format` settle what is ambiguous. `jaccard-eval formats` prints the same list, and
`python tests/test_formats_page.py` makes this page of it. Pickles are never loaded: export JSON, CSV or NumPy archives.

| format | what it is | written | carries | suffixes |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the page: a table of all formats, then the source and the example of each."""
    formats = [format_module(name).FORMAT for name in format_names()]
    return HEAD + "".join(map(_row, formats)) + "".join(map(_section, formats))


def _row(one: Format) -> str:
    written = "yes" if one.name in written_formats() else ""
    suffixes = ", ".join(one.suffixes) or f"folders of {one.member}"
    summary = one.summary.replace("|", "\\|")
    return f"| [`{one.name}`](#{one.name}) | {summary} | {written} | {', '.join(one.carries)} | {suffixes} |\n"


def _section(one: Format) -> str:
    return f"\n## {one.name}\n\nSource: {one.source}\n\n```text\n{one.example.rstrip()}\n```\n"


def test_the_page_is_what_the_formats_say_of_themselves() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/test_formats_page.py"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
