import csv
import json
from pathlib import Path

import pytest
from command_line import write_pair

from jaccard_eval.cli import run

SAMPLE = Path(__file__).parents[3] / "sample_data" / "coco"


def test_the_report_goes_from_the_number_to_the_boxes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gt, pred = map(str, write_pair(tmp_path))
    assert run.run(["explain", gt, pred, "AP50"]) == 0
    text = capsys.readouterr().out
    # Of two dogs one is found first, 51/101, and no cat. Both fixed, both classes have 1.
    assert "0.2525, of 3 objects" in text
    assert "Fixing all 2: AP50 +0.7475. Each gain is for fixing that box only." in " ".join(text.split())
    assert text.splitlines()[-1] == "AP50 0.2525  Fixing all 2: AP50 +0.7475"


def test_gains_are_of_the_metric_in_the_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The cat, which 3/7 of a detection overlaps, is moved: 1 instead of 0 at all ten thresholds. The second dog is
    # missed: 1 instead of 51/101. The mean of two classes takes half of each.
    gt, pred = map(str, write_pair(tmp_path))
    assert run.run(["explain", gt, pred, "AP"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "localisation b.jpg move cat 20 20 10 10 0.8000 +0.5000" in lines
    assert "missed a.jpg add dog 50 50 10 10 n/a +0.2475" in lines
    assert lines[-1] == "AP 0.2525 Fixing all 2: AP +0.7475"


@pytest.mark.parametrize("metric", ["AP", "AP50[class=car]", "F1"])
def test_the_tables_of_the_sample_fit_into_80_columns(metric: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["explain", str(SAMPLE / "gt.json"), str(SAMPLE / "worse.json"), metric]) == 0
    lines = capsys.readouterr().out.splitlines()
    # Each row ends in its gain: none goes on in a second line.
    start = lines.index("Boxes that cost most") + 3
    stop = next(i for i, line in enumerate(lines) if line.startswith("  Fixing all"))
    assert stop - start > 5
    assert all(line.split()[-1].startswith("+0.") and len(line) <= 80 for line in lines[start:stop])


def test_what_has_no_score_has_no_column_of_scores(capsys: pytest.CaptureFixture[str]) -> None:
    heads = {}
    for metric, flag in (("AP", "--strict"), ("AP", "--verbose"), ("AP50[class=car]", "--strict")):
        assert run.run(["explain", str(SAMPLE / "gt.json"), str(SAMPLE / "worse.json"), metric, flag]) == 0
        lines = capsys.readouterr().out.splitlines()
        heads[metric, flag] = lines[lines.index("Curve") + 1].split()
    assert heads == {
        ("AP", "--strict"): ["recall", "precision"],
        ("AP", "--verbose"): ["recall", "precision", "score"],
        ("AP50[class=car]", "--strict"): ["recall", "precision", "score"],
    }


def test_the_json_document_has_the_steps_to_another_protocol(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gt, pred = map(str, write_pair(tmp_path))
    table = tmp_path / "boxes.csv"
    assert run.run(["explain", gt, pred, "AP50[class=dog]", "--against", "voc2007", "--json", "-o", str(table)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "explanation"
    # Eleven points: six of them up to recall 1/2.
    assert document["steps"][-1]["value"] == pytest.approx(6 / 11, abs=1e-12)
    (row,) = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    assert (row["error"], row["class"]) == ("missed", "dog")


def test_the_metric_is_ap_unless_said_and_sides_may_be_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gt, pred = map(str, write_pair(tmp_path))
    documents = []
    for argv in ([gt, pred], ["--gt", gt, "--pred", pred], ["--gt", gt, pred, "AP"]):
        assert run.run(["explain", *argv, "--json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0]["metric"]["ref"] == "AP"
    assert documents == documents[:1] * 3


@pytest.mark.parametrize("argv", [["AP_small"], ["AP50", "more"], ["--against", "vok"], ["--boxes", "0"]])
def test_what_cannot_be_explained_ends_with_2(argv: list[str], tmp_path: Path) -> None:
    gt, pred = map(str, write_pair(tmp_path))
    assert run.run(["explain", gt, pred, *argv]) == 2


def test_a_saved_result_is_explained_from_its_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gt, pred = map(str, write_pair(tmp_path))
    saved = str(tmp_path / "result.json")
    assert run.run(["evaluate", gt, pred, "--protocol", "voc2012", "--classes", "dog", "-o", saved]) == 0
    documents = []
    for argv in ([saved, "AP50"], [gt, pred, "AP50", "--protocol", "voc2012", "--classes", "dog"]):
        capsys.readouterr()
        assert run.run(["explain", *argv, "--json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0] == documents[1]
    assert documents[0]["warnings"] == []


def test_the_rules_are_those_of_evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gt, pred = map(str, write_pair(tmp_path))
    rules = ["--iou", "0.4,0.6", "--max-dets", "5", "--areas", "tiny=0:100", "--class-agnostic"]
    documents = []
    for command in ("evaluate", "explain"):
        capsys.readouterr()
        assert run.run([command, gt, pred, *rules, "--json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    # The cat's detection overlaps it by 3/7: two of three boxes are found at IoU 0.4 (67/101), one at 0.6 (34/101).
    assert documents[1]["metric"]["value"] == documents[0]["metrics"]["AP"] == pytest.approx((67 + 34) / 202)
    kept = {name: documents[0]["signature_fields"][name] for name in ("iou", "max_dets", "areas", "class_agnostic")}
    assert documents[1]["signature_fields"].items() >= kept.items()


def test_a_saved_result_takes_no_other_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gt, pred = map(str, write_pair(tmp_path))
    saved = str(tmp_path / "result.json")
    assert run.run(["evaluate", gt, pred, "-o", saved]) == 0
    assert run.run(["explain", saved, "--iou", "0.5", "--split", "val"]) == 2
    assert "--iou, --split: a saved result has rules and options of its own" in capsys.readouterr().err


def test_inputs_that_changed_since_a_result_was_saved_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gt, pred = map(str, write_pair(tmp_path))
    saved = str(tmp_path / "result.json")
    assert run.run(["evaluate", gt, pred, "-o", saved]) == 0
    Path(pred).write_text(Path(pred).read_text().replace("0.8", "0.7"))
    assert run.run(["explain", saved]) == 0
    assert "[result-differs]" in capsys.readouterr().err


def test_a_missing_side_is_no_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gt, _ = map(str, write_pair(tmp_path))
    assert run.run(["explain", gt, str(tmp_path / "none.json")]) == 3
    assert "none.json" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["gt.json"], ["gt.json", "AP50"], ["gt.json", "--iou", "0.5"], ["."], ["gt.csv"]])
def test_ground_truth_alone_lacks_its_predictions(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pair(tmp_path)
    (tmp_path / "gt.csv").write_text("image,class,x,y,width,height\na.jpg,dog,1,1,5,5\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run.run(["explain", *words]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert f"Missing argument 'PRED': '{words[0]}' is not a saved result. Give ground truth and predictions, or" in text


def test_a_misspelt_metric_of_a_saved_result_is_told_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gt, pred = map(str, write_pair(tmp_path))
    saved = str(tmp_path / "result.json")
    assert run.run(["evaluate", gt, pred, "-o", saved]) == 0
    assert run.run(["explain", saved, "app50"]) == 2
    assert "unknown metric 'app50'" in capsys.readouterr().err


def test_inputs_that_are_not_there_are_said_to_be_those_of_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pair(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run.run(["evaluate", "gt.json", "pred.json", "-o", "result.json"]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run.run(["explain", "../result.json"]) == 3
    text = capsys.readouterr().err
    assert "gt.json: no such file or directory; '../result.json' was made from it. Run this in the folder" in text
    assert "error[file-missing]: pred.json" in text


def test_a_damaged_result_is_no_ground_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "result.json"
    saved.write_text('{"bootstrap": null, "kind": "eval', encoding="utf-8")
    assert run.run(["explain", str(saved)]) == 3
    assert "result.json:1: not valid JSON" in capsys.readouterr().err


def test_a_perfect_result_is_said_to_have_no_box_to_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gt, pred = write_pair(tmp_path)
    argv = [str(gt), str(pred), "precision[iou=0.5,score=0.85]"]
    assert run.run(["explain", *argv]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("Boxes that cost most") + 1] == "  No single fix raises precision[iou=0.5,score=0.85]."
    assert lines[-1] == "precision[iou=0.5,score=0.85] 1.0000  No single fix raises precision[iou=0.5,score=0.85]"
