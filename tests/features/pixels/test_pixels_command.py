import csv
import json
from pathlib import Path

import pytest
from label_map_builder import write_png

from jaccard_eval.cli import run as _run

GT = {"a.png": "0011 / 0012", "b.png": "xx12"}
PRED = {"a.png": "0010 / 0012", "b.png": "0022"}


@pytest.fixture
def sides(tmp_path: Path) -> list[str]:
    """Two folders; 255 is in the ground truth."""
    for side, maps in (("gt", GT), ("pred", PRED)):
        for name, picture in maps.items():
            write_png(tmp_path / side / name, picture)
    return [str(tmp_path / "gt"), str(tmp_path / "pred")]


def run(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> tuple[str, str]:
    assert _run.run(["pixels", *argv]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


RULES = ("--classes", "sky,road,car", "--ignore", "255")
# sky: 4 hits, 1 false alarm. road: 2 hits, 2 misses. car: 2 hits, 1 false alarm. Ten pixels count.
IOUS = {"sky": 4 / 5, "road": 2 / 4, "car": 2 / 3}


def test_the_json_document_has_the_envelope_of_schema_1(sides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, *sides, *RULES, "--json")[0])
    assert (document["schema"], document["kind"]) == (1, "pixels")
    assert {row["class"]: row["IoU"] for row in document["per_class"]} == IOUS
    assert set(document["per_class"][0]) == {
        "class", "IoU", "precision", "recall", "Dice", "gt_pixels", "pred_pixels",
    }  # fmt: skip
    assert document["metrics"] == {
        "mIoU": pytest.approx((4 / 5 + 2 / 4 + 2 / 3) / 3, abs=1e-15),
        "fwIoU": pytest.approx(4 / 10 * 4 / 5 + 4 / 10 * 2 / 4 + 2 / 10 * 2 / 3, abs=1e-15),
        "pixel_accuracy": 8 / 10,
        "mean_accuracy": pytest.approx((1 + 2 / 4 + 1) / 3, abs=1e-15),
    }
    assert document["inputs"]["gt"]["ignored"] == {"pixels-ignored": 2}
    assert {"gt": "road", "pred": "sky", "pixels": 1} in document["confusion"]
    assert document["undefined"] == {}


def test_the_text_names_the_rule_on_background(sides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = run(capsys, *sides, *RULES)
    assert "every class counts alike; none is background" in text
    text, _ = run(capsys, *sides, *RULES, "--background", "0", "--drop-background", "gt")
    flat = " ".join(text.split())
    assert "background is 'sky' and excluded from the means; pixels whose ground truth is background are" in flat
    assert "|background=0|drop_background=gt|" in text
    assert "n/a: sky: dropped as background" in text


def test_scores_are_shown_by_class_in_the_order_asked_for(sides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = run(capsys, *sides, *RULES, "--sort", "IoU")
    rows = [line.split()[0] for line in text.partition("Classes")[2].splitlines()[3:6]]
    assert rows == ["sky", "car", "road"]
    assert "sky            4            5  0.8000" in text


def test_undefined_scores_are_null_empty_and_not_available(
    sides: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rules = ("--classes", "sky,road,car,bike", "--ignore", "255", "-o", str(tmp_path / "table.csv"))
    document = json.loads(run(capsys, *sides, *rules, "--json")[0])
    assert document["per_class"][3]["IoU"] is None
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert [row["class"] for row in rows] == ["all", "sky", "road", "car", "bike"]
    assert (rows[4]["IoU"], rows[4]["gt_pixels"]) == ("", "0")
    assert float(rows[0]["mIoU"]) == document["metrics"]["mIoU"]
    assert "n/a: bike: on neither side" in run(capsys, *sides, *rules)[0]


def test_markdown_is_written_by_suffix(sides: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run(capsys, *sides, *RULES, "-o", str(tmp_path / "report.md"))
    assert "| sky | 4 | 5 | 0.8000 |" in (tmp_path / "report.md").read_text()


def test_a_list_chooses_the_maps(sides: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "val.txt").write_text("a\n")
    document = json.loads(run(capsys, *sides, "--list", str(tmp_path / "val.txt"), "--json")[0])
    assert document["inputs"]["gt"]["images"] == 1
    assert document["inputs"]["gt"]["ignored"] == {"unlisted": 1}


def test_bad_maps_end_with_3_and_write_nothing(
    sides: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out, err = run(capsys, *sides, "--classes", "a,b", "-o", str(tmp_path / "report.json"), code=3)
    assert out == ""
    assert "b.png: (0, 0): value 255 is not a class" in err
    assert not (tmp_path / "report.json").exists()


def test_warnings_are_errors_when_strict(sides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "[map-void]" in run(capsys, *sides, "--strict", code=3)[1]
    run(capsys, *sides, "--strict", "--allow", "map-void")


@pytest.mark.parametrize(
    "argv",
    [
        ["--drop-background", "gt"],
        ["--background", "9", "--classes", "a,b,c"],
        ["--sort", "AP"],
        ["--drop-background", "dt", "--background", "0"],
        ["--ignore", "void"],
    ],
)
def test_rules_that_cannot_be_end_with_2(sides: list[str], capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert run(capsys, *sides, *argv, code=2)[1].startswith("error: ")


def test_an_output_never_overwrites_an_input(sides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (table := Path(sides[0]).parent / "colors.csv").write_text("0 0 0 sky\n")
    run(capsys, *sides, "--colors", str(table), "-o", str(table), code=2)
    assert table.read_text() == "0 0 0 sky\n"
