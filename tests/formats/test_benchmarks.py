"""Files of benchmarks: CrowdHuman, MOT Challenge, VisDrone, WIDER FACE, BDD100K, and of detectors that many use."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from jaccard_eval import DataError, Dataset, ReadOptions, evaluate, load
from jaccard_eval.formats import mot
from jaccard_eval.reading.peek import Likeness, Peek

SAMPLE = Path(__file__).parents[2] / "sample_data"
# By the format: what the scene's classes are called in it. VisDrone names ten classes, whichever are there.
CLASSES = {
    "crowdhuman": {"person": "person"},
    "mot": {"person": "pedestrian"},
    "visdrone": {"person": "pedestrian", "bicycle": "bicycle", "car": "car"},
    "widerface": {"person": "face"},
}
SIDES = {
    "crowdhuman": ("gt.odgt", "better.odgt"),
    "mot": (".", "."),
    "visdrone": ("gt", "better"),
    "widerface": ("gt.txt", "better"),
}
WITH_CROWD = {"crowdhuman": ("person",), "visdrone": ("person", "bicycle", "car")}  # classes that the region absorbs


def read(path: Path, role: str = "gt", format_name: str | None = None) -> Dataset:
    return load(path, role=role, options=ReadOptions(), format_name=format_name)


def boxes(dataset: Dataset) -> list[list[float]]:
    return [row.tolist() for row in dataset.boxes.xywh]


def codes(dataset: Dataset) -> list[str]:
    return [finding.code for finding in dataset.findings]


def errors(path: Path, role: str = "gt", format_name: str | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read(path, role, format_name)
    return str(caught.value)


def pycocotools_stats(name: str) -> list[float]:
    """Compute the twelve numbers of the scene by its COCO files, with the classes and crowds that a benchmark has."""
    gt = json.loads((SAMPLE / "coco/gt.json").read_text())
    pred = json.loads((SAMPLE / "coco/better.json").read_text())
    number_of = {category["name"]: category["id"] for category in gt["categories"]}
    # The mean over classes is to the last bit that of the order in which the benchmark's names are sorted.
    kept = sorted(CLASSES[name], key=CLASSES[name].__getitem__)
    new = {number_of[old]: at for at, old in enumerate(kept, start=1)}
    gt["categories"] = [{"id": at, "name": old} for at, old in enumerate(kept, start=1)]
    annotations = [annotation for annotation in gt["annotations"] if not annotation["iscrowd"]]
    for region in (annotation for annotation in gt["annotations"] if annotation["iscrowd"]):
        annotations += [{**region, "category_id": number_of[old]} for old in WITH_CROWD.get(name, ())]
    gt["annotations"] = [
        {**annotation, "id": number, "category_id": new[annotation["category_id"]]}
        for number, annotation in enumerate(annotations, start=1)
        if annotation["category_id"] in new
    ]
    pred = [{**row, "category_id": new[row["category_id"]]} for row in pred if row["category_id"] in new]
    with contextlib.redirect_stdout(io.StringIO()):
        api = COCO()
        api.dataset = gt
        api.createIndex()
        evaluation = COCOeval(api, api.loadRes(pred), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [float(value) for value in evaluation.stats]


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_the_scene_gives_the_twelve_numbers_of_pycocotools(name: str) -> None:
    gt, pred = (SAMPLE / name / side for side in SIDES[name])
    result = evaluate(gt, pred, protocol="coco")
    assert [value.value for value in result.metrics.values()] == pycocotools_stats(name)
    assert [finding.code for finding in result.findings if finding.severity != "note"] == []


# CrowdHuman


def odgt(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "val.odgt"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_crowdhuman_reads_full_boxes_and_takes_masks_and_ignored_persons_for_crowds(tmp_path: Path) -> None:
    person = {"tag": "person", "hbox": [1, 1, 2, 2], "vbox": [0, 0, 5, 5], "fbox": [0, 0, 10, 20], "extra": {"occ": 1}}
    ignored = {**person, "fbox": [5, 0, 10, 20], "extra": {"ignore": 1}}
    mask = {"tag": "mask", "fbox": [30, 0, 4, 5], "vbox": [30, 0, 4, 5], "hbox": [30, 0, 4, 5], "extra": {"ignore": 1}}
    dataset = read(odgt(tmp_path, {"ID": "a,1", "gtboxes": [person, ignored, mask]}, {"ID": "b", "gtboxes": []}))
    assert boxes(dataset) == [[0, 0, 10, 20], [5, 0, 10, 20], [30, 0, 4, 5]]
    assert dataset.boxes.crowd.tolist() == [False, True, True]
    assert (dataset.labels.names, dataset.images.keys, dataset.images.listed) == (("person",), ("a,1", "b"), True)
    assert "2 boxes do not count, as in the benchmark: 1 marked ignore, 1 of tag mask" in str(dataset.findings[0])


def test_crowdhuman_heads_marked_ignore_leave_the_person_counted(tmp_path: Path) -> None:
    person = {"tag": "person", "fbox": [0, 0, 10, 20], "head_attr": {"ignore": 1}}
    assert not read(odgt(tmp_path, {"ID": "a", "gtboxes": [person]})).boxes.crowd.any()


def test_crowddet_dumps_both_sides_in_one_line_and_each_side_reads_its_own(tmp_path: Path) -> None:
    line = {
        "ID": "a",
        "height": 600,
        "width": 800,
        "dtboxes": [{"box": [1, 2, 3, 4], "score": 0.5, "tag": 1}],
        "gtboxes": [{"box": [5, 6, 7, 8], "tag": 1}, {"box": [9, 9, 9, 9], "tag": -1}],
    }
    path = odgt(tmp_path, line)
    gt, pred = read(path), read(path, "pred")
    assert (boxes(gt), gt.boxes.crowd.tolist()) == ([[5, 6, 7, 8], [9, 9, 9, 9]], [False, True])
    assert (boxes(pred), pred.boxes.score.tolist()) == ([[1, 2, 3, 4]], [0.5])
    assert gt.images.sizes.tolist() == [[800, 600]]


def test_crowdhuman_names_the_line_and_field_of_what_is_missing(tmp_path: Path) -> None:
    message = errors(odgt(tmp_path, {"ID": "a", "gtboxes": [{"tag": "person", "fbox": [0, 0, 10]}]}, {"gtboxes": []}))
    assert "val.odgt:1: gtboxes[0].fbox: has 3 values; expected 4 numbers" in message
    assert "val.odgt:2: ID: is missing" in message


# VisDrone


def test_visdrone_regions_absorb_every_class_and_others_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/0001.txt").write_text(
        "10,20,30,40,1,4,0,1\n0,0,100,100,0,0,0,0,\n5,5,10,10,0,1,1,2\n6,6,10,10,1,11,0,0\n"
    )
    dataset = read(tmp_path)
    assert (dataset.format, len(dataset.labels.names)) == ("visdrone", 10)
    counted = [row for row in range(len(dataset.boxes)) if not dataset.boxes.crowd[row]]
    assert [boxes(dataset)[row] for row in counted] == [[10, 20, 30, 40]]
    # The region once for each of ten classes, and the pedestrian with score 0.
    assert int(dataset.boxes.crowd.sum()) == 11
    assert dataset.ignored == {"unjudged_class": 1}


def test_visdrone_predictions_keep_their_scores_and_lose_the_class_that_nobody_judges(tmp_path: Path) -> None:
    (tmp_path / "0001.txt").write_text("10,20,30,40,0.9,4,-1,-1\n10,20,30,40,0.3,11,-1,-1\n")
    dataset = read(tmp_path, "pred")
    assert (boxes(dataset), dataset.boxes.score.tolist()) == ([[10, 20, 30, 40]], [0.9])


def test_visdrone_names_every_damaged_line(tmp_path: Path) -> None:
    (tmp_path / "0001.txt").write_text("10,20,30,40,1,4,0,1\n1,2,3,4,1,12,0,0\n")
    (tmp_path / "0002.txt").write_text("10,20,30,1,4,0,1\n")
    message = errors(tmp_path, format_name="visdrone")
    assert "0002.txt:1: expected 8 columns, got 7" in message
    (tmp_path / "0002.txt").unlink()
    assert "0001.txt:2: category: is 12; expected a whole number from 0 to 11" in errors(tmp_path)


# MOT Challenge


def test_mot_counts_pedestrians_alone_and_takes_distractors_for_crowds(tmp_path: Path) -> None:
    sequence = tmp_path / "MOT17-02"
    (sequence / "gt").mkdir(parents=True)
    # Pedestrian, pedestrian that is not considered, static person (a distractor), car.
    (sequence / "gt/gt.txt").write_text(
        "1,1,10,20,30,40,1,1,0.9\n1,2,1,2,3,4,0,1,0.5\n2,3,5,6,7,8,0,7,1\n2,4,9,9,9,9,0,3,1\n"
    )
    (sequence / "seqinfo.ini").write_text("[Sequence]\nname=MOT17-02\nseqLength=3\nimWidth=640\nimHeight=480\n")
    dataset = read(sequence)
    assert dataset.labels.names == ("pedestrian",)
    assert (boxes(dataset), dataset.boxes.crowd.tolist()) == (
        [[10, 20, 30, 40], [1, 2, 3, 4], [5, 6, 7, 8]],
        [False, True, True],
    )
    assert (dataset.images.keys, dataset.images.listed) == (("000001", "000002", "000003"), True)
    assert dataset.images.sizes.tolist() == [[640, 480]] * 3
    assert dataset.ignored == {"unjudged_class": 1}


def test_mot_sequences_are_told_apart_and_each_role_reads_its_own_file(tmp_path: Path) -> None:
    for name in ("MOT17-02", "MOT17-04"):
        for kind, row in (("gt", "1,1,10,20,30,40,1,1,1"), ("det", "1,-1,10,20,30,40,2.5,-1,-1,-1")):
            (tmp_path / name / kind).mkdir(parents=True)
            (tmp_path / name / kind / f"{kind}.txt").write_text(row + "\n")
    gt, pred = read(tmp_path), read(tmp_path, "pred")
    assert gt.images.keys == pred.images.keys == ("MOT17-02/000001", "MOT17-04/000001")
    assert pred.boxes.score.tolist() == [2.5, 2.5]


def test_one_mot_sequence_among_other_folders_does_not_make_sequences_of_them(tmp_path: Path) -> None:
    for name in ("seq/gt", "photos", "notes"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "seq/gt/gt.txt").write_text("1,1,10,20,30,40,1,1,1\n")
    assert mot.looks_like(Peek(tmp_path / "seq")) is Likeness.STRUCTURE
    assert mot.looks_like(Peek(tmp_path)) is None
    (tmp_path / "notes").rmdir()
    assert mot.looks_like(Peek(tmp_path)) is Likeness.STRUCTURE


def test_mot_world_coordinates_are_no_classes(tmp_path: Path) -> None:
    path = tmp_path / "PETS09-S2L1.txt"
    path.write_text("1,1,10,20,30,40,1,-4.2,-3.1,0\n")
    assert read(path).labels.names == ("pedestrian",)


def test_mot_files_of_other_data_sets_keep_the_numbers_of_their_classes(tmp_path: Path) -> None:
    path = tmp_path / "gt.txt"
    path.write_text("1,1,10,20,30,40,1,3,1\n1,2,10,20,30,40,1,5,1\n")
    dataset = read(path)
    assert (dataset.labels.keys, dataset.labels.named) == ((3, 5), False)


def test_mot_says_which_line_is_damaged_and_what_a_broken_seqinfo_lacks(tmp_path: Path) -> None:
    (tmp_path / "gt").mkdir()
    (tmp_path / "gt/gt.txt").write_text("1,1,10,20,30,40,1,1,1\n0,1,10,20,30,40,1,1,1\n1,1,10,20\n")
    message = errors(tmp_path, format_name="mot")
    assert "gt.txt:3: expected 7 to 10 columns, got 4" in message
    assert "gt.txt:2: frame: is 0; frames are counted from 1" in message
    (tmp_path / "gt/gt.txt").write_text("1,1,10,20,30,40,1,1,1\n")
    (tmp_path / "seqinfo.ini").write_text("[Sequence]\nseqLength=many\n")
    assert "seqinfo.ini" in errors(tmp_path)


# WIDER FACE


def test_widerface_reads_blocks_and_takes_invalid_faces_for_crowds(tmp_path: Path) -> None:
    path = tmp_path / "wider_face_val_bbx_gt.txt"
    path.write_text(
        "0--Parade/a b.jpg\n2\n1 2 3 4 0 0 0 0 0 0 \n5 6 7 8 0 0 0 1 0 0 \n"
        "1--Riot/c.jpg\n0\n0 0 0 0 0 0 0 0 0 0 \n2--Demo/d.jpg\n1\n9 9 9 9 2 0 0 0 2 0 \n"
    )
    dataset = read(path)
    assert dataset.images.keys == ("0--Parade/a b.jpg", "1--Riot/c.jpg", "2--Demo/d.jpg")
    assert boxes(dataset) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 9, 9, 9]]
    assert dataset.boxes.crowd.tolist() == [False, True, False]


def test_widerface_results_are_called_as_their_files(tmp_path: Path) -> None:
    (tmp_path / "0--Parade").mkdir()
    (tmp_path / "0--Parade/a.txt").write_text("a.jpg\n1\n1 2 3 4 0.75\n")
    (tmp_path / "0--Parade/b.txt").write_text("0--Parade/b\n0\n")
    dataset = read(tmp_path, "pred")
    assert (dataset.format, dataset.images.keys) == ("widerface", ("0--Parade/a", "0--Parade/b"))
    assert dataset.boxes.score.tolist() == [0.75]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.jpg\n2\n1 2 3 4 0.5\nb.jpg\n1\n1 2 3 4 0.5\n", ":2: 2 faces announced, 1 lines of faces follow"),
        ("a.jpg\n1\n1 2 3 4 0.5\n5 6 7 8 0.5\n", ":4: expected the path of an image, got '5 6 7 8 0.5'"),
        ("a.jpg\nmany\n1 2 3 4 0.5\n", ":1: expected the count of faces behind the path of an image, got 'many'"),
    ],
)
def test_widerface_counts_that_do_not_fit_are_errors(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "results.txt"
    path.write_text(text)
    assert message in errors(path, "pred", "widerface")


def test_a_file_of_many_faces_in_a_folder_is_to_be_passed_itself(tmp_path: Path) -> None:
    (tmp_path / "val.txt").write_text("a.jpg\n1\n1 2 3 4 0 0 0 0 0 0\nb.jpg\n1\n1 2 3 4 0 0 0 0 0 0\n")
    assert "Pass the file instead of its folder" in errors(tmp_path, format_name="widerface")


# Lists of keras-yolo3


def test_keras_lists_hold_paths_with_blanks_and_images_without_boxes(tmp_path: Path) -> None:
    path = tmp_path / "2007_val.txt"
    path.write_text("C:\\my data\\a 1.jpg 10,20,40,60,3 1,2,3,4,0\n/data/b.jpg\n\n")
    dataset = read(path)
    assert (dataset.format, dataset.images.keys) == ("kerasyolo", ("/data/b.jpg", "C:\\my data\\a 1.jpg"))
    assert boxes(dataset) == [[10, 20, 30, 40], [1, 2, 2, 2]]
    assert (dataset.labels.keys, dataset.labels.named, dataset.images.listed) == ((0, 3), False, True)


def test_keras_lists_name_every_damaged_box(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("a.jpg 10,20,40,60,3 1,2,3,4\nb.jpg 1,2,3,4,x\nc.jpg 1,2,3,4,0.5\n")
    message = errors(path, format_name="kerasyolo")
    assert "train.txt:1: box '1,2,3,4' has 4 numbers; expected 5, or 6 with a score" in message
    assert "train.txt:2: class: 'x' is not a plain finite number" in message
    assert "train.txt:3: class: is 0.5; expected a whole number from 0" in message


def test_keras_lists_may_name_their_classes_and_have_a_line_for_each_box(tmp_path: Path) -> None:
    path = tmp_path / "pred.txt"
    path.write_text("a.jpg 10,20,40,60,traffic light,0.9 1,2,3,4,10,0.5 5,6,7,8,dog,0.25\n")
    named = load(path, role="pred")
    assert named.labels.keys == ("10", "dog", "traffic light")
    assert (named.boxes.label.tolist(), boxes(named)) == ([2, 0, 1], [[10, 20, 30, 40], [1, 2, 2, 2], [5, 6, 2, 2]])
    path.write_text("a.jpg 10,20,40,60,dog\na.jpg 1,2,3,4,cat\nb.jpg 5,6,7,8,dog\n")
    repeated = load(path)
    assert (repeated.format, repeated.images.keys) == ("kerasyolo", ("a.jpg", "b.jpg"))
    assert repeated.boxes.image.tolist() == [0, 0, 1]
    path.write_text("a.jpg 10,20,40,60,3 1,2,3,4,0\na.jpg 5,6,7,8,1\n")
    assert "duplicate image id 'a.jpg'" in errors(path)


def test_a_list_of_paths_is_no_list_of_boxes(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("a.jpg\nb.jpg\n")
    assert "not recognised" in errors(path)


# Create ML


def test_create_ml_reads_centres_and_the_names_of_its_first_version(tmp_path: Path) -> None:
    path = tmp_path / "_annotations.createml.json"
    coordinates = {"x": 60, "y": 120, "width": 100, "height": 200}
    path.write_text(
        json.dumps(
            [
                {"imagefilename": "a.jpg", "annotation": [{"label": "dog", "coordinates": coordinates}]},
                {"image": "b.jpg", "annotations": []},
            ]
        )
    )
    dataset = read(path)
    assert (dataset.format, boxes(dataset)) == ("createml", [[10, 20, 100, 200]])
    assert dataset.images.keys == ("a.jpg", "b.jpg")


# BDD100K


def frames(folder: Path, value: Any) -> Path:
    path = folder / "bdd.json"
    path.write_text(json.dumps(value))
    return path


def test_bdd_boxes_hold_their_last_pixel_and_crowds_are_flagged(tmp_path: Path) -> None:
    box = {"x1": 10, "y1": 20, "x2": 19, "y2": 39}
    labels = [
        {"id": "0", "category": "car", "box2d": box},
        {"id": "1", "category": "car", "attributes": {"crowd": True}, "box2d": box},
        {"id": "2", "category": "drivable area", "poly2d": [{"vertices": [[0, 0]]}]},
    ]
    dataset = read(frames(tmp_path, [{"name": "a.jpg", "labels": labels}, {"name": "b.jpg", "labels": None}]))
    assert boxes(dataset) == [[10, 20, 10, 20]] * 2
    assert dataset.boxes.crowd.tolist() == [False, True]
    assert (dataset.images.keys, dataset.ignored, codes(dataset)) == (
        ("a.jpg", "b.jpg"),
        {"shape": 1},
        ["shape-unused"],
    )


def test_bdd_reads_configured_data_sets_early_files_per_image_and_the_first_benchmarks_list(tmp_path: Path) -> None:
    box = {"x1": 10, "y1": 20, "x2": 19, "y2": 39}
    label = {"category": "car", "box2d": box}
    whole = {"frames": [{"name": "a.jpg", "labels": [label]}], "config": {"imageSize": {"width": 1280, "height": 720}}}
    dataset = read(frames(tmp_path, whole))
    assert (boxes(dataset), dataset.images.sizes.tolist()) == ([[10, 20, 10, 20]], [[1280, 720]])
    early = {"name": "a", "frames": [{"timestamp": 10000, "objects": [{**label, "id": 0}]}], "attributes": {}}
    assert boxes(read(frames(tmp_path, early))) == [[10, 20, 10, 20]]
    flat = [{"name": "a.jpg", "timestamp": 1000, "category": "car", "bbox": [10, 20, 19, 39], "score": 0.5}]
    dataset = read(frames(tmp_path, flat), "pred")
    assert (boxes(dataset), dataset.images.listed) == ([[10, 20, 10, 20]], False)


# MegaDetector


def results_of_megadetector(path: Path, images: list[dict[str, Any]], **more: Any) -> Path:
    categories = {"1": "animal", "2": "person"}
    # The images first, as its own script writes them.
    path.write_text(json.dumps({"images": images, "detection_categories": categories, "info": {}} | more))
    return path


def test_megadetector_takes_images_by_paths_of_windows(tmp_path: Path) -> None:
    images = [{"file": "north\\a.jpg", "detections": []}]
    assert read(results_of_megadetector(tmp_path / "md.json", images), "pred").images.keys == ("north/a.jpg",)


def test_megadetector_counts_what_it_does_not_list_and_images_that_failed(tmp_path: Path) -> None:
    images = [
        {"file": "a.jpg", "detections": [{"category": "1", "conf": 0.5, "bbox": [0.1, 0.2, 0.3, 0.4]}]},
        {"file": "b.jpg", "detections": [{"category": "9", "conf": 0.5, "bbox": [0.1, 0.2, 0.3, 0.4]}]},
        {"file": "c.jpg", "failure": "Failure image access", "detections": None},
        {"file": "d.jpg", "failure": None, "detections": []},
    ]
    dataset = read(results_of_megadetector(tmp_path / "md.json", images), "pred")
    assert (dataset.format, dataset.images.keys) == ("megadetector", ("a.jpg", "b.jpg", "c.jpg", "d.jpg"))
    assert (boxes(dataset), dataset.units, dataset.labels.names) == ([[0.1, 0.2, 0.3, 0.4]], "norm", ("animal",))
    assert dataset.ignored == {"class-unlisted": 1}
    assert codes(dataset) == ["class-unlisted", "image-failed"]
    assert "failed on 1 image, counted as images without detections; first: 'c.jpg'" in str(dataset.findings[1])


def test_megadetector_names_every_problem_and_refuses_frames_of_videos(tmp_path: Path) -> None:
    box = {"category": "1", "conf": 0.5, "bbox": [0.1, 0.2, 0.3, 0.4]}
    images = [
        {"detections": []},
        {"file": "a.jpg"},
        {"file": "b.jpg", "detections": [{**box, "bbox": [0.1, 0.2, 0.3]}, {**box, "conf": "high"}]},
        {"file": "c.mp4", "frame_rate": 20, "detections": [{**box, "frame_number": 20}]},
    ]
    message = errors(results_of_megadetector(tmp_path / "md.json", images), "pred")
    for told in (
        "images[0].file: is missing",
        "images[1].detections: is missing",
        "images[2].detections[0].bbox: has 3 values; expected 4 numbers",
        "images[2].detections[1].conf: is 'high' (a string), not a number",
        "images[3].detections[0].frame_number: detections in video frames cannot be read",
    ):
        assert told in message


# RetinaFace


def test_retinaface_gives_the_twelve_numbers_of_pycocotools() -> None:
    result = evaluate(SAMPLE / "retinaface/gt.txt", SAMPLE / "widerface/better")
    assert result.gt.format == "retinaface"
    assert [value.value for value in result.metrics.values()] == pycocotools_stats("widerface")


def test_retinaface_reads_faces_with_landmarks_and_without_and_images_without_faces(tmp_path: Path) -> None:
    landmarks = " 1 2 0" * 5
    (tmp_path / "label.txt").write_text(f"# 0--P/a.jpg\n10 20 30 40{landmarks} 0.8\n1 2 3 4\n# 0--P/b b.jpg\n")
    dataset = read(tmp_path / "label.txt")
    assert (dataset.format, dataset.images.keys, dataset.images.listed) == (
        "retinaface",
        ("0--P/a.jpg", "0--P/b b.jpg"),
        True,
    )
    assert (boxes(dataset), dataset.labels.names) == ([[10, 20, 30, 40], [1, 2, 3, 4]], ("face",))


def test_retinaface_names_every_damaged_line(tmp_path: Path) -> None:
    path = tmp_path / "label.txt"
    path.write_text("1 2 3 4\n# a.jpg\n1 2 3\n1 2 3 x\n# a.jpg\n")
    message = errors(path, format_name="retinaface")
    for told in (
        "label.txt:1: expected '# ' and the path of an image before its faces",
        "label.txt:3: expected 4, 19 or 20 numbers, got 3",
        "label.txt:4: height: 'x' is not a plain finite number",
        "label.txt:5: the image already began in line 2",
    ):
        assert told in message
