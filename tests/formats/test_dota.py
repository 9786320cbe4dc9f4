"""DOTA: oriented boxes as the upright boxes around them, results by class, and what can be wrong."""

from pathlib import Path

import pytest

from jaccard_eval import DataError, ReadOptions, load
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


@pytest.mark.parametrize("rest", [" storage-tank 0", ",storage-tank,0", " storage-tank", ", storage-tank"])
def test_commas_and_a_missing_flag_occur(tmp_path: Path, rest: str) -> None:
    numbers = rest[0].join(["10", "20", "40", "20", "40", "60", "10", "60"])
    dataset = load(folder(tmp_path / "val/labelTxt", P1=f"{numbers}{rest}\n").parent)
    assert (dataset.labels.names, dataset.boxes.xywh.tolist()) == (("storage-tank",), [[10, 20, 30, 40]])


def test_between_commas_a_category_may_have_blanks(tmp_path: Path) -> None:
    path = folder(tmp_path, P1="10,20,40,20,40,60,10,60,storage tank,1\n")
    assert load(path).labels.names == ("storage tank",)


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        (" storage tank 0", r"got 11 \(a blank in the category\? write large-vehicle, or commas between columns\)"),
        (" storage tank", "difficult is 'tank'; expected 0, 1 or 2"),
        (" 0.5", r"category is '0\.5' \(YOLO labels, which begin with the class\?\)"),
        ("", "expected 9 or 10 columns, got 8"),
    ],
)
def test_what_is_no_category_and_flag_is_an_error(tmp_path: Path, rest: str, problem: str) -> None:
    with pytest.raises(DataError, match=f"P1.txt:1: {problem}|P1.txt:1: .*{problem}"):
        load(folder(tmp_path, P1=f"10 20 40 20 40 60 10 60{rest}\n"), format_name="dota")


def test_oriented_boxes_are_read_where_they_are_compared(tmp_path: Path) -> None:
    dataset = load(folder(tmp_path, P1=PLANE), options=ReadOptions(iou_type="obb"))
    assert dataset.boxes.area.tolist() == [400]  # sides of 20 and of 10 diagonals of a pixel
    assert not dataset.findings


@pytest.mark.parametrize(
    ("line", "code", "area"),
    [
        ("10 10 40 10 40 10 10 10 plane 0", "quad-flat", 0),
        ("10 10 40 40 40 10 10 40 plane 0", "quad-crossing", 450),  # two triangles of 30 x 15 / 2
        ("10 10 40 25 10 40 25 25 plane 0", "quad-dented", 225),  # the triangle 30 x 30 / 2 without that of 30 x 15 / 2
    ],
)
def test_an_outline_that_is_no_rectangle_at_all_is_a_warning(tmp_path: Path, line: str, code: str, area: float) -> None:
    dataset = load(folder(tmp_path, P1=f"{line}\n"), options=ReadOptions(iou_type="obb"))
    assert ([finding.code for finding in dataset.findings], dataset.boxes.area.tolist()) == ([code], [area])


def test_results_of_task_2_and_of_patches_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Task2_plane.txt: results of Task 2 have upright boxes"):
        load(folder(tmp_path / "2", Task2_plane="P1 0.9 10 10 20 20\n"), role="pred")
    patches = folder(tmp_path / "1", Task1_plane="P1__1__0___824 0.9 20 10 40 30 30 40 10 20\n")
    (note,) = load(patches, role="pred", options=ReadOptions(iou_type="obb")).findings
    assert (note.code, "1 patch of images, such as 'P1__1__0___824'" in note.message) == ("dota-patches", True)


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
