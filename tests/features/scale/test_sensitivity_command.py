import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import write_pair

from jaccard_eval.cli import run as _run

OUTPUTS = ("scale.json", "scale.csv", "scale.md", "scale.txt", "scale.svg", "scale.png")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return write_pair(tmp_path)


def run(*argv: str | Path) -> int:
    return _run.run(["sensitivity", *map(str, argv)])


def test_the_document_holds_what_the_classes_and_sizes_lose(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    # Two dogs, one found; the cat is 4 px off, an IoU of 3/7: AP (51/101 + 0) / 2, localisation half of 1.
    assert run(*pair, "--json", "--pixels", "2,4") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["kind"]) == (1, "sensitivity")
    assert document["metrics"]["AP"] == pytest.approx(51 / 202, abs=1e-12)
    assert document["metrics"]["lost_to_localisation"] == pytest.approx(0.5, abs=1e-12)
    assert document["metrics"]["AP_within_4px"] == pytest.approx((51 / 101 + 1) / 2, abs=1e-12)
    assert document["sizes"][0]["within"] == {
        "2": pytest.approx(51 / 202, abs=1e-12),
        "4": pytest.approx((51 / 101 + 1) / 2, abs=1e-12),
    }


def test_the_report_says_in_words_what_pixels_explain(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*pair, "--bins", "1") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "most is lost to localisation (0.50); an edge tolerance of 4 px recovers half of it" in shown


def test_classes_are_listed_on_request(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    for argv, listed in ([], False), (["--per-class"], True):
        assert run(*pair, *argv) == 0
        assert ("\n  cat " in capsys.readouterr().out) is listed


@pytest.mark.needs("matplotlib")
@pytest.mark.slow
def test_every_output_is_the_same_on_every_run(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder, runs = pair[0].parent, []
    for _ in range(2):
        assert run(*pair, *(text for name in OUTPUTS for text in ("-o", folder / name))) == 0
        runs.append([(folder / name).read_bytes() for name in OUTPUTS])
    assert runs[0] == runs[1]
    assert runs[0][-2].startswith(b"<?xml")
    assert runs[0][-1].startswith(b"\x89PNG")
    assert b"<dc:date>" not in runs[0][-2]


@pytest.mark.needs("matplotlib")
@pytest.mark.slow
def test_the_same_picture_comes_out_of_another_process(pair: tuple[Path, Path]) -> None:
    for name in ("one.svg", "two.svg"):
        command = [sys.executable, "-m", "jaccard_eval", "sensitivity", *pair, "-o", pair[0].parent / name]
        subprocess.run(command, check=True, capture_output=True)
    first, second = ((pair[0].parent / name).read_bytes() for name in ("one.svg", "two.svg"))
    assert first == second


def test_the_sheet_has_a_row_for_all_each_size_each_class_and_both(pair: tuple[Path, Path]) -> None:
    out = pair[0].parent / "scale.csv"
    assert run(*pair, "--bins", "1", "--pair-iou", "0.4", "-o", out) == 0
    header, *rows = [line.split(",") for line in out.read_text().splitlines()]
    assert [row[:2] for row in rows] == [
        ["all", "all"],
        ["all", ">0"],
        ["dog", "all"],
        ["cat", "all"],
        ["dog", ">0"],
        ["cat", ">0"],
    ]
    assert {len(row) for row in rows} == {len(header)}
    cat = dict(zip(header, rows[3], strict=True))
    assert (cat["pairs"], cat["dx"], cat["dy"], cat["AP"]) == ("1", "4.0", "0.0", "")


def test_a_picture_without_matplotlib_says_what_to_install_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("missing-gt.json", "missing-pred.json", "-o", tmp_path / "scale.svg") == 4
    shown = capsys.readouterr().err
    assert "matplotlib is not installed. Install it: pip install " in shown
    assert "missing-gt" not in shown


@pytest.mark.needs("matplotlib")
def test_an_inspection_has_a_picture(pair: tuple[Path, Path]) -> None:
    out = pair[0].parent / "inspection.svg"
    assert _run.run(["inspect", *map(str, pair), "-o", str(out)]) == 0
    assert "Boxes by class, predictions" in out.read_text()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--edges", "32,16"], "edges must be positive and ascending sides in pixels"),
        (["--bins", "0"], "bins must be a whole number >= 1, got 0"),
        (["--pixels", "1,x"], "'x' is not a number"),
        (["--areas", "small=0:32"], "No such option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_that_make_no_sense_are_usage_errors(
    argv: list[str], message: str, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*pair, *argv) == 2
    assert message in capsys.readouterr().err


@pytest.mark.needs("matplotlib")
def test_none_leaves_a_table_empty(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*pair, "--pixels", "none", "-o", pair[0].parent / "scale.svg") == 0
    assert "What each size loses" in capsys.readouterr().out


def test_the_exchange_rate_of_given_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # An object of 21 x 21 in an image of 101 x 101: all points but one of the object's, and 23 x 23 around it less one.
    extra = (101**2 - 21**2, 23**2 - 21**2)
    argv = [text for q in extra for text in ("--exchange", f"441,1,{q}")]
    assert run(*argv, "--json", "-o", tmp_path / "e.csv") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "exchange"
    rows = document["rows"]
    assert [row["jaccard"] for row in rows] == pytest.approx([440 / 10201, 440 / 529], abs=1e-15)
    assert [row["exchange_rate"] for row in rows] == pytest.approx([10201 / 441, 529 / 441], abs=1e-12)
    assert [row["points"] for row in rows] == [24, 2]
    assert (tmp_path / "e.csv").read_text().splitlines()[0] == "gt_area,missing,extra,jaccard,exchange_rate,points"
    assert run(*argv) == 0
    told = capsys.readouterr().out
    assert "0.0431  23.1315      24" in told
    assert "0.8318  1.19955       2" in told
    assert "J = (|B| - p) / (|B| + q)" in told


def test_nothing_missing_has_no_exchange_rate(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--exchange", "100,0,25", "--json") == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert (row["jaccard"], row["exchange_rate"], row["points"]) == (0.8, None, None)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--exchange", "1,2"], "expected three areas B,P,Q"),
        (["--exchange", "1,2,3"], "0 <= missing <= gt_area"),
        (["--exchange", "9,1,3", "gt.json", "pred.json"], "give either GT and PRED, or --exchange"),
    ],
)
def test_areas_that_do_not_fit_are_refused(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*argv) == 2
    assert message in capsys.readouterr().err
