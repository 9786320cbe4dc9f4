"""No output lies on what a run reads, nor where the next run would read it: exit 2, and nothing is touched."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from command_line import run_here, write_pair
from PIL import Image

from jaccard_eval.cli import COMMAND_TABLE
from jaccard_eval.cli.parse import InputPath

YOLO_LINE = "0 0.5 0.5 0.2 0.2"
LABELME = {
    "shapes": [{"label": "dog", "points": [[1, 1], [9, 9]], "shape_type": "rectangle"}],
    "imagePath": "a.png",
    "imageHeight": 20,
    "imageWidth": 20,
}
RULE = '[[gates.rules]]\nmetric = "AP"\nmin = 0.1\n'


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Inputs of every kind in one folder."""
    for side, score in (("labels", ""), ("preds", " 0.9")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "a.txt").write_text(f"{YOLO_LINE}{score}\n")
    (tmp_path / "names.txt").write_text("dog\ncat\n")
    (tmp_path / "map.json").write_text('{"dog": "dog"}')
    (tmp_path / "groups.csv").write_text("image,group\na.jpg,1\nb.jpg,2\n")
    (tmp_path / "metrics.json").write_text('{"latency": 1}')
    (tmp_path / "rules.yaml").write_text("gates:\n  rules:\n    - {metric: AP, min: 0.1}\n")
    (tmp_path / "slices.toml").write_text('[slices]\nx = ["a*"]\n')
    for folder in ("images", "maps", "guesses"):
        (tmp_path / folder).mkdir()
        Image.new("L", (20, 20)).save(tmp_path / folder / "a.png")
    (tmp_path / "labelme").mkdir()
    (tmp_path / "labelme/a.json").write_text(json.dumps(LABELME))
    write_pair(tmp_path)
    for name in ("run.json", "run.npz", "base.json", "base.npz"):
        assert run_here("evaluate", "gt.json", "pred.json", "--isolated", "-o", name, cwd=tmp_path).returncode == 0
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


def refused(there: Path, *argv: str | Path) -> str:
    """Return what a run says that ends with exit code 2 and changes nothing."""
    before = contents(there)
    done = run_here(*argv, cwd=there)
    assert done.returncode == 2, done.stderr
    assert contents(there) == before
    assert "choose another path" in done.stderr
    return done.stderr


GT_PRED = ["gt.json", "pred.json"]
FOLDERS = ["labels", "preds", "--names", "names.txt"]


@pytest.mark.parametrize(
    "argv",
    [
        ["evaluate", *FOLDERS, "-o", "labels/a.txt"],
        ["evaluate", *FOLDERS, "-o", "preds/a.txt"],
        ["evaluate", *FOLDERS, "-o", "preds/../preds/a.txt"],
        ["evaluate", *FOLDERS, "-o", "names.txt"],
        ["evaluate", *FOLDERS, "--images", "images", "-o", "images/a.png"],
        ["evaluate", "--gt", "labels", "--pred", "preds", "-o", "labels/a.txt"],
        ["evaluate", *GT_PRED, "--class-map", "map.json", "-o", "map.json"],
        ["evaluate", *GT_PRED, "--bootstrap", "10", "--group-by", "groups.csv", "-o", "groups.csv"],
        [
            "evaluate",
            *GT_PRED,
            "--fail-over",
            "external.latency=2",
            "--metrics-file",
            "metrics.json",
            "-o",
            "metrics.json",
        ],
        ["evaluate", *GT_PRED, "--fail-drop", "AP=0.1", "--baseline", "base.json", "-o", "base.json"],
        ["evaluate", "labelme", "pred.json", "--update-baseline", "--baseline", "labelme/new.json"],
        ["evaluate", "labelme", "pred.json", "--update-baseline", "--baseline", "labelme/new/deep/main.json"],
        ["evaluate", "labelme", "pred.json", "-o", "labelme/a.json"],
        ["compare", "labels", "preds", "preds", "-o", "labels/a.txt"],
        ["compare", "run.json", "base.json", "-o", "base.json"],
        ["compare", "run.json", "base.json", "-o", "base.npz"],
        ["inspect", "labelme", "-o", "labelme/a.json"],
        ["inspect", "labels", "-o", "labels/a.txt"],
        ["explain", "labels", "preds", "-o", "labels/a.txt"],
        ["explain", "run.json", "-o", "gt.json"],
        ["explain", "run.json", "AP", "-o", "run.json"],
        ["sensitivity", "labels", "preds", "-o", "labels/a.txt"],
        ["overlap", "--gt", "labels", "--pred", "preds", "--image", "a", "-o", "labels/a.txt"],
        ["verify", "run.json", *GT_PRED, "-o", "gt.json"],
        ["gate", "run.json", "--fail-under", "AP=0.1", "-o", "run.json"],
        ["gate", "run.json", "--config", "rules.yaml", "-o", "run.json"],
        ["nms", "preds", "--names", "names.txt", "-o", "names.txt", "--force"],
        ["convert", "labels", "names.txt", "--to", "csv", "--names", "names.txt", "--force"],
        ["convert", "gt.json", ".", "--to", "yolo", "--force"],
    ],
    ids=lambda argv: f"{argv[0]} {argv[-1]}",
)
def test_what_a_run_reads_is_not_overwritten(argv: list[str], there: Path) -> None:
    refused(there, *argv)


def test_label_maps_and_their_lists_are_kept(there: Path) -> None:
    (there / "colors.txt").write_text("0 0 0 background\n")
    for output in ("maps/a.png", "guesses/new.png", "colors.txt"):
        refused(there, "pixels", "maps", "guesses", "--isolated", "--colors", "colors.txt", "-o", output)


@pytest.mark.parametrize(
    "argv",
    [
        ["evaluate", *FOLDERS, "-o", "preds/x.txt"],
        ["evaluate", *FOLDERS, "-o", "preds/deep/x.txt"],
        ["evaluate", *FOLDERS, "-o", "preds/X.TXT"],
        ["evaluate", *FOLDERS, "-o", "classes.txt"],
        ["inspect", "labelme", "-o", "labelme/report.json"],
        ["evaluate", *FOLDERS, "--images", "images", "-o", "images/curve.png"],
    ],
    ids=lambda argv: argv[-1],
)
def test_a_new_file_that_the_next_run_would_read_is_refused(argv: list[str], there: Path) -> None:
    (there / "preds/deep").mkdir()
    assert "next time" in refused(there, *argv)


@pytest.mark.parametrize("name", ["preds/report.csv", "preds/report.md", "preds/report.json", "images/report.md"])
def test_a_report_beside_predictions_that_no_run_reads_is_written_again_and_again(name: str, there: Path) -> None:
    for _ in range(2):
        done = run_here("evaluate", *FOLDERS, "--images", "images", "--isolated", "--extra-images", "ignore",
                        "-o", name, cwd=there)  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert (there / name).stat().st_size


def test_links_lead_to_no_input(there: Path) -> None:
    (there / "alias.txt").symlink_to("labels/a.txt")
    os.link(there / "labels/a.txt", there / "hard.txt")
    (there / "store").mkdir()
    shutil.move(there / "preds/a.txt", there / "store/a.json")
    (there / "preds/a.txt").symlink_to("../store/a.json")
    (there / "preds/linked").symlink_to("../elsewhere")
    (there / "elsewhere").mkdir()
    (there / "same").symlink_to("labels")
    for output in ("alias.txt", "hard.txt", "store/a.json", "elsewhere/new.txt", "same/a.txt", there / "labels/a.txt"):
        refused(there, "evaluate", *FOLDERS, "-o", output)


def test_what_a_description_leads_to_is_kept(there: Path) -> None:
    for name in ("data/labels/val", "data/images/val"):
        (there / name).mkdir(parents=True)
    (there / "data/labels/val/a.txt").write_text(YOLO_LINE)
    (there / "data/data.yaml").write_text("path: .\nval: images/val\nnames: [dog]\n")
    for output in ("labels/val/a.txt", "labels/val/new.txt", "images/val/new.png"):
        refused(there, "evaluate", "data/data.yaml", "preds", "-o", f"data/{output}")
        refused(there, "evaluate", "data", "preds", "-o", f"data/{output}")


def test_names_of_classes_that_are_found_beside_a_table_are_kept(there: Path) -> None:
    (there / "boxes.csv").write_text(
        "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside\n"
        "a,xclick,/m/01g317,1,0.1,0.5,0.1,0.5,0,0,0,0,0\n"
    )
    (there / "class-descriptions.csv").write_text("/m/01g317,Person\n")
    refused(there, "inspect", "boxes.csv", "-o", "class-descriptions.csv")


def test_names_of_classes_that_are_found_above_both_sides_are_kept(there: Path) -> None:
    (there / "voc.names").write_text("dog\n")
    (there / "preds.csv").write_text("image,class,score,xmin,ymin,xmax,ymax\na,0,.9,1,2,3,4\n")
    refused(there, "evaluate", "labels", "preds.csv", "-o", "voc.names")


def test_what_lists_and_names_of_darknet_lead_to_is_kept(there: Path) -> None:
    (there / "data/obj").mkdir(parents=True)
    (there / "data/obj.data").write_text("classes = 1\nvalid = data/test.txt\nnames = data/my.txt\n")
    (there / "data/my.txt").write_text("dog\n")
    (there / "data/test.txt").write_text("data/obj/a.jpg\n")
    (there / "data/obj/a.txt").write_text(YOLO_LINE)
    for output in ("my.txt", "test.txt", "obj/a.txt", "obj/b.txt"):
        refused(there, "evaluate", "data/obj.data", "preds", "-o", f"data/{output}")


def test_a_configuration_that_is_found_and_what_it_names_are_kept(there: Path) -> None:
    (there / "night.txt").write_text("a.jpg\n")
    (there / "jaccard-eval.toml").write_text(
        f'gates.baseline = "base.json"\n{RULE}slice = "night"\n[gates.slices]\nnight = "night.txt"\n'
    )
    done = run_here("evaluate", *GT_PRED, cwd=there)
    assert done.returncode in (0, 1), done.stderr
    for output in ("night.txt", "base.json"):
        refused(there, "evaluate", *GT_PRED, "-o", output)
    (there / "alias.json").symlink_to("jaccard-eval.toml")
    refused(there, "evaluate", *GT_PRED, "-o", "alias.json")


def test_all_clashes_are_said_at_once_with_option_and_file(there: Path) -> None:
    said = refused(there, "evaluate", *FOLDERS, "-o", "labels/a.txt", "-o", "names.txt")
    assert said.splitlines()[:2] == [
        "error: -o 'labels/a.txt' would overwrite a file of the input 'labels'; choose another path",
        "-o 'names.txt' would overwrite --names 'names.txt', which this run reads; choose another path",
    ]


QUALITY = "gl-code-quality-report.json"


def on_gitlab(there: Path, *argv: str, project: str = ".") -> subprocess.CompletedProcess[str]:
    return run_here(*argv, "--isolated", cwd=there, env={"GITLAB_CI": "true", "CI_PROJECT_DIR": str(there / project)})


@pytest.mark.parametrize("ending", [0, 3], ids=["a result", "no result"])
def test_the_report_that_gitlab_looks_for_never_replaces_an_input(there: Path, ending: int) -> None:
    text = (there / "pred.json").read_text() if ending == 0 else "[{}]"
    (there / QUALITY).write_text(text)
    done = on_gitlab(there, "evaluate", "gt.json", QUALITY)
    assert done.returncode == ending, done.stderr
    assert (there / QUALITY).read_text() == text
    assert f"warning: skipped {QUALITY}, because it would overwrite the input '{QUALITY}'" in done.stderr


def test_the_report_that_gitlab_looks_for_is_not_put_where_the_next_run_reads(there: Path) -> None:
    before = contents(there)
    done = on_gitlab(there, "inspect", "labelme", project="labelme")
    assert done.returncode == 0, done.stderr
    assert contents(there) == before
    assert "because it would be read with the input 'labelme' next time" in done.stderr
    # The advice leads to the report, and without a clash there is none to give.
    (fix,) = re.findall(r"name another folder with -o FOLDER/(\S+)", done.stderr)
    (there / "out").mkdir()
    done = on_gitlab(there, "inspect", "labelme", "-o", f"out/{fix}", project="labelme")
    assert (done.returncode, "skipped" in done.stderr) == (0, False)
    assert json.loads((there / "out" / QUALITY).read_text()) == []
    assert on_gitlab(there, "inspect", "labelme").returncode == 0
    assert (there / QUALITY).exists()


def test_the_baseline_itself_may_be_updated(there: Path) -> None:
    for _ in range(2):
        done = run_here("evaluate", *GT_PRED, "--isolated", "--baseline", "base.json", "--update-baseline", cwd=there)
        assert done.returncode == 0, done.stderr


def test_every_path_of_every_command_is_an_input_or_an_output() -> None:
    """A path that is neither would be read and not kept."""
    # The baseline is the one or the other: the gates know which. In the scratch folder a run makes its own.
    outputs = {"output", "target", "baseline", "scratch", "apply"}
    for name in COMMAND_TABLE.list_commands(click.Context(COMMAND_TABLE)):
        command = COMMAND_TABLE.get_command(click.Context(COMMAND_TABLE), name)
        assert command is not None
        paths = [one for one in command.params if isinstance(one.type, click.Path)]
        assert {one.name for one in paths if not isinstance(one.type, InputPath)} <= outputs, name


def test_what_panoptic_writes_is_not_read_as_its_list_of_segments_next_time(tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "sample_data" / "panoptic"
    for name in ("gt", "better"):
        shutil.copytree(sample / name, tmp_path / name / name)
        shutil.copy(sample / f"{name}.json", tmp_path / name)
    shutil.copytree(sample / "better", tmp_path / "beside")
    shutil.copy(sample / "better.json", tmp_path / "beside")
    before = contents(tmp_path)
    for pred, output in (
        ("better", "better/result.json"),
        ("better", "better/better/result.json"),
        ("better/better.json", "better/better/result.json"),
        ("beside/better.json", "beside/result.json"),
    ):
        done = run_here("panoptic", "gt", pred, "-o", output, cwd=tmp_path)
        assert (done.returncode, "would be read with" in done.stderr) == (2, True), done.stderr
    assert contents(tmp_path) == before
    # A page is not read, and maps that have a folder of their own lie in no other.
    for pred, output in (("better", "better/page.html"), ("better/better.json", "better/result.json")):
        assert run_here("panoptic", "gt", pred, "-o", output, cwd=tmp_path).returncode == 0
