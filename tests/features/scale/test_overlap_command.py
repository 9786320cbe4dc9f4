import json
from pathlib import Path

import pytest
from command_line import run_process, write_pair

from jaccard_eval.cli import run as _run
from jaccard_eval.cli.commands.overlap import ENCODINGS, MEASURES
from jaccard_eval.features.scale.compute import MEASURES as KERNELS
from jaccard_eval.findings import DataError
from jaccard_eval.reading.lines import read_box_list


def run(*argv: str | Path) -> int:
    return _run.run(["overlap", *map(str, argv)])


def test_two_boxes_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    # 10 x 10 and 10 x 10, half of each in common: 50 of 150.
    assert run("5,0,15,10", "0,0,10,10", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["kind"]) == (1, "overlap")
    assert document["metrics"]["iou"] == pytest.approx(1 / 3, abs=1e-15)
    assert document["areas"] == {"TP": 50, "FP": 50, "FN": 50}
    assert run("5,0,10,10", "0,0,10,10", "--box", "xywh", "--json") == 0
    assert json.loads(capsys.readouterr().out) == document


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_that_the_help_names_is_read(encoding: str) -> None:
    assert run("1,2,30,40", "1,2,30,40", "--box", encoding) == 0


def test_the_picture_is_drawn_with_blocks_or_in_ascii() -> None:
    for encoding, row in (
        ("utf-8", "··▒▒▒ FN ▒▒▒███ TP ███░░░ FP ░░░··"),
        ("ascii", "..--- FN ---### TP ###+++ FP +++.."),
    ):
        done = run_process("overlap", "5,0,15,10", "0,0,10,10", env={"PYTHONIOENCODING": encoding}, encoding="utf-8")
        assert done.returncode == 0
        assert f"\n  {row}\n" in done.stdout


def test_a_negative_number_comes_after_two_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", "--", "-5,0,5,10", "0,0,10,10") == 0
    assert json.loads(capsys.readouterr().out)["areas"] == {"TP": 50, "FP": 50, "FN": 50}


def test_boxes_of_an_image_of_two_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gt, pred = write_pair(tmp_path)
    assert run("--gt", gt, "--pred", pred, "--image", "a.jpg", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["image"], document["pred_name"], document["gt_name"]) == ("a.jpg", "dog, score 0.9", "dog")
    assert document["metrics"]["iou"] == 1
    assert run("--gt", gt, "--pred", pred, "--image", "b.jpg", "--gt-index", "0", "--pred-index", "0", "--json") == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["edge_error"] == 4


@pytest.mark.needs("matplotlib")
def test_every_output_is_written_and_the_same_again(tmp_path: Path) -> None:
    names = ("pair.md", "pair.csv", "pair.json", "pair.txt")
    runs = []
    for _ in range(2):
        assert run("5,0,15,10", "0,0,10,10", *(text for name in names for text in ("-o", tmp_path / name))) == 0
        runs.append([(tmp_path / name).read_bytes() for name in names])
    assert runs[0] == runs[1]
    assert b"TP" in runs[0][0]
    assert runs[0][0].count(b"```") == 2


@pytest.mark.needs("matplotlib")
def test_the_picture_is_that_of_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("5,0,15,10", "0,0,10,10", "-o", tmp_path / "pair.svg") == 2
    assert "overlap cannot write images. Supported: .txt .md" in capsys.readouterr().err
    assert not (tmp_path / "pair.svg").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["1,2,3,4"], "give two boxes A and B"),
        (["1,2,3", "4,5,6,7"], "a box is four numbers"),
        (["1,2,3,x", "4,5,6,7"], "'x' is not a number"),
        (["9,0,1,1", "0,0,1,1"], "x2 < x1"),
        (["--gt", "g.json", "--pred", "p.json"], "name the image with --image"),
        (["--gt", "g.json", "--pred", "p.json", "--image", "a", "1,2,3,4"], "name the image with --image"),
        (["--image", "a"], "Missing argument 'GT'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_no_pair_is_a_usage_error(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*argv) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_data_that_cannot_be_used_ends_with_3(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    pred.write_text("[")
    assert run("--gt", gt, "--pred", pred, "--image", "a.jpg") == 3


@pytest.mark.parametrize(
    ("pred", "gt", "iou"),
    [
        (
            "2.76772099,3.82412258,9.20284061,10.90716819",
            "6.27252577,6.24175572,11.23818034,8.57538178",
            0.42562048,
        ),
        ("11.14633535,10.19626615,12.60589032,4.39965071", "12.15843153,3.54273941,9.59581098,0.71452057", 0.0),
    ],
)
def test_boxes_are_clipped_to_a_window_before_they_are_compared(
    pred: str, gt: str, iou: float, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(pred, gt, "--box", "cxcywh", "--clip", "0,0,12,12", "--json") == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["iou"] == pytest.approx(iou, abs=5e-9)


def test_a_window_may_lie_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    # Clipped to 5..15, both are the window: 10 x 10.
    assert run("0,0,20,20", "5,5,30,30", "--clip", "5,5,15,15", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["metrics"]["iou"], document["areas"]["TP"]) == (1, 100)


@pytest.fixture
def lists(tmp_path: Path) -> tuple[Path, Path]:
    pred, gt = tmp_path / "pred.txt", tmp_path / "gt.csv"
    pred.write_text("10 20 50 80  # first\n\n20\t30\t60\t90\n")
    gt.write_text("x1,y1,x2,y2\n20,30,60,90\n30,40,70,100\n")
    return pred, gt


@pytest.mark.parametrize(
    ("by", "matrix"),
    [
        # Each box has 40 x 60 = 2400; in common are 30 x 50 = 1500, 20 x 40 = 800, 2400 and 1500 again.
        ("iou", [[1500 / 3300, 800 / 4000], [1, 1500 / 3300]]),
        ("ioa", [[0.625, 1 / 3], [1, 0.625]]),
        ("ioa-pred", [[0.625, 1 / 3], [1, 0.625]]),
        # The hull is 50 x 70 = 3500 around neighbours, 60 x 80 = 4800 around the other two.
        ("giou", [[1500 / 3300 - 200 / 3500, 0.2 - 800 / 4800], [1, 1500 / 3300 - 200 / 3500]]),
    ],
)
def test_files_of_boxes_give_a_matrix(
    by: str, matrix: list[list[float]], lists: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*lists, "--by", by, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["by"]) == ("overlap-matrix", by)
    assert document["matrix"] == [pytest.approx(row, abs=1e-15) for row in matrix]
    assert set(MEASURES) == set(KERNELS)


def test_a_matrix_is_shown_and_written(
    lists: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*lists, "--by", "ioa", "-o", tmp_path / "m.csv", "-o", tmp_path / "m.md") == 0
    assert "1  1.0000  0.6250" in capsys.readouterr().out
    assert (tmp_path / "m.csv").read_text() == "pred,gt_0,gt_1\n0,0.625,0.3333333333333333\n1,1.0,0.625\n"
    assert "| 0.6250 |" in (tmp_path / "m.md").read_text()


def test_every_line_that_is_not_a_box_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, good = tmp_path / "bad.txt", tmp_path / "good.txt"
    bad.write_text("1,2,3\n1,2,x,4\n30,40,10,10\n")
    good.write_text("0,0,1,1\n")
    assert run(bad, good) == 3
    told = capsys.readouterr().err
    for part in ("bad.txt:1", "expected 4 numbers, got 3", "bad.txt:2", "'x'", "bad.txt:3", "--box xywh"):
        assert part in told
    bad.write_text("30,40,10,10\n")
    assert run(bad, good, "--box", "xywh") == 0
    with pytest.raises(DataError) as caught:
        read_box_list(bad, "xyxy")
    (fix,) = (finding.fix for finding in caught.value.findings)
    assert fix is not None and (fix.kind, fix.before, fix.after) == ("reading", 0.0, 1.0)
    bad.write_text("-30,40,-60,10\n")  # no box by either
    with pytest.raises(DataError) as caught:
        read_box_list(bad, "xyxy")
    assert [finding.fix and finding.fix.kind for finding in caught.value.findings] == ["missing"]


def test_a_list_of_boxes_is_not_overwritten(lists: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*lists, "-o", lists[1]) == 2
    assert "would overwrite the input" in capsys.readouterr().err
    assert lists[1].read_text().startswith("x1")


def test_no_boxes_give_an_empty_matrix(
    lists: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none.txt").write_text("")
    assert run(tmp_path / "none.txt", lists[1], "--json") == 0
    assert json.loads(capsys.readouterr().out)["matrix"] == []
    assert run(lists[0], tmp_path / "none.txt", "--json") == 0
    assert json.loads(capsys.readouterr().out)["matrix"] == [[], []]
    assert run(lists[0], tmp_path / "none.txt") == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["0,0,1,1", "0,0,1,1", "--by", "ioa"], "--by picks the measure of a matrix"),
        (["0,0,1,1", "0,0,1,1", "--clip", "1,2"], "a box is four numbers"),
        (["0,0,1,1", "0,0,1,1", "--clip", "5,5,1,1"], "window"),
    ],
)
def test_a_clip_or_measure_without_sense_is_refused(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*argv) == 2
    assert message in capsys.readouterr().err
