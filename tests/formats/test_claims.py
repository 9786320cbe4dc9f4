"""Readers of fixed columns take a file only where its numbers are what they read them as."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import DataError, ReadOptions, evaluate, load
from jaccard_eval.formats import detect_format
from jaccard_eval.reading.peek import is_quad

CASES = Path(__file__).parents[3] / "shared" / "cases"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="shared cases are not here")


def folder(path: Path, lines: list[str], name: str = "img_1.txt") -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / name).write_text("".join(f"{line}\n" for line in lines))
    return path


def codes(path: Path, **options: object) -> list[str]:
    try:
        return [finding.code for finding in load(path, options=ReadOptions(**options)).findings]  # type: ignore[arg-type]
    except DataError as error:
        return [finding.code for finding in error.findings]


@needs_cases
def test_words_of_icdar_are_no_tracks() -> None:
    result = evaluate(CASES / "r01_icdar/gt", CASES / "r01_icdar/pred")
    assert result.metrics["AP50"].value == 0  # 200 x 20 of 200 x 50: IoU .4
    assert result.protocol.iou_type == "obb"


@needs_cases
def test_poses_in_two_numbers_that_nothing_names_are_not_guessed() -> None:
    for role, layout in (("gt", "pose-17x2"), ("pred", "pose-17x2-conf")):
        with pytest.raises(DataError, match=layout):
            load(CASES / "r22_pose/2d" / role, role=role, options=ReadOptions(role=role))


@pytest.mark.parametrize("mark", [",", " "])
def test_quadrilaterals_are_read_with_commas_and_with_blanks(tmp_path: Path, mark: str) -> None:
    corners = ["10", "20", "110", "24", "108", "64", "9", "60"]
    gt = folder(tmp_path / "gt", [mark.join(corners), mark.join(["300", "10", "340", "10", "340", "30", "300", "30"])])
    pred = folder(tmp_path / "pred", [mark.join([*corners, "0.75"])])
    result = evaluate(gt, pred)
    assert (detect_format(gt), result.protocol.iou_type) == ("icdar", "obb")
    assert result.metrics["AP50"].value == pytest.approx(51 / 101)  # one of two words is found: recalls 0 to .5


def test_words_that_nobody_can_read_absorb_what_lies_on_them(tmp_path: Path) -> None:
    first, second = "100,100,200,100,200,150,100,150", "300,100,400,100,400,150,300,150"
    gt = folder(tmp_path / "gt", [f"\ufeff{first},EXIT, here", f"{second},###"], "gt_img_1.txt")
    pred = folder(tmp_path / "pred", ["310,100,350,100,350,150,310,150,0.95", f"{first},0.9"], "res_img_1.txt")
    result = evaluate(gt, pred)
    assert result.metrics["AP"].value == pytest.approx(1)
    assert load(gt).boxes.crowd.tolist() == [False, True]


def test_a_line_of_icdar_with_words_for_numbers_is_named(tmp_path: Path) -> None:
    path = folder(tmp_path, ["10,20,110,24,108,64,9,60,a", "10,20,110,24,108,64,9,60,b", "10,x,110,24,108,64,9,60,c"])
    with pytest.raises(DataError, match=r"img_1\.txt:3: y1: 'x' is not a plain finite number"):
        load(path, format_name="icdar")


@pytest.mark.parametrize(
    ("corners", "is_one"),
    [
        ([0, 0, 4, 0, 4, 2, 0, 2], True),
        ([0, 0, 0, 2, 4, 2, 4, 0], True),  # the other way around
        ([0, 0, 4, 2, 4, 0, 0, 2], False),  # crosses itself
        ([1, 1, 10, 20, 100, 200, 1, 1], False),  # frame, identity, box, confidence and class
        ([0, 0, 9, 0, 1, 1, 0, 9], False),  # a kite far from a parallelogram
    ],
)
def test_four_corners_of_an_object_are_convex_and_nearly_parallel(corners: list[float], is_one: bool) -> None:
    assert is_quad(corners) is is_one


@pytest.mark.parametrize(
    ("line", "is_track"),
    [
        ("{},1,10,20,100,200,1,1,1", True),
        ("{},-1,10,20,100,200,57.5,-1,-1,-1", True),  # a public detector's score
        ("{},-1,10,20,100,200,0.5", True),
        ("{},1,10,20,100,200,1,3.2,1.5,20.5", True),  # metres in the world
        ("{},1,10,20,100,200,1,4,0,1", False),  # class, truncation and occlusion of VisDrone's videos
        ("{},1,10,20,100,200,1,1,7", False),  # no visibility
        ("{},1,10,20,100,200,250", False),  # no confidence
        ("{},1,10,20,-100,200,1", False),
    ],
)
def test_tracks_have_confidence_class_and_visibility_in_their_ranges(tmp_path: Path, line: str, is_track: bool) -> None:
    path = tmp_path / "clip.txt"
    path.write_text("".join(line.format(frame) + "\n" for frame in range(1, 9)))
    if is_track:
        assert detect_format(path) == "mot"
    else:
        with pytest.raises(DataError, match="format-unknown"):
            detect_format(path)


def test_frames_of_tracks_rise_in_the_file_or_with_each_identity(tmp_path: Path) -> None:
    path = tmp_path / "clip.txt"
    by_identity = [f"{frame},{identity},10,20,30,40,1" for identity in (1, 2, 3) for frame in (1, 2, 3)]
    path.write_text("\n".join(by_identity))
    assert detect_format(path) == "mot"
    path.write_text("\n".join(f"{frame},{frame % 4},10,20,30,40,1" for frame in (70, 31, 88, 13, 60, 24, 50)))
    with pytest.raises(DataError, match="format-unknown"):
        detect_format(path)


def pose(rng: np.random.Generator, n_points: int, width: int, end: str) -> str:
    cx, cy, w, h = rng.uniform([0.3, 0.3, 0.1, 0.1], [0.7, 0.7, 0.3, 0.3])
    points = np.array([cx, cy]) + rng.uniform(-0.45, 0.45, (n_points, 2)) * [w, h]
    columns = np.column_stack((points, np.full(n_points, 0.5 if end else 2)))[:, :width]
    return " ".join(["0", *(f"{value:.6g}" for value in (cx, cy, w, h, *columns.ravel()))]) + end


def polygon(rng: np.random.Generator, n_points: int, width: int, end: str) -> str:
    centre, size = rng.uniform(0.2, 0.8, 2), rng.uniform(0.02, 0.2)
    angles = np.sort(rng.uniform(0, 2 * np.pi, n_points))
    points = centre + size * np.column_stack((np.cos(angles), np.sin(angles)))
    return " ".join(["0", *(f"{value:.6g}" for value in points.ravel())]) + end


@pytest.mark.parametrize(("n_points", "width"), [(17, 2), (17, 3), (5, 2), (21, 2), (8, 3)])
@pytest.mark.parametrize(("role", "end"), [("gt", ""), ("pred", " 0.875")])
def test_poses_without_their_shape_stop(tmp_path: Path, n_points: int, width: int, role: str, end: str) -> None:
    rng = np.random.default_rng(n_points)
    path = folder(tmp_path, [pose(rng, n_points, width, end) for _ in range(12)])
    with pytest.raises(DataError, match=f"columns-ambiguous.*pose-{n_points}x{width}") as raised:
        load(path, role=role, options=ReadOptions(role=role))
    layout = f"pose-{n_points}x{width}" + ("-conf" if end else "")
    assert layout in str(raised.value)
    assert len(load(path, role=role, options=ReadOptions(columns=layout)).boxes) == 12


@pytest.mark.parametrize("shape", [polygon])
def test_drawn_polygons_and_oriented_boxes_never_stop(
    tmp_path: Path, shape: Callable[[np.random.Generator, int, int, str], str]
) -> None:
    rng = np.random.default_rng(5)
    for scene in range(200):
        n_points, end = int(rng.choice([4, 4, 6, 12, 19, 40])), ("", " 0.5")[scene % 2]
        lines = [shape(rng, n_points, 2, end) for _ in range(int(rng.choice([1, 2, 7, 30])))]
        path = folder(tmp_path / str(scene), lines)
        assert "columns-ambiguous" not in codes(path, role="pred" if end else "gt")


@pytest.mark.parametrize(
    ("role", "line", "layouts"),
    [
        ("gt", "0 {i} {x} {y} 40 20 0.{x}", ["difficult-xywhr", "polygon"]),
        ("pred", "0 {i} {x} {y} 40 20 0.{x} 0.9", ["difficult-xywhr-conf", "polygon-conf"]),
        ("gt", "0 {x} {y} 40 20 {x}.5", ["xywhr", "box-conf"]),
    ],
)
def test_angles_are_no_corners_and_no_confidences(tmp_path: Path, role: str, line: str, layouts: list[str]) -> None:
    path = folder(tmp_path, [line.format(i=i % 2, x=100 + 13 * i, y=90 + 7 * i) for i in range(9)])
    with pytest.raises(DataError, match="columns-ambiguous") as raised:
        load(path, role=role, options=ReadOptions(role=role))
    assert all(layout in str(raised.value) for layout in layouts)


@pytest.mark.parametrize("line", ["0 {x} {y} 40 20 -0.{x}", "0 {x} {y} 40 20 -0.{x} 0.9"])
def test_numbers_below_zero_are_no_confidences_but_angles(tmp_path: Path, line: str) -> None:
    role = "pred" if line.endswith("0.9") else "gt"
    path = folder(tmp_path, [line.format(x=100 + 13 * i, y=90 + 7 * i) for i in range(9)])
    found = load(path, role=role, options=ReadOptions(role=role, iou_type="obb"))
    assert found.boxes.area.tolist() == pytest.approx([800] * 9)
    assert "angle-assumed" in [finding.code for finding in found.findings]


def test_a_flag_before_an_oriented_box_marks_what_is_difficult(tmp_path: Path) -> None:
    path = folder(tmp_path, ["0 1 100 90 40 20 0", "0 0 200 90 40 20 1.5707963267948966"])
    found = load(path, options=ReadOptions(columns="difficult-xywhr", iou_type="obb"))
    assert found.boxes.difficult.tolist() == [True, False]
    assert found.boxes.xywh.round(6).tolist() == [[80, 80, 40, 20], [190, 70, 20, 40]]


def test_a_class_that_stands_last_is_not_read_as_a_coordinate(tmp_path: Path) -> None:
    path = folder(tmp_path, [f"{100 + 9 * i} {50 + i} {150 + 9 * i} {90 + 2 * i} {i % 2}" for i in range(12)])
    data = load(path)
    assert (data.format, data.labels.keys, data.boxes.label.tolist()) == ("shapetext", (0, 1), [0, 1] * 6)
    assert data.boxes.xywh[0].tolist() == [100, 50, 50, 40]
    with pytest.raises(DataError, match=r"columns-ambiguous.*column 5 like the class"):
        load(path, format_name="yolo")


@pytest.mark.parametrize(
    "row", ["a{i}.jpg,{i},10,20,110,2{i}", "a{i}.jpg,3,0.9,1{i},20,110,220"], ids=["class first", "score second"]
)
def test_a_table_without_header_has_numbers_that_suit_its_columns(tmp_path: Path, row: str) -> None:
    path = tmp_path / "boxes.csv"
    path.write_text("".join(row.format(i=i) + "\n" for i in range(9)))
    with pytest.raises(DataError, match=r"columns-ambiguous.*Write a header line"):
        load(path, role="pred", options=ReadOptions(assume_score=1.0 if row.startswith("a{i}.jpg,{i}") else None))


def test_names_before_other_numbers_are_no_lines_of_kitti(tmp_path: Path) -> None:
    points = " ".join(["0.4 0.3"] * 5)  # a named face and its five points: 14 numbers, as a line of KITTI has
    with pytest.raises(DataError, match="format-unknown"):
        detect_format(folder(tmp_path, [f"face 0.5 0.5 0.2 0.3 {points}"]))


def test_ten_numbers_that_are_no_attributes_are_no_face(tmp_path: Path) -> None:
    path = tmp_path / "faces.txt"
    path.write_text("a/b.jpg\n1\n10 20 30 40 50 60 70 80 90 100\n")
    with pytest.raises(DataError, match="format-unknown"):
        detect_format(path)


@pytest.mark.parametrize(
    "lines",
    [
        ["10,20,100,200,1,4,0,0", "0"],  # cut off in the middle of a line
        ["10,20,110,20,110,60,10,60,EXIT", "200,30,1e200,36,278,60,198,54,TAXI"],
        ["1e308,20,-1e308,20,110,1e308,10,-1e308"],
    ],
)
def test_damaged_numbers_make_no_claim_and_no_error(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(DataError):
        load(folder(tmp_path / "labels", lines))
