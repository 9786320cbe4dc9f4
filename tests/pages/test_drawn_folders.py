"""Folders of suspects, whose boxes are few: their page next to small copies of their images."""

from pathlib import Path
from typing import Any

import pytest
from browser_pages import HOSTILE, MAPS, until, write_coco
from command_line import box, run_here

SAMPLE = Path(__file__).parents[2] / "sample_data"
MAPS_PAIR = ("pixels", MAPS / "gt", MAPS / "pred", "--classes", "sky,road,car", "--ignore", "9")
SVG = "<svg onload=window.pwned=1>"
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


def test_names_of_suspects_are_text_and_no_markup_acts(browser: Any, tmp_path: Path) -> None:
    import axe_playwright_python

    # One object is surely found as another class, which is what a suspect is.
    boxes = [box(1 + i, 1 + i, [10, 10, 40 + i, 30]) for i in range(len(HOSTILE))]
    found = [dict(box(1 + i, 1 + i, [11, 12, 40 + i, 30]), score=0.99 - i / 50) for i in range(len(HOSTILE))]
    found[HOSTILE.index(SVG)]["category_id"] = 1
    files = [f"{name.replace('/', '')[:60]}.jpg" for name in HOSTILE]
    sides = write_coco(tmp_path / "in", HOSTILE, files, boxes, found)
    done = run_here("labels", *sides, "-q", "-o", f"{tmp_path}/out/")
    assert done.returncode == 0, done.stderr
    index = tmp_path / "out" / "index.html"
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(index.as_uri())
    text = page.locator("body").inner_text()
    assert SVG in text and page.evaluate("window.pwned === undefined")
    page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate("axe.run(document)")
        assert [(one["id"], one["nodes"][0]["html"][:150]) for one in found["violations"]] == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    (tmp_path / "out" / "evil.js").write_text("window.pwned = 1")
    bad = "<script>window.pwned=1</script><script src=evil.js></script><img src=x onerror='window.pwned=1'>"
    index.write_text(index.read_text().replace("<body>", f"<body>{bad}", 1).replace("<main", f"{bad}<main", 1))
    page.goto(index.as_uri())
    assert bad in index.read_text() and page.evaluate("window.pwned === undefined")
    page.close()
    # The file of somebody else is left alone, and so is all else.
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    done = run_here("labels", *sides, "-q", "-o", f"{tmp_path}/out/")
    assert done.returncode == 2 and "another program wrote: 'evil.js'" in done.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
