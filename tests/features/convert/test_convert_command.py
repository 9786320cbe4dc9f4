import json
from pathlib import Path

import pytest

from jaccard_eval.cli import run


def test_the_suffix_tells_the_format(sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.csv"
    assert run.run(["convert", str(sample_data / "coco/gt.json"), str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: csv, from coco: ground truth, 12 images, 39 boxes, 5 classes\n"
    assert out.read_text().count("\n") == 1 + 39 + 1  # a header, the boxes, and the image without any


def test_a_loss_ends_the_run_and_nothing_is_written(
    sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "labels"
    argv = ["convert", str(sample_data / "coco/gt.json"), str(out), "--to", "yolo"]
    assert run.run(argv) == 3
    assert "error[write-loss]: " in (said := capsys.readouterr().err)
    assert "boxes with crowd set: 1; the output format cannot hold that" in said
    assert not out.exists()
    assert run.run([*argv, "--lossy", "--strict"]) == 0
    assert "warning[write-loss]: " in capsys.readouterr().err
    assert len(list(out.glob("*.txt"))) == 12
    assert (out / "data.yaml").is_file()


def test_an_existing_target_is_kept_unless_force_is_given(
    sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    out.write_text("precious")
    argv = ["convert", str(sample_data / "coco/better.json"), str(out)]
    assert run.run(argv) == 2
    assert out.read_text() == "precious"
    assert "--force" in capsys.readouterr().err
    assert run.run([*argv, "--force"]) == 0
    assert out.read_text().startswith("image,")


@pytest.mark.parametrize(("to", "stray"), [("yolo", "notes.txt"), ("voc", "pom.xml"), ("yolo", "deep/photo.png")])
def test_force_deletes_no_file_that_is_not_written_anew(
    to: str, stray: str, sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    argv = ["convert", str(sample_data / "coco/gt.json"), str(out), "--to", to, "--lossy", "--force"]
    assert run.run(argv) == run.run(argv) == 0  # the same files may be written again
    (out / stray).parent.mkdir(exist_ok=True)
    (out / stray).write_text("precious")
    before = sorted(out.rglob("*"))
    capsys.readouterr()
    assert run.run(argv) == 2
    assert f"not rewritten: '{stray}'; choose another folder" in capsys.readouterr().err
    assert (sorted(out.rglob("*")), (out / stray).read_text()) == (before, "precious")


def test_two_splits_in_one_folder_do_not_replace_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for split in ("train", "val"):
        rows = "".join(f"{split}{number}.jpg,20,20,dog,0,0,10,10\n" for number in range(6))
        (tmp_path / f"{split}.csv").write_text(f"image,image_width,image_height,class,xmin,ymin,xmax,ymax\n{rows}")
    argv = [str(tmp_path / "out"), "--to", "yolo", "--force"]
    assert run.run(["convert", str(tmp_path / "train.csv"), *argv]) == 0
    assert run.run(["convert", str(tmp_path / "val.csv"), *argv]) == 2
    assert "contains 6 files that are not rewritten: 'train0.txt', 'train1.txt'" in (said := capsys.readouterr().err)
    assert "'train4.txt' and 1 more; choose another folder" in said
    assert sorted(one.name for one in (tmp_path / "out").glob("train*")) == [f"train{n}.txt" for n in range(6)]


def test_the_document_says_what_was_written(
    sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    assert run.run(["convert", str(sample_data / "coco/better.json"), str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["output"] == {"path": str(out), "format": "csv"}
    assert (document["input"]["format"], document["input"]["role"]) == ("coco", "pred")
    assert document["boxes"] == out.read_text().count("\n") - 1


@pytest.mark.parametrize("name", ["there.parquet", "there.arrow", "there.feather"])
@pytest.mark.parametrize("side", ["gt", "better"])
def test_tables_take_everything_there_and_back(
    side: str, name: str, sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, there, back = sample_data / f"coco/{side}.json", tmp_path / name, tmp_path / "back.json"
    assert run.run(["convert", str(source), str(there)]) == 0
    assert run.run(["convert", str(there), str(back)]) == 0
    assert capsys.readouterr().err == ""
    again, once = tmp_path / "again.json", tmp_path / "once.json"
    assert run.run(["convert", str(source), str(once)]) == 0
    assert run.run(["convert", str(back), str(again)]) == 0
    assert back.read_bytes() == again.read_bytes() == once.read_bytes()


def test_options_of_predictions_make_the_input_one(
    sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = sample_data / "yolo/images/val"
    argv = ["convert", str(sample_data / "yolo/better"), str(tmp_path / "out.json"), "--pred-images", str(pictures)]
    assert run.run([*argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["input"]["role"] == "pred"


def test_with_strict_a_warning_of_the_input_leaves_the_target_unwritten(tmp_path: Path) -> None:
    source = tmp_path / "gt.csv"
    source.write_text("image,class,xmin,ymin,xmax,ymax\na.jpg,dog,0,0,0,10\n")
    assert run.run(["convert", str(source), str(tmp_path / "out.json"), "--strict"]) == 3
    assert not (tmp_path / "out.json").exists()


def test_pixels_that_were_counted_from_one_are_written_from_zero_and_that_is_said(
    sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gt.json"
    assert run.run(["convert", str(sample_data / "voc/gt"), str(out), "--gt-origin", "1"]) == 0
    assert "note[write-origin]: " in capsys.readouterr().err
    # The first car of the scene: left 40, top 250, width 210, height 110.
    assert [39, 249, 210, 110] in [one["bbox"] for one in json.loads(out.read_text())["annotations"]]
