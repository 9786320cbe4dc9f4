import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here, write_pair

from jaccard_eval.cli import run
from jaccard_eval.data.metricref import COCO_SUMMARY
from jaccard_eval.data.protocol import PROTOCOLS

AP_DOG = 51 / 101  # one of two dogs is found first: precision 1 at the 51 recall points up to 1/2


def evaluate(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> dict[str, Any]:
    """The JSON document of a run that succeeds."""
    assert run.run([*map(str, argv), "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return write_pair(tmp_path)


def test_the_short_and_the_long_form_mean_the_same(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    gt, pred = pair
    short = evaluate(capsys, gt, pred)
    assert short["metrics"]["AP"] == pytest.approx(AP_DOG / 2, abs=1e-12)
    for argv in (
        ["evaluate", gt, pred],
        ["evaluate", "--gt", gt, "--pred", pred],
        ["--pred", pred, gt],
        ["--dt", pred, "--gt", gt],
    ):
        assert evaluate(capsys, *argv) == short


def test_a_path_that_starts_with_a_dash_can_be_named(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(pair[0], pair[0].parent / "-gt.json")
    monkeypatch.chdir(pair[0].parent)
    for argv in (["--json", "--", "-gt.json", "pred.json"], ["--gt=-gt.json", "pred.json", "--json"]):
        assert run.run(argv) == 0
        assert json.loads(capsys.readouterr().out)["inputs"]["gt"]["path"] == "-gt.json"


def test_the_default_thresholds_written_out_change_nothing(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    written = evaluate(capsys, *pair, "--iou", "0.5:0.95:0.05", "--max-dets", "1,10,100", "--protocol", "coco")
    assert written == evaluate(capsys, *pair)


def test_areas_get_the_range_of_all_in_front(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    document = evaluate(capsys, *pair, "--areas", "tiny=0:10²,rest=10^2:inf")
    assert [area["name"] for area in document["protocol"]["areas"]] == ["all", "tiny", "rest"]
    assert document["protocol"]["areas"][0]["high"] == 1e10  # pycocotools' largest


def test_classes_can_be_chosen_and_mapped(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["class"] for row in evaluate(capsys, *pair, "--classes", "dog")["per_class"]] == ["dog"]
    assert [row["class"] for row in evaluate(capsys, *pair, "--exclude-classes", "dog")["per_class"]] == ["cat"]


def test_an_unknown_class_is_a_usage_error_with_a_suggestion(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run([*map(str, pair), "--classes", "doge"]) == 2
    assert "Did you mean 'dog'" in capsys.readouterr().err


def test_an_operating_point_is_part_of_report_and_document(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (first, *_) = evaluate(capsys, *pair, "--score", "0.5")["operating_points"]
    assert (first["tp"], first["fp"], first["fn"]) == (1, 1, 2)
    assert run.run([*map(str, pair), "--score", "best-f1"]) == 0
    assert "Operating points" in capsys.readouterr().out


def test_every_output_is_written_by_its_suffix(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder = pair[0].parent
    outputs = [folder / name for name in ("out.json", "out.csv", "out.md", "out.txt")]
    argv = [text for path in outputs for text in ("-o", str(path))]
    assert run.run([*map(str, pair), *argv, "--errors"]) == 0
    # But for the signature, which files have in full.
    shown, written = (
        [*text.partition("\nsignature  ")[:1], text.splitlines()[-1]]
        for text in (capsys.readouterr().out, (folder / "out.txt").read_text())
    )
    assert shown == written
    assert [path.read_text()[:6] for path in outputs] == ['{\n  "c', "class,", "## jac", "jaccar"]


def test_a_dash_is_the_standard_output_once(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run([*map(str, pair), "-o", "-"]) == 0
    assert capsys.readouterr().out.count("Summary") == 1


def test_an_output_that_cannot_be_written_ends_before_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("none").touch()  # where a folder would be made
    assert run.run(["missing-gt.json", "missing-pred.json", "-o", "none/out.json"]) == 4
    shown = capsys.readouterr().err
    assert "none/out.json" in shown
    assert "missing-gt.json" not in shown


def test_an_output_over_an_input_is_refused(pair: tuple[Path, Path]) -> None:
    before = pair[1].read_bytes()
    assert run.run([*map(str, pair), "-o", str(pair[1])]) == 2
    assert pair[1].read_bytes() == before


def test_warnings_go_to_the_error_stream_and_quiet_hides_notes_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [*map(str, write_pair(tmp_path, warned=True)), "--quiet"]
    assert run.run(argv) == 0
    shown = capsys.readouterr()
    assert "warning[box-empty]" in shown.err
    assert "note[" not in shown.err
    assert "warning[" not in shown.out


def test_a_warning_about_a_names_file_is_said_once(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    names = pair[0].parent / "data.yaml"
    names.write_text("nc: 3\nnames: [dog, cat]\n")
    assert run.run([*map(str, pair), "--names", str(names), "--pred-names", str(names)]) == 0
    assert capsys.readouterr().err.count("nc is '3'") == 1


def test_strict_takes_warnings_for_errors_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [*map(str, write_pair(tmp_path, warned=True)), "--strict", "-o", str(tmp_path / "out.json")]
    assert run.run(argv) == 3
    shown = capsys.readouterr()
    assert "error[box-empty]" in shown.err
    assert shown.out == ""
    assert not (tmp_path / "out.json").exists()


def test_strict_without_warnings_is_an_ordinary_run(pair: tuple[Path, Path]) -> None:
    assert run.run([*map(str, pair), "--strict"]) == 0


def test_data_that_cannot_be_used_ends_with_3(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    pair[1].write_text("[")
    assert run.run([*map(str, pair)]) == 3
    shown = capsys.readouterr()
    assert shown.err.startswith("error[")
    assert shown.out == ""


def test_colour_is_never_written_to_a_pipe_unless_forced(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def output(*argv: str) -> str:
        assert run.run([*map(str, pair), *argv]) == 0
        return capsys.readouterr().out

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert "\x1b" not in output()
    assert "\x1b" in output("--color", "always")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in output()
    assert "\x1b" not in output("--color", "never")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in output()


def test_the_same_input_gives_the_same_bytes(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    outputs = set()
    for _ in range(2):
        run.run([*map(str, pair), "--json"])
        outputs.add(capsys.readouterr().out)
    assert len(outputs) == 1


def test_the_help_names_every_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["help", "protocols"]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines() if line} > set(PROTOCOLS)


def test_the_command_prints_pycocotools_numbers_on_the_coco_sample(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Oracle: pycocotools 2.0.11 on instances_val2014_100 and its fake detections.
    expected = json.loads((shared_data / "EXPECTED.json").read_text())["cocoapi-bbox"]
    document = evaluate(capsys, shared_data / expected["gt"], shared_data / expected["dets"])
    numbers = [document["metrics"][name] for name in COCO_SUMMARY]
    assert numbers == pytest.approx(list(expected["pycocotools"].values()), abs=1e-12)


def test_a_shift_of_ids_reads_as_one(tmp_path: Path) -> None:
    box = {"image_id": 1, "bbox": [0, 0, 10, 10]}
    gt = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 100, "height": 100}],
        "annotations": [{**box, "id": 1, "category_id": 0, "area": 100, "iscrowd": 0}],
        "categories": [{"id": 0, "name": "aeroplane"}],
    }
    (tmp_path / "gt.json").write_text(json.dumps(gt))
    (tmp_path / "pred.json").write_text(json.dumps([{**box, "category_id": 1, "score": 0.9}]))
    shown = run_here("gt.json", "pred.json", "--class-map", "id-1", cwd=tmp_path).stdout
    assert "classes  by prediction id - 1; 1 on both sides; in the predictions 1 is aeroplane\n" in shown


@pytest.mark.parametrize(("score", "meant"), [("25", " Did you mean 0.25?"), ("250", "")])
def test_a_score_in_percent_for_scores_up_to_1_is_refused(
    score: str, meant: str, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run([*map(str, pair), "--score", score]) == 2
    said = f"error: score {score} is above all scores of the predictions, which are between 0 and 1.{meant}"
    assert capsys.readouterr().err.splitlines()[0] == said


def test_a_score_in_percent_is_taken_where_scores_are_in_percent(pair: tuple[Path, Path], tmp_path: Path) -> None:
    rows = json.loads(pair[1].read_text())
    percent = tmp_path / "percent.json"
    percent.write_text(json.dumps([{**row, "score": 100 * row["score"]} for row in rows]))
    by_percent, by_fraction = (
        json.loads(run_here(pair[0], pred, "--score", score, "--json").stdout)["operating_points"]
        for pred, score in ((percent, "50"), (pair[1], "0.5"))
    )
    counts = [[(row["tp"], row["fp"], row["fn"]) for row in rows] for rows in (by_percent, by_fraction)]
    assert counts[0] == counts[1]
