"""DOTA: oriented boxes as the upright boxes around them, results by class, and what can be wrong."""

from pathlib import Path

import pytest

from jaccard_eval import DataError, load
from jaccard_eval.formats import detect_format

HEADERS = "imagesource:GoogleEarth\ngsd:0.146343590398\n"
PLANE = "20 10 40 30 30 40 10 20 plane 0\n"  # turned by 45 degrees; around it: 10 to 40 in x and y


def folder(path: Path, **files: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / f"{name}.txt").write_text(text)
    return path


def test_oriented_boxes_are_read_as_the_boxes_around_them(tmp_path: Path) -> None:
    upright = "10 20 40 20 40 60 10 60 large-vehicle 1\n"
    dataset = load(folder(tmp_path, P1=HEADERS + PLANE + upright, P2=HEADERS))
    assert (dataset.format, dataset.images.keys) == ("dota", ("P1", "P2"))
    assert dataset.labels.names == ("large-vehicle", "plane")
    assert dataset.boxes.xywh.tolist() == [[10, 10, 30, 30], [10, 20, 30, 40]]
    assert dataset.boxes.difficult.tolist() == [False, True]
    (note,) = dataset.findings
    assert (note.code, "read as the boxes around them: 1 oriented box" in note.message) == ("outline", True)


@pytest.mark.parametrize("rest", [" storage tank 0", ",storage tank,0", " storage tank"])
def test_commas_blanks_in_a_category_and_a_missing_flag_occur(tmp_path: Path, rest: str) -> None:
    numbers = rest[0].join(["10", "20", "40", "20", "40", "60", "10", "60"])
    dataset = load(folder(tmp_path / "val/labelTxt", P1=f"{numbers}{rest}\n").parent)
    assert (dataset.labels.names, dataset.boxes.xywh.tolist()) == (("storage tank",), [[10, 20, 30, 40]])


@pytest.mark.parametrize("joint", ["", " "])
@pytest.mark.parametrize("first", [PLANE.strip(), PLANE.strip().removesuffix(" 0")])
def test_two_objects_on_one_line_are_an_error(first: str, joint: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"P1.txt:1: expected 9 or 10 columns, got \d+: two objects on one line\?"):
        load(folder(tmp_path, P1=f"{first}{joint}{PLANE}{PLANE}"))


def test_a_folder_called_like_a_file_of_results_is_an_error(tmp_path: Path) -> None:
    path = folder(tmp_path, Task1_plane="0006 0.9 20 10 40 30 30 40 10 20\n")
    (path / "Task1_ship.txt").mkdir()
    with pytest.raises(DataError, match=r"Task1_ship.txt: is a directory, not a file. Pass the file inside it."):
        load(path, role="pred")


def test_results_are_files_by_class(tmp_path: Path) -> None:
    path = folder(tmp_path, Task1_plane="0006 0.9 20 10 40 30 30 40 10 20\n0007 0.25 1 2 3 2 3 4 1 4\n", Task1_ship="")
    assert detect_format(path) == "dota"  # though the lines are numbers throughout, as in labels of YOLO
    dataset = load(path, role="pred")
    assert (dataset.images.keys, dataset.labels.names) == (("0006", "0007"), ("plane", "ship"))
    assert dataset.boxes.xywh.tolist() == [[10, 10, 30, 30], [1, 2, 2, 2]]
    assert dataset.boxes.score is not None
    assert dataset.boxes.score.tolist() == [0.9, 0.25]


def test_notes_beside_results_and_backups_of_labels_are_counted_and_named(tmp_path: Path) -> None:
    results = folder(tmp_path / "results", Task1_plane="0006 0.9 20 10 40 30 30 40 10 20\n", notes="of the run\n")
    labels = folder(tmp_path / "labels", P1=PLANE)
    (labels / "P1.bak").write_text(PLANE)
    for path, role in ((results, "pred"), (labels, "gt")):
        dataset = load(path, role=role)
        assert dataset.ignored == {"other_file": 1}
        assert "other-files" in [finding.code for finding in dataset.findings]


def test_every_problem_is_told_with_its_line(tmp_path: Path) -> None:
    path = folder(tmp_path, P1=f"{HEADERS}1 2 3 4\n1 2 3 x 5 6 7 8 plane 0\n{PLANE}")
    with pytest.raises(DataError) as caught:
        load(path, format_name="dota")
    assert "P1.txt:3: expected 9 or 10 columns, got 4" in str(caught.value)
    assert "P1.txt:4: y2: 'x' is not a plain finite number" in str(caught.value)
    results = folder(tmp_path / "results", Task1_plane="P1 1 2 3 4 5 6 7 8\n")
    with pytest.raises(DataError, match=r"Task1_plane\.txt:1: expected 10 columns \(image score x1"):
        load(results, role="pred")
