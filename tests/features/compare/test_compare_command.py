import csv
import io
import json
from pathlib import Path

import pytest
from command_line import box, write_json, write_pair

from jaccard_eval.cli import run as _run

COMMENT_LIMIT = 65_536  # characters that GitHub takes in a comment


@pytest.fixture
def three(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Ground truth; predictions that find one dog and miss the cat by 4 px; predictions that find the cat alone."""
    gt, before = write_pair(tmp_path)
    after = write_json(tmp_path / "after.json", [box(2, 2, [20, 20, 10, 10], score=0.8)])
    return gt, before, after


def run(*argv: str | Path) -> int:
    return _run.run(["compare", *map(str, argv)])


def test_the_report_shows_deltas_movers_and_boxes(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    # AP of dogs 51/101 to 0, of cats 0 to 1: (51/101)/2 = 0.2525 to 0.5.
    assert run(*three) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "AP 0.2525 0.5000 +0.2475 3" in lines
    assert lines.index("cat 0.0000 1.0000 +1.0000 1") < lines.index("dog 0.5050 0.0000 -0.5050 2")
    assert "lost a.jpg dog 0 0 10 10 IoU 1.00 missed" in lines
    assert "found b.jpg cat 20 20 10 10 missed IoU 1.00" in lines


def test_the_table_has_one_row_per_changed_box(three: tuple[Path, ...]) -> None:
    out = three[0].parent / "changes.csv"
    assert run(*three, "-o", out) == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [(row["change"], row["image"], row["row"], row["before_iou"]) for row in rows] == [
        ("lost", "a.jpg", "0", "1.0"),
        ("found", "b.jpg", "2", ""),
    ]


def test_the_markdown_can_be_found_again_and_fits_into_a_comment(tmp_path: Path) -> None:
    n = 3000
    gt = {
        "images": [{"id": i, "file_name": f"{'long/' * 30}{i}.jpg"} for i in range(n)],
        "annotations": [{"id": i + 1, "iscrowd": 0, "area": 100, **box(i, i % 90, [0, 0, 10, 10])} for i in range(n)],
        "categories": [{"id": i, "name": f"class {i}" + "x" * 100} for i in range(90)],
    }
    all_found = [box(i, i % 90, [0, 0, 10, 10], score=0.9) for i in range(n)]
    paths = [write_json(tmp_path / f"{name}.json", one) for name, one in (("gt", gt), ("a", all_found))]
    others = [write_json(tmp_path / f"{name}.json", all_found[: n // 2 - i]) for i, name in enumerate("bc")]
    out = tmp_path / "comment.md"
    assert run(*paths, *others, "-o", out) == 0
    text = out.read_text()
    assert text.startswith("<!-- jaccard-eval -->\n\n## jaccard-eval ")
    assert "and 1,490 more; -o changes.csv writes all" in text
    assert len(text) < COMMENT_LIMIT


def test_several_predictions_share_one_document(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*three, three[1], "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "comparison"
    assert [one["counts"]["lost"] for one in document["comparisons"]] == [1, 0]
    assert document["comparisons"][1]["changes"] == []


def test_slices_come_from_options_and_files(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    file = three[0].parent / "slices.toml"
    file.write_text('[slices]\ncats = ["b.*"]\n')
    assert run(*three, "--slice", "dogs=a.jpg", "--slice", "dogs=a.*", "--slices", file) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "dogs AP 0.5050 0.0000 -0.5050 2 1" in lines
    assert "cats AP50 0.0000 1.0000 +1.0000 1 1" in lines


@pytest.mark.parametrize(
    ("argument", "content", "message"),
    [
        ("dogs", None, "expected NAME=GLOB"),
        ("dogs=a.jpg", '[slices]\ndogs = ["b.*"]\n', "slice 'dogs' is given twice"),
        ("dogs=a.jpg", "[slices]\nday = 3\nnight = []\n", "slices.day: expected a list of names and globs, got 3"),
        ("dogs=a.jpg", "night = []\n", "expected one table [slices]"),
        ("dogs=a.jpg", "[slices", "is not valid TOML"),
    ],
)
def test_slices_that_are_not_right_are_refused(
    three: tuple[Path, ...],
    capsys: pytest.CaptureFixture[str],
    argument: str,
    content: str | None,
    message: str,
) -> None:
    file = three[0].parent / "slices.toml"
    file.write_text(content or '[slices]\nday = ["a.jpg"]\n')
    assert run(*three, "--slice", argument, "--slices", file) == 2
    assert message in capsys.readouterr().err


def test_a_bootstrap_adds_intervals_and_what_they_mean(
    three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    # Of two images, resamples draw a twice (AP 51/101 to 0), b twice (0 to 1) or both.
    assert run(*three, "--bootstrap", "200", "--confidence", "0.9", "--seed", "7") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "metric A B B - A 90 % gt" in lines
    assert "AP 0.2525 0.5000 +0.2475 -0.5050 to +1.0000 3" in lines
    assert "intervals: 2 images drawn 200 times, the same for all predictions; seed 7" in lines
    assert any(line.startswith("AP of B: not chance with probability ") for line in lines)


def test_groups_of_images_are_drawn_as_a_whole(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    groups = three[0].parent / "groups.csv"
    groups.write_text("a.jpg,day\nb.jpg,night\n")
    assert run(*three, "--bootstrap", "20", "--group-by", groups, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["bootstrap"]["unit"], document["bootstrap"]["n_units"]) == ("group", 2)
    assert document["signature"].endswith(f"|bootstrap=20,0.95,0,{document['bootstrap']['grouping']}")
    assert run(*three, "--bootstrap", "20", "--group-by", "folder") == 2
    assert "a bootstrap draws groups, and there is only 1 to draw from" in capsys.readouterr().err


def test_the_groups_are_not_overwritten(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    groups = three[0].parent / "groups.csv"
    groups.write_text("a.jpg,day\nb.jpg,night\n")
    assert run(*three, "--bootstrap", "20", "--group-by", groups, "-o", groups) == 2
    assert "which this run reads" in capsys.readouterr().err


def test_settings_without_bootstrap_are_refused(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*three, "--group-by", "folder") == 2
    assert "--group-by is of no use without --bootstrap N" in capsys.readouterr().err


def test_three_predictions_with_intervals_fit_into_80_columns(
    three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*three, three[1], "--bootstrap", "20", "-q") == 0
    lines = capsys.readouterr().out.splitlines()[:-1]
    assert max(map(len, lines)) <= 80
    texts = [" ".join(line.split()) for line in lines]
    assert "metric B - A, 95 % C - A, 95 %" in texts
    assert "AP -0.5050 to +1.0000 0.0000 to 0.0000" in texts


def test_every_kind_of_change_is_shown_before_the_second_of_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Twelve boxes are lost; one is found and one moves by 2 of 10 pixels, from IoU 1 to 8/12.
    boxes = [[30 * i, 0, 10, 10] for i in range(14)]
    gt = {
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "annotations": [{"id": i + 1, "iscrowd": 0, "area": 100, **box(1, 1, one)} for i, one in enumerate(boxes)],
        "categories": [{"id": 1, "name": "dog"}],
    }
    before = [box(1, 1, one, score=0.1 + i / 100) for i, one in enumerate(boxes[:13])]
    after = [box(1, 1, boxes[13], score=0.9), box(1, 1, [30 * 12 + 2, 0, 10, 10], score=0.8)]
    sides = [write_json(tmp_path / f"{name}.json", one) for name, one in (("gt", gt), ("a", before), ("b", after))]
    assert run(*sides, "--score", "0.05") == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    start = rows.index("Changes, B") + 3
    assert [row.split()[0] for row in rows[start : start + 10]] == ["lost"] * 8 + ["found", "moved"]
    assert rows[start] == "lost a.jpg dog 330 0 10 10 IoU 1.00 missed"  # the surest of those that are lost


def test_paths_may_be_named(three: tuple[Path, ...]) -> None:
    gt, before, after = three
    assert run("--gt", gt, "--pred", before, "--pred", after) == 0


@pytest.mark.parametrize(("count", "message"), [(0, "Missing argument 'GT'"), (2, "two or more predictions, got 1")])
def test_missing_paths_are_said(
    three: tuple[Path, ...], capsys: pytest.CaptureFixture[str], count: int, message: str
) -> None:
    assert run(*three[:count]) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_threshold_for_boxes_is_refused(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*three, "--box-iou", "0.33") == 2
    assert "IoU 0.33 is not evaluated" in capsys.readouterr().err


def test_one_set_of_predictions_is_told_what_was_taken_for_the_ground_truth(
    three: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, before, after = three
    monkeypatch.chdir(before.parent)
    assert run(before.name, after) == 2
    text = capsys.readouterr().err
    assert f"needs two or more predictions, got 1 beside '{before.name}', which is no saved run and so taken" in text
