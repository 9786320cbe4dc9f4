"""The rules that count where no protocol is named: a benchmark's, of files with its marks and classes, else COCO's."""

import json
from pathlib import Path

import pytest
from command_line import run_here

from jaccard_eval import DataError, EvaluationResult, ReadOptions, compare, evaluate, explain

pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
KITTI = "{} 0.0 {} 0 10 10 60 90 1 1 1 1 1 1 1{}\n"


def chosen(result: EvaluationResult) -> tuple[str, bool]:
    return result.protocol.name, "protocol-chosen" in {finding.code for finding in result.findings}


def kitti(folder: Path, classes: list[str], hidden: str = "0") -> tuple[Path, Path]:
    for side, score in (("gt", ""), ("pred", " 0.9")):
        (folder / side).mkdir()
        for number, name in enumerate(classes):
            line = KITTI.format(name, hidden if side == "gt" else "-1", score)
            (folder / side / f"{number:06d}.txt").write_text(line, encoding="utf-8")
    return folder / "gt", folder / "pred"


def visdrone(folder: Path, classes: range) -> tuple[Path, Path]:
    for side in ("gt", "pred"):
        (folder / side).mkdir()
        lines = [f"{20 * k},10,15,15,{1 if side == 'gt' else 0.9},{k},0,0" for k in classes]
        (folder / side / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "gt", folder / "pred"


def odgt(folder: Path, *, parts: tuple[str, ...] = ("fbox", "vbox")) -> tuple[Path, Path]:
    person = {"tag": "person", **{part: [10, 10, 20, 40] for part in parts}}
    truth = {"ID": "a", "width": 100, "height": 100, "gtboxes": [person]}
    found = {"ID": "a", "width": 100, "height": 100, "dtboxes": [{"box": [10, 10, 20, 40], "score": 0.9}]}
    for name, line in (("gt", truth), ("pred", found)):
        (folder / f"{name}.odgt").write_text(json.dumps(line) + "\n", encoding="utf-8")
    return folder / "gt.odgt", folder / "pred.odgt"


def test_kitti_has_its_classes_and_columns_on_both_sides(tmp_path: Path) -> None:
    sides = kitti(tmp_path, ["Car", "Pedestrian", "DontCare"])
    assert chosen(evaluate(*sides)) == ("kitti", True)
    assert chosen(evaluate(*sides, protocol="coco")) == ("coco", False)
    # Detections of another format are nobody's results of the benchmark.
    table = tmp_path / "pred.csv"
    table.write_text("image,class,xmin,ymin,xmax,ymax,score\n000000,Car,10,10,60,90,0.9\n", encoding="utf-8")
    assert chosen(evaluate(sides[0], table)) == ("coco", False)


@pytest.mark.parametrize(("last", "hidden"), [("dog", "0"), ("Car", "-1")])
def test_another_class_or_fillers_in_any_file_are_not_kitti(tmp_path: Path, last: str, hidden: str) -> None:
    assert chosen(evaluate(*kitti(tmp_path, ["Car"] * 30 + [last], hidden))) == ("coco", False)


def test_visdrone_has_all_ten_classes(tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    assert chosen(evaluate(*visdrone(tmp_path, range(1, 11)))) == ("visdrone", True)
    few = evaluate(*visdrone(tmp_path / "few", range(1, 10)))
    assert chosen(few) == ("coco", False)
    assert "protocol-unusual" in {finding.code for finding in few.findings}


def test_crowdhuman_has_tags_and_parts(tmp_path: Path) -> None:
    sides = odgt(tmp_path)
    result = evaluate(*sides)
    assert chosen(result) == ("crowdhuman", True)
    assert {"AP", "AP50", "LAMR", "JI"} <= {*result.metrics}
    assert result.to_dict()["protocol"]["name"] == "crowdhuman"
    # Every verb takes the same rules, and what was evaluated by others is not compared with it.
    assert compare(*sides, sides[1]).results[0].protocol.name == "crowdhuman"
    assert explain(*sides, "AP50").protocol == "crowdhuman"
    with pytest.raises(DataError, match=r'the rule protocol is .coco.*protocol="crowdhuman" gives these') as raised:
        compare(result, evaluate(*sides, protocol="coco"))
    assert len(raised.value.findings) == 1  # the other rules follow from it
    assert chosen(evaluate(*odgt(tmp_path, parts=("fbox",)))) == ("coco", False)


def test_tables_of_luna16_are_froc(tmp_path: Path) -> None:
    header = "seriesuid,coordX,coordY,coordZ"
    (tmp_path / "gt.csv").write_text(f"{header},diameter_mm\na,0,0,0,10\n", encoding="utf-8")
    (tmp_path / "pred.csv").write_text(f"{header},probability\na,0,0,1,0.9\n", encoding="utf-8")
    assert chosen(evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv")) == ("froc", True)


def test_heads_with_sizes_are_those_of_nwpu_crowd(tmp_path: Path) -> None:
    (tmp_path / "gt.txt").write_text("3109 0\n3110 1 10 20 3 5 1\n", encoding="utf-8")
    (tmp_path / "pred.txt").write_text("3109 0\n3110 1 12 20\n", encoding="utf-8")
    result = evaluate(tmp_path / "gt.txt", tmp_path / "pred.txt")
    assert chosen(result) == ("nwpu", True)
    assert (result["F1"], result["count_MAE"]) == (1, 0)
    # Points alone say nothing of a distance.
    with pytest.raises(DataError, match="holds points"):
        evaluate(tmp_path / "pred.txt", tmp_path / "pred.txt", pred_options=ReadOptions(assume_score=1.0))


def test_the_command_says_so_and_can_be_told_otherwise(tmp_path: Path) -> None:
    sides = [str(path) for path in odgt(tmp_path)]
    said = run_here("evaluate", *sides)
    assert "protocol crowdhuman" in said.stdout
    assert "rules: crowdhuman, by the file's marks. Pass --protocol coco for COCO's." in " ".join(said.stdout.split())
    told = run_here("evaluate", *sides, "--protocol", "coco")
    assert "protocol coco" in told.stdout
    assert "by the file's marks" not in told.stdout


@pytest.mark.parametrize("command", ["evaluate", "explain", "labels", "compare"])
def test_points_are_no_empty_boxes_and_are_not_offered_the_rules_of_boxes(tmp_path: Path, command: str) -> None:
    (tmp_path / "gt.txt").write_text("1 2 851 1304 15 23 3 831 1344 13 22 2\n2 1 100 100 10 12 2\n")
    (tmp_path / "pred.txt").write_text("1 2 851 1303 832 1344\n2 2 101 100 500 500\n")
    predictions = [str(tmp_path / "pred.txt")] * (1 + (command == "compare"))
    said = run_here(command, str(tmp_path / "gt.txt"), *predictions)
    text = f"{said.stdout}{said.stderr}"
    assert "nwpu" in text
    assert "box-empty" not in text
    assert "--protocol coco" not in text
