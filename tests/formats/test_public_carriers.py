"""Carriers of shapes as public data sets and programs write them: values by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import write_json
from PIL import Image

from jaccard_eval import DataError, EvaluationResult, JaccardEvalWarning, ReadOptions, evaluate, load
from jaccard_eval.formats import detect_format

# Of squares of 20 pixels, one is moved by 2 and the other by 1.6: IoU .9 and .92, which 9 of 10 thresholds pass.
GT, MASK, QUAD = 10.0, 12.0, 11.6


def flat(left: float) -> list[float]:
    return [left, 10, 30, 10, 30, 30, left, 30]


def ring(left: float) -> list[list[float]]:
    return [[*pair] for pair in zip(flat(left)[::2], flat(left)[1::2], strict=True)]


def images(folder: Path) -> ReadOptions:
    folder.mkdir()
    Image.new("L", (60, 40)).save(folder / "a.png")
    return ReadOptions(images=folder)


def aperio(left: float) -> str:
    points = "".join(f'<Vertex X="{x}" Y="{y}" Z="0"/>' for x, y in ring(left))
    region = f'<Region Id="1"><Attributes/><Vertices>{points}</Vertices></Region>'
    regions = f"<Regions><RegionAttributeHeaders/>{region}</Regions>"
    return f'<Annotations MicronsPerPixel="0.25"><Annotation Id="1">{regions}</Annotation></Annotations>'


def asap(left: float) -> str:
    points = "".join(f'<Coordinate Order="{at}" X="{x}" Y="{y}"/>' for at, (x, y) in enumerate(ring(left)))
    one = f'<Annotation Name="1" Type="Polygon" PartOfGroup="Tumor"><Coordinates>{points}</Coordinates></Annotation>'
    return f"<ASAP_Annotations><Annotations>{one}</Annotations><AnnotationGroups/></ASAP_Annotations>"


@pytest.mark.parametrize(("carrier", "label"), [(aperio, "region"), (asap, "Tumor")])
def test_regions_of_slides_are_masks(carrier: Callable[[float], str], label: str, tmp_path: Path) -> None:
    for role, left in (("gt", GT), ("pred", MASK)):
        (tmp_path / role).mkdir()
        (tmp_path / role / "a.xml").write_text(carrier(left))
    options = images(tmp_path / "images")
    assert detect_format(tmp_path / "gt") == "shapexml"
    result = evaluate(
        tmp_path / "gt",
        tmp_path / "pred",
        iou_type="segm",
        gt_options=options,
        pred_options=ReadOptions(assume_score=1.0, images=options.images),
    )
    assert result.metrics["AP"].value == pytest.approx(0.9)
    assert load(tmp_path / "gt").labels.keys == (label,)
    broken = carrier(GT).replace('X="10.0"', 'X="left"', 1)
    (tmp_path / "gt/a.xml").write_text(broken)
    with pytest.raises(DataError, match=r"has the points .left 10 30 10"):
        load(tmp_path / "gt")


def test_files_of_slides_without_regions_have_no_objects(tmp_path: Path) -> None:
    for root in ("Annotations", "ASAP_Annotations"):
        path = tmp_path / f"{root}.xml"
        path.write_text(f"<{root}></{root}>")
        assert (len(load(path).boxes), load(path).format) == (0, "shapexml")


def test_what_stardist_measures_in_qupath_is_the_score(tmp_path: Path) -> None:
    cell = {"objectType": "detection", "measurements": {"Detection probability": 0.75, "Area": 4}}
    geometry = {"type": "Polygon", "coordinates": [[*ring(GT), ring(GT)[0]]]}
    path = write_json(tmp_path / "a.geojson", [{"type": "Feature", "geometry": geometry, "properties": cell}])
    score = load(path, role="pred").boxes.score
    assert score is not None
    assert score.tolist() == [0.75]


def masks_of(left: float) -> dict[str, Any]:
    columns = int(left)
    counts = [40 * columns + 10]
    for _ in range(29 - columns):
        counts += [20, 20]
    return {"size": [40, 60], "counts": [*counts, 20, 40 * 60 - sum(counts) - 20]}


def isat(left: float) -> Any:
    info = {"description": "ISAT", "name": "a.png", "width": 60, "height": 40}
    return {"info": info, "objects": [{"category": "cell", "group": 1, "segmentation": ring(left), "layer": 1.0}]}


def grounded(left: float) -> Any:
    one = {"class_name": "cell", "bbox": [left, 10, 30, 30], "segmentation": masks_of(left), "score": [0.9]}
    sides = {"img_width": 60, "img_height": 40}
    return {"image_path": "x/a.png", "annotations": [one], "box_format": "xyxy", **sides}


def by_name(left: float) -> Any:
    box = {"bbox": [left, 10, 30 - left, 20], "score": 0.9, "segmentation": masks_of(left)}
    return [{"image_id": "a.png", "category_name": "cell", **box}]


@pytest.mark.parametrize("found", [grounded, by_name])
def test_records_with_a_box_and_a_mask_are_compared_by_either(found: Callable[[float], Any], tmp_path: Path) -> None:
    gt = write_json(tmp_path / "a.json", isat(GT))
    pred = write_json(tmp_path / "pred.json", found(MASK))
    for kind in ("segm", "bbox"):
        result = evaluate(gt, pred, iou_type=kind)
        assert result.metrics["AP"].value == pytest.approx(0.9), kind


def lines(path: Path) -> Path:
    words = [{"transcription": "W", "points": ring(GT)}]
    path.write_text(f"x/a.jpg\t{json.dumps(words)}\n")
    return path


FOUND_WORDS: dict[str, Callable[[], Any]] = {
    "surya": lambda: {"a": [{"text_lines": [{"polygon": ring(QUAD), "confidence": 0.9, "bbox": [0, 0, 1, 1]}]}]},
    "surya_detect": lambda: {
        "a": [{"bboxes": [{"polygon": ring(QUAD), "confidence": 0.9, "bbox": [0, 0, 1, 1]}], "vertical_lines": []}]
    },
    "PaddleOCR 3": lambda: {"input_path": "x/a.jpg", "dt_polys": [ring(QUAD)], "dt_scores": [0.9]},
    "PaddleOCR 3, read": lambda: {
        "input_path": "x/a.jpg",
        "dt_polys": [ring(QUAD), ring(GT)],
        "rec_polys": [ring(QUAD)],
        "rec_scores": [0.9],
    },
}


@pytest.mark.parametrize("program", FOUND_WORDS)
def test_words_that_programs_find(program: str, tmp_path: Path) -> None:
    gt, pred = lines(tmp_path / "gt.txt"), write_json(tmp_path / "found.json", FOUND_WORDS[program]())
    result = evaluate(gt, pred)
    assert (result.protocol.iou_type, result.metrics["AP"].value) == ("obb", pytest.approx(0.9))


def test_words_of_doctr_and_cord(tmp_path: Path) -> None:
    pred = write_json(tmp_path / "res.json", {"a.jpg": [{"points": ring(QUAD), "confidence": 0.9}]})
    doctr = {"a.jpg": {"img_dimensions": [40, 60], "img_hash": "0", "polygons": [ring(GT)]}}
    corners = dict(zip(("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4"), flat(GT), strict=True))
    cord = {"valid_line": [{"category": "menu.nm", "words": [{"quad": corners, "text": "W"}]}]}
    for gt in (write_json(tmp_path / "labels.json", doctr), write_json(tmp_path / "a.json", cord)):
        result = evaluate(gt, pred, iou_type="obb")
        assert result.metrics["AP"].value == pytest.approx(0.9)


def textract_word(page: int, left: float) -> dict[str, Any]:
    corners = [{"X": x, "Y": y} for x, y in ((left, 0.1), (left + 0.1, 0.1), (left + 0.1, 0.2), (left, 0.2))]
    return {"BlockType": "WORD", "Confidence": 90.0, "Page": page, "Geometry": {"Polygon": corners}}


def doctr_page(page: int) -> dict[str, Any]:
    words = [{"value": "W", "confidence": 0.9, "geometry": [[0.1, 0.1], [0.2, 0.2]]}]
    return {"page_idx": page, "dimensions": [80, 100], "blocks": [{"lines": [{"words": words}]}]}


def test_pages_of_a_file_are_images_and_files_of_a_page_each_would_have_names(tmp_path: Path) -> None:
    doctr = write_json(tmp_path / "doctr.json", {"pages": [doctr_page(0), doctr_page(1)]})
    words = {"Blocks": [textract_word(1, 0.1), textract_word(2, 0.5)]}
    textract = write_json(tmp_path / "textract.json", words)
    Image.new("L", (100, 80)).save(tmp_path / "0.png")
    Image.new("L", (100, 80)).save(tmp_path / "1.png")
    for path in (doctr, textract):
        with pytest.warns(JaccardEvalWarning, match="export each page alone, to a file called like its image"):
            found = load(path, options=ReadOptions(images=tmp_path))
        assert (len(found.images), found.boxes.image.tolist()) == (2, [0, 1])


def test_images_of_paddle_detection_that_are_none_are_named(tmp_path: Path) -> None:
    pose = [[10.0, 20.0, 0.9], [30.0, 40.0, 0.8]]
    path = write_json(tmp_path / "a.json", [["a.jpg", [[1, 1, 50, 50]], [[pose], [0.9]]], ["b.jpg", [], []]])
    with pytest.raises(DataError, match=r"\[1\]: is not a path, boxes, and a pair of points and scores"):
        load(path, options=ReadOptions(role="pred", iou_type="keypoints"))


def test_heads_of_posetrack_without_points_are_counted_and_no_poses(tmp_path: Path) -> None:
    point = {"id": [0], "x": [5], "y": [6], "is_visible": [1]}
    people = [{"x1": [1], "annopoints": [{"point": [point]}]}, {"x1": [3]}]
    path = write_json(tmp_path / "a.json", {"annolist": [{"image": [{"name": "x/1.jpg"}], "annorect": people}]})
    with pytest.warns(JaccardEvalWarning, match="1 'object without a shape'"):
        assert len(load(path, options=ReadOptions(iou_type="keypoints")).boxes.image) == 1


def test_boxes_of_mmrotate_have_an_angle_and_those_that_repeat_the_score_have_none(tmp_path: Path) -> None:
    gt = tmp_path / "gt"
    gt.mkdir()
    (gt / "a.txt").write_text(f"{' '.join(map(str, flat(GT)))} ship 0\n")
    (tmp_path / "pred").mkdir()
    turned = [(QUAD + 30) / 2, 20, 20, 30 - QUAD, 1.5707963267948966]  # a quarter of a turn changes the sides
    found = {"labels": [0], "scores": [0.9], "bboxes": [turned]}
    pred = write_json(tmp_path / "pred/a.json", found)
    result = evaluate(gt, tmp_path / "pred", iou_type="obb", class_map="contiguous")
    assert result.metrics["AP"].value == pytest.approx(0.9)
    write_json(pred, {**found, "bboxes": [[10, 10, 30, 30, 0.9]]})
    with pytest.raises(DataError, match=r"bboxes\[0\]: has 5 values; expected 4 numbers"):
        load(tmp_path / "pred", role="pred")


POSE = [[10.0 + 3 * at, 20.0 + 2 * at] for at in range(17)]
MOVED = [[x + 0.5, y] for x, y in POSE]


def people(folder: Path) -> Path:
    keypoints = [number for point in POSE for number in (*point, 2)]
    one = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 48, 32], "area": 1536, "iscrowd": 0}
    truth = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 100, "height": 100}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [{**one, "keypoints": keypoints, "num_keypoints": 17}],
    }
    return write_json(folder / "gt.json", truth)


FOUND_POSES: dict[str, Callable[[], Any]] = {
    "rtmlib, by name": lambda: {"a.jpg": {"keypoints": [POSE, MOVED], "scores": [[0.9] * 17, [0.3] * 17]}},
    "rtmlib, records": lambda: [{"image": "a.jpg", "keypoints": [POSE, MOVED], "scores": [[0.9] * 17, [0.3] * 17]}],
    "a record for each": lambda: [
        {"image": "x/a.jpg", "score": score, "keypoints": [[*point, 0.5] for point in pose]}
        for pose, score in ((POSE, 0.9), (MOVED, 0.3))
    ],
}


def scored(gt: Path, pred: Path) -> EvaluationResult:
    scores = load(pred, role="pred", options=ReadOptions(iou_type="keypoints")).boxes.score
    assert scores is not None
    assert scores.tolist() == pytest.approx([0.9, 0.3])
    return evaluate(gt, pred, iou_type="keypoints")


@pytest.mark.parametrize("program", FOUND_POSES)
def test_poses_of_programs_that_name_the_image(program: str, tmp_path: Path) -> None:
    result = scored(people(tmp_path), write_json(tmp_path / "found.json", FOUND_POSES[program]()))
    assert result.metrics["AP"].value == pytest.approx(1)  # the first is exact, and the second comes too late


@pytest.mark.parametrize("pose", [[], [[]], [[3, "4"]], 5])
def test_broken_poses_of_an_image_are_refused(pose: object, tmp_path: Path) -> None:
    pred = write_json(tmp_path / "found.json", [{"image": "a.jpg", "keypoints": [pose, POSE], "scores": [0.9, 0.3]}])
    with pytest.raises(DataError, match="keypoints"):
        load(pred, role="pred", options=ReadOptions(iou_type="keypoints"), format_name="shapelists")


def test_poses_with_scores_of_points_alone_have_their_mean(tmp_path: Path) -> None:
    found = [{"keypoints": pose, "keypoint_scores": [of] * 17} for pose, of in ((POSE, 0.9), (MOVED, 0.3))]
    pred = write_json(tmp_path / "a.json", {"meta_info": {}, "instance_info": found})
    assert scored(people(tmp_path), pred).metrics["AP"].value == pytest.approx(1)


def test_poses_as_shares_of_the_image_are_refused(tmp_path: Path) -> None:
    found = [{"image": "a.jpg", "score": 0.9, "keypoints": [[y / 100, x / 100, 0.5] for x, y in POSE]}]
    pred = write_json(tmp_path / "found.json", found)
    with pytest.raises(DataError, match=r"all points are between 0\.1 and 0\.58, as shares of the sides"):
        evaluate(people(tmp_path), pred, iou_type="keypoints")


def test_people_of_ochuman_lie_in_their_images(tmp_path: Path) -> None:
    keypoints = [number for point in POSE for number in (*point, 2)]
    image = {"image_id": "000001", "file_name": "a.jpg", "width": 100, "height": 100}
    one = {"bbox": [10, 20, 58, 52], "keypoints": keypoints, "segms": None, "max_iou": 0.5}
    gt = write_json(tmp_path / "gt.json", {"keypoint_names": [], "images": [{**image, "annotations": [one]}]})
    assert load(gt, options=ReadOptions(iou_type="keypoints")).boxes.xywh.tolist() == [[10, 20, 48, 32]]
    pred = write_json(tmp_path / "p.json", [{"image": "a.jpg", "score": 0.9, "class": "person", "keypoints": POSE}])
    assert evaluate(gt, pred, iou_type="keypoints").metrics["AP"].value == pytest.approx(1)


def test_openpose_files_of_other_programs_have_the_names_of_their_images(tmp_path: Path) -> None:
    (tmp_path / "sep-json").mkdir()
    for name in "ab":
        pose = [number for point in POSE for number in (*point, 0.5)]
        people = [{"pose_keypoints_2d": pose}] if name == "a" else []
        write_json(tmp_path / f"sep-json/{name}.json", {"version": "AlphaPose v0.3", "people": people})
    side = load(tmp_path / "sep-json", role="pred", options=ReadOptions(iou_type="keypoints"))
    assert (side.format, side.images.keys, len(side.boxes)) == ("openpose", ("a", "b"), 1)
