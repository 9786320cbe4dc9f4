"""CVAT's XML: images and tracks, what is out of sight, turned, or no box."""

import math
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import DataError, load

BOX = 'xtl="10" ytl="20" xbr="40" ybr="60"'
IMAGE = f'<image id="0" name="sub/a.jpg" width="100" height="80"><box label="dog" {BOX}/></image>'


def written(folder: Path, *elements: str, meta: str = "") -> Path:
    path = folder / "annotations.xml"
    text = f"<annotations><version>1.1</version><meta>{meta}</meta>{''.join(elements)}</annotations>"
    path.write_text(text, encoding="utf-8")
    return path


def test_images_are_known_by_their_name_and_all_of_them_listed(tmp_path: Path) -> None:
    labels = "<job><labels><label><name>cat</name></label><label><name>dog</name></label></labels></job>"
    path = written(tmp_path, IMAGE, '<image id="1" name="b.jpg" width="9" height="8"/>', meta=labels)
    for source in (path, tmp_path):
        dataset = load(source)
        assert (dataset.format, dataset.images.keys, dataset.images.listed) == ("cvat", ("b.jpg", "sub/a.jpg"), True)
        assert dataset.labels.names == ("cat", "dog")
        assert dataset.images.sizes.tolist() == [[9, 8], [100, 80]]
        assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40]]


def test_boxes_of_tracks_belong_to_frames_and_those_out_of_sight_are_set_aside(tmp_path: Path) -> None:
    boxes = f'<box frame="0" outside="0" {BOX}/><box frame="7" outside="0" {BOX}/><box frame="8" outside="1" {BOX}/>'
    meta = "<task><original_size><width>100</width><height>80</height></original_size></task>"
    dataset = load(written(tmp_path, f'<track id="3" label="dog">{boxes}</track>', meta=meta))
    assert (dataset.images.keys, dataset.images.listed) == (("frame_000000", "frame_000007"), False)
    assert dataset.images.sizes.tolist() == [[100, 80]] * 2
    assert dataset.ignored == {"outside": 1}
    assert [one.code for one in dataset.findings] == ["track-outside"]


def test_tasks_of_a_project_may_have_images_and_frames_of_the_same_names(tmp_path: Path) -> None:
    image = '<image id="0" name="a.jpg" subset="{}" task_id="{}" width="100" height="80"><box label="dog" {}/></image>'
    images = [image.format(subset, task, BOX) for task, subset in enumerate(("Train", "Validation"))]
    other = image.format("Train", 0, BOX).replace("a.jpg", "b.jpg")
    dataset = load(written(tmp_path, *images, other, meta="<project><labels/><tasks><task/><task/></tasks></project>"))
    assert dataset.images.keys == ("Train/a.jpg", "Validation/a.jpg", "b.jpg")
    track = '<track id="0" label="dog" task_id="{}"><box frame="0" outside="0" {}/></track>'
    dataset = load(written(tmp_path, *(track.format(task, BOX) for task in (7, 8))))
    assert dataset.images.keys == ("7/frame_000000", "8/frame_000000")


def test_a_turned_box_is_read_as_the_box_around_it(tmp_path: Path) -> None:
    # 30 x 40 about (25, 40). By 90 degrees it is 40 x 30; by 45 both sides are (30 + 40) / sqrt(2).
    turned = [IMAGE.replace("/></image>", f' rotation="{angle}"/></image>') for angle in (90, 45)]
    dataset = load(written(tmp_path, turned[0], turned[1].replace("sub/a", "sub/b")))
    side = 70 / math.sqrt(2)
    expected = [[5, 25, 40, 30], [25 - side / 2, 40 - side / 2, side, side]]
    np.testing.assert_allclose(dataset.boxes.xywh, expected, atol=1e-12)
    assert ["2 rotated boxes are read as their bounding boxes" in one.message for one in dataset.findings] == [True]


def test_polygons_are_the_boxes_around_them_and_tags_are_counted(tmp_path: Path) -> None:
    shapes = '<polygon label="dog" points="1,2;3,4;5,6"/><tag label="dog"/></image>'
    dataset = load(written(tmp_path, IMAGE.replace("</image>", shapes)))
    assert dataset.ignored == {"shape": 1}
    assert sorted(one.code for one in dataset.findings) == ["outline", "shape-unused"]
    assert dataset.boxes.xywh[-1].tolist() == [1, 2, 4, 4]


def test_every_problem_is_told_with_its_element(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        IMAGE.replace('"40"', '"forty"'),
        '<image id="1" name="b.jpg"><box label="" xtl="1" ytl="2" xbr="3"/></image>',
        f'<track label="dog"><box frame="-1" {BOX}/></track>',
    )
    with pytest.raises(DataError) as caught:
        load(path)
    for told in (
        "image 'sub/a.jpg'.box[0].xbr: 'forty' is not a plain finite number",
        "image 'b.jpg'.box[0].ybr: is missing or empty",
        "image 'b.jpg'.box[0].label: is missing or empty",
        "track[0].box[0].frame: is '-1', expected a whole number",
    ):
        assert told in str(caught.value)


def test_an_image_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"duplicate image id 'sub/a\.jpg'"):
        load(written(tmp_path, IMAGE, IMAGE))


def test_document_types_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, IMAGE)
    path.write_text(f'<!DOCTYPE annotations [<!ENTITY a "x">]>{path.read_text()}')
    with pytest.raises(DataError, match="declares a document type"):
        load(path)
