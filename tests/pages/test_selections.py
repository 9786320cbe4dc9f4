"""Every choice of a page counts what the library counts, at any score, and shows as many boxes, of all images."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_pages import drawn
from pictures import evaluate as evaluate_pictures

from jaccard_eval import EvaluationResult, evaluate
from jaccard_eval.features.images import columns
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.html import render

BACKGROUND = ""


def of_pictures(**options: Any) -> EvaluationResult:
    return evaluate_pictures(*drawn(60), errors=True, **options)


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("selections") / "page.html"
    path.write_text(render(of_pictures(), ReportOptions(gallery=6)), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_selector("[data-boxes=there]")
    yield page
    page.close()


def counted(page: Any, choices: list[dict[str, str]], score: float) -> list[int]:
    """What the page selects at a score."""
    script = """([choices, score]) => choices.map(choice => {
      const { marks, all } = select(choice, live.scores.findIndex(one => +one === score));
      const n = marks.reduce((a, b) => a + b, 0);
      if (all.reduce((a, b) => a + b, 0) !== n) throw "images and boxes differ";
      return n;
    })"""
    return list(page.evaluate(script, [choices, score]))


SCORES = (0.0, 0.07, 0.29, 0.5, 0.57, 0.83, 0.99)


@pytest.mark.parametrize("score", SCORES)
def test_every_cell_of_the_confusion_matrix_selects_as_many_boxes_as_it_counts(page: Any, score: float) -> None:
    confusion = of_pictures(score=score).errors.confusion
    names = [*confusion.names, BACKGROUND]
    cells = [{"object": of, "pred": pred} for of in names for pred in names][:-1]
    assert counted(page, cells, score) == confusion.counts.ravel().tolist()[:-1]


@pytest.mark.parametrize("score", SCORES)
def test_every_class_selects_its_true_and_false_positives_and_misses(page: Any, score: float) -> None:
    result = of_pictures(score=score)
    points = [one for one in result.operating_points if one.iou == 0.5 and one.class_name is not None]
    assert len(points) == 4
    for error, name in (("false", "fp"), ("missed", "fn"), ("found", "tp")):
        chosen = [{"class": str(point.class_name), "error": error} for point in points]
        assert counted(page, chosen, score) == [getattr(point, name) for point in points], error
    assert counted(page, [{"error": "false"}], score) == [sum(point.fp for point in points)]


def test_every_kind_of_error_selects_as_many_boxes_as_its_row_counts(page: Any) -> None:
    errors = of_pictures().errors
    kinds = ["class", "box", "both", "double", "background"]
    assert counted(page, [{"error": kind} for kind in kinds], 0.0) == [kind.count for kind in errors.types[:5]]
    by_class = [kind.by_class[k] for kind in errors.types[:5] for k in range(4)]
    chosen = [{"error": kind, "class": name} for kind in kinds for name in errors.confusion.names]
    assert counted(page, chosen, 0.0) == by_class


def test_sizes_and_least_scores_select_by_the_boxes_themselves(page: Any) -> None:
    truth, _ = drawn(60)
    areas = np.array([one.xywh[2] ** 2 for one in truth if not one.flags])
    # Without any detection, which is at a score above all, every object is missed.
    by_size = [(areas < 1024).sum(), ((areas >= 1024) & (areas < 9216)).sum(), (areas >= 9216).sum()]
    sizes = [{"size": size, "error": "missed"} for size in ("small", "medium", "large")]
    assert counted(page, sizes, 1.0) == by_size
    rows = of_pictures().matches
    fp = rows["fp"][..., 0] if rows["fp"].ndim > 1 else rows["fp"]
    for sure in (0.95, 0.9, 0.57):
        wrong = int((np.asarray(fp, dtype=bool) & (np.asarray(rows["score"]) >= sure)).sum())
        assert counted(page, [{"sure": f"{sure}"}], 0.0) == [wrong]


def test_images_without_a_picture_are_shown_with_the_boxes_that_are_chosen(page: Any) -> None:
    """Of sixty images six are in the page; as many boxes are drawn as the line counts, once all tiles are asked for."""
    page.evaluate("choose({ error: 'false' })")
    n = page.evaluate("selection.marks.reduce((a, b) => a + b, 0)")
    assert page.locator("#images [role=status]").text_content().startswith(f"false: {n} boxes in ")
    while page.get_by_role("button", name="more of").is_visible():
        page.get_by_role("button", name="more of").click()
    assert page.locator(".shots > li:visible").count() > 30
    assert page.locator(".is-chosen:visible").count() == n
    # A cell may hold objects that the table of classes counts as found: these show as well.
    for of, pred in (("dog", ""), ("", "dog"), ("cat", "dog"), ("c=d&e#f", "a>b"), ("dog", "dog")):
        page.evaluate("([object, pred]) => choose({ object, pred })", [of, pred])
        while page.get_by_role("button", name="more of").is_visible():
            page.get_by_role("button", name="more of").click()
        [n] = counted(page, [{"object": of, "pred": pred}], float(page.evaluate("live.scores[stepNow]")))
        assert page.locator(".is-chosen:visible").count() == n
    page.evaluate("choose({ object: 'dog', pred: 'dog' })")


def test_where_boxes_are_too_many_those_of_the_images_shown_are_there(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "MOST_BOXES", 10)
    path = tmp_path / "page.html"
    path.write_text(render(of_pictures(), ReportOptions(gallery=6)), encoding="utf-8")
    page = browser.new_page()
    page.goto(f"{path.as_uri()}#error=false")
    page.wait_for_selector("[data-boxes=there]")
    assert " of the 6 images here" in page.locator("#images [role=status]").text_content()
    assert page.locator(".is-chosen:visible").count() == page.evaluate("selection.marks.reduce((a, b) => a + b, 0)")
    page.close()


def test_real_photographs_select_as_their_cells_count(browser: Any, shared_data: Path, tmp_path: Path) -> None:
    data = shared_data / "padilla-review" / "data" / "database"
    result = evaluate(data / "gts" / "pascalvoc_format", data / "dets" / "coco_format", score=0.5, errors=True)
    path = tmp_path / "page.html"
    path.write_text(render(result, ReportOptions()), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("[data-boxes=there]")
    confusion = result.errors.confusion
    names = [*confusion.names, BACKGROUND]
    cells = [{"object": of, "pred": pred} for of in names for pred in names][:-1]
    assert counted(page, cells, 0.5) == confusion.counts.ravel().tolist()[:-1]
    # Places are kept to an eighth of a pixel.
    boxes = json.loads(page.evaluate("JSON.stringify([...store.label.keys()].slice(store.m).map(sideOf))"))
    own = result.boxes[1].xywh
    order = np.argsort(result.boxes[1].image, kind="stable")
    assert sorted(map(tuple, np.round(boxes, 3).tolist()))[0] == pytest.approx(
        min(map(tuple, own[order].tolist())), abs=0.13
    )
    page.close()
