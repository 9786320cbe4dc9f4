"""Folders of what is drawn: label maps, segments and suspects next to their page, each image a file of its own."""

import io
from pathlib import Path
from typing import Any

import pytest
from browser_pages import MAPS, SEGMENTS, until
from command_line import run_here

from jaccard_eval.report.panels import GAP, LARGE

SAMPLE = Path(__file__).parents[2] / "sample_data"
COMMANDS = {
    "pixels": (MAPS / "gt", MAPS / "pred", "--classes", "sky,road,car", "--ignore", "9"),
    "panoptic": (SEGMENTS / "gt.json", SEGMENTS / "worse.json"),
    "labels": (SAMPLE / "coco" / "gt.json", SAMPLE / "coco" / "better.json"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_image_is_a_file_that_the_page_shows(command: str, browser: Any, tmp_path: Path) -> None:
    done = run_here(command, *COMMANDS[command], "-q", "-o", f"{tmp_path}/out/")
    assert done.returncode == 0, done.stderr
    files = {path.name for path in (tmp_path / "out" / "images").glob("*")}
    assert (tmp_path / "out" / "index.html").is_file()
    assert bool(files) == (command != "labels")  # whose images lie elsewhere
    page, noise = browser.new_page(), []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("requestfailed", lambda asked: noise.append(asked.url))
    page.on("request", lambda asked: asked.url.startswith("file:") or noise.append(asked.url))
    page.goto((tmp_path / "out" / "index.html").as_uri())
    shown = page.evaluate("[...document.querySelectorAll('.shots image')].map(one => one.getAttribute('href'))")
    assert {Path(name).name for name in shown} == files
    if files:
        page.locator(".shots .shot").first.click()
        until(page, "document.querySelectorAll('dialog[open] image').length === 1")
    page.close()
    assert noise == []
    # Written again, it is the same.
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    assert run_here(command, *COMMANDS[command], "-q", "-o", f"{tmp_path}/out/").returncode == 0
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")} == before


def test_difference_maps_have_the_pixels_of_the_maps(tmp_path: Path) -> None:
    """Two maps of 700 x 20 pixels that differ in the last 70 columns: the panels are scaled to the longer side."""
    import numpy as np
    from PIL import Image

    for side, last in (("gt", 0), ("pred", 1)):
        (tmp_path / side).mkdir()
        pixels = np.zeros((20, 700), dtype=np.uint8)
        pixels[:, 630:] = last
        Image.fromarray(pixels).save(tmp_path / side / "a.png")
    done = run_here("pixels", tmp_path / "gt", tmp_path / "pred", "-q", "-o", f"{tmp_path}/out/")
    assert done.returncode == 0, done.stderr
    drawn = np.asarray(Image.open(io.BytesIO((tmp_path / "out" / "images" / "0000.png").read_bytes())))
    assert drawn.shape[:2] == (int(20 * LARGE / 700), 3 * LARGE + 2 * GAP)
    differences = drawn[:, -LARGE:]
    changed = np.flatnonzero((differences != differences[0, 0]).any(axis=(0, 2)))
    assert (changed[0], changed[-1]) == (LARGE * 630 // 700, LARGE - 1)


def test_options_and_folders_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    maps = COMMANDS["pixels"]
    assert run_here("pixels", *maps, "-q", "--gallery", "3", "-o", f"{tmp_path}/out/").returncode == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    done = run_here("pixels", *maps, "-q", "-o", f"{tmp_path}/mine/")
    assert done.returncode == 2 and "another program wrote: 'notes.txt'" in done.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
