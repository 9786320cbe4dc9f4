"""Draw the figures of the folder in docs/report.md: ``python docs/site/explorer_shots.py``; needs chromium."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_data"
MOST_BYTES = 150_000
COCO = SAMPLE / "coco"
# Name -> the command, and the state of the page.
FIGURES: dict[str, tuple[list[object], str]] = {
    "explorer": (
        ["evaluate", COCO / "gt.json", COCO / "worse.json", "--images", SAMPLE / "yolo" / "images" / "val"],
        "",
    ),
    "explorer-maps": (
        ["panoptic", SAMPLE / "panoptic" / "gt.json", SAMPLE / "panoptic" / "worse.json"],
        "img=street_03.jpg&class=car",
    ),
}


def main() -> None:
    """Write each figure with the fewest colours that it needs to be small."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, (words, state) in FIGURES.items():
            command = [sys.executable, "-m", "jaccard_eval", *map(str, words), "-q", "-o", f"{folder}/{name}/"]
            subprocess.run(command, check=True)
            page = browser.new_page(viewport={"width": 1280, "height": 760})
            page.goto(f"{(Path(folder) / name / 'index.html').as_uri()}#{state}")
            page.wait_for_selector("image")
            page.wait_for_timeout(500)
            shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(64, dither=Image.Dither.NONE)
            path = ROOT / "docs" / f"{name}.png"
            shot.save(path, optimize=True)
            assert path.stat().st_size <= MOST_BYTES, path
        browser.close()


if __name__ == "__main__":
    main()
