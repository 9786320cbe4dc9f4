"""Files that globox and supervision wrote load to the tables of the scene that they were given."""

import zipfile
from pathlib import Path

import pytest

from jaccard_eval import Dataset, ReadOptions, load
from jaccard_eval.reading.images import ImageFolder

FILES = Path(__file__).parent / "written_elsewhere"
SAMPLE = Path(__file__).parents[2] / "sample_data"
SIDES = {"gt": "cvat/gt.xml", "pred": "roboflow/better"}
NAMES = ("person", "bicycle", "car", "cat", "dog")
ROUNDING = 1e-12  # px, of fractions written in full and multiplied by the size again

# Five decimals of the widest picture, 800 px: a half unit of the centre and a quarter of the side, 0.006 px.
FIVE_DECIMALS = 800 * (0.5e-5 + 0.25e-5)

Row = tuple[str, str, float | None]

WRITTEN = (
    ("globox", "coco.json", "coco", 0.0),
    ("globox", "cvat.xml", "cvat", 0.0),
    ("globox", "labelme", "labelme", 0.0),
    ("globox", "openimages.csv", "openimages", ROUNDING),
    ("globox", "voc", "voc", 0.0),
    ("globox", "via.json", "via", 0.0),
    ("globox", "yolo", "yolo", ROUNDING),
    ("globox", "text", "yolo", 0.0),
    ("globox", "openimages-pred.csv", "openimages", ROUNDING),
    ("globox", "darknet-pred", "yolo", ROUNDING),
    ("globox", "yolo-pred", "yolo", ROUNDING),
    ("globox", "text-pred", "yolo", 0.0),
    ("globox", "text-ltwh-pred", "yolo", 0.0),
    ("supervision", "coco.json", "coco", 0.0),
    ("supervision", "yolo", "yolo", FIVE_DECIMALS),
    ("supervision", "pred.csv", "csv", 0.0),
    ("supervision", "pred.json", "supervision", 0.0),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, unpacked."""
    target = tmp_path_factory.mktemp("written")
    for archive in FILES.glob("*.zip"):
        with zipfile.ZipFile(archive) as entries:
            entries.extractall(target / archive.stem)
    return target


def rows(dataset: Dataset) -> tuple[list[Row], list[list[float]]]:
    """Image, class and score of each box, and the boxes, in a fixed order."""
    boxes = dataset.boxes
    stems = [Path(dataset.images.name(row)).stem for row in range(len(dataset.images))]
    scores = [None] * len(boxes) if boxes.score is None else boxes.score.tolist()
    columns = zip(boxes.image.tolist(), boxes.label.tolist(), boxes.xywh.tolist(), scores, strict=True)
    found = sorted((stems[image], dataset.labels.names[label], xywh, score) for image, label, xywh, score in columns)
    return [(image, label, score) for image, label, _, score in found], [xywh for _, _, xywh, _ in found]


def read(path: Path) -> Dataset:
    names = NAMES if path.name.startswith(("yolo", "darknet")) else None
    options = ReadOptions(images=ImageFolder(SAMPLE / "yolo/images/val"), names=names)
    return load(path, role="pred" if "pred" in path.stem else "gt", options=options)


@pytest.mark.parametrize(("package", "name", "expected", "tolerance"), WRITTEN)
def test_what_another_package_wrote_is_recognised_and_tells_the_same_scene(
    package: str, name: str, expected: str, tolerance: float, folder: Path
) -> None:
    dataset = read(folder / package / name)
    scene = load(SAMPLE / SIDES[dataset.role], role=dataset.role)
    (about, boxes), (about_scene, boxes_scene) = rows(dataset), rows(scene)
    assert dataset.format == expected
    assert [str(one) for one in dataset.findings if one.severity != "note"] == []
    assert about == about_scene
    assert boxes == [pytest.approx(box, rel=0, abs=tolerance) for box in boxes_scene]


def test_voc_of_supervision_counts_the_left_top_pixel_from_1_so_that_boxes_are_read_a_pixel_off(folder: Path) -> None:
    # It writes xmin + 1 and ymin + 1 beside xmax and ymax as they are: 40 250 250 360 is 41 251 250 360.
    _, boxes = rows(read(folder / "supervision/voc"))
    _, scene = rows(load(SAMPLE / SIDES["gt"]))
    assert boxes == [[x + 1, y + 1, w - 1, h - 1] for x, y, w, h in scene]
