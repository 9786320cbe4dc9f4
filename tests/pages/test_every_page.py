"""What holds for every page, whatever command wrote it: room, contrast and names, paper, no script."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser_pages import PAGES
from command_line import REPORTING

# 1,203 classes take axe a minute; the others have nothing that the page with gates has not.
NOT_FOR_AXE = ("many", "one-score", "nothing", "report", "sample")


def test_every_command_that_writes_pages_has_one_here() -> None:
    assert set(REPORTING) - {"evaluate"} <= set(PAGES)


def test_a_page_is_not_wider_than_the_window(shown: Any) -> None:
    for width in (360, 800, 1600):
        shown.set_viewport_size({"width": width, "height": 900})
        assert shown.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", [name for name in PAGES if name not in NOT_FOR_AXE])
def test_axe_finds_nothing_in_light_and_dark(name: str, opened: Any) -> None:
    import axe_playwright_python

    # By evaluation: the policy of the page keeps any script out that is added to it.
    with opened(name) as page:
        page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
        # What is folded is looked at as well.
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        # Tiles are all alike, and each takes axe a second: a few, and those with a note of their own.
        alike = ".shots > li:nth-child(n+4):not(:has(.hint))"
        page.evaluate("tiles => document.querySelectorAll(tiles).forEach(tile => tile.remove())", alike)
        # Schemes differ in colours alone.
        for scheme, rules in (("light", "{}"), ("dark", "{runOnly: ['color-contrast', 'link-in-text-block']}")):
            page.emulate_media(color_scheme=scheme)
            found = page.evaluate(f"axe.run(document, {rules})")
            assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]] == []
            assert found["passes"]


def test_on_paper_there_are_all_rows_and_nothing_to_operate(shown: Any) -> None:
    rows = shown.locator("tbody tr").count()
    shown.emulate_media(media="print")
    for control in ("input[type=range]", "input[type=search]", "dialog", ".no-print"):
        assert shown.locator(f"{control}:visible").count() == 0, control
    hidden = "[...document.querySelectorAll('tbody tr')].filter(row => getComputedStyle(row).display == 'none').length"
    assert shown.evaluate(hidden) == 0
    assert shown.locator("tbody tr").count() == rows
    # A table that scrolls on screen does not on paper.
    clipped = "all => all.filter(e => e.scrollHeight > e.clientHeight + 1).length"
    assert shown.locator(".scroll").evaluate_all(clipped) == 0
    assert shown.pdf().startswith(b"%PDF")


def test_without_script_all_tables_and_drawings_are_there(name: str, opened: Any) -> None:
    def content(page: Any) -> dict[str, Any]:
        return {
            "tables": page.locator("table").all_text_contents(),
            "charts": page.locator("figure.chart svg").evaluate_all("all => all.map(e => e.innerHTML.length)"),
        }

    with opened(name) as page, opened(name, java_script_enabled=False) as still:
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        if still.locator("summary").count():  # one is opened as a reader does it, the others at once
            still.locator("summary").first.click()
            assert still.locator("details").first.get_attribute("open") is not None
        still.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert content(still) == content(page)
        # A script shows a tab of them at once.
        assert still.locator(".shots > li:visible").count() >= page.locator(".shots > li:visible").count()
        # What only a script can operate is not there to be tried.
        alive = "all => all.filter(e => !e.matches(':disabled') && e.type !== 'checkbox').map(e => e.outerHTML)"
        assert still.locator("button:visible, input:visible").evaluate_all(alive) == []


@pytest.mark.parametrize("name", ["gates", "compare", "explain", "labels", "panoptic"])
def test_a_keyboard_reaches_all_that_can_be_operated(name: str, opened: Any) -> None:
    focusable = "a[href], button:not([disabled]), input:not([disabled]), summary, [tabindex='0']"
    with opened(name) as page:
        n = page.locator(focusable).locator("visible=true").count()
        page.evaluate("self.reached = new Set(); addEventListener('focusin', e => reached.add(e.target));")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        for _ in range(n - 1):
            page.keyboard.press("Tab")
        # As many steps, and each to another one.
        assert page.evaluate("reached.size") == n > 1


def test_headings_descend_without_gaps_and_sections_have_names(shown: Any) -> None:
    levels = [int(tag[1]) for tag in shown.locator("h1, h2, h3, h4").evaluate_all("all => all.map(e => e.tagName)")]
    assert levels.count(1) == 1
    assert all(level <= before + 1 for before, level in pairwise(levels))
    links = shown.locator("nav a").evaluate_all("all => all.map(a => a.getAttribute('href').slice(1))")
    assert [shown.locator(f"[id='{target}']").count() for target in links] == [1] * len(links)
