"""Fourteen jobs as somebody does them who has read the README and --help: each at the first try.

Every option of a command is among those that its `--help` lists, and what the job is about is what is printed.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here

SAMPLE = Path(__file__).parents[2] / "sample_data"
COMMANDS = ("compare", "convert", "explain", "inspect", "labels", "panoptic", "pixels")

# By the numbers of pycocotools for the sample, 0.3463 and 0.6616, or by what a job is to find.
JOBS = {
    "COCO files": ("gt.json worse.json", "AP 0.3463  AP50 0.6915"),
    "labels and predictions of YOLO": ("yolo/labels/val yolo/better --images yolo/images/val", "AP 0.6300"),
    "a data.yaml": ("yolo/data.yaml yolo/better", "AP 0.6300"),
    "tables": ("csv/gt.csv csv/better.csv", "AP 0.6616"),
    "masks": ("masks.json found-masks.json --iou-type segm", "AP 1.0000"),
    "poses": ("poses.json found-poses.json --iou-type keypoints", "AP 1.0000"),
    "a threshold": ("gt.json worse.json --score best-f1", "at 0.4734: precision 0.8966  recall 0.6842  F1 0.7761"),
    "slices": ("gt.json worse.json --slice 'first=street_0*'", "Slices"),
    "wrong labels": ("labels gt.json better.json", "1 probable label error"),
    "two models": (
        "compare gt.json worse.json better.json --name yolo11n --name yolo11s",
        "yolo11s is better than yolo11n",
    ),
    "a gate": ("gt.json worse.json --fail-under AP=0.6", "FAILED  AP 0.3463 < 0.60"),
    "a report": ("gt.json worse.json -o reports/report.html -o reports/report.csv", "AP 0.3463"),
    "why it is low": ("explain gt.json worse.json AP50", "Fixing all 12: AP50 +0.2904"),
    "another format": ("convert gt.json yolo-labels --to yolo --lossy", "39 boxes"),
}


def shaped(boxes: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return boxes with their rectangle as a polygon, or with its corners and middle as points."""
    made = []
    for box in boxes:
        x, y, w, h = box["bbox"]
        points = [(x, y), (x + w, y), (x + w, y + h), (x, y + h), *[(x + w / 2, y + h / 2)] * 13]
        shape = {"segmentation": [[side for point in points[:4] for side in point]]}
        if kind == "poses":
            shape = {"keypoints": [part for point in points for part in (*point, 2)], "num_keypoints": 17}  # type: ignore[dict-item]
        made.append({**box, **shape})
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sample, and with masks and poses that are found as they are."""
    folder = tmp_path_factory.mktemp("jobs")
    for name in ("gt.json", "better.json", "worse.json"):
        (folder / name).symlink_to(SAMPLE / "coco" / name)
    for name in ("yolo", "csv"):
        (folder / name).symlink_to(SAMPLE / name)
    truth = json.loads((SAMPLE / "coco/gt.json").read_text())
    truth["annotations"] = [box for box in truth["annotations"] if not box["iscrowd"]]
    for kind in ("masks", "poses"):
        truth["annotations"] = shaped(truth["annotations"], kind)
        (folder / f"{kind}.json").write_text(json.dumps(truth))
        found = [{**box, "score": 0.9} for box in truth["annotations"]]
        (folder / f"found-{kind}.json").write_text(json.dumps(found))
    return folder


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_done_at_the_first_try(job: str, folder: Path) -> None:
    words, expected = JOBS[job]
    argv = shlex.split(words)
    done = run_here(*argv, cwd=folder)
    assert done.returncode == (1 if job == "a gate" else 0), done.stderr
    assert expected in done.stdout + done.stderr
    command = argv[0] if argv[0] in COMMANDS else "evaluate"
    listed = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", run_here(command, "--help", cwd=folder).stdout))
    assert {word for word in argv if re.match("--?[a-z]", word)} <= listed
