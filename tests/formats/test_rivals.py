"""A folder with several inputs stops and lists them: ground truth and predictions, every format, every depth."""

import json
import shutil
from pathlib import Path

import pytest

from jaccard_eval import DataError, ReadOptions, evaluate, load
from jaccard_eval.formats import Opened, detect_format, format_module, format_names

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


COCO = "coco/gt.json"
ROOTS = {  # as published, and what is read of them without and with a split that is asked for
    "coco": ("annotations/instances_val2017.json", "annotations/instances_train2017.json"),
    "coco with all its files": ("annotations/instances_val2017.json", "annotations/instances_train2017.json"),
    "export of roboflow": ("valid/_annotations.coco.json", "train/_annotations.coco.json"),
    "mmdetection": ("annotations/val.json", "annotations/train.json"),
    "lvis": ("lvis_v1_val.json", "lvis_v1_train.json"),
    "open images": ("validation-annotations-bbox.csv", "oidv6-train-annotations-bbox.csv"),
    "fiftyone": ("validation/labels/detections.csv", "train/labels/detections.csv"),
    "wider": ("wider_face_split/wider_face_val_bbx_gt.txt", "wider_face_split/wider_face_train_bbx_gt.txt"),
    "voc": ("valid", "train"),
    "labelme": ("val", "train"),
    "supervisely": ("val", "train"),
    "bdd100k": ("labels/det_20/det_val.json", "labels/det_20/det_train.json"),
    "crowdhuman": ("annotation_val.odgt", "annotation_train.odgt"),
    "kerasyolo": ("valid/_annotations.txt", "train/_annotations.txt"),
}
MORE = {  # what lies beside, and is not read
    "coco": {"val2017/a.jpg": ""},
    "coco with all its files": {
        "annotations/captions_val2017.json": '{"images": [], "annotations": [{"image_id": 1, "caption": "a"}]}',
        "annotations/person_keypoints_val2017.json": "coco",
        "annotations/instances_minival2017.json": "coco",
    },
    "export of roboflow": {
        "test/_annotations.coco.json": "coco",
        "README.roboflow.txt": "exported via roboflow.com",
        "valid/a.jpg": "",
    },
    "mmdetection": {"annotations/trainval.json": "coco", "annotations/test.json": '{"images": [], "categories": []}'},
    "open images": {
        "class-descriptions-boxable.csv": "/m/01,Dog\n",
        "validation-annotations-human-imagelabels-boxable.csv": "ImageID,Source,LabelName,Confidence\n",
    },
    "fiftyone": {"validation/labels/classifications.csv": "ImageID,Source,LabelName,Confidence\na,b,/m/01,1\n"},
    "wider": {
        "wider_face_split/wider_face_test_filelist.txt": "a/a.jpg\nb/b.jpg\n",
        "wider_face_split/readme.txt": "Format\n",
    },
    "supervisely": {"meta.json": '{"classes": [], "tags": []}'},
    "kerasyolo": {"valid/_classes.txt": "dog\n", "train/_classes.txt": "dog\n"},
}
FACES = "0--Parade/a.jpg\n1\n10 20 100 200 0 0 0 0 0 0\n"
CONTENT = {
    "coco": (SAMPLE / COCO).read_text(),
    "wider": f"{FACES}{FACES.replace('a.jpg', 'b.jpg')}",
    "kerasyolo": "a.jpg 10,20,110,220,0\n",
}
OF_FORMAT = {"open images": "openimages", "fiftyone": "openimages"}
INNER = {"voc": "a.xml", "labelme": "a.json", "supervisely": "ann/a.jpg.json"}  # of folders


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_as_published_is_read_by_its_split(root: str, tmp_path: Path) -> None:
    name = OF_FORMAT.get(root, root)
    example = format_module(name).FORMAT.example if name in format_names() else CONTENT["coco"]
    text = CONTENT.get(root, example)
    given = {f"{place}/{INNER[root]}" if root in INNER else place: text for place in ROOTS[root]} | MORE.get(root, {})
    for place, content in given.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(CONTENT.get(content, content))
    for split, place in zip(("val", "train"), ROOTS[root], strict=True):
        side = load(tmp_path, options=ReadOptions(split=split))
        (note,) = (finding for finding in side.findings if finding.code == "split-chosen")
        assert (side.path, len(side.boxes) > 0) == (str(tmp_path / place), True)
        assert note.examples[0].detail == f"split '{split}' is read: {tmp_path / place} ({side.format})"
    with pytest.raises(DataError, match="there is no split 'dev'; there are: "):
        load(tmp_path, options=ReadOptions(split="dev"))


def test_a_root_with_one_split_or_none_is_read_where_its_boxes_are(tmp_path: Path) -> None:
    folder = placed(tmp_path, annotations=COCO)
    (tmp_path / "val2017").mkdir()
    (tmp_path / "val2017/a.jpg").write_text("")
    assert Opened(folder).found == (folder / "annotations/gt.json", "coco")


def test_files_of_a_split_that_hold_other_things_to_compare_are_told_apart(tmp_path: Path) -> None:
    people = """{"images": [{"id": 1}], "categories": [{"id": 1, "name": "person", "keypoints": ["nose"]}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "keypoints": [1, 2, 2]}]}"""
    for split in ("val", "train"):
        for kind, content in (("instances", CONTENT["coco"]), ("person_keypoints", people)):
            (tmp_path / f"{kind}_{split}2017.json").write_text(content)
    boxes, points = (load(tmp_path, options=ReadOptions(iou_type=kind)).path for kind in ("bbox", "keypoints"))
    assert (boxes, points) == (f"{tmp_path}/instances_val2017.json", f"{tmp_path}/person_keypoints_val2017.json")
    (tmp_path / "instances_val2014.json").write_text(CONTENT["coco"])
    with pytest.raises(
        DataError, match=r"holds 2 inputs with boxes.*instances_val2014\.json .*instances_val2017\.json"
    ):
        load(tmp_path)


def test_a_split_of_a_root_is_an_option_with_effect(tmp_path: Path) -> None:
    for split in ("val", "train"):
        placed(tmp_path, **{f"root__{split}": COCO})
    results = SAMPLE / "coco/better.json"
    given = ReadOptions(split="train")
    assert (
        evaluate(tmp_path / "root", results, gt_options=given, pred_options=given).metrics
        == evaluate(SAMPLE / COCO, results).metrics
    )


def test_of_a_root_of_coco_the_objects_are_read_even_if_their_polygons_are_rectangles(tmp_path: Path) -> None:
    box = [10, 10, 40, 30]
    truth: dict[str, object] = {"id": 1, "image_id": 1, "category_id": 1, "bbox": box, "area": 1200, "iscrowd": 0}
    truth["segmentation"] = [[10, 10, 50, 10, 50, 40, 10, 40]]
    images, categories = [{"id": 1, "file_name": "1.jpg", "width": 64, "height": 48}], [{"id": 1, "name": "dog"}]
    objects = {"images": images, "annotations": [truth], "categories": categories}
    persons = {**objects, "annotations": [{**truth, "keypoints": [20, 20, 2] * 17, "num_keypoints": 17}]}
    captions = {"images": images, "annotations": [{"id": 1, "image_id": 1, "caption": "a dog"}]}
    (tmp_path / "coco/annotations").mkdir(parents=True)
    for kind, content in (("instances", objects), ("person_keypoints", persons), ("captions", captions)):
        for split in ("train2017", "val2017"):
            (tmp_path / f"coco/annotations/{kind}_{split}.json").write_text(json.dumps(content))
    found = {"image_id": 1, "category_id": 1, "bbox": box, "score": 0.5, "segmentation": truth["segmentation"]}
    (tmp_path / "pred.json").write_text(json.dumps([found]))
    for iou_type in ("segm", "bbox"):
        result = evaluate(tmp_path / "coco", tmp_path / "pred.json", iou_type=iou_type)
        assert result["AP"] == pytest.approx(1.0)
        (note,) = (str(finding) for finding in result.findings if finding.code == "split-chosen")
        assert "instances_val2017.json" in note
