import csv
import html
import io
import json
import re
from pathlib import Path

import pytest
from command_line import box, write_json, write_pair

from jaccard_eval.cli import run as _run
from jaccard_eval.cli import streams
from jaccard_eval.features.bootstrap import t_probability, t_quantile

SAMPLE = Path(__file__).parents[3] / "sample_data" / "coco"
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
    assert run(*three, "--bootstrap", "0") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "AP 0.2525 0.5000 +0.2475 3" in lines
    assert lines.index("cat 0.0000 1.0000 +1.0000 1") < lines.index("dog 0.5050 0.0000 -0.5050 2")
    assert "lost a.jpg dog 0 0 10 10 1.00 missed" in lines
    assert "found b.jpg cat 20 20 10 10 missed 1.00" in lines


def test_the_table_has_one_row_per_changed_box(three: tuple[Path, ...]) -> None:
    out = three[0].parent / "changes.csv"
    assert run(*three, "-o", out, "--bootstrap", "0") == 0
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


def test_names_are_whole_in_files_and_shortened_on_a_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image, label = f"{'folder/' * 20}a.jpg", "class " * 20 + "end"
    gt = {
        "images": [{"id": 1, "file_name": image}],
        "annotations": [{"id": 1, "iscrowd": 0, "area": 100, **box(1, 1, [0, 0, 10, 10])}],
        "categories": [{"id": 1, "name": label}],
    }
    found, moved = ([box(1, 1, [left, 0, 10, 10], score=0.9)] for left in (0, 2))
    paths = [write_json(tmp_path / f"{name}.json", one) for name, one in (("gt", gt), ("a", found), ("b", moved))]
    reports = [tmp_path / name for name in ("report.md", "report.txt")]
    assert run(*paths, "-o", reports[0], "-o", reports[1], "-o", "-", "--bootstrap", "0") == 0
    for report in reports:
        text = report.read_text(encoding="utf-8")
        # In the tables of classes, images and changes.
        assert (text.count(image), text.count(label)) == (2, 2)
        assert "…" not in text
    screen = capsys.readouterr().out
    assert image not in screen
    assert f"…{image[-59:]}" in screen


def test_several_predictions_share_one_document(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*three, three[1], "--json", "--bootstrap", "0") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "comparison"
    assert [one["counts"]["lost"] for one in document["comparisons"]] == [1, 0]
    assert document["comparisons"][1]["changes"] == []


def test_slices_come_from_options_and_files(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    file = three[0].parent / "slices.toml"
    file.write_text('[slices]\ncats = ["b.*"]\n')
    assert run(*three, "--slice", "dogs=a.jpg", "--slice", "dogs=a.*", "--slices", file, "--bootstrap", "0") == 0
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
    # Halves are one image each: a loses 51/101, b wins 1. With one degree of freedom nothing is out of reach.
    assert run(*three, "--bootstrap", "200", "--confidence", "0.9", "--seed", "7") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "metric A B B - A 90 % CI gt" in lines
    delta, error = 1 / 2 - 51 / 202, (1 + 51 / 101) / 2 * (200 / 199) ** 0.5
    assert t_quantile(0.95, 1) * error > 1 + delta  # and so it ends where differences of AP do
    assert f"AP 0.2525 0.5000 {delta:+.4f} -1.0000 to +1.0000 3" in lines
    assert any(
        line.startswith("Intervals of the differences: 200 paired halves of 2 images, seed 7. With fewer than 30")
        for line in lines
    )
    assert any(line.startswith("B does not differ significantly from A in AP (p = 0.") for line in lines)
    assert lines[-1].startswith("B is not significantly different from A: AP +0.248 (90 % CI -1.000 to +1.000, p = 0.")


def test_equal_predictions_detect_no_difference_and_say_of_none_that_it_would_show(
    three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    gt, one, _ = three
    assert run(gt, one, one, "--bootstrap", "100") == 0
    out = capsys.readouterr().out
    assert "B does not differ significantly from A in AP (p = 1.00).\n" in out
    assert "detectable" not in out


def test_the_verdict_is_the_last_line_and_all_that_quiet_leaves(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sides = [SAMPLE / f"{name}.json" for name in ("gt", "better", "worse")]
    outputs = [tmp_path / f"r{suffix}" for suffix in (".txt", ".md", ".json")]
    assert run(*sides, "-q", *(word for path in outputs for word in ("-o", path))) == 0
    line = capsys.readouterr().out.removesuffix("\n")
    document = json.loads(outputs[2].read_text())
    (versus,) = document["comparisons"]
    ap = versus["metrics"][0]
    low, high = ap["interval"]
    # Its classes are on few of the 12 images: halves, and t with 11 degrees of freedom.
    assert document["bootstrap"]["method"] == "halves"
    error = (high - low) / 2 / t_quantile(0.975, 11)
    assert ap["p_value"] == pytest.approx(1 - t_probability(ap["delta"] / error, 11), abs=1e-9)
    assert (versus["verdict"], ap["p_value"] < 0.01) == ("worse", True)
    p = f"= {ap['p_value']:.3f}" if ap["p_value"] >= 0.001 else "< 0.001"
    assert line == f"B is worse than A: AP {ap['delta']:+.3f} (95 % CI {low:+.3f} to {high:+.3f}, p {p})"
    assert outputs[0].read_text().splitlines()[-1] == line
    assert html.unescape(outputs[1].read_text().splitlines()[-1]) == line


@pytest.mark.parametrize(("order", "color"), [(("better", "worse"), "31"), (("worse", "better"), "32")])
def test_worse_is_red_and_better_is_green(
    order: tuple[str, str], color: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [SAMPLE / f"{name}.json" for name in ("gt", *order)]
    assert run(*sides, "-q", "--color", "always", "--bootstrap", "100") == 0
    assert capsys.readouterr().out.startswith(f"\x1b[{color}mB is {order[1]} than A\x1b[0m: AP ")


def test_a_data_set_that_takes_long_says_how_to_ask_for_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 300 classes x 40 are the work of 12,000 images: of two predictions, more than the 17,000 that are resampled.
    gt = {
        "images": [{"id": i, "file_name": f"{i}.jpg"} for i in range(2)],
        "annotations": [{"id": 1 + i, "iscrowd": 0, "area": 100, **box(i, 1, [0, 0, 10, 10])} for i in range(2)],
        "categories": [{"id": i, "name": f"class {i}"} for i in range(300)],
    }
    pred = [box(i, 1, [0, 0, 10, 10], score=0.9) for i in range(2)]
    sides = [write_json(tmp_path / f"{name}.json", one) for name, one in (("gt", gt), ("a", pred), ("b", pred[:1]))]
    assert run(*sides, "--strict") == 0
    captured = capsys.readouterr()
    hint = "No confidence intervals: 2 images and 300 classes take a while. Add them with --bootstrap 1000."
    assert hint in " ".join(captured.out.split())
    assert "note[bootstrap-skipped]: " in captured.err
    assert captured.out.splitlines()[-1] == "B scores lower than A: AP -0.495 (significance not tested)"
    flag = hint.rpartition("with ")[2].removesuffix(".").split()
    assert run(*sides, *flag, "--json") == 0
    assert json.loads(capsys.readouterr().out)["bootstrap"]["n_resamples"] == 1000
    assert run(*sides, "--bootstrap", "0") == 0
    captured = capsys.readouterr()
    assert "intervals" not in captured.out + captured.err


def test_too_few_resamples_to_tell_are_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # 2 / 21 is above 0.05, whatever the resamples are; of 12 images with a cat each, they are drawn with repeats.
    gt = {
        "images": [{"id": i, "file_name": f"{i}.jpg"} for i in range(12)],
        "annotations": [{"id": 1 + i, "iscrowd": 0, "area": 100, **box(i, 1, [0, 0, 10, 10])} for i in range(12)],
        "categories": [{"id": 1, "name": "cat"}],
    }
    pred = [box(i, 1, [0, 0, 10, 10], score=0.9) for i in range(12)]
    sides = [write_json(tmp_path / f"{name}.json", one) for name, one in (("gt", gt), ("a", pred), ("b", pred[:6]))]
    assert run(*sides, "--bootstrap", "20", "-q") == 0
    line = "B scores lower than A: AP -0.495 (significance not tested: 20 resamples are too few)\n"
    assert capsys.readouterr().out == line


def test_sides_are_named(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    names = ("--name", "A=yolo11n", "--name", "B=big one=")
    assert run(*three, *names, "--bootstrap", "50", "-q") == 0
    assert capsys.readouterr().out.startswith("big one= is not significantly different from yolo11n: AP +0.248 (")
    gt, *preds = three
    runs = [gt.parent / f"{pred.stem}.npz" for pred in preds]
    for pred, saved in zip(preds, runs, strict=True):
        assert _run.run(["evaluate", str(gt), str(pred), "-q", "-o", str(saved)]) == 0
    capsys.readouterr()
    assert run(*runs, *names, "--bootstrap", "50", "-q") == 0
    assert capsys.readouterr().out.startswith("big one= is not significantly different from yolo11n: AP +0.248 (")


def test_names_without_a_side_are_of_the_sides_in_their_order(
    three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    for names in (["yolo11n", "yolo11s"], ["B=yolo11s", "yolo11n"], ["A=yolo11n", "yolo11s"]):
        assert run(*three, *(word for name in names for word in ("--name", name)), "--bootstrap", "50", "-q") == 0
        assert capsys.readouterr().out.startswith("yolo11s is not significantly different from yolo11n: AP +0.248 (")
    assert run(*three, "--name", "yolo11n", "--bootstrap", "50", "-q") == 0
    assert capsys.readouterr().out.startswith("B is not significantly different from yolo11n: AP +0.248 (")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["x", "A=y"], "side 'A' is named twice"),
        (["x", "y", "z"], "cannot name side 'C'; the sides are A, B"),
        (["A=x", "A=y"], "side 'A' is named twice"),
        (["C=x"], "cannot name side 'C'; the sides are A, B"),
        (["=x"], "cannot name side ''"),
        (["A="], "the name of side A is empty"),
        (["A=x", "B=x"], "sides A and B have the same name 'x'"),
    ],
)
def test_names_that_are_not_right_are_refused(
    three: tuple[Path, ...], capsys: pytest.CaptureFixture[str], names: list[str], message: str
) -> None:
    assert run(*three, *(word for name in names for word in ("--name", name))) == 2
    assert message in capsys.readouterr().err


def test_the_tables_of_the_sample_fit_into_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*(SAMPLE / f"{name}.json" for name in ("gt", "better", "worse")), "--bootstrap", "20") == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("Changes, B") + 3
    rows = lines[start : start + 10]
    # Each row begins with its kind of change: none goes on in a second line.
    kinds = ("lost", "found", "reclassified", "moved")
    assert all(line.split()[0] in kinds and len(line) <= 80 for line in rows)
    assert any("bicycle 0.89" in line for line in rows)


def test_groups_of_images_are_drawn_as_a_whole(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    groups = three[0].parent / "groups.csv"
    groups.write_text("a.jpg,day\nb.jpg,night\n")
    assert run(*three, "--bootstrap", "20", "--group-by", groups, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["bootstrap"]["unit"], document["bootstrap"]["n_units"]) == ("group", 2)
    assert document["signature"].endswith(f"|bootstrap=halves,20,0.95,0,{document['bootstrap']['grouping']}")
    assert run(*three, "--bootstrap", "20", "--group-by", "folder") == 2
    assert "the bootstrap needs at least 2 groups, got 1" in capsys.readouterr().err


def test_the_groups_are_not_overwritten(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    groups = three[0].parent / "groups.csv"
    groups.write_text("a.jpg,day\nb.jpg,night\n")
    assert run(*three, "--bootstrap", "20", "--group-by", groups, "-o", groups) == 2
    assert "which this run reads" in capsys.readouterr().err


def test_settings_of_intervals_ask_for_them(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*three, "--seed", "3", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["bootstrap"]["n_resamples"], document["bootstrap"]["rng"]) == (1000, 3)
    assert run(*three, "--group-by", "folder", "--bootstrap", "0") == 2
    assert "--group-by has no effect with --bootstrap 0. Remove one of them." in capsys.readouterr().err


def test_three_predictions_with_intervals_fit_into_80_columns(
    three: tuple[Path, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "result_width", lambda: 80)
    assert run(*three, three[1], "--bootstrap", "20") == 0
    lines = capsys.readouterr().out.splitlines()[:-1]
    assert max(len(line) for line in lines if str(three[0].parent) not in line) <= 80  # paths stay whole
    texts = [" ".join(line.split()) for line in lines]
    assert "metric B - A, 95 % CI C - A, 95 % CI" in texts
    assert any(re.fullmatch(r"AP -\d\.\d{4} to \+\d\.\d{4} 0\.0000 to 0\.0000", text) for text in texts)


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
    assert run(*sides, "--score", "0.05", "--bootstrap", "0") == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    start = rows.index("Changes, B") + 3
    assert [row.split()[0] for row in rows[start : start + 10]] == ["lost"] * 8 + ["found", "moved"]
    assert rows[start] == "lost a.jpg dog 330 0 10 10 1.00 missed"  # the surest of those that are lost


def test_paths_may_be_named(three: tuple[Path, ...]) -> None:
    gt, before, after = three
    assert run("--gt", gt, "--pred", before, "--pred", after, "--bootstrap", "0") == 0


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
    assert f"needs two or more predictions, got 1; '{before.name}' is not a saved run, so it was read" in text
