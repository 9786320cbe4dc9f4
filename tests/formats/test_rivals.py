"""A folder with several inputs stops and lists them: ground truth and predictions, every format, every depth."""

import shutil
from pathlib import Path

import pytest

from jaccard_eval import DataError, evaluate, load
from jaccard_eval.formats import Opened, detect_format

SAMPLE = Path(__file__).parents[2] / "sample_data"


def placed(folder: Path, **sources: str) -> Path:
    """Copy files of the sample, and label files, to places whose names have double underscores for slashes."""
    for name, source in sources.items():
        given = SAMPLE / source
        target = folder / name.replace("__", "/")
        if given.is_dir():
            shutil.copytree(given, target, dirs_exist_ok=True)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(given, target / given.name)
    return folder


@pytest.mark.parametrize(
    "sources",
    [
        {"a": "coco/better.json", "b": "coco/worse.json"},
        {".": "coco/better.json", "old": "coco/worse.json"},
        {".": "coco/better.json", "old__older": "coco/worse.json"},
        {".": "coco/better.json", "labels": "yolo/worse"},
        {"labels": "yolo/better", "labels2": "yolo/worse"},
        {".": "csv/better.csv", "x__labels": "yolo/worse"},
        {".": "coco/gt.json", "old": "coco/gt.json"},
        {"run": "voc/better", "more": "coco/worse.json"},
    ],
    ids=str,
)
def test_several_inputs_stop_and_are_listed_with_their_places(tmp_path: Path, sources: dict[str, str]) -> None:
    folder = placed(tmp_path / "runs", **sources)
    with pytest.raises(DataError, match=r"input-ambiguous|format-unknown") as raised:
        detect_format(folder)
    listed = [str(folder / name.replace("__", "/")) for name in sources if name not in (".", "x__labels")]
    assert all(place in str(raised.value) for place in listed)


def test_the_folder_itself_can_be_named_by_its_format(tmp_path: Path) -> None:
    folder = placed(tmp_path, **{".": "yolo/better", "old": "coco/worse.json"})
    shutil.move(folder / "old/worse.json", folder / "worse.json")
    with pytest.raises(DataError, match='To read the folder as a whole, pass format_name="yolo"\\.'):
        load(folder, role="pred")
    with pytest.raises(DataError, match='pass gt_format="yolo" or pred_format="yolo"'):
        evaluate(folder, SAMPLE / "coco/better.json")
    assert load(folder, role="pred", format_name="yolo").format == "yolo"


@pytest.mark.parametrize(
    "source",
    sorted(path for path in SAMPLE.iterdir() if path.is_dir() and path.name != "panoptic"),
    ids=lambda path: path.name,
)
def test_one_input_in_a_folder_is_read_as_before(source: Path, tmp_path: Path) -> None:
    for given in ("gt", "gt.json", "gt.csv", "gt.xml"):
        if (source / given).exists():
            place = {"here" if (source / given).is_file() else ".": f"{source.name}/{given}"}
            found, _ = Opened(placed(tmp_path / given, **place)).found
            assert found.exists()


def test_splits_and_images_of_one_data_set_are_no_rivals(tmp_path: Path) -> None:
    folder = placed(tmp_path, labels__train="yolo/better", labels__val="yolo/worse", images__val="yolo/images")
    assert Opened(folder).found == (folder, "yolo")
    assert Opened(SAMPLE / "yolo").found[1] == "yolo"
