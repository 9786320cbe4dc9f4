"""The site in a browser: nothing is cut or leaves the screen, on a desktop or a phone, and its search finds pages."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

DESKTOP, PHONE = 1440, 390
PARTS = 50
# What is wider than its place: code that scrolls, tables and pages that leave the window.
WIDE = """() => {
  const width = document.documentElement.clientWidth, wide = [];
  for (const code of document.querySelectorAll('article pre'))
    if (code.scrollWidth > code.clientWidth + 1) wide.push('code: ' + code.textContent.slice(0, 60));
  for (const table of document.querySelectorAll('article table')) {
    const {left, right} = table.getBoundingClientRect(), frame = table.closest('.table-wrapper');
    if (left < -1 || right > width + 1 || (frame && frame.scrollWidth > frame.clientWidth + 1))
      wide.push('table: ' + table.textContent.trim().slice(0, 60));
  }
  if (document.documentElement.scrollWidth > width) wide.push('page');
  return wide;
}"""


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


# In parts, as files of many tests begin first: in one test the site would be looked at when all else is done.
@pytest.mark.parametrize("part", range(PARTS))
def test_no_code_is_cut_and_no_table_leaves_the_screen(part: int, site: Path, page: Any) -> None:
    wide = {}
    for path in sorted(site.rglob("*.html"))[part::PARTS]:
        page.goto(path.as_uri(), wait_until="domcontentloaded")
        for width in (DESKTOP, PHONE):
            page.set_viewport_size({"width": width, "height": 900})
            if found := page.evaluate(WIDE):
                wide[path.relative_to(site).as_posix(), width] = found
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
