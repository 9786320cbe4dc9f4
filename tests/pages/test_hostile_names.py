"""Names of classes, images, files and slices are texts, whatever they contain; the policy holds what gets past."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser_pages import HOSTILE

PAYLOAD = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1><b id=planted>x</b>"


def test_hostile_names_are_shown_and_run_nothing(opened: Any) -> None:
    with opened("hostile") as page:
        page.mouse.move(600, 400)
        for button in page.locator("button:visible").all():
            button.click()
            page.keyboard.press("Escape")
        assert page.evaluate("window.pwned") is None
        texts = page.locator("#classes table").inner_text()
        for name in HOSTILE[:6]:
            assert name in texts
        # Not one element was made by a name.
        assert page.locator("img:not([src^='data:']), b b, [onclick], [onerror], [onload], [style]").count() == 0


def test_markup_that_gets_past_all_escaping_still_does_not_run(
    browser: Any, page_of: Callable[[str], Path], tmp_path: Path
) -> None:
    text = page_of("sample").read_text(encoding="utf-8")
    planted = tmp_path / "planted.html"
    planted.write_text(text.replace("<main", f"{PAYLOAD}<main", 1), encoding="utf-8")
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(planted.as_uri())
    assert page.locator("#planted").count() == 1
    assert page.evaluate("window.pwned") is None
    assert len([text for text in refused if "Content Security Policy" in text]) >= 2
    page.close()
