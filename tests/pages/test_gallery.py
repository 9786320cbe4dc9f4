"""The images of a page in a real browser: they follow the score, tabs and toggles, and one is enlarged by keys."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import EvaluationResult, evaluate
from jaccard_eval.features.evaluate.page import build_page
from jaccard_eval.features.images.gallery import build_gallery
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Gallery
from jaccard_eval.report.outputs.html import render

SAMPLE = Path(__file__).parents[2] / "sample_data" / "yolo"


@pytest.fixture(scope="module")
def result() -> EvaluationResult:
    return evaluate(SAMPLE / "data.yaml", SAMPLE / "worse", score=0.5, errors=True)


@pytest.fixture(scope="module")
def page(result: EvaluationResult, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(result, ReportOptions()), encoding="utf-8")
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    messages: list[str] = []
    opened.on("console", lambda message: messages.append(message.text))
    opened.on("pageerror", lambda error: messages.append(str(error)))
    opened.goto(path.as_uri())
    opened.wait_for_selector("[data-boxes=there]")
    yield opened
    assert messages == []
    opened.close()


def captions(page: Any) -> dict[str, str]:
    texts = "all => all.map(caption => [...caption.children].map(part => part.textContent))"
    found = page.locator(".shots > li:not([hidden]) figcaption").evaluate_all(texts)
    return {name: counts for name, counts, *_ in found}


def visible(page: Any, state: str) -> int:
    return int(
        page.evaluate(
            "s => [...document.querySelectorAll(`.shots > li:not([hidden]) rect.${s}[data-c]`)]"
            ".filter(r => getComputedStyle(r).display != 'none').length",
            state,
        )
    )


def at_score(page: Any, score: float) -> None:
    page.locator("#slider").fill(f"{score:.2f}")


def test_images_show_what_counts_at_every_score(page: Any, result: EvaluationResult) -> None:
    gallery = build_gallery(result, 24)
    assert gallery is not None
    for score in (*(step / 20 for step in range(21)), 0.5):
        at_score(page, score)
        shown = captions(page)
        assert shown
        counts = {image.name: image.counts_at(score) for image in gallery.images if image.name in shown}
        assert shown == {name: gallery.count_text(found) for name, found in counts.items()}
        for state in ("missed", "false", "found"):
            assert visible(page, state) == sum(found.get(state, 0) for found in counts.values()), (score, state)


def test_tabs_order_the_images(page: Any, result: EvaluationResult) -> None:
    blocks = (block for section in build_page(result, ReportOptions()).sections for block in section.blocks)
    [gallery] = (block for block in blocks if isinstance(block, Gallery))
    for tab in (*gallery.tabs, gallery.tabs[0]):
        page.locator(".tabs").get_by_role("button", name=tab.title).click()
        if page.get_by_role("button", name="more of").is_visible():
            assert len(captions(page)) == 10 < len(tab.rows)
            page.get_by_role("button", name="more of").click()
        assert list(captions(page)) == [gallery.images[row].name for row in tab.rows]
        assert page.locator(".tabs [aria-pressed=true]").inner_text().startswith(tab.title)


def test_a_toggle_hides_its_boxes(page: Any) -> None:
    before = visible(page, "false")
    assert before
    page.get_by_label("false positive", exact=False).first.uncheck()
    assert (visible(page, "false"), visible(page, "found") > 0) == (0, True)
    page.get_by_label("false positive", exact=False).first.check()
    assert visible(page, "false") == before


def test_an_image_is_enlarged_and_left_by_keys(page: Any) -> None:
    names = list(captions(page))
    shot = page.locator(".shot").nth(1)
    shot.focus()
    page.keyboard.press("Enter")
    title = page.locator("#viewer-name")
    assert title.inner_text().startswith(f"{names[1]}: ")
    page.keyboard.press("ArrowRight")
    assert title.inner_text().startswith(f"{names[2]}: ")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    assert title.inner_text().startswith(f"{names[-1]}: ")
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    assert page.evaluate("document.activeElement === document.querySelectorAll('.shot')[1]")


def test_one_label_shows_at_a_time_and_within_the_image(page: Any) -> None:
    page.locator(".shot").first.click()
    buttons = page.locator(".viewer-list button")
    assert buttons.count() > 1
    for row in range(buttons.count()):
        buttons.nth(row).focus()
        assert page.locator(".viewer-shot .tag").count() == 1
        tag, whole = (page.locator(f".viewer-shot {name}").bounding_box() for name in (".tag", "svg"))
        assert page.locator(".viewer-shot .tag").text_content() == buttons.nth(row).inner_text()
        assert whole["x"] - 1 <= tag["x"]
        assert tag["x"] + tag["width"] <= whole["x"] + whole["width"] + 1
        assert whole["y"] - 4 <= tag["y"]
        assert tag["y"] + tag["height"] <= whole["y"] + whole["height"] + 4
    page.keyboard.press("Escape")


def test_boxes_lie_on_their_thumbnails(page: Any) -> None:
    """The box of an object covers the same share of the picture as of the image that it is of."""
    found = json.loads(
        page.evaluate(
            """() => {
              const svg = document.querySelector('.shots svg'), box = svg.querySelector('rect[data-c]:not(.off)');
              const [image, rect, view] = [svg.querySelector('image').getBoundingClientRect(),
                box.getBoundingClientRect(), svg.viewBox.baseVal];
              return JSON.stringify({ shown: [(rect.x - image.x) / image.width, (rect.y - image.y) / image.height],
                own: [box.x.baseVal.value / view.width, box.y.baseVal.value / view.height] });
            }"""
        )
    )
    assert found["shown"] == pytest.approx(found["own"], abs=0.01)
