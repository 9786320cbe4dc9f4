"""What a cell of a notebook shows, in a browser: images that can be seen, and nothing that runs out of the cell."""

from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import compare, evaluate

SAMPLE = Path(__file__).parents[2] / "sample_data"
# As notebooks have them: cells of a fixed width, words of code on one line.
CELL = "<body><div style='width: 640px'><style>table {{ white-space: nowrap }} code {{ white-space: pre }}</style>{}"
OPEN = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
SHOWN = "all => all.map(image => image.complete && image.naturalWidth > 100 && image.naturalHeight > 100)"


@pytest.mark.parametrize("view", ["evaluation", "comparison", "images"])
def test_a_cell_holds_what_it_shows(view: str, browser: Any, tmp_path: Path) -> None:
    sides = [evaluate(SAMPLE / "coco/gt.json", SAMPLE / f"coco/{name}.json") for name in ("worse", "better")]
    images = evaluate(SAMPLE / "coco/gt.json", SAMPLE / "coco/worse.json", images=SAMPLE / "yolo/images/val")
    shown = {"evaluation": sides[0], "comparison": compare(*sides), "images": images.show_images(n=4)}[view]
    (tmp_path / "cell.html").write_text(CELL.format(shown._repr_html_()), encoding="utf-8")
    page = browser.new_page(viewport={"width": 640 + 16, "height": 900})
    try:
        page.goto((tmp_path / "cell.html").as_uri())
        page.evaluate(OPEN)
        assert page.evaluate("document.documentElement.scrollWidth") <= 640 + 16
        drawn = page.locator("img").evaluate_all(SHOWN)
        assert drawn == [True] * (4 if view == "images" else 1)
    finally:
        page.close()
