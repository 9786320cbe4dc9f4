"""The folder of all images on the disk: what is in it, and that nothing of others is lost to it."""

import json
from pathlib import Path

import pytest

from jaccard_eval.cli import run
from jaccard_eval.errors import ExitCode
from jaccard_eval.report.write import LISTING

SAMPLE = Path(__file__).parents[2] / "sample_data"
PAIR = [str(SAMPLE / "coco" / "gt.json"), str(SAMPLE / "coco" / "worse.json")]
BETTER = str(SAMPLE / "coco" / "better.json")


def held(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_holds_the_page_its_data_and_the_numbers(tmp_path: Path) -> None:
    assert run.run([*PAIR, "-q", "-o", f"{tmp_path}/out/"]) == 0
    files = held(tmp_path / "out")
    assert sorted(files) == [LISTING, "data/a.js", "data/head.js", "index.html", "numbers.html"]
    assert b"numbers.html" in files["index.html"]
    # Written again: the same, and what is of it is replaced.
    assert run.run([*PAIR, "-q", "-o", f"{tmp_path}/out/"]) == 0
    assert held(tmp_path / "out") == files
    assert run.run(["compare", *PAIR, BETTER, "--bootstrap", "0", "-q", "-o", f"{tmp_path}/out"]) == 0
    assert "data/b.js" in held(tmp_path / "out")


@pytest.mark.parametrize("name", ["notes.txt", "data/more.js", "thumbs/1.jpg", "deep/er/x"])
def test_a_folder_with_a_file_of_another_is_left_as_it_is(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run([*PAIR, "-q", "-o", f"{tmp_path}/out/"]) == 0
    (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "out" / name).write_text("mine")
    before = held(tmp_path / "out")
    assert run.run([*PAIR, "-q", "-o", f"{tmp_path}/out/"]) == ExitCode.USAGE
    assert held(tmp_path / "out") == before
    assert f"holds 1 file that another program wrote: '{name}'" in capsys.readouterr().err


def test_links_in_a_folder_are_never_followed_nor_lost(tmp_path: Path) -> None:
    assert run.run([*PAIR, "-q", "-o", f"{tmp_path}/out/"]) == 0
    (tmp_path / "out" / "index.html").rename(tmp_path / "moved.html")
    (tmp_path / "out" / "index.html").symlink_to(tmp_path / "moved.html")
    assert run.run([*PAIR, "-q", "-o", f"{tmp_path}/out/"]) == ExitCode.USAGE


def test_images_are_referred_to_from_the_folder_itself(tmp_path: Path) -> None:
    images = SAMPLE / "yolo" / "images" / "val"
    assert run.run([*PAIR, "--images", str(images), "-q", "-o", f"{tmp_path}/out/"]) == 0
    text = (tmp_path / "out" / "data" / "head.js").read_text()
    first = json.loads(text.removeprefix('loaded("head",').removesuffix(")\n"))["pictures"][0]
    assert (tmp_path / "out" / first).resolve() == images / "street_01.png"


def test_options_without_a_folder_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run([*PAIR, "-q", "--thumbnails", "-o", f"{tmp_path}/page.html"]) == ExitCode.USAGE
    assert "--thumbnails" in capsys.readouterr().err
    assert run.run([*PAIR, "-q", "--no-errors", "-o", f"{tmp_path}/out/"]) == 0
    three = [*PAIR, BETTER, BETTER, "--bootstrap", "0"]
    assert run.run(["compare", *three, "-q", "-o", f"{tmp_path}/o/"]) == ExitCode.USAGE
    assert "two sets of predictions" in capsys.readouterr().err
