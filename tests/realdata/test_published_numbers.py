"""Public data whose numbers are published or were computed by another evaluator, through the public call alone."""

import contextlib
import copy
import csv
import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jaccard_eval import BoxTable, DataError, Dataset, EvaluationResult, ReadOptions, evaluate, load
from jaccard_eval.reading.images import ImageFolder

PYCOCOTOOLS_NAMES = {
    "AP": "AP", "AP50": "AP50", "AP75": "AP75", "APs": "AP_small", "APm": "AP_medium", "APl": "AP_large",
    "AR1": "AR1", "AR10": "AR10", "AR100": "AR100", "ARs": "AR_small", "ARm": "AR_medium", "ARl": "AR_large",
}  # fmt: skip

SAME_BITS = (
    "cocoapi-bbox",
    "padilla-coco-sampled",
    "d2-medwaste-id0-corrected",
    "faster-coco-eval-small",
    "sahi-eval",
    "yfpeng-sample",
    "yfpeng-sample3",
    "hotcoco-basic",
    "hotcoco-edge",
    "cartucho-map-derived",
)
WITH_ANNOTATION_ID_0 = ("d2-medwaste", "hotcoco-zero")

ELEVEN_POINT, ALL_POINT = "voc2007", "voc2012"

FASTER = "faster-coco-eval/tests/dataset"
TOY = "padilla-review/toyexample"
SCENE = "padilla-review/data/database"
ODM = "padilla-odm"
YFPENG = "yfpeng-odm/tests"
DEEPFOREST = "deepforest-csv/src/deepforest/data"


@pytest.fixture(scope="module")
def expected(shared_data: Path) -> dict[str, Any]:
    """What pycocotools 2.0.11 computed for each pair of COCO files."""
    content: dict[str, Any] = json.loads((shared_data / "EXPECTED.json").read_text())
    return content


@pytest.mark.parametrize("pair", SAME_BITS)
def test_twelve_numbers_and_every_class_are_those_of_pycocotools(
    pair: str, expected: dict[str, Any], shared_data: Path
) -> None:
    entry = expected[pair]
    result = evaluate(shared_data / entry["gt"], shared_data / entry["dets"])
    # The last bit of a mean is NumPy's; the expected numbers were computed with NumPy 2.
    exactly = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
    assert _twelve(result) == (entry["pycocotools"] if exactly else pytest.approx(entry["pycocotools"], abs=1e-15))
    assert _ap_and_ap50_by_class(result) == entry["per_class_AP_AP50"]


def test_every_pair_with_boxes_is_covered(expected: dict[str, Any]) -> None:
    pairs = {name for name, entry in expected.items() if name != "_about" and entry["iou_type"] == "bbox"}
    assert pairs == {*SAME_BITS, *WITH_ANNOTATION_ID_0}


@pytest.mark.parametrize("pair", WITH_ANNOTATION_ID_0)
def test_a_box_with_annotation_id_0_can_be_found_as_pycocotools_finds_it_under_any_other_id(
    pair: str, expected: dict[str, Any], shared_data: Path
) -> None:
    entry = expected[pair]
    gt, dets = _json(shared_data / entry["gt"]), _json(shared_data / entry["dets"])
    for annotation in gt["annotations"]:
        annotation["id"] += 1
    result = evaluate(shared_data / entry["gt"], shared_data / entry["dets"])
    assert _twelve(result) == _pycocotools(gt, dets)
    assert _twelve(result) != entry["pycocotools"]  # published with id 0, whose box is never matched


def test_three_perfect_detections_of_three_objects_give_1_although_ids_start_at_0(
    expected: dict[str, Any], shared_data: Path
) -> None:
    entry = expected["hotcoco-zero"]
    result = evaluate(shared_data / entry["gt"], shared_data / entry["dets"])
    assert result["AP"] == pytest.approx(1.0, abs=1e-15)
    assert entry["pycocotools"]["AP"] == pytest.approx(0.4422, abs=1e-4)  # the first box is lost


def test_the_wrong_split_gives_almost_nothing_because_its_ids_exist_too(shared_data: Path) -> None:
    medwaste = shared_data / "d2-medwaste"
    result = evaluate(medwaste / "data/valid/_annotations.coco.json", medwaste / "output/coco_instances_results.json")
    assert result["AP"] == pytest.approx(0.000012, abs=5e-7)


def test_a_text_is_the_id_of_a_number_only_where_that_is_asked_for(shared_data: Path) -> None:
    gt_path, pred_path = shared_data / FASTER / "gt_ignore_test.json", shared_data / FASTER / "dt_ignore_test.json"
    with pytest.raises(DataError, match=r"dt_ignore_test\.json: image: 0 of 1 .*string ids"):
        evaluate(gt_path, pred_path)
    gt = _json(gt_path)
    for record, field in ((gt["images"], "id"), (gt["annotations"], "image_id")):
        for one in record:
            one[field] = int(one[field])
    assert _twelve(evaluate(gt_path, pred_path, match_images="id")) == _pycocotools(gt, _json(pred_path))


def test_a_file_of_faults_is_refused_with_the_first_of_them_named(shared_data: Path) -> None:
    faulty = shared_data / "hotcoco-fixtures/crates/hotcoco/tests/fixtures/healthcheck_bad.json"
    with pytest.raises(DataError, match="duplicate image id 1"):
        load(faulty)


TOY_FORMS = {
    "dets_coco_format/coco_dets.json": "absolute",
    "dets_classid_abs_xywh": "absolute",
    "dets_classid_abs_xyx2y2": "absolute",
    "dets_classid_rel_xcycwh": "relative",
    "dets_classname_abs_xywh": "absolute",
    "dets_classname_abs_xyx2y2": "absolute",
    "dets_classname_rel_xcycwh": "relative",
}

# Published for the absolute forms, which were cut to whole pixels; the relative forms keep what was cut off.
TOY_NUMBERS = {
    ("absolute", ELEVEN_POINT, 0.5): 0.8864,
    ("absolute", ALL_POINT, 0.5): 0.8958,
    ("absolute", ELEVEN_POINT, 0.75): 0.4924,
    ("absolute", ALL_POINT, 0.75): 0.5097,
    ("relative", ELEVEN_POINT, 0.5): 0.8864,
    ("relative", ALL_POINT, 0.5): 0.8958,
    ("relative", ELEVEN_POINT, 0.75): 0.5682,
    ("relative", ALL_POINT, 0.75): 0.5833,
}


@pytest.mark.parametrize("form", TOY_FORMS)
def test_the_toy_example_gives_its_published_numbers_in_every_form(form: str, shared_data: Path) -> None:
    toy = shared_data / TOY
    gt = load(toy / "gts_coco_format/toy_example_coco.JSON")
    names = _names(toy / "voc.names") if "classid" in form else None
    pred = load(toy / form, role="pred", options=ReadOptions(names=names))
    for (kind, protocol, iou), number in TOY_NUMBERS.items():
        if kind == TOY_FORMS[form]:
            assert round(evaluate(gt, pred, protocol=protocol, iou=[iou])["AP"], 4) == number


SCENE_TRUTH = ("gts/coco_format_v1/instances_default.json", "gts/coco_format_v2/instances_v2.json",
               "gts/yolo_format", "gts/openimages_format/all_bounding_boxes.csv")  # fmt: skip
SCENE_DETECTIONS = ("dets/coco_format/coco_dets.json", "dets/abs_xywh", "dets/abs_xyx2y2", "dets/rel_xywh")

SceneReader = Callable[[str, str], Dataset]


@pytest.fixture(scope="module")
def read_scene(shared_data: Path) -> SceneReader:
    """Read one form of the scene; the detections number their classes in the order of voc.names."""
    scene = shared_data / SCENE
    pictures = ImageFolder(scene / "images")
    known: dict[str, Dataset] = {}

    def read(form: str, role: str) -> Dataset:
        if form not in known:
            is_numbered = role == "pred" and "coco" not in form
            names = _names(scene / "voc.names") if is_numbered else None
            known[form] = load(scene / form, role=role, options=ReadOptions(images=pictures, names=names))
        return known[form]

    return read


@pytest.mark.parametrize("truth", SCENE_TRUTH)
@pytest.mark.parametrize("detections", SCENE_DETECTIONS)
def test_the_scene_gives_its_published_numbers_in_every_form(
    truth: str, detections: str, read_scene: SceneReader
) -> None:
    gt, pred = read_scene(truth, "gt"), read_scene(detections, "pred")
    assert (len(gt.images), len(gt.boxes), len(gt.labels), len(pred.boxes)) == (100, 273, 20, 452)
    assert round(evaluate(gt, pred, protocol=ALL_POINT)["AP"], 6) == 0.610913
    # Fractions of 6 (YOLO) and 10 digits (Open Images) do not give back whole pixels, and an IoU that lies on a
    # threshold falls to either side: AP75 is .353389 and .353512. The published number is of boxes in whole pixels.
    coco = evaluate(_in_whole_pixels(gt), _in_whole_pixels(pred))
    assert [round(coco[name], 6) for name in ("AP", "AP50", "AP75")] == [0.346958, 0.610030, 0.353714]


@pytest.mark.parametrize("truth", SCENE_TRUTH)
def test_fractions_move_the_scene_by_less_than_half_a_thousandth(truth: str, read_scene: SceneReader) -> None:
    coco = evaluate(read_scene(truth, "gt"), read_scene("dets/abs_xywh", "pred"))
    assert coco["AP"] == pytest.approx(0.346958, abs=5e-5)
    assert coco["AP50"] == pytest.approx(0.610030, abs=5e-7)
    assert coco["AP75"] == pytest.approx(0.353714, abs=5e-4)


def test_the_eleven_points_of_the_scene_are_published_for_exact_tenths(read_scene: SceneReader) -> None:
    # VOC 2007 here takes numpy's grid, as detectron2, mmdetection and chainercv do: its 0.6 is 0.6000000000000001,
    # which 6 of 10 sheep, 9 of 15 aeroplanes and 9 of 15 chairs do not reach. Exact tenths give the published .604126.
    result = evaluate(read_scene(SCENE_TRUTH[0], "gt"), read_scene(SCENE_DETECTIONS[0], "pred"), protocol=ELEVEN_POINT)
    exact = {row.name: _eleven_points_at_exact_tenths(result, row.name, row.gt) for row in result.per_class}
    assert round(float(np.mean(list(exact.values()))), 6) == 0.604126
    ours = {row.name: row.values["AP"].value for row in result.per_class}
    assert {name for name in ours if not math.isclose(ours[name], exact[name])} == {"aeroplane", "chair", "sheep"}


# IoU: all points, eleven points; published digits are cut, not rounded
ODM_NUMBERS = {
    0.1: (0.3371980676, 0.3333333333),
    0.3: (0.2456866804, 0.2683982683),
    0.5: (0.0222222222, 0.0303030303),
    0.75: (0.0, 0.0),
}
ODM_PAIRS = (
    (f"{ODM}/groundtruths", f"{ODM}/detections"),
    (f"{ODM}/samples/sample_2/groundtruths", f"{ODM}/samples/sample_2/detections"),
    ("padilla-review/tests/test_case_1/gts", "padilla-review/tests/test_case_1/dets"),
    (f"{YFPENG}/sample_3/groundtruths_coco.json", f"{YFPENG}/sample_3/detections_coco.json"),
)


@pytest.mark.parametrize(("truth", "detections"), ODM_PAIRS)
def test_seven_images_give_their_published_numbers_at_four_thresholds(
    truth: str, detections: str, shared_data: Path
) -> None:
    _require_odm_numbers(load(shared_data / truth), load(shared_data / detections, role="pred"))


def test_seven_images_give_the_same_numbers_from_fractions_once_their_size_is_known(
    shared_data: Path, tmp_path: Path
) -> None:
    for number in range(1, 8):
        Image.new("1", (200, 200)).save(tmp_path / f"{number:05d}.png")  # 38 pixels are written as 0.19
    options = ReadOptions(images=ImageFolder(tmp_path))
    gt = load(shared_data / ODM / "groundtruths_rel", options=options)
    _require_odm_numbers(gt, load(shared_data / ODM / "detections_rel", role="pred", options=options))


def test_fractions_without_the_size_of_the_images_have_no_voc_number(shared_data: Path) -> None:
    odm = shared_data / ODM
    with pytest.raises(DataError, match="adds a pixel to every side, but boxes are normalised"):
        evaluate(odm / "groundtruths_rel", odm / "detections_rel", protocol=ALL_POINT)


def _require_odm_numbers(gt: Dataset, pred: Dataset) -> None:
    assert (len(gt.images), len(gt.boxes), len(pred.boxes)) == (7, 15, 24)
    for iou, numbers in ODM_NUMBERS.items():
        ours = [evaluate(gt, pred, protocol=name, iou=[iou])["AP"] for name in (ALL_POINT, ELEVEN_POINT)]
        assert ours == pytest.approx(numbers, abs=1e-10)


CARTUCHO_PAIRS = (
    ("cartucho-map/input/ground-truth", "cartucho-map/input/detection-results"),
    (f"{YFPENG}/sample/groundtruths_coco.json", f"{YFPENG}/sample/detections_coco.json"),
)


@pytest.mark.parametrize(("truth", "detections"), CARTUCHO_PAIRS)
def test_the_mean_and_every_class_of_cartucho_are_as_published(truth: str, detections: str, shared_data: Path) -> None:
    published = _json(shared_data / YFPENG / "sample/expected0_5.json")
    result = evaluate(shared_data / truth, shared_data / detections, protocol=ALL_POINT)
    assert result["AP"] == pytest.approx(0.31047718500906324, abs=1e-15)
    assert published.pop("mAP") == pytest.approx(0.31047718500906324, abs=1e-15)
    with_truth = {name: one for name, one in published.items() if one["num_groundtruth"]}
    rows = {row.name: row for row in result.per_class if row.gt}
    assert rows.keys() == with_truth.keys()
    for name, one in with_truth.items():
        assert (rows[name].gt, rows[name].pred) == (one["num_groundtruth"], one["num_detection"])
        assert rows[name].values["AP"].value == pytest.approx(one["ap"], abs=1e-15)


def test_classes_that_only_cartuchos_detections_have_are_told(shared_data: Path) -> None:
    cartucho = shared_data / "cartucho-map/input"
    result = evaluate(cartucho / "ground-truth", cartucho / "detection-results", protocol=ALL_POINT)
    published = _json(shared_data / YFPENG / "sample/expected0_5.json")
    del published["mAP"]
    only_detected = {name for name, one in published.items() if not one["num_groundtruth"]}
    n_boxes = sum(published[name]["num_detection"] for name in only_detected)
    assert set(result.correspondence.pred_only_classes) == only_detected
    assert any(f"{n_boxes} predictions of {len(only_detected)} classes" in one.message for one in result.findings)


def test_columns_of_deepforest_are_read_by_name_whatever_their_order(shared_data: Path) -> None:
    # The truth has xmin, xmax, ymin, ymax and the predictions xmin, ymin, xmax, ymax, with a column called scores.
    stem = shared_data / DEEPFOREST / "2018_SJER_3_252000_4107000_image_477"
    gt_path, pred_path = stem.with_name(f"{stem.name}_truth.csv"), stem.with_name(f"{stem.name}.csv")
    gt, dets = _deepforest_as_coco(gt_path), _deepforest_as_coco(pred_path)["annotations"]
    assert _twelve(evaluate(gt_path, pred_path)) == _pycocotools(gt, dets)


@pytest.mark.parametrize(
    ("file", "images", "boxes", "classes"),
    [
        ("src/deepforest/data/OSBS_029.csv", 1, 61, 1),
        ("src/deepforest/data/testfile_multi.csv", 1, 37, 2),
        ("src/deepforest/data/example.csv", 1, 79, 1),
        ("tests/data/blank_annotations.csv", 1, 0, 0),
        ("tests/data/testfile_tfrecords.csv", 9, 160, 1),
    ],
)
def test_deepforests_csv_files_load_whole(file: str, images: int, boxes: int, classes: int, shared_data: Path) -> None:
    dataset = load(shared_data / "deepforest-csv" / file)
    assert (len(dataset.images), len(dataset.boxes), len(dataset.labels)) == (images, boxes, classes)


def _twelve(result: EvaluationResult) -> dict[str, float]:
    """The numbers of the summary under the names of the published files; -1 for undefined, as there."""
    values = {name: result[ours] for name, ours in PYCOCOTOOLS_NAMES.items()}
    return {name: -1.0 if math.isnan(value) else value for name, value in values.items()}


def _ap_and_ap50_by_class(result: EvaluationResult) -> dict[str, list[float | None]]:
    pairs = {row.name: [row.values[name].value for name in ("AP", "AP50")] for row in result.per_class}
    return {name: [None if math.isnan(value) else value for value in pair] for name, pair in pairs.items()}


def _pycocotools(gt: Mapping[str, Any], dets: list[dict[str, Any]]) -> dict[str, float]:
    coco = pytest.importorskip("pycocotools.coco")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    with contextlib.redirect_stdout(io.StringIO()):
        truth = coco.COCO()
        truth.dataset = gt
        truth.createIndex()
        run = cocoeval.COCOeval(truth, truth.loadRes(copy.deepcopy(dets)), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return dict(zip(PYCOCOTOOLS_NAMES, run.stats.tolist(), strict=True))


def _eleven_points_at_exact_tenths(result: EvaluationResult, name: str, n_truth: int) -> float:
    """Mean over recalls 0/10 to 10/10 of the best precision at or beyond, compared in whole numbers."""
    matches = result.measured.matches
    rows = np.flatnonzero(np.asarray(matches["class"]) == name)
    rows = rows[np.argsort(-np.asarray(matches["score"])[rows], kind="stable")]
    hits = np.cumsum(matches["tp"][rows, 0])
    precision = hits / np.arange(1, len(rows) + 1)
    reached = (precision[10 * hits >= tenth * n_truth] for tenth in range(11))
    return float(sum(values.max(initial=0.0) for values in reached)) / 11


def _in_whole_pixels(dataset: Dataset) -> Dataset:
    """Round corners, as the evaluator behind the published number does with fractions."""
    boxes = dataset.boxes
    corners = np.round(np.concatenate((boxes.xywh[:, :2], boxes.xywh[:, :2] + boxes.xywh[:, 2:]), axis=1))
    return replace(dataset, boxes=BoxTable.from_arrays(boxes.image, boxes.label, corners, score=boxes.score))


def _deepforest_as_coco(path: Path) -> dict[str, Any]:
    """One image and one class as a COCO object, by a reader of its own."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        "images": [{"id": 1}],
        "categories": [{"id": 1, "name": "tree"}],
        "annotations": list(map(_annotation, range(1, len(rows) + 1), rows)),
    }


def _annotation(number: int, row: Mapping[str, str]) -> dict[str, Any]:
    x1, y1, x2, y2 = (float(row[name]) for name in ("xmin", "ymin", "xmax", "ymax"))
    box = [x1, y1, x2 - x1, y2 - y1]
    shared = {"id": number, "image_id": 1, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
    return shared | ({"score": float(row["scores"])} if "scores" in row else {})


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _names(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8").split())
