"""Time the folder of all images in Chromium, from the disk: what a user waits for, and how large it is.

``python benchmarks/explorer.py`` draws 5,000 images and a scene of COCO's size, writes folders with and without small
copies, and prints the median and the worst of each wait with the bytes of folder and memory; ``--images 20000 --plain``
is a million detections without images. Needs playwright and a chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import processes

CHROMIUM = os.environ.get("JACCARD_EVAL_CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-precise-memory-info"]
IN_SIGHT = (
    "document.documentElement.dataset.boxes && (!PICTURES || all('.tile').every(one => one.querySelector('image')))"
)
# Each acts, draws and lays out; the next frame is what is seen.
WAITS = {
    "next image, original decoded": """async i => {
      openImage(items[i % items.length]); render();
      while (PICTURES && !all("#stage image").length) await new Promise(done => setTimeout(done));
    }""",
    "slider": "i => { chosen = { score: about.steps[(7 * i + 3) % about.steps.length] }; render(); }",
    "filter": """i => {
      chosen = { class: about.classes[i % about.classes.length], error: ["missed", "false"][i % 2] }; render();
    }""",
}  # fmt: skip
TIMED = """async i => {{
  const start = performance.now();
  await ({act})(i);
  document.body.offsetHeight;
  await new Promise(requestAnimationFrame);
  return performance.now() - start;
}}"""
COLUMNS = (
    "models.reduce((n, { store }) => n + Object.values(store).reduce((m, one) => m + (one?.byteLength ?? 0), 0), 0)"
)


def main() -> None:
    """Make what is missing, open each folder, and print a table."""
    options = _parse()
    options.dir.mkdir(parents=True, exist_ok=True)
    sides = processes.make_scene(options.dir, "--images", str(options.images))
    images = options.dir / f"images-{options.images}"
    if not options.plain:
        subprocess.run([sys.executable, __file__, "--draw", sides[0], images], check=True)
    print("| folder | what | median | worst |\n|---|---|--:|--:|")
    with tempfile.TemporaryDirectory(dir=options.dir) as written:
        for name, words in {"originals": (), "thumbnails": ("--thumbnails",)}.items():
            if options.plain and words:
                continue
            shown = () if options.plain else ("--images", images, *words)
            folder = Path(written, name)
            command = [sys.executable, "-m", "jaccard_eval", "evaluate", *sides, *shown, "-q", "-o", f"{folder}/"]
            used, _ = processes.measure([str(word) for word in command])
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            print(f"| {name} | written, CPU s | {used.cpu:.2f} | |\n| {name} | folder, MB | {size / 1e6:.1f} | |")
            _look(name, folder, options)


def _look(name: str, folder: Path, options: argparse.Namespace) -> None:
    from playwright.sync_api import sync_playwright

    pictures = "false" if options.plain else "true"
    times: dict[str, list[float]] = {"open, images in sight": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for _ in range(options.rounds):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            start = time.perf_counter()
            page.goto((folder / "index.html").as_uri(), wait_until="commit")
            page.wait_for_selector("[data-boxes=there]", state="attached")
            while not page.evaluate(IN_SIGHT.replace("PICTURES", pictures)):
                pass
            times["open, images in sight"].append(1000 * (time.perf_counter() - start))
            heap, columns = page.evaluate(f"[performance.memory.usedJSHeapSize, {COLUMNS}]")
            for what, act in WAITS.items():
                page.evaluate("() => { chosen = {}; render(); }")
                for turn in range(10):
                    once = TIMED.format(act=act.replace("PICTURES", pictures))
                    times.setdefault(what, []).append(page.evaluate(once, turn))
            page.close()
        browser.close()
    for what, waited in times.items():
        print(f"| {name} | {what}, ms | {statistics.median(waited):.0f} | {max(waited):.0f} |")
    print(f"| {name} | heap and columns, MB | {heap / 1e6:.1f} and {columns / 1e6:.1f} | |")


def _draw(truth: Path, folder: Path) -> None:
    """Draw a JPEG for each image of a ground truth: noise of a few pixels, so that it decodes as a photograph does."""
    import numpy as np
    from PIL import Image

    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(1)
    for image in json.loads(truth.read_text())["images"]:
        path = folder / image["file_name"]
        if not path.exists():
            few = random.integers(0, 256, (24, 32, 3), dtype=np.uint8)
            size = image.get("width") or 640, image.get("height") or 480
            Image.fromarray(few).resize(size, Image.Resampling.BICUBIC).save(path, quality=90)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-benchmark"
    parser.add_argument(
        "--dir", type=Path, default=cache, help="where scene and images are kept (default: %(default)s)"
    )
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--plain", action="store_true", help="without images")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--draw", type=Path, nargs=2, metavar=("GT", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.draw:
        _draw(*options.draw)
        sys.exit()
    return options


if __name__ == "__main__":
    main()
