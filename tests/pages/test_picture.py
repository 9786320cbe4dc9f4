"""The picture of a page in the README: small, described, and of the size that a page of today has.

Run as a script, this file takes it again: ``python tests/pages/test_picture.py``. Fonts differ from machine to
machine, so it is not compared with anything.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "report.png"
SAMPLE = ROOT / "sample_data"
WIDTH, HEIGHT = 1280, 872
COLOURS = 96  # of the PNG: a page has few
MOST = 200_000  # bytes


def take(browser: Any, target: Path) -> None:
    """Write the picture of the sample's page where its classes and curves are, below the bar with the score."""
    from command_line import run_here

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        sides = SAMPLE / "coco" / "gt.json", SAMPLE / "coco" / "better.json"
        done = run_here("evaluate", *sides, "--gallery", "0", "-q", "-o", path)
        assert done.returncode == 0, done.stderr
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(f"{path.as_uri()}#classes")
        page.screenshot(path=target)
        page.close()
    Image.open(target).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(target, optimize=True)


def test_the_picture_of_the_readme_is_small_and_described(browser: Any, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (alternative,) = re.findall(r"!\[([^\]]+)\]\(docs/report\.png\)", text)
    assert len(alternative.split()) >= 10
    assert PICTURE.stat().st_size <= MOST
    take(browser, tmp_path / "now.png")
    for path in (tmp_path / "now.png", PICTURE):
        with Image.open(path) as picture:
            assert picture.size == (WIDTH, HEIGHT)


if __name__ == "__main__":
    import sys

    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    from conftest import ARGUMENTS, CHROMIUM
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        take(playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS), PICTURE)
