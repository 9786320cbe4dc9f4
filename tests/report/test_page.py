"""The page: one file that fetches nothing, the same for the same result, users' names inert."""

import base64
import hashlib
import re
import sys
from pathlib import Path

import html5lib
import pytest

from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Example, Finding, Severity, Where
from jaccard_eval.report import ReportOptions, markup
from jaccard_eval.report.model import (
    Axis,
    Chart,
    Column,
    Drawing,
    Drawn,
    Headline,
    KeyValues,
    Live,
    Note,
    Remark,
    Report,
    Section,
    Series,
    Span,
    Table,
    columns,
)
from jaccard_eval.report.outputs import html
from jaccard_eval.report.outputs.html import render_report

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}\"'\x00\u202e"
TABLE = Table((Column(HOSTILE, "name"), *columns("metric", "AP")), ((HOSTILE, 0.5), ("dog", float("nan"))))
BLOCKS = (
    TABLE,
    KeyValues(((HOSTILE, HOSTILE),)),
    Note(HOSTILE),
    Drawing((HOSTILE,), (HOSTILE,)),
    Remark(HOSTILE, (HOSTILE, HOSTILE), HOSTILE, TABLE, "warn"),
    Live("names", {"names": [HOSTILE]}),
    Chart(
        "matrix", HOSTILE, (Series(HOSTILE, (1, 2)), Series("b", (0, 3))), Axis(HOSTILE, names=(HOSTILE, "b")), Axis()
    ),
    Chart("bar", HOSTILE, (Series(HOSTILE, (1, 2)),), Axis(HOSTILE), Axis(names=(HOSTILE, "b"))),
    Chart(
        "line", HOSTILE, (Series(HOSTILE, (0, 1), (0, 1), "faint", key=HOSTILE), Series("b", (1, 0))), Axis(), Axis()
    ),
)


def page(*sections: Section) -> str:
    return render_report(Report("title", sections, "signature"), ReportOptions())


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_hostile_names_are_inert_in_every_block(block: object) -> None:
    text = page(Section(HOSTILE, (block,)))  # type: ignore[arg-type]
    # The script and the data are ours; no other tag came into being, and nothing was filled in.
    assert text.count("<script") == text.count("</script") == (2 if isinstance(block, Live) else 1)
    assert "<img" not in text
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "7*7" in text
    names = {name for element in html5lib.parse(text).iter() for name in element.attrib}
    assert not {name for name in names if name.startswith("on") or name == "style"}


def test_nothing_is_styled_inline_or_fetched() -> None:
    text = page(Section("all", tuple(block for block in BLOCKS if not isinstance(block, Live))))
    assert not [element for element in html5lib.parse(text).iter() if "style" in element.attrib]
    assert not re.search(r"(?:href|src)=\"(?!#|data:)", text)
    assert "http://" not in text
    assert "https://" not in text


def test_the_policy_allows_the_style_and_the_script_of_the_page_alone() -> None:
    text = page(Section("one", (Note("text"),)))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy[1].replace("&#39;", "'").split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for tag, name in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"


def test_cells_read_as_in_all_other_media() -> None:
    text = page(Section("numbers", (TABLE,)))
    assert ">0.5000</td>" in text
    assert ">n/a</td>" in text


def test_a_folded_section_opens_when_asked_to() -> None:
    assert "<details>" in page(Section("more", (Note("text"),), folded=True))
    assert "<details>" not in page(Section("more", (Note("text"),)))


def test_pages_are_the_same_bytes_twice() -> None:
    sections = Section("all", BLOCKS[:-4])
    assert page(sections) == page(sections)


def test_a_number_may_have_a_drawing_next_to_it() -> None:
    heads = (Column("metric", "name"), Column("value", "metric"), Column("", "drawn"))
    table = Table(heads, (("AP", 0.25, Drawn(0.25, (0.1, 0.5))), ("AR", float("nan"), Drawn(float("nan")))))
    text = page(Section("numbers", (table,)))
    # From 0 at 4 to 1 at 92: a quarter ends at 26, the interval goes from 12.8 to 48.
    assert 'd="M4 8H26"' in text
    assert 'd="M12.8 4v8M12.8 8H48M48 4v8"' in text
    assert text.count('<td class="drawn"></td>') == 2  # below an empty heading: nothing is drawn of what is undefined


def test_a_page_of_more_than_8_megabytes_is_refused_with_the_option_that_helps() -> None:
    from jaccard_eval.report.outputs.html import LARGEST, require_size

    require_size("a" * LARGEST)
    with pytest.raises(UsageError, match=r"8\.0 MB, more than 8 MB.*--gallery"):
        require_size("é" * (LARGEST // 2 + 1))


def test_curves_are_drawn_where_their_values_are() -> None:
    # A chart of 400 by 240 units whose lower left corner is at (46, 250).
    series = Series("line", (0.0, 0.5, 0.5, 1.0), (0.0, 0.5, 0.75, 1.0), "curve")
    text = markup.draw(Chart("line", "t", (series,), Axis("x", ends=(0, 1)), Axis("y", ends=(0, 1))))
    assert 'd="M46 250l200 -120h100l100 -120"' in text
    assert ">x</text>" in text
    assert ">y</text>" in text


def test_steps_hold_the_value_of_the_place_that_ends_them() -> None:
    series = Series("line", (0.0, 1.0, 0.5), (0.0, 0.5, 1.0), "steps")
    text = markup.draw(Chart("line", "t", (series,), Axis("x", ends=(0, 1)), Axis("y", ends=(0, 1))))
    assert 'd="M46 250v-240h200v120h200"' in text


def test_lines_of_a_group_share_a_colour_from_faint_to_full() -> None:
    lines = [Series(name, (0, 1), look=look, group=group) for name, look, group in GROUPED]
    text = markup.draw(Chart("line", "t", tuple(lines), Axis(), Axis()))
    assert re.findall(r'class="line ([^"]+)"', text) == ["c1", "c2 f2", "c2 f1", "c2", "c3 dashes", "guide"]
    assert [name for _, name in markup.legend(Chart("line", "t", tuple(lines), Axis(), Axis()))] == list("abcdef")


GROUPED = [("a", "", ""), ("b", "", "g"), ("c", "", "g"), ("d", "", "g"), ("e", "dashes", ""), ("f", "guide", "")]


def test_notes_on_the_inputs_stand_before_the_command_and_rules_behind_it() -> None:
    blocks = (TABLE, Note("maps of one side"), Note("maps of the other side"), KeyValues((("match", "by IoU"),)))
    text = page(Section("How it was made", blocks, key="provenance"))
    places = [text.index(word) for word in ("maps of one side", "maps of the other side", "<dt>signature", "by IoU")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("spans", "large", "small"),
    [
        (("PQ 0.8763", "  SQ 0.9204", "  RQ 0.9500"), "PQ 0.8763", ["  SQ 0.9204", "  RQ 0.9500"]),
        (("B is better than A", ": PQ +0.2"), "B is better than A", ["PQ +0.2"]),
        (("FAILED", "  AP 0.3 < 0.5"), "FAILED  AP 0.3 < 0.5", []),
        (("IoU 0.5",), "IoU 0.5", []),
    ],
)
def test_what_counts_most_is_large_and_the_rest_of_a_headline_stands_next_to_it(
    spans: tuple[str, ...], large: str, small: list[str]
) -> None:
    report = Report("title", (Section("A", (TABLE,)),), headline=Headline(tuple(map(Span, spans))))
    (title,) = html5lib.parse(render_report(report, ReportOptions()), namespaceHTMLElements=False).iter("h1")
    within = [span for span in title.iter("span") if "within" in span.get("class")]
    assert [span.text for span in within] == small
    assert "".join(span.text for span in title.iter("span") if span not in within) == large


def test_what_was_read_and_by_which_rules_stands_at_the_end_of_every_page() -> None:
    from jaccard_eval.report.sections import default_page

    with_inputs = Report(
        "t",
        (
            Section("Inputs", (Note("paths"),)),
            Section("Rules", (Note("rules"),)),
            Section("Warnings", (Note("old"),), key="findings"),
            Section("Classes", (Note("classes"),)),
            Section("Gates", (Note("gates"),), key="gates"),
        ),
    )

    class Result:
        reported_by = "verify.report"
        findings = (Finding(Severity.NOTE, "b", 1, (Example(Where("p"), "d"),)),)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaccard_eval.report.sections.build_report", lambda *_: with_inputs)
        sections = default_page(Result(), ReportOptions()).sections  # type: ignore[arg-type]
    assert [section.title for section in sections] == ["Gates", "Notes", "Classes", "How it was made"]
    assert sections[-1].blocks == (Note("paths"), Note("rules"))


def test_compiled_templates_are_kept_and_made_anew_where_they_are_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "_compiled", lambda key: tmp_path / "folder" / key)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    section = Section("one", (Note("text"),))
    first = page(section)
    kept = sorted((tmp_path / "folder").iterdir())
    assert len(kept) > 2
    assert page(section) == first
    for path in kept:
        path.write_bytes(path.read_bytes()[:20])
    assert page(section) == first
    assert all(len(path.read_bytes()) > 20 for path in kept)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(html, "_compiled", lambda key: tmp_path / "other" / key)
    assert page(section) == first
    assert not (tmp_path / "other").exists()
