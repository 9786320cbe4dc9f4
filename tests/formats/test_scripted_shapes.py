"""Corners, angles and points as scripts write them: values by hand, as `carrier_files` has them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from carrier_files import LEFT, MOVED, POSE_AP, SCORE, SIGMA, WORD_AP, corners, flat, people, points
from command_line import write_json

from jaccard_eval import DataError, ReadOptions, evaluate, load

Pair = tuple[Path, Path]
# The second class makes that lines are not taken for words; its object is never found, and AP is half.
OTHER = 40.0
AP = WORD_AP / 2


def turned(left: float) -> list[float]:
    return [left + 10, 20, 20, 20, 90]


def named(left: float) -> dict[str, float]:
    return dict(zip(("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4"), flat(left), strict=True))


def boxes(shape: Callable[[float], Any], *, is_pred: bool) -> list[dict[str, Any]]:
    found = [("dog", MOVED, {"score": SCORE}), ("cat", 100.0, {"score": 0.1})]
    truth: list[tuple[str, float, dict[str, float]]] = [("dog", LEFT, {}), ("cat", OTHER, {})]
    return [{"label": label, **shape(left), **own} for label, left, own in (found if is_pred else truth)]


SHAPES: dict[str, Callable[[float], Any]] = {
    "poly": lambda left: {"poly": flat(left)},
    "quad": lambda left: {"quad": corners(left)},
    "corners": lambda left: {"corners": corners(left)},
    "box of points": lambda left: {"box": corners(left)},
    "bbox of points": lambda left: {"bbox": corners(left)},
    "bbox of eight": lambda left: {"bbox": flat(left)},
    "points by name": lambda left: {"points": [{"x": x, "y": y} for x, y in corners(left)]},
    "eight fields": named,
    "rbox": lambda left: {"rbox": turned(left)},
}


def in_records(folder: Path, shape: Callable[[float], Any], image: str = "image") -> Pair:
    gt, pred = (
        write_json(folder / name, [{image: "a.jpg", **one} for one in boxes(shape, is_pred=is_pred)])
        for name, is_pred in (("gt.json", False), ("pred.json", True))
    )
    return gt, pred


@pytest.mark.parametrize("shape", SHAPES)
def test_records_of_corners_are_oriented_boxes_with_classes(shape: str, tmp_path: Path) -> None:
    gt, pred = in_records(tmp_path, SHAPES[shape])
    result = evaluate(gt, pred)
    kind = "segm" if shape == "points by name" else "obb"  # outlines, as far as their name says
    assert (result.protocol.iou_type, result["AP"]) == (kind, pytest.approx(AP))


def by_image_id(folder: Path, **_: object) -> Pair:
    return in_records(folder, SHAPES["poly"], "image_id")


def in_images(folder: Path) -> Pair:
    gt, pred = (
        write_json(
            folder / name, {"images": [{"file_name": "a.jpg", "objects": boxes(SHAPES["quad"], is_pred=is_pred)}]}
        )
        for name, is_pred in (("gt.json", False), ("pred.json", True))
    )
    return gt, pred


def in_lines(folder: Path) -> Pair:
    for name, is_pred in (("gt.jsonl", False), ("pred.jsonl", True)):
        image = {"file_name": "a.jpg", "objects": boxes(SHAPES["quad"], is_pred=is_pred)}
        (folder / name).write_text(json.dumps(image) + "\n" + json.dumps({**image, "file_name": "b.jpg"}) + "\n")
    return folder / "gt.jsonl", folder / "pred.jsonl"


def in_files(folder: Path, wrap: Callable[[Any], Any] = list) -> Pair:
    for name, is_pred in (("gt", False), ("pred", True)):
        (folder / name).mkdir()
        write_json(folder / name / "a.json", wrap(boxes(SHAPES["quad"], is_pred=is_pred)))
    return folder / "gt", folder / "pred"


def in_objects_of_files(folder: Path) -> Pair:
    return in_files(folder, lambda found: {"objects": found})


def rows_by_name(folder: Path) -> Pair:
    gt = write_json(folder / "gt.json", {"b.jpg": [], "a.jpg": [[*flat(LEFT), 1.0, "dog"], [*flat(OTHER), 1.0, "cat"]]})
    rows = [[*flat(MOVED), SCORE, "dog"], [*flat(100.0), 0.1, "cat"]]
    return gt, write_json(folder / "pred.json", {"a.jpg": rows})


@pytest.mark.parametrize("write", [by_image_id, in_images, in_lines, in_files, in_objects_of_files, rows_by_name])
def test_lists_of_such_objects_lie_anywhere(write: Callable[[Path], Pair], tmp_path: Path) -> None:
    result = evaluate(*write(tmp_path))
    assert (result.protocol.iou_type, result["AP"]) == ("obb", pytest.approx(AP))


def test_scores_of_labelme_are_those_of_its_shapes(tmp_path: Path) -> None:
    for name, is_pred in (("gt", False), ("pred", True)):
        (tmp_path / name).mkdir()
        shapes = [{**one, "shape_type": "rotation"} for one in boxes(lambda x: {"points": corners(x)}, is_pred=is_pred)]
        document = {"version": "2", "shapes": shapes, "imagePath": "a.jpg", "imageHeight": 40, "imageWidth": 140}
        write_json(tmp_path / name / "a.json", document)
    for kind in ("obb", "segm"):
        assert evaluate(tmp_path / "gt", tmp_path / "pred", iou_type=kind)["AP"] == pytest.approx(AP)


# Texts are long enough that their columns show what they are.
CELLS = [(at, 30.0 * at, label) for at, label in enumerate(["dog", "cat"] * 4)]


def texts(folder: Path, line: Callable[[str, float, str], str], *, is_one: bool) -> Path:
    folder.mkdir(exist_ok=True)
    rows = [line(label, left, f"0.{9 - at}") for at, left, label in CELLS]
    if is_one:
        (folder / "all.txt").write_text("".join(f"{at % 3}.jpg {row}\n" for at, row in enumerate(rows)))
        return folder / "all.txt"
    (folder / "a.txt").write_text("".join(f"{row}\n" for row in rows))
    return folder


def quad(left: float) -> str:
    return " ".join(map(str, flat(left)))


def centre(left: float) -> str:
    return f"{left + 10} 20 20 20 -30.5"


LINES: dict[str, tuple[Callable[[str, float, str], str], Callable[[str, float, str], str]]] = {
    "class score quad": (
        lambda label, x, _: f"{label} {quad(x)}",
        lambda label, x, score: f"{label} {score} {quad(x)}",
    ),
    "score quad class": (
        lambda label, x, _: f"{quad(x)} {label}",
        lambda label, x, score: f"{score} {quad(x)} {label}",
    ),
    "quad class score": (
        lambda label, x, _: f"{quad(x)} {label}",
        lambda label, x, score: f"{quad(x)} {label} {score}",
    ),
}


@pytest.mark.parametrize("columns", LINES)
def test_one_text_for_all_images_has_corners_in_any_place(columns: str, tmp_path: Path) -> None:
    truth, found = LINES[columns]
    gt = texts(tmp_path / "gt", truth, is_one=True)
    pred = texts(tmp_path / "pred", lambda label, x, score: found(label, x + 1, score), is_one=True)
    assert evaluate(gt, pred)["AP"] == pytest.approx(WORD_AP)


OF_FILES: dict[str, tuple[Callable[[str, float, str], str], Callable[[str, float, str], str]]] = {
    "class score quad": (
        lambda label, x, _: f"{len(label + quad(x)) % 2} {quad(x)}",
        lambda label, x, score: f"{len(label + quad(x - 1)) % 2} {score} {quad(x)}",
    ),
    "quad score class": (LINES["quad class score"][0], lambda label, x, score: f"{quad(x)} {score} {label}"),
    "name, box, angle": (
        lambda label, x, _: f"{label} {centre(x)}",
        lambda label, x, score: f"{label} {centre(x)} {score}",
    ),
}


@pytest.mark.parametrize("columns", OF_FILES)
def test_files_of_an_image_each_have_them_as_well(columns: str, tmp_path: Path) -> None:
    truth, found = OF_FILES[columns]
    angle = "deg-cw" if "angle" in columns else None
    gt = texts(tmp_path / "gt", truth, is_one=False)
    pred = texts(tmp_path / "pred", found, is_one=False)
    options = {f"{side}_options": ReadOptions(angle=angle) for side in ("gt", "pred") if angle}
    result = evaluate(gt, texts(tmp_path / "pred", found, is_one=False), **options)
    assert (result.protocol.iou_type, len(load(pred, role="pred", options=ReadOptions(angle=angle)).boxes)) == (
        "obb",
        8,
    )
    # The same boxes in the first three; of class score quad each is one pixel off where nothing else changed.
    assert result["AP50"] == pytest.approx(1.0)


def test_polygons_in_cells_of_tables_are_pairs_of_points(tmp_path: Path) -> None:
    for name, left, score in (("gt", LEFT, ""), ("pred", MOVED, f",{SCORE}")):
        header = "image,polygon,class" + ",score" * bool(score)
        (tmp_path / f"{name}.csv").write_text(f'{header}\na.jpg,"{corners(left)}",dog{score}\n')
    assert evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv")["AP"] == pytest.approx(WORD_AP)


NAMES = [f"p{at}" for at in range(17)]


def posed(folder: Path, content: object) -> Path:
    return write_json(folder / "poses.json", content)


def wide(folder: Path) -> Path:
    header = ["image", "score", *(f"{name}_{axis}" for name in NAMES for axis in ("x", "y", "conf"))]
    cells = [number for pair in points(17, 2) for number in (*pair, 0.7)]
    (folder / "poses.csv").write_text(",".join(header) + "\n" + ",".join(map(str, ["a.jpg", SCORE, *cells])) + "\n")
    return folder / "poses.csv"


MARKED = [[*pair, SCORE] for pair in points(17, 2)]
FOUND_POSES: dict[str, Callable[[Path], Path]] = {
    "objects by name": lambda folder: posed(
        folder,
        [
            {
                "image": "a.jpg",
                "score": SCORE,
                "keypoints": {n: {"x": x, "y": y} for n, (x, y, _) in zip(NAMES, MARKED, strict=True)},
            }
        ],
    ),
    "lists by name": lambda folder: posed(
        folder, [{"image": "a.jpg", "score": SCORE, "keypoints": dict(zip(NAMES, MARKED, strict=True))}]
    ),
    "people": lambda folder: posed(folder, [{"image": "a.jpg", "people": [{"keypoints": MARKED, "score": SCORE}]}]),
    "lines": lambda folder: lines(folder, {"image": "a.jpg", "keypoints": MARKED, "score": SCORE}, {"image": "b.jpg"}),
    "by image": lambda folder: posed(folder, {"b.jpg": [], "a.jpg": [MARKED]}),
    "a wide table": wide,
}


def lines(folder: Path, *rows: object) -> Path:
    (folder / "poses.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder / "poses.jsonl"


@pytest.mark.parametrize("form", FOUND_POSES)
def test_poses_of_scripts_have_their_scores(form: str, tmp_path: Path) -> None:
    pred = FOUND_POSES[form](tmp_path)
    asked = ReadOptions(iou_type="keypoints")
    scores = load(pred, role="pred", options=asked).boxes.score
    assert scores is not None
    assert scores.tolist() == pytest.approx([SCORE])
    class_map = None if form == "by image" else "contiguous"
    result = evaluate(
        people(tmp_path), pred, iou_type="keypoints", sigmas=[SIGMA], extra_images="ignore", class_map=class_map
    )
    assert result["AP"] == pytest.approx(POSE_AP)


def test_angles_of_coco_that_may_be_radians_may_turn_either_way(tmp_path: Path) -> None:
    one = {"image_id": 1, "category_id": 1, "bbox": [20, 20, 20, 10, 0.5]}
    images = [{"id": 1, "file_name": "a.jpg", "width": 60, "height": 40}]
    truth = {"images": images, "categories": [{"id": 1, "name": "dog"}], "annotations": [{"id": 1, **one}]}
    gt, pred = write_json(tmp_path / "gt.json", truth), write_json(tmp_path / "pred.json", [{**one, "score": SCORE}])
    with pytest.raises(
        DataError, match="degrees, counter-clockwise or radians, clockwise or radians, counter-clockwise"
    ):
        evaluate(gt, pred)
