"""With -q the last line and what matters: warnings, and the notes on what is evaluated at all."""

import json
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from command_line import run_here

from jaccard_eval import evaluate
from jaccard_eval.cli.run import run
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.fragment import render
from jaccard_eval.report.outputs.ci import job_summary

SAMPLE = Path(__file__).parents[2] / "sample_data"


def test_the_file_that_is_read_of_a_folder_is_named_with_quiet_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SAMPLE / "coco/better.json", tmp_path)
    assert run(["evaluate", str(SAMPLE / "coco/gt.json"), str(tmp_path), "-q"]) == 0
    shown = capsys.readouterr()
    assert "note[input-found]" in shown.err
    assert len(shown.out.splitlines()) == 1


def test_the_split_and_the_columns_that_are_read_are_named_with_quiet_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for split in ("train", "val"):
        shutil.copytree(SAMPLE / "yolo/better", tmp_path / "labels" / split)
    assert run(["inspect", str(tmp_path), "-q"]) == 0
    assert "split-chosen" in "".join(capsys.readouterr())
    pred = tmp_path / "pred"
    pred.mkdir()
    (pred / "a.txt").write_text("0 0.5 0.5 0.1 0.1 0.5\n")
    gt = tmp_path / "gt"
    gt.mkdir()
    (gt / "a.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    assert run(["evaluate", str(gt), str(pred), "-q"]) == 0
    assert "note[columns-assumed]" in capsys.readouterr().err


def test_what_a_cap_leaves_out_stands_in_every_output(tmp_path: Path) -> None:
    box = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10]}
    gt = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 100, "height": 100}],
        "annotations": [{**box, "id": 1, "area": 100, "iscrowd": 0}],
        "categories": [{"id": 1, "name": "dog"}],
    }
    pred = [{**box, "score": 0.9 - at / 1000, "bbox": [at % 50, 0, 10, 10 + at / 100]} for at in range(130)]
    for name, content in (("gt.json", gt), ("pred.json", pred)):
        (tmp_path / name).write_text(json.dumps(content))
    outputs = ("r.xml", "r.md", "r.txt", "r.html", "gl-code-quality-report.json")
    options = [part for name in outputs for part in ("-o", str(tmp_path / name))]
    assert run(["evaluate", str(tmp_path / "gt.json"), str(tmp_path / "pred.json"), "-q", *options]) == 0
    for name in outputs:
        assert "max-dets" in (tmp_path / name).read_text(), name
    ElementTree.parse(tmp_path / "r.xml")
    result = evaluate(tmp_path / "gt.json", tmp_path / "pred.json")
    assert "max-dets" in render(result, ReportOptions())
    assert "max-dets" in job_summary(result).partition("<details>")[0]


@pytest.mark.parametrize(
    "line",
    [
        "evaluate coco/gt.json coco/worse.json --fail-under AP=0.9 --fail-under AP50=0.1 -o r.json -o r.npz",
        "evaluate coco/gt.json coco/worse.json --fail-drop AP=0.1 --baseline base.json --update-baseline",
        "convert coco/gt.json made --to yolo --lossy",
        "partition coco/gt.json coco/worse.json -o parts",
    ],
)
def test_quiet_prints_one_line_whatever_else_is_written(line: str, tmp_path: Path) -> None:
    if line.startswith("partition"):
        pytest.importorskip("pyarrow")
    shutil.copytree(SAMPLE / "coco", tmp_path / "coco")
    done = run_here(*line.split(), "-q", cwd=tmp_path)
    assert done.returncode == ("AP=0.9" in line), done.stderr
    assert len(done.stdout.splitlines()) == 1
    assert "note[" not in done.stderr
