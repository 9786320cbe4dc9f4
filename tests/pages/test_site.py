"""The site in a browser: nothing is cut or leaves the screen, on a desktop or a phone, and its search finds pages."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

DESKTOP, PHONE = 1440, 390
STYLES = re.compile(r"<link rel=\"stylesheet\"[^>]*>|<style.*?</style>", re.DOTALL)
# What is wider than its place: code that scrolls, tables and pages that leave the window. Pages of a folder have one
# style, so only the first is opened, and the bodies of the others stand in its place one after another.
WIDE = """texts => texts.map(text => {
  document.body.replaceWith(new DOMParser().parseFromString(text, "text/html").body);
  const width = document.documentElement.clientWidth, wide = [];
  if (!document.querySelector('article')) wide.push('nothing');
  for (const code of document.querySelectorAll('article pre'))
    if (code.scrollWidth > code.clientWidth + 1) wide.push('code: ' + code.textContent.slice(0, 60));
  for (const table of document.querySelectorAll('article table')) {
    const {left, right} = table.getBoundingClientRect(), frame = table.closest('.table-wrapper');
    if (left < -1 || right > width + 1 || (frame && frame.scrollWidth > frame.clientWidth + 1))
      wide.push('table: ' + table.textContent.trim().slice(0, 60));
  }
  if (document.documentElement.scrollWidth > width) wide.push('page');
  return wide;
})"""


@pytest.fixture(scope="module")
def site() -> Path:
    """The site where `make docs` builds it: what has not changed since is not built again."""
    done = subprocess.run([sys.executable, ROOT / "docs/site/build.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "build" / "site"


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    page = browser.new_page()
    yield page
    page.close()


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_no_code_is_cut_and_no_table_leaves_the_screen(width: int, site: Path, page: Any) -> None:
    wide = {}
    page.set_viewport_size({"width": width, "height": 900})
    for folder, pages in groupby(sorted(site.rglob("*.html")), key=lambda path: path.parent):
        paths = list(pages)
        texts = [path.read_text(encoding="utf-8") for path in paths]
        assert len({tuple(STYLES.findall(text.partition("</head>")[0])) for text in texts}) == 1, folder
        page.goto(paths[0].as_uri(), wait_until="domcontentloaded")
        found = page.evaluate(WIDE, texts)
        wide |= {path.relative_to(site).as_posix(): one for path, one in zip(paths, found, strict=True) if one}
    assert wide == {}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("excel", ("install.html", "notebook.html")),
        ("label errors", ("labels.html",)),
        ("install", ("install.html",)),
        ("confidence threshold", ("threshold.html",)),
    ],
)
def test_the_search_finds_what_people_ask(words: str, wanted: tuple[str, ...], site: Path, page: Any) -> None:
    page.goto(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
    page.wait_for_selector("#search-results ul.search li a")
    page.wait_for_function("!document.querySelector('#search-progress')?.textContent.includes('Searching')")
    links = page.locator("#search-results ul.search li > a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    first = [link.partition("#")[0].partition("?")[0] for link in links[:3]]
    assert set(first) & set(wanted), links[:8]


def test_the_first_page_has_a_picture_and_the_tasks_as_cards(site: Path, page: Any) -> None:
    page.set_viewport_size({"width": DESKTOP, "height": 900})
    page.goto((site / "index.html").as_uri())
    assert page.locator("article img").evaluate_all("all => all.every(one => one.naturalWidth > 0)")
    tops = page.locator("#start > ul > li").evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
    assert len(tops) == 5
    assert len(set(tops)) < 5, "cards stand next to each other"
