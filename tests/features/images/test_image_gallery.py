"""Images with boxes: which are shown in what order, what became of each box at every score, and where boxes lie."""

import csv
import io
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import det, evaluate, gt
from PIL import Image

from jaccard_eval import BoxTable
from jaccard_eval import evaluate as evaluate_files
from jaccard_eval.cli import run
from jaccard_eval.features.images.gallery import build_gallery
from jaccard_eval.report.model import Gallery, GalleryImage

SAMPLE = Path(__file__).parents[3] / "sample_data"


def gallery_of(result: object, n: int = 24) -> Gallery:
    gallery = build_gallery(result, n)  # type: ignore[arg-type]
    assert gallery is not None
    return gallery


def states(image: GalleryImage, score: float) -> list[tuple[str, str]]:
    return sorted((box.state, box.label) for box in image.boxes if box.shows_at(score))


SCENE = (
    [gt("dog 0 0 10 10"), gt("dog 40 0 30 30"), gt("cat 80 0 10 10"), gt("dog 0 50 20 20", crowd=True)],
    [
        det("dog 0 0 10 9", 0.8),  # found, at an IoU of .9
        det("dog 60 60 10 10", 0.9),  # on nothing
        det("cat 80 0 10 10", 0.3),  # found, below the score
        det("dog 2 52 5 5", 0.7),  # in the crowd
    ],
)


def test_boxes_are_found_false_missed_or_ignored() -> None:
    [image] = gallery_of(evaluate(*SCENE, score=0.5)).images
    assert states(image, 0.5) == [
        ("false", "dog"),
        ("found", "dog"),
        ("ignored", "dog"),
        ("ignored", "dog"),
        ("missed", "cat"),
        ("missed", "dog"),
    ]
    [found] = [box for box in image.boxes if box.state == "found" and box.label == "dog"]
    assert (found.xywh, found.score, found.iou) == ((0, 0, 10, 9), 0.8, 0.9)


def test_the_states_follow_the_score() -> None:
    [image] = gallery_of(evaluate(*SCENE)).images
    assert image.counts_at(0.3) == {"found": 2, "false": 1, "missed": 1, "ignored": 2}
    assert image.counts_at(0.31) == {"found": 1, "false": 1, "missed": 2, "ignored": 2}
    assert image.counts_at(0.85) == {"false": 1, "missed": 3, "ignored": 1}
    assert image.counts_at(1.0) == {"missed": 3, "ignored": 1}


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 1), st.integers(0, 2**31))
def test_the_boxes_of_every_image_are_as_many_as_the_table_of_images_counts(score: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    boxes = draw.integers(0, 30, (40, 4)) + np.array([0, 0, 40, 40])
    truth = BoxTable.from_arrays(
        draw.integers(0, 4, 20), draw.integers(0, 2, 20), boxes[:20], crowd=draw.random(20) < 0.2
    )
    found = BoxTable.from_arrays(
        draw.integers(0, 4, 20), draw.integers(0, 2, 20), boxes[20:], score=draw.integers(1, 9, 20) / 10
    )
    result = evaluate_files(truth, found, score=score, worst_images=9)
    images = {image.name: image.counts_at(score) for image in gallery_of(result).images}
    for row in result.worst_images.rows():
        counts = images[str(row["image"])]
        assert [counts.get(state, 0) for state in ("found", "false", "missed")] == [row["tp"], row["fp"], row["fn"]]


def test_the_worst_are_in_the_order_of_the_table_of_images(tmp_path: Path) -> None:
    args = [str(SAMPLE / "yolo" / "data.yaml"), str(SAMPLE / "yolo" / "worse"), "--score", "0.4"]
    assert run.run(["evaluate", *args, "-q", "-o", str(tmp_path / "images.csv")]) == 0
    with (tmp_path / "images.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    gallery = gallery_of(evaluate_files(args[0], args[1], score=0.4), 6)
    assert [gallery.images[row].name for row in gallery.tabs[1].rows] == [row["image"] for row in rows[:6]]
    assert gallery.tabs[1].title == "Worst"


def test_other_tabs_start_with_the_surest_false_positive_and_the_largest_miss() -> None:
    truth = [gt("dog 0 0 10 10", "a"), gt("dog 0 0 50 50", "b"), gt("dog 0 0 9 9", "b"), gt("dog 50 50 9 9", "c")]
    found = [det("dog 80 80 9 9", 0.6, "a"), det("dog 80 80 9 9", 0.9, "c"), det("dog 50 50 9 9", 0.5, "c")]
    gallery = gallery_of(evaluate(truth, found, score=0.5), 2)
    tabs = {tab.title: [gallery.images[row].name for row in tab.rows] for tab in gallery.tabs}
    # b costs 2, a 1 + .6, c .9. Both of a are in the two tabs that it belongs to.
    assert tabs == {"Pictures": ["b", "a"], "Worst": ["b", "a"], "False positives": ["a"], "Misses": ["b", "a"]}


def test_an_eighth_of_the_images_is_for_the_surest_false_positive_and_for_the_largest_miss() -> None:
    truth = [gt(f"dog {20 * k} 0 9 9", f"bad{i}") for i in range(9) for k in range(3)] + [gt("dog 0 0 90 90", "large")]
    found = [det("dog 80 80 9 9", 0.9, "sure"), det("dog 80 80 9 9", 0.6, "bad3")]
    gallery = gallery_of(evaluate(truth, found, score=0.5, images=["sure"]), 8)
    tabs = {tab.title: [gallery.images[row].name for row in tab.rows] for tab in gallery.tabs}
    # Of the nine that cost 3 and more, the first six leave room for the two; bad3 costs most.
    assert tabs["Worst"] == ["bad3", "bad0", "bad1", "bad2", "bad4", "bad5"]
    assert tabs["False positives"] == ["sure", "bad3"]
    assert tabs["Misses"][0] == "large"
    assert [image.name for image in gallery.images] == [*tabs["Worst"], "sure", "large"]


def test_no_gallery_of_none_and_of_a_result_without_boxes() -> None:
    from dataclasses import replace

    result = evaluate(*SCENE)
    assert build_gallery(result, 0) is None
    assert build_gallery(replace(result, boxes=None), 24) is None


def test_boxes_lie_where_the_thumbnail_shows_their_objects(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    (tmp_path / "pred").mkdir()
    # A white rectangle on black at (600, 100), 200 x 150 of 1000 x 500 pixels, stored turned by EXIF 6.
    image = Image.new("L", (1000, 500))
    image.paste(255, (600, 100, 800, 250))
    exif = Image.Exif()
    exif[0x0112] = 6
    image.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "images" / "a.jpg", exif=exif, quality=95)
    (tmp_path / "labels" / "a.txt").write_text("0 0.7 0.35 0.2 0.3\n")
    (tmp_path / "pred" / "a.txt").write_text("0 0.2 0.2 0.1 0.1 0.9\n")
    [shown] = gallery_of(evaluate_files(tmp_path / "labels", tmp_path / "pred")).images
    assert shown.size == (1000, 500)
    [missed] = [box for box in shown.boxes if box.is_object]
    assert missed.xywh == pytest.approx((600, 100, 200, 150))
    pixels = np.asarray(Image.open(io.BytesIO(shown.thumbnail)), dtype=float)
    height, width = pixels.shape[:2]
    left, top, w, h = (side * width / 1000 for side in missed.xywh)
    inside = np.zeros((height, width), dtype=bool)
    inside[round(top) + 2 : round(top + h) - 2, round(left) + 2 : round(left + w) - 2] = True
    around = np.zeros((height, width), dtype=bool)
    around[round(top) - 2 : round(top + h) + 2, round(left) - 2 : round(left + w) + 2] = True
    assert pixels[inside].min() > 180
    assert pixels[~around].max() < 75


def test_without_files_boxes_have_a_canvas_of_the_known_size_or_one_that_holds_them(tmp_path: Path) -> None:
    gallery = gallery_of(evaluate_files(SAMPLE / "coco" / "gt.json", SAMPLE / "coco" / "better.json"))
    assert {image.thumbnail for image in gallery.images} == {b""}
    assert {image.size for image in gallery.images} <= {(640, 480), (480, 640), (800, 600)}
    truth = BoxTable.from_arrays([0], [0], [[10, 10, 120.5, 80]])
    found = BoxTable.from_arrays([0], [0], [[10, 10, 100, 90.2]], score=[0.9])
    [image] = gallery_of(evaluate_files(truth, found)).images
    assert image.size == (121, 91)


def test_fractions_of_an_unknown_size_are_drawn_on_a_square(tmp_path: Path) -> None:
    for name, line in (("gt", "0 0.5 0.5 0.5 0.25"), ("pred", "0 0.5 0.5 0.5 0.25 0.9")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(f"{line}\n")
    [image] = gallery_of(evaluate_files(tmp_path / "gt", tmp_path / "pred")).images
    assert image.size == (640, 640)
    assert image.boxes[-1].xywh == (160, 240, 320, 160)


def test_nothing_predicted_has_no_score_and_misses_everything() -> None:
    [image] = gallery_of(evaluate([gt("dog 0 0 10 10")], [])).images
    assert math.isnan(gallery_of(evaluate([gt("dog 0 0 10 10")], [])).score)
    assert image.counts_at(math.nan) == {"missed": 1}


def test_the_same_images_give_the_same_gallery_twice() -> None:
    one, two = (gallery_of(evaluate_files(SAMPLE / "yolo" / "data.yaml", SAMPLE / "yolo" / "worse")) for _ in range(2))
    assert one.images and all(image.thumbnail for image in one.images)
    assert [image.thumbnail for image in one.images] == [image.thumbnail for image in two.images]
