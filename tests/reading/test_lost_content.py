"""A side that holds objects of which none can be evaluated stops; one that is truly empty does not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jaccard_eval import DataError, load

IMAGE = {"id": 1, "width": 640, "height": 480, "file_name": "street.jpg"}
RING = [[1, 2], [30, 4], [10, 40]]
SIZED = {"original_width": 640, "original_height": 480}


def coco(**record: Any) -> dict[str, Any]:
    given = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "area": 12} | record
    return {"images": [IMAGE], "annotations": [given], "categories": [{"id": 1, "name": "dog"}]}


def labelme(*shapes: tuple[str, list[list[int]]]) -> dict[str, Any]:
    listed = [{"label": "dog", "shape_type": kind, "points": points} for kind, points in shapes]
    size = {"imageHeight": 480, "imageWidth": 640}
    return {"version": "5", "flags": {}, "shapes": listed, "imagePath": "street.jpg", **size}


def task(**field: Any) -> list[Any]:
    return [{"id": 1, "data": {"image": "/data/street.jpg"}, **field}]


LOST: dict[str, Any] = {
    "coco, another image": coco(image_id=7),
    "coco, another category": coco(category_id=9),
    "labelme": labelme(("circle", RING[:2]), ("line", RING[:2])),
    "via": {
        "street.jpg100": {
            "filename": "street.jpg",
            "size": 100,
            "regions": [{"shape_attributes": {"name": "circle", "cx": 1, "cy": 2, "r": 3}, "region_attributes": {}}],
            "file_attributes": {},
        }
    },
    "supervisely": {
        "size": {"height": 480, "width": 640},
        "objects": [
            {"classTitle": "dog", "geometryType": "cuboid", "points": {"exterior": [[1, 2], [3, 4]], "interior": []}}
        ],
    },
    "bdd100k": [{"name": "street.jpg", "timestamp": 1, "labels": [{"id": "0", "category": "car", "box3d": {}}]}],
    "labelstudio": task(annotations=[{"result": [{**SIZED, "type": "brushlabels", "value": {"rle": [1, 2]}}]}]),
    "cvat": '<annotations><image name="street.jpg" width="9" height="9"><polyline label="dog"/></image></annotations>',
    # Frame, track, left, top, width, height, whether it counts, class 3 (a car), visibility.
    "mot": "1,1,10,20,30,40,0,3,1\n",
}
EMPTY: dict[str, Any] = {
    "coco": coco() | {"annotations": []},
    "labelme": labelme(),
    "labelstudio": task(annotations=[{"result": []}]),
    "labelstudio, an answer": task(annotations=[{"result": [{"type": "choices", "value": {"choices": ["sunny"]}}]}]),
    "cvat": '<annotations><image name="street.jpg" width="64" height="48"></image></annotations>',
    "cvat, a tag": '<annotations><image name="a.jpg" width="64" height="48"><tag label="x"/></image></annotations>',
}


def write(folder: Path, name: str, content: Any) -> tuple[Path, str]:
    """Write one file, and return it with its format."""
    kind = name.partition(",")[0]
    path = folder / {"cvat": "a.xml", "mot": "gt/gt.txt"}.get(kind, "street.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path, kind


@pytest.mark.parametrize("name", LOST)
def test_a_side_whose_content_is_lost_stops_and_says_what_it_was(name: str, tmp_path: Path) -> None:
    path, kind = write(tmp_path, name, LOST[name])
    with pytest.raises(DataError) as caught:
        load(path, format_name=kind)
    errors = [finding for finding in caught.value.findings if str(finding.severity) == "error"]
    assert [finding.code for finding in errors] == ["content-lost"]
    assert "nothing is left to evaluate: it only has" in errors[0].message


@pytest.mark.parametrize("name", EMPTY)
def test_a_side_that_is_truly_empty_is_a_warning(name: str, tmp_path: Path) -> None:
    path, kind = write(tmp_path, name, EMPTY[name])
    side = load(path, format_name=kind)
    assert (len(side.boxes), [f.code for f in side.findings if f.code.endswith("-empty")]) == (0, ["gt-empty"])


def test_one_shape_that_is_left_is_evaluated_and_the_others_are_counted(tmp_path: Path) -> None:
    path, kind = write(tmp_path, "labelme", labelme(("rectangle", RING[:2]), ("circle", RING[:2])))
    side = load(path, format_name=kind)
    assert (len(side.boxes), side.ignored) == (1, {"shape": 1})


@pytest.mark.parametrize(("color", "is_lost"), [((0, 0, 0), False), ((128, 0, 0), True)])
def test_a_palette_that_draws_the_background_has_lost_the_objects(
    color: tuple[int, int, int], is_lost: bool, tmp_path: Path
) -> None:
    image = Image.fromarray(np.zeros((48, 64), dtype=np.uint8), mode="P")
    image.putpalette([*color, 255, 255, 255])
    image.save(tmp_path / "street.png")
    if not is_lost:
        assert len(load(tmp_path, format_name="instances").boxes) == 0
        return
    with pytest.raises(DataError, match=r"content-lost.*the palette has a colour for 0, which is not an object"):
        load(tmp_path, format_name="instances")


def test_maps_of_cityscapes_without_instances_are_lost_content(tmp_path: Path) -> None:
    ids = np.full((48, 64), 7, dtype=np.uint16)  # road, which has no instances
    Image.fromarray(ids).save(tmp_path / "a_000000_000019_gtFine_instanceIds.png")
    with pytest.raises(DataError, match="content-lost"):
        load(tmp_path, format_name="instances")
    ids[:20] = 26_001  # a car
    Image.fromarray(ids).save(tmp_path / "a_000000_000019_gtFine_instanceIds.png")
    assert len(load(tmp_path, format_name="instances").boxes) == 1
