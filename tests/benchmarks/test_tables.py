"""`benchmarks/tables.py` writes what scripts print between the marks of the pages. Nothing is timed here."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="benchmarks measure as POSIX does")

import processes
import tables

ROOT = Path(__file__).parents[2]
WHERE = tables.Machine("2026-01-31", "Abacus 7", 2, "Linux x86_64", "3.11.7")
MARK = re.compile(r"^<!-- table: (.*) -->$", re.MULTILINE)


def _record(name: str, version: str, cpu: float, wall: float, stats: float = 0.5) -> processes.Record:
    # Medians of three rounds: the one in the middle.
    usages = [processes.Usage(cpu * factor, wall * factor, 100.0 * factor) for factor in (0.5, 1, 4)]
    return processes.Record(name, version, usages, [stats] * 12)


def _pages(folder: Path, text: str) -> Path:
    (folder / "benchmarks").mkdir()
    (folder / "README.md").write_text(text, encoding="utf-8")
    (folder / "benchmarks/README.md").write_text("# Others\n", encoding="utf-8")
    return folder


def test_each_table_has_its_place_on_one_page() -> None:
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in tables.PAGES}
    assert sorted(name for text in texts.values() for name in MARK.findall(text)) == sorted(tables.TABLES)
    assert MARK.findall(texts["README.md"]) == ["speed"]
    for text in texts.values():
        assert re.findall(r"^<!-- (table|end)\b", text, re.MULTILINE) == ["table", "end"] * len(MARK.findall(text))


def test_each_script_exists() -> None:
    assert all((ROOT / "benchmarks" / table.script).is_file() for table in tables.TABLES.values())


def test_what_stands_between_the_marks_is_replaced(tmp_path: Path) -> None:
    pages = _pages(
        tmp_path, "before\n<!-- table: a -->\nold\n\n| old |\n<!-- end -->\nafter\n<!-- table: ab -->\n<!-- end -->\n"
    )
    tables.write(pages, "a", r"| \1 new |")
    once = (pages / "README.md").read_text()
    assert once == "before\n<!-- table: a -->\n\n| \\1 new |\n\n<!-- end -->\nafter\n<!-- table: ab -->\n<!-- end -->\n"
    tables.write(pages, "a", r"| \1 new |")
    assert (pages / "README.md").read_text() == once
    assert (pages / "benchmarks/README.md").read_text() == "# Others\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!-- table: a -->\n<!-- end -->\n" * 2,
        "<!-- table: a -->\n",
        "<!-- table: a -->\n<!-- table: b -->\n<!-- end -->\n",
    ],
)
def test_marks_that_are_missing_or_there_twice_are_named(tmp_path: Path, text: str) -> None:
    pages = _pages(tmp_path, text)
    with pytest.raises(ValueError, match=r"[02] places between <!-- table: a --> and <!-- end -->.*write 1"):
        tables.write(pages, "a", "| new |")
    assert (pages / "README.md").read_text() == text


def test_the_line_above_a_table_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_version", {"jaccard-eval": "0.2.0", "numpy": "2.4.6", "fast": "1.0"}.get)
    line = tables.provenance(["shapes.py", "--rounds", "3"], ("fast", "gone"), WHERE, (0.04, 1.26))
    assert line == (
        "`python benchmarks/shapes.py --rounds 3` on 2026-01-31: Abacus 7, 2 processors, load 0.0 before and 1.3 after,"
        " Linux x86_64, Python 3.11.7; jaccard-eval 0.2.0, numpy 2.4.6, fast 1.0. Could not be installed: gone."
    )
    assert "Could not" not in tables.provenance(["shapes.py"], ("fast",), WHERE, (0, 0))


def test_the_table_of_one_scene_has_medians_and_ours_first() -> None:
    records = [
        _record("jaccard-eval command", "0.2.0", 0.4, 0.36),
        _record("jaccard-eval library", "0.2.0", 0.3, 0.3),
        _record("jaccard-eval command, pure Python", "0.2.0", 0.6, 0.6),
        _record("pycocotools", "2.0.11", 30.0, 31.0, stats=0.25),
        _record("hotcoco", "1.3.0", 0.2, 0.1),
    ]
    assert tables.one_scene(processes.raw({"250k": records})) == (
        "| tool | CPU s | wall s | peak MB |\n"
        "|---|--:|--:|--:|\n"
        "| jaccard-eval | 0.40 | 0.36 | 100 |\n"
        "| jaccard-eval without the compiled core | 0.60 | 0.60 | 100 |\n"
        "| hotcoco 1.3.0, library | 0.20 | 0.10 | 100 |\n"
        "| pycocotools 2.0.11 | 30.00 | 31.00 | 100 |\n"
        "\n"
        "Not the same 12 numbers as jaccard-eval command: pycocotools by up to 0.25."
    )


def test_the_table_of_all_scenes_has_ratios_and_no_number_of_who_is_not_installed() -> None:
    scene = [_record("jaccard-eval command", "0.2.0", 0.4, 0.36), _record("hotcoco", "1.3.0", 0.2, 0.72)]
    assert tables.all_scenes(processes.raw({"250k": scene, "1M": scene[:1]})) == (
        "| scene | CPU s | wall s | peak MB | CPU, wall, peak ÷ ultrafast-pycocotools | CPU, wall, peak ÷ hotcoco |\n"
        "|---|---:|---:|---:|---:|---:|\n"
        "| 250k | 0.40 | 0.36 | 100 | not installed | 2.00, 0.50, 1.00 |\n"
        "| 1M | 0.40 | 0.36 | 100 | not installed | not installed |"
    )


def test_headings_of_scripts_do_not_become_those_of_the_page() -> None:
    assert tables.as_printed("## segm\n\n| a |\n#hash\n\n") == "**segm**\n\n| a |\n#hash"


@pytest.mark.parametrize(
    ("code", "printed"),
    [("print('| 1 |')", "| 1 |\n"), ("print('| 1 |'); raise SystemExit(3)", None), ("pass", None)],
)
def test_a_script_that_fails_or_prints_nothing_leaves_its_table(code: str, printed: str | None) -> None:
    assert tables.run(["-c", code], {}, 60) == printed


def test_without_time_nothing_is_started() -> None:
    assert tables.run(["-c", "print(1)"], {}, 0) is None


def test_what_takes_too_long_is_ended() -> None:
    assert tables.run(["-c", "print('| 1 |', flush=True)\nimport time; time.sleep(600)"], {}, 0.5) is None


def test_names_that_are_no_tables_are_refused() -> None:
    command = [sys.executable, str(ROOT / "benchmarks/tables.py"), "--only", "sped"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "invalid choice: 'sped'" in done.stderr
