"""Folders of suspects, whose boxes are few: their page next to small copies of their images."""

from pathlib import Path
from typing import Any

import pytest
from browser_pages import MAPS, until
from command_line import run_here

SAMPLE = Path(__file__).parents[2] / "sample_data"
MAPS_PAIR = ("pixels", MAPS / "gt", MAPS / "pred", "--classes", "sky,road,car", "--ignore", "9")
LABELS = ("labels", SAMPLE / "coco" / "gt.json", SAMPLE / "coco" / "better.json")


@pytest.mark.parametrize("images", [(), ("--images", SAMPLE / "yolo" / "images" / "val")], ids=["without", "images"])
def test_each_image_is_a_file_that_the_page_shows(images: tuple[object, ...], browser: Any, tmp_path: Path) -> None:
    done = run_here(*LABELS, *images, "-q", "-o", f"{tmp_path}/out/")
    assert done.returncode == 0, done.stderr
    files = {path.name for path in (tmp_path / "out" / "images").glob("*")}
    assert (tmp_path / "out" / "index.html").is_file()
    assert bool(files) == bool(images)
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
    assert run_here(*LABELS, *images, "-q", "-o", f"{tmp_path}/out/").returncode == 0
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")} == before


def test_options_and_folders_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    assert run_here(*MAPS_PAIR, "-q", "--gallery", "3", "-o", f"{tmp_path}/out/").returncode == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    done = run_here(*MAPS_PAIR, "-q", "-o", f"{tmp_path}/mine/")
    assert done.returncode == 2 and "another program wrote: 'notes.txt'" in done.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
