"""Images without a thumbnail are shown from their files, as long as the page lies where it was written."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from browser_pages import until
from command_line import run_here
from PIL import Image

NAMES = ("first one.png", "a#b?c%20.png", "deep/er/ünder.png", "fourth.png")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four images of a colour each, the last one without a file; the page has a thumbnail of one."""
    (tmp_path / "pages").mkdir()
    truth, found = ["image,class,x,y,w,h"], ["image,class,x,y,w,h,score"]
    for i, name in enumerate(NAMES):
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name != "fourth.png":
            Image.new("RGB", (120, 80), (200, 50 * i, 0)).save(path)
        truth.append(f"{name},dog,10,10,30,30")
        found += [f"{name},dog,{60 if i else 10},10,30,30,0.9"]
    (tmp_path / "gt.csv").write_text("\n".join(truth) + "\n", encoding="utf-8")
    (tmp_path / "pred.csv").write_text("\n".join(found) + "\n", encoding="utf-8")
    asked = ("--images", "pictures", "--gt-box", "xywh", "--pred-box", "xywh", "--gallery", "1")
    done = run_here("evaluate", "gt.csv", "pred.csv", *asked, "-o", "pages/page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def opened(browser: Any, path: Path) -> tuple[Any, list[str]]:
    page, requests = browser.new_page(), []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("[data-boxes=there]")
    page.evaluate("choose({ error: 'missed' })")
    page.wait_for_load_state("networkidle")
    return page, requests


def pixels(page: Any) -> dict[str, list[int]]:
    """Width of each picture that its file has, by the name of the image."""
    script = """async () => Object.fromEntries(await Promise.all(
      [...document.querySelectorAll(".shots > li:not([hidden])")].map(async li => {
        const image = li.querySelector("image"), loaded = new Image();
        if (!image) return [li.querySelector("b").textContent, 0];
        loaded.src = image.getAttribute("href");
        await loaded.decode().catch(() => 0);
        return [li.querySelector("b").textContent, loaded.naturalWidth];
      })))"""
    return dict(page.evaluate(script))


def test_every_image_shows_its_file_whatever_its_name(browser: Any, folder: Path) -> None:
    page, requests = opened(browser, folder / "pages/page.html")
    widths = pixels(page)
    # The first image has no miss.
    assert widths == {NAMES[1]: 120, NAMES[2]: 120, NAMES[3]: 0}
    assert all(url.startswith("file:") or url.startswith("data:") for url in requests)
    hints = " ".join(page.locator(".shots > li:visible").all_text_contents())
    assert "no file of this image was found" in hints
    text = (folder / "pages/page.html").read_text(encoding="utf-8")
    assert "img-src file: data:;" in text and str(folder) not in re.findall(r'"pictures":"[^"]*"', text)[0]
    page.close()


def test_a_page_that_was_moved_says_how_to_get_its_pictures(browser: Any, folder: Path) -> None:
    (folder / "elsewhere/far").mkdir(parents=True)
    shutil.move(folder / "pages/page.html", folder / "elsewhere/far/page.html")
    page, _ = opened(browser, folder / "elsewhere/far/page.html")
    until(page, "document.body.textContent.includes('move the page back next to its images')")
    assert page.locator(".shots > li:visible rect.paper").count() >= 2
    page.close()


def test_a_page_of_a_document_says_what_has_images(folder: Path) -> None:
    asked = ("--gt-box", "xywh", "--pred-box", "xywh", "--errors")
    assert run_here("evaluate", "gt.csv", "pred.csv", *asked, "-o", "r.json", cwd=folder).returncode == 0
    assert run_here("report", "r.json", "-o", "r.html", cwd=folder).returncode == 0
    text = (folder / "r.html").read_text(encoding="utf-8")
    assert "Write the run with -o run.npz, and report that file." in text
    assert "img-src data:;" in text
