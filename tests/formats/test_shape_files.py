"""Masks and keypoints of formats other than COCO JSON: the same numbers as COCO JSON of the same shapes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here, write_json
from shaped import measured, write_images, write_masks

from jaccard_eval import DataError, ReadOptions, evaluate

SIDE = 64  # px; fractions of it are exact
# Polygons of two images, class by class, in pixels: one found well, one found half, one missed, one empty image.
GT: dict[str, list[tuple[int, list[int]]]] = {
    "a": [(0, [4, 4, 28, 4, 32, 16, 20, 30, 4, 24]), (1, [40, 8, 60, 8, 50, 28])],
    "b": [(0, [8, 40, 24, 36, 30, 60, 10, 58]), (1, [2, 2, 12, 2, 12, 12, 2, 12])],
    "c": [],
}
PRED: dict[str, list[tuple[int, list[int], float]]] = {
    "a": [(0, [5, 4, 28, 5, 31, 16, 20, 30, 4, 23], 0.9), (1, [42, 8, 60, 8, 52, 22], 0.75)],
    "b": [(0, [8, 42, 22, 38, 28, 60, 12, 56], 0.5), (1, [30, 2, 40, 2, 40, 12], 0.25)],
    "c": [(0, [8, 8, 16, 8, 16, 16, 9, 15], 0.125)],
}
RECTANGLE = [2, 2, 12, 2, 12, 12, 2, 12]  # one of them, where tools have a word for it
NAMES = ("dog", "cat")


def images(folder: Path) -> Path:
    return write_images(folder, [f"{name}.png" for name in GT], (SIDE, SIDE))


def coco(folder: Path) -> tuple[Path, Path]:
    """Write the polygons as COCO JSON."""
    return write_masks(folder, (GT, PRED), (SIDE, SIDE), ".png", lambda ring: [ring])


def yolo_seg(folder: Path) -> tuple[Path, Path]:
    images(folder / "images")
    for side, shapes in (("labels", GT), ("pred", PRED)):
        (folder / side).mkdir()
        for name, rows in shapes.items():
            lines = [
                " ".join(map(str, [label, *(value / SIDE for value in ring), *score])) for label, ring, *score in rows
            ]
            (folder / side / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "data.yaml").write_text("names: [dog, cat]\nval: images\n")
    return folder / "data.yaml", folder / "pred"


def labelme(folder: Path) -> tuple[Path, Path]:
    """Ground truth in two tools' files; predictions are YOLO's."""
    (folder / "labelme").mkdir()
    for name, shapes in GT.items():
        document = {
            "version": "5.4.1",
            "imagePath": f"{name}.png",
            "imageHeight": SIDE,
            "imageWidth": SIDE,
            "shapes": [_labelme_shape(label, ring) for label, ring in shapes],
        }
        write_json(folder / "labelme" / f"{name}.json", document)
    return folder / "labelme", yolo_seg(folder)[1]


def _labelme_shape(label: int, ring: list[int]) -> dict[str, Any]:
    points, kind = [ring[at : at + 2] for at in range(0, len(ring), 2)], "polygon"
    if ring == RECTANGLE:
        points, kind = [points[2], points[0]], "rectangle"
    return {"label": NAMES[label], "points": points, "shape_type": kind, "group_id": None}


def via(folder: Path) -> tuple[Path, Path]:
    entries = {
        f"{name}.png1": {
            "filename": f"{name}.png",
            "size": 1,
            "regions": [
                {"shape_attributes": _via_shape(ring), "region_attributes": {"class": NAMES[label]}}
                for label, ring in shapes
            ],
        }
        for name, shapes in GT.items()
    }
    return write_json(folder / "via.json", entries), yolo_seg(folder)[1]


def cvat(folder: Path) -> tuple[Path, Path]:
    def shape(label: int, ring: list[int]) -> str:
        if ring == RECTANGLE:
            return f'<box label="{NAMES[label]}" xtl="2" ytl="2" xbr="12" ybr="12"/>'
        points = ";".join(f"{x}.00,{y}.00" for x, y in zip(ring[::2], ring[1::2], strict=True))
        return f'<polygon label="{NAMES[label]}" points="{points}"/>'

    listed = "".join(
        f'<image id="{row}" name="{name}.png" width="{SIDE}" height="{SIDE}">'
        + "".join(shape(label, ring) for label, ring in shapes)
        + "</image>"
        for row, (name, shapes) in enumerate(GT.items())
    )
    (folder / "cvat.xml").write_text(f"<annotations><version>1.1</version>{listed}</annotations>")
    return folder / "cvat.xml", yolo_seg(folder)[1]


def _via_shape(ring: list[int]) -> dict[str, Any]:
    if ring == RECTANGLE:
        return {"name": "rect", "x": 2, "y": 2, "width": 10, "height": 10}
    return {"name": "polygon", "all_points_x": ring[::2], "all_points_y": ring[1::2]}


Written = Callable[[Path], tuple[Path, Path]]
WRITTEN: dict[str, Written] = {"yolo": yolo_seg, "labelme": labelme, "via": via, "cvat": cvat}


@pytest.mark.parametrize("iou_type", ["segm", "boundary"])
@pytest.mark.parametrize("name", WRITTEN)
def test_masks_give_the_numbers_of_coco_json(name: str, iou_type: str, tmp_path: Path) -> None:
    gt, pred = WRITTEN[name](tmp_path)
    expected = measured(evaluate(*coco(tmp_path), iou_type=iou_type))
    options = ReadOptions(images=tmp_path / "images")
    assert measured(evaluate(gt, pred, iou_type=iou_type, gt_options=options)) == expected
    assert 0.1 < expected["AP50"][1] < 0.9


def test_masks_are_chosen_where_one_tool_has_no_boxes(tmp_path: Path) -> None:
    gt, pred = labelme(tmp_path)
    assert evaluate(gt, pred).protocol.iou_type == "bbox"  # of a rectangle
    (gt / "b.json").unlink()
    assert evaluate(gt, pred, extra_images="ignore").protocol.iou_type == "segm"


def test_parts_of_a_group_are_one_object(tmp_path: Path) -> None:
    gt, pred = labelme(tmp_path)
    document = json.loads((gt / "a.json").read_text())
    ring = document["shapes"][0]["points"]
    halves = [ring[:4], [ring[3], ring[4], ring[0]]]
    parts = [{**document["shapes"][0], "points": half, "group_id": 7} for half in halves]
    write_json(gt / "a.json", {**document, "shapes": [*parts, *document["shapes"][1:]]})
    result = evaluate(gt, pred, iou_type="segm")
    assert sum(row.gt for row in result.per_class) == 4


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("labelme", {"points": [[1, 1], [2, 2]]}, r"a.json: shapes\[0\]: a polygon has 2 points; expected at least 3"),
        ("labelme", {"points": [[1, 1], [2, 2], [3, "x"]]}, r"a.json: shapes\[0\].points\[2\]\[1\]: is 'x'"),
        ("labelme", {"points": [[1, 1], [2, 2], [1e9, 3]]}, r"a.json: shapes\[0\]: .* the corner 1e\+09, 3, too large"),
        ("via", {"all_points_y": [1, 2]}, r"shape_attributes.all_points_y: has 2 values; all_points_x has 5"),
        ("via", {"all_points_x": [1], "all_points_y": [1]}, "a polygon has 1 points"),
    ],
)
def test_polygons_that_are_none_are_named_by_their_record(
    name: str, shape: dict[str, Any], message: str, tmp_path: Path
) -> None:
    gt, pred = WRITTEN[name](tmp_path)
    file = gt if name == "via" else gt / "a.json"
    document = json.loads(file.read_text())
    first = document["a.png1"]["regions"][0]["shape_attributes"] if name == "via" else document["shapes"][0]
    first |= shape
    write_json(file, document)
    options = ReadOptions(images=tmp_path / "images")
    with pytest.raises(DataError, match=message):
        evaluate(gt, pred, iou_type="segm", gt_options=options)


def test_polygons_in_fractions_are_named_and_read_as_the_message_asks(tmp_path: Path) -> None:
    gt, pred = coco(tmp_path)
    expected = measured(evaluate(gt, pred, iou_type="segm"))
    for file in (gt, pred):
        document = json.loads(file.read_text())
        records = document["annotations"] if file == gt else document
        for record in records:
            record["segmentation"] = [[value / SIDE for value in ring] for ring in record["segmentation"]]
        write_json(file, document)
    refused = run_here(gt, pred, "--iou-type", "segm")
    assert refused.returncode == 3
    for role in ("gt", "pred"):
        assert f"Pass --{role}-units norm" in refused.stderr
    options = {f"{role}_options": ReadOptions(role=role, units="norm") for role in ("gt", "pred")}
    assert measured(evaluate(gt, pred, iou_type="segm", **options)) == expected
    # Where the boxes are in pixels, they are not fractions of anything.
    document = json.loads(gt.read_text())
    for record in document["annotations"]:
        record["bbox"] = [4, 4, 20, 20]
    write_json(gt, document)
    with pytest.raises(DataError, match="Multiply x by the width"):
        evaluate(gt, pred, iou_type="segm", pred_options=options["pred_options"])


@pytest.mark.parametrize("name", WRITTEN)
def test_polygons_with_y_before_x_are_read_as_the_option_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "right").mkdir()
    expected = measured(evaluate(*coco(tmp_path / "right"), iou_type="segm"))
    for shapes in (GT, PRED):
        for image, rows in shapes.items():
            # y, x of each corner
            flipped = [(row[0], [row[1][at ^ 1] for at in range(len(row[1]))], *row[2:]) for row in rows]
            monkeypatch.setitem(shapes, image, flipped)
    gt, pred = WRITTEN[name](tmp_path)
    options = {f"{role}_options": ReadOptions(images=tmp_path / "images", mask_axes="yx") for role in ("gt", "pred")}
    assert measured(evaluate(gt, pred, iou_type="segm", **options)) == expected


def test_polygons_with_y_before_x_are_named(tmp_path: Path) -> None:
    gt, pred = coco(tmp_path)
    document = json.loads(gt.read_text())
    for image in document["images"]:
        image["height"] = SIDE // 2
    document["annotations"] = document["annotations"][:2]  # which lie in the upper half
    write_json(gt, document)
    results = [record for record in json.loads(pred.read_text()) if record["image_id"] == 1]
    for y_first in (False, True):
        for record in results if y_first else ():
            ring = record["segmentation"][0]
            record["segmentation"] = [[value for at in range(0, len(ring), 2) for value in (ring[at + 1], ring[at])]]
        codes = [finding.code for finding in evaluate(gt, write_json(pred, results), iou_type="segm").findings]
        assert ("mask-axes" in codes) == y_first


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ("40.00,8.00;60.00,8.00", r"image 'a.png'.polygon\[1\].points: has 2 points; expected at least 3"),
        ("40.00,8.00;60.00;1,1", r"polygon\[1\].points: has 3 points; expected at least 3, each x,y"),
        ("40.00,x;60.00,8.00;1,1", r"polygon\[1\].points: 'x' is not a plain finite number"),
        ("1e9,1;60.00,8.00;1,1", r"polygon\[1\].points: a polygon has the corner 1e\+09, 1, too large"),
    ],
)
def test_points_of_cvat_that_are_wrong_are_named_by_their_record(points: str, message: str, tmp_path: Path) -> None:
    gt, pred = cvat(tmp_path)
    gt.write_text(gt.read_text().replace("40.00,8.00;60.00,8.00;50.00,28.00", points))
    with pytest.raises(DataError, match=message):
        evaluate(gt, pred, iou_type="segm")


def test_a_rotated_box_of_cvat_is_turned_about_its_centre(tmp_path: Path) -> None:
    # A square turned by 45 degrees is a diamond; a box of 20 x 10 turned by 90 is one of 10 x 20.
    half = 50**0.5 * 2
    for box, degrees, ring in (
        ((20, 20, 40, 40), 45, [30, 30 - half, 30 - half, 30, 30, 30 + half, 30 + half, 30]),
        ((20, 20, 40, 30), 90, [25, 15, 25, 35, 35, 35, 35, 15]),
    ):
        sides = dict(zip(("xtl", "ytl", "xbr", "ybr"), box, strict=True))
        attributes = " ".join(f'{name}="{value}"' for name, value in sides.items())
        image = f'<image id="0" name="a.png" width="{SIDE}" height="{SIDE}">'
        content = f'{image}<box label="dog" {attributes} rotation="{degrees}"/></image>'
        (tmp_path / "cvat.xml").write_text(f"<annotations>{content}</annotations>")
        record = {"image_id": 1, "category_id": 0, "segmentation": [ring], "score": 0.5}
        pred = {
            "images": [{"id": 1, "file_name": "a.png", "width": SIDE, "height": SIDE}],
            "categories": [{"id": 0, "name": "dog"}],
            "annotations": [record],
        }
        result = evaluate(tmp_path / "cvat.xml", write_json(tmp_path / "pred.json", pred), iou_type="segm", iou=0.99)
        assert round(result["AP"], 9) == 1


# Yolo: polygons

BOX = "0 0.5 0.5 0.25 0.25"


def test_boxes_of_yolo_stay_what_is_compared_unless_masks_are_asked_for(tmp_path: Path) -> None:
    result = evaluate(*yolo_seg(tmp_path))
    assert result.protocol.iou_type == "bbox"
    assert [str(finding.fix) for finding in result.findings if finding.code == "iou-type"] == [
        "Pass --iou-type segm or --iou-type boundary to compare those."
    ]


def test_a_box_among_polygons_has_no_mask(tmp_path: Path) -> None:
    gt, pred = yolo_seg(tmp_path)
    with (tmp_path / "pred/a.txt").open("a") as file:
        file.write(f"{BOX} 0.5\n")
    found = evaluate(gt, pred, iou_type="segm").findings
    assert "1 of 6 predictions have no mask" in " ".join(map(str, found))
    with (tmp_path / "labels/a.txt").open("a") as file:
        file.write(f"{BOX}\n")
    with pytest.raises(DataError, match=r"labels/a.txt:3: is a box; expected a polygon"):
        evaluate(gt, pred, iou_type="segm")


def test_boxes_alone_have_no_masks(tmp_path: Path) -> None:
    gt, _ = yolo_seg(tmp_path)
    (tmp_path / "boxes").mkdir()
    (tmp_path / "boxes/a.txt").write_text(f"{BOX} 0.5\n")
    with pytest.raises(DataError, match="shapes-missing"):
        evaluate(gt, tmp_path / "boxes", iou_type="segm")


# Yolo: poses

POINTS = [(10, 10), (22, 12), (16, 28), (30, 30)]


def poses(folder: Path, *, width: int, scored: bool = True) -> tuple[tuple[Path, Path], tuple[Path, Path]]:
    """Write two people, of whom one has a point that nobody labelled, as YOLO's labels and as COCO JSON."""
    images(folder / "images")
    people = [[(x + shift, y + shift) for x, y in POINTS] for shift in (0, 30)]
    gt_lines, pred_lines, annotations, results = [], [], [], []
    for row, person in enumerate(people):
        x, y = person[0][0] - 2, person[0][1] - 2
        box = [x, y, 24, 24]
        fractions = [value / SIDE for value in (x + 12, y + 12, 24, 24)]
        seen = [2, 1, 2, 0 if row else 2]
        points = [(0, 0) if not v else point for point, v in zip(person, seen, strict=True)]
        moved = [(px + row + 1, py) for px, py in person]
        gt_lines.append([0, *fractions, *flat(points, seen, width, SIDE)])
        sure = [0.875] * 4
        pred_lines.append([0, *fractions, *flat(moved, sure, width, SIDE), *([0.9 - row / 4] if scored else [])])
        annotation = {"id": row + 1, "image_id": 1, "category_id": 0, "bbox": box, "area": 24 * 24}
        annotations.append({**annotation, "keypoints": flat(points, seen, 3, 1), "num_keypoints": 4 - row})
        result = {"image_id": 1, "category_id": 0, "bbox": box, "score": 0.9 - row / 4}
        results.append({**result, "keypoints": flat(moved, sure, 3, 1)})
    gt = {
        "images": [{"id": i, "file_name": f"{n}.png", "width": SIDE, "height": SIDE} for i, n in enumerate(GT, 1)],
        "categories": [{"id": 0, "name": "person"}],
        "annotations": annotations,
    }
    for name, lines in (("labels", gt_lines), ("pred", pred_lines)):
        (folder / name).mkdir()
        (folder / name / "a.txt").write_text("".join(" ".join(map(str, line)) + "\n" for line in lines))
    (folder / "data.yaml").write_text(f"names: [person]\nval: images\nkpt_shape: [4, {width}]\n")
    files = write_json(folder / "gt.json", gt), write_json(folder / "pred.json", results)
    return (folder / "data.yaml", folder / "pred"), files


def flat(points: list[tuple[int, int]], seen: list[Any], width: int, side: int) -> list[float]:
    return [value for (x, y), v in zip(points, seen, strict=True) for value in (x / side, y / side, v)[:width]]


SIGMAS = (0.05, 0.06, 0.07, 0.08)


@pytest.mark.parametrize("width", [2, 3])
def test_poses_give_the_numbers_of_coco_json(width: int, tmp_path: Path) -> None:
    sides, files = poses(tmp_path, width=width)
    rules: Any = {"iou_type": "keypoints", "sigmas": SIGMAS}
    expected = measured(evaluate(*files, **rules))
    assert 0.1 < expected["AP"][1] < 0.9
    assert measured(evaluate(*sides, **rules)) == expected
    # Boxes of the same lines.
    assert measured(evaluate(*sides)) == measured(evaluate(*files))
    # Without a description the lines show it.
    (tmp_path / "data.yaml").unlink()
    assert measured(evaluate(tmp_path / "labels", tmp_path / "pred", **rules)) == expected
    named = {
        f"{side}_options": ReadOptions(role=side, columns=f"pose-4x{width}{end}")
        for side, end in (("gt", ""), ("pred", "-conf"))
    }
    assert measured(evaluate(tmp_path / "labels", tmp_path / "pred", **rules, **named)) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 0.5 0.5 0.5 0.5 0.4 0.4 3 0.5 0.5 2 0.5 0.5 2 0.5 0.5 1", "a.txt:1: keypoint 1: visibility is 3"),
        ("0 0.5 0.5 0.5 0.5 0.4 0.4 2 0.5 0.5 2 0.5 0.5 2", "a.txt:1: expected class"),
    ],
)
def test_poses_that_are_wrong_are_named_by_their_line(line: str, message: str, tmp_path: Path) -> None:
    (gt, pred), _ = poses(tmp_path, width=3)
    (tmp_path / "labels/a.txt").write_text(f"{line}\n")
    with pytest.raises(DataError, match=message):
        evaluate(gt, pred, iou_type="keypoints", sigmas=SIGMAS)


@pytest.mark.parametrize("shape", ["17", "[17]", "[17, 4]", "[0, 3]", "{a: 1}"])
def test_a_wrong_kpt_shape_is_an_error_of_the_description(shape: str, tmp_path: Path) -> None:
    (gt, pred), _ = poses(tmp_path, width=3)
    gt.write_text(f"names: [person]\nval: images\nkpt_shape: {shape}\n")
    with pytest.raises(DataError, match=r"data.yaml: kpt_shape: is .*; expected \[17, 3\]"):
        evaluate(gt, pred)


def test_poses_of_images_of_unknown_size_have_no_distances(tmp_path: Path) -> None:
    (_, pred), _ = poses(tmp_path, width=3)
    for file in (tmp_path / "images").iterdir():
        file.unlink()
    labels = tmp_path / "labels"
    with pytest.raises(DataError, match="keypoints measures distances"):
        evaluate(labels, pred, iou_type="keypoints", sigmas=SIGMAS)
    folder = images(tmp_path / "elsewhere")
    argv = (labels, pred, "--iou-type", "keypoints", "--sigmas", ",".join(map(str, SIGMAS)))
    refused = run_here(*argv)
    assert (refused.returncode, "Pass the image folder with --images DIR" in refused.stderr) == (3, True)
    assert run_here(*argv, "--images", folder).returncode == 0
    assert json.loads(run_here(*argv, "--images", folder, "--json").stdout)["metrics"]["AP"] > 0
