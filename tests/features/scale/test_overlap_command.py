import json
from pathlib import Path

import pytest
from command_line import run_process, write_pair

from jaccard_eval.cli import run as _run
from jaccard_eval.cli.commands.overlap import ENCODINGS


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
    assert "there is no picture of results of the kind overlap; use .txt, .md" in capsys.readouterr().err
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
