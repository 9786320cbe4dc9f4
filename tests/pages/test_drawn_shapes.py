"""Masks, poses and oriented boxes that the script of a page draws, in one file and in the folder of all images."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_pages import until
from command_line import write_json

from jaccard_eval import ReadOptions, evaluate
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs import explorer, html

WIDTH, HEIGHT = 60, 50
# Which pixels of an image the path of a box goes around.
FILLED = """([place, width, height]) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = drawn(svg, "path", { d: shapePath(place) });
  document.body.append(svg);
  const middle = i => ({ x: i % width + .5, y: Math.floor(i / width) + .5 });
  return Array.from({ length: width * height }, (_, i) => path.isPointInFill(middle(i)));
}"""


def runs(pixels: Any) -> dict[str, Any]:
    """Return a mask as COCO's uncompressed runs, down the columns, the first of them outside."""
    line = pixels.T.ravel().astype(int)
    turns = np.flatnonzero(np.diff(line, prepend=0))
    return {"size": list(pixels.shape), "counts": np.diff(turns, prepend=0, append=len(line)).tolist()}


def masks() -> list[Any]:
    """Return masks of at most 32 px: noise with holes, islands and cells that touch at corners, and a ring."""
    random, made = np.random.default_rng(4), []
    for i in range(5):
        made.append(np.zeros((HEIGHT, WIDTH), dtype=bool))
        made[-1][3 + i : 20 + i, 10 + i : 40 + i] = random.random((17, 30)) < 0.2 + 0.15 * i
    made.append(np.zeros((HEIGHT, WIDTH), dtype=bool))
    made[-1][10:30, 10:30] = True
    made[-1][15:25, 15:25] = False
    return made


def pages(folder: Path, objects: list[Any], found: list[Any], kind: str, **options: Any) -> tuple[Path, Path]:
    """Write a page in one file, with a picture of an image that misses two objects, and the folder of all images.

    The `objects` and those `found` are on a second image, whose boxes the script draws.
    """
    gt = {
        "images": [{"id": i, "file_name": f"{i}.jpg", "width": WIDTH, "height": HEIGHT} for i in (1, 2)],
        "annotations": [
            {"id": i, "image_id": 2 if i > 2 else 1, "category_id": 1, "iscrowd": 0, "area": 100, **one}
            for i, one in enumerate([objects[0], objects[0], *objects], start=1)
        ],
        "categories": [{"id": 1, "name": "thing"}],
    }
    pred = [{"image_id": 2, "category_id": 1, **one} for one in found]
    sides = write_json(folder / "gt.json", gt), write_json(folder / "pred.json", pred)
    result = evaluate(*sides, iou_type=kind, errors=True, **options)
    (folder / "page.html").write_text(html.render(result, ReportOptions(gallery=1)), encoding="utf-8")
    for name, data in explorer.render(result, ReportOptions()).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    return folder / "page.html", folder / "index.html"


def opened(browser: Any, path: Path, state: str = "") -> Any:
    page = browser.new_page()
    page.goto(f"{path.as_uri()}#{state}")
    page.wait_for_selector("[data-boxes=there]")
    return page


def test_a_mask_is_drawn_around_its_pixels(browser: Any, tmp_path: Path) -> None:
    shapes = masks()
    objects = [{"segmentation": runs(mask), "bbox": [10, 3, 30, 20]} for mask in shapes]
    found = [{"segmentation": runs(mask), "score": 0.9 - i / 10} for i, mask in enumerate(shapes[::-1])]
    one, _ = pages(tmp_path, objects, found, "segm")
    page = opened(browser, one)
    for place, mask in enumerate([*shapes, *shapes[::-1]], start=2):
        assert page.evaluate(FILLED, [place, WIDTH, HEIGHT]) == mask.ravel().tolist()
    page.close()


@pytest.mark.parametrize("kind", ["segm", "keypoints", "obb"])
def test_a_choice_draws_shapes_in_place_of_upright_boxes(kind: str, browser: Any, tmp_path: Path) -> None:
    pose = np.column_stack((np.linspace(5, 45, 17), np.linspace(8, 40, 17), [2, *[1] * 15, 0]))
    shape = {
        "segm": {"segmentation": runs(masks()[-1])},
        "keypoints": {"keypoints": pose.ravel().tolist(), "num_keypoints": 16, "bbox": [5, 8, 40, 32]},
        "obb": {"bbox": [20, 20, 30, 10, 0.5]},
    }[kind]
    options: dict[str, Any] = {}
    if kind == "obb":
        options = {f"{side}_options": ReadOptions(angle="rad-cw") for side in ("gt", "pred")}
    one, folder = pages(tmp_path, [shape], [dict(shape, score=0.9), dict(shape, score=0.8)], kind, **options)
    form = {"segm": "mask", "keypoints": "pose", "obb": "oriented"}[kind]
    page = opened(browser, one, "error=double&score=0.50")
    until(page, f"all('.shots > li:not([hidden]) path.{form}[data-i]').length === 3")
    assert not page.query_selector_all(".shots rect[data-i]")
    path = page.evaluate("shapePath(2)")
    page.close()
    page = opened(browser, folder, "error=double&score=0.50")
    until(page, "all('.tile path.b').length === 2")
    page.evaluate("openImage(store.image[0])")
    until(page, "all('#stage path.b').length === 4")
    assert page.evaluate("shapePath(2)") == path
    page.close()
    if kind == "obb":
        # Half the width along (cos, sin) of the angle, half the height across.
        along, across = np.array([np.cos(0.5), np.sin(0.5)]) * 15, np.array([-np.sin(0.5), np.cos(0.5)]) * 5
        corners = [[20, 20] + a * along + b * across for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        drawn = np.array([place.split(",") for place in path[1:-1].split("L")], dtype=float)
        assert np.abs(np.sort(drawn, axis=0) - np.sort(corners, axis=0)).max() <= 1 / 16
    if kind == "keypoints":
        # 16 points, and of 19 lines those without the last point, the right ankle: one of its two is drawn.
        assert (path.count("z"), path.count("L")) == (16, 18)


def test_shapes_that_a_page_has_no_room_for_are_boxes(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jaccard_eval.features.images.columns.BOXES_A_SHAPE", 500_000)
    # Of the folder, which holds more boxes: two, so that two are left.
    monkeypatch.setattr("jaccard_eval.features.evaluate.page.MOST_BOXES", 1_000_000)
    mask = {"segmentation": runs(masks()[-1])}
    one, folder = pages(tmp_path, [dict(mask, bbox=[10, 10, 20, 20])], [dict(mask, score=0.9)], "segm")
    page = opened(browser, one, "error=found")
    until(page, "all('.shots rect[data-i].found').length === 1")
    # Wrong ones come first: an object that is missed.
    assert page.evaluate("[0, 1, 2, 3].map(place => shapePath(place) !== '')") == [True, False, False, False]
    assert "3 shapes are drawn by their boxes" in page.inner_text("#images")
    page.close()
    page = opened(browser, folder)
    assert "2 shapes are drawn by their boxes" in page.inner_text("#metrics")
    page.close()
