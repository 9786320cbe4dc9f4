"""What is chosen on a page: sentences of "Fix next", kinds of errors, the address, and what is saved of it."""

import csv
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from browser_pages import until
from pictures import det, gt
from pictures import evaluate as evaluate_pictures

from jaccard_eval import Slice
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.html import render

DOGS = [gt(f"dog {60 * i} 0 20 20", "a") for i in range(4)]
TRUTH = [*DOGS, gt("cat 0 100 20 20", "b"), gt("cat 100 100 20 20", "b")]
FOUND = [
    det("dog 0 0 20 20", 0.9, "a"),
    det("dog 0 0 20 20", 0.8, "a"),  # a duplicate
    det("dog 60 0 20 8", 0.7, "a"),  # 8 of 20 lines: IoU .4
    det("dog 0 100 20 20", 0.96, "b"),  # on a cat
    det("dog 200 200 20 20", 0.97, "c"),  # on nothing
    det("cat 100 100 20 20", 0.85, "b"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("choosing") / "page.html"
    slices = [Slice(name="first", patterns=("a",)), Slice(name="rest", patterns=("b", "c"))]
    result = evaluate_pictures(TRUTH, FOUND, errors=True, score=0.5, slices=slices)
    path.write_text(render(result, ReportOptions()), encoding="utf-8")
    return path


def opened(browser: Any, address: str) -> Any:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector("[data-boxes=there]")
    return page


@pytest.fixture
def page(browser: Any, path: Path) -> Any:
    page = opened(browser, path.as_uri())
    yield page
    page.close()


def status(page: Any) -> str:
    return str(page.locator("#images [role=status]").text_content())


def test_each_sentence_leads_to_as_many_boxes_as_it_counts_wherever_the_slider_stands(page: Any) -> None:
    links = page.locator(".next a")
    assert links.count() == 3
    for link in links.all():
        page.locator("#slider").fill("0.9")
        link.click()
        n = next(word for word in link.locator("b").text_content().split() if word.isdigit())
        # "cat is detected as dog 2 times": the count of a sentence is its first number.
        until(page, f"document.querySelector('#images [role=status]').textContent.includes(': {n} box')")
        assert page.locator(".is-chosen:visible").count() == int(n)
        assert link.get_attribute("aria-current") == "true"
    assert page.locator(".next a[aria-current]").count() == 1


def test_a_choice_shows_in_the_bar_that_stays_and_leads_to_its_images(page: Any) -> None:
    jump = page.locator("#score .jump")
    assert not jump.is_visible()
    page.locator("#classes tbody th button", has_text="cat").click()
    assert jump.text_content() == "cat: 2 boxes ↓"
    jump.click()
    assert page.evaluate("Math.abs(document.getElementById('images').getBoundingClientRect().top) < innerHeight / 2")
    page.locator(".chosen button", has_text="Show all").click()
    assert not jump.is_visible()


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("error=double", "false: duplicate: 1 box in 1"),
        ("error=box", "false: box is off: 1 box in 1"),
        ("error=class", "false: wrong class: 1 box in 1"),
        ("error=background", "false: on nothing: 1 box in 1"),
        ("error=missed", "missed: 4 boxes in 2"),  # three dogs and a cat
        ("class=cat&error=missed", "cat, missed: 1 box in 1"),
        ("object=cat&pred=dog", "cat detected as dog: 1 box in 1"),
        ("object=cat&pred=cat", "cat found: 1 box in 1"),
        ("object=&pred=dog", "dog on nothing: 3 boxes in 2"),  # of the wrong ones all but that on a cat
        ("object=cat&pred=", "cat missed: 0 boxes in 0"),  # a dog is detected on one, a cat on the other
        ("object=dog&pred=", "dog missed: 3 boxes in 1"),
        ("error=false&sure=0.95", "false, score ≥ 0.95: 2 boxes in 2"),
        ("error=missed&score=0.95", "missed: 6 boxes in 2"),
        ("slice=rest&error=false", "rest, false: 2 boxes in 2"),
        ("size=small&error=missed", "small, missed: 4 boxes in 2"),
        ("size=large", "large: 0 boxes in 0"),
    ],
)
def test_an_address_shows_a_colleague_the_same(chosen: str, said: str, browser: Any, path: Path) -> None:
    page = opened(browser, f"{path.as_uri()}#{chosen}")
    assert status(page).startswith(f"{said} of the 3 images")
    page.close()


def test_an_address_of_what_is_not_there_says_so(browser: Any, path: Path) -> None:
    page = opened(browser, f"{path.as_uri()}#class=horse")
    assert status(page) == "There is no class “horse” on this page."
    page.close()


def test_kinds_of_errors_choose_their_boxes_and_the_address_follows(page: Any) -> None:
    page.locator("#errors").get_by_role("button", name="duplicate").click()
    page.locator("#classes tbody").get_by_role("button", name="dog", exact=True).click()
    address = parse_qs(page.evaluate("location.hash.slice(1)"))
    assert address == {"error": ["double"], "class": ["dog"]}
    assert status(page).startswith("dog, false: duplicate: 1 box in 1")
    page.get_by_role("button", name="Show all").click()
    assert (page.evaluate("location.hash"), status(page)) == ("", "")


def test_slices_and_sizes_choose_their_boxes(page: Any) -> None:
    page.locator("#slices").get_by_role("button", name="first").first.click()
    # Of four dogs one is found, with a duplicate and a box that is off.
    assert status(page) == "first: 6 boxes in 1 of the 3 images (3 missed, 2 false, 1 found)"
    page.get_by_role("combobox", name="Size").select_option("medium")
    assert status(page).startswith("first, medium: 0 boxes in 0")
    page.get_by_role("combobox", name="Size").select_option("all")
    page.get_by_role("combobox", name="Slice").select_option("rest")
    assert status(page).startswith("rest: 4 boxes in 2")


def test_boxes_say_why(page: Any) -> None:
    whys = page.evaluate("[...store.label.keys()].map(place => whyOf(place)).filter(Boolean).sort()")
    assert whys == [
        "best box has IoU 0.40",
        "box is off: IoU 0.40",
        "detected as dog at 0.96",
        "duplicate of a surer box",
        *["nothing near"] * 2,
        "on nothing: label missing?",
        "wrong class: is cat, IoU 1.00",
    ]
    page.locator("#slider").fill("0.95")
    whys = page.evaluate("[...store.label.keys()].map(place => whyOf(place)).filter(Boolean)")
    assert whys.count("only at 0.90, below the score") == 1
    page.locator(".shot").first.click()
    assert page.locator(".viewer-list button", has_text="nothing near").count() == 3


def test_boxes_and_tables_are_saved_without_formulas(page: Any, tmp_path: Path) -> None:
    page.locator("#errors").get_by_role("button", name="false positives").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save these boxes").click()
    saved.value.save_as(tmp_path / "boxes.csv")
    rows = list(csv.DictReader((tmp_path / "boxes.csv").read_text(encoding="utf-8").splitlines()))
    found = {
        tuple(row[name] for name in ("image", "class", "what", "score", "x", "y", "width", "height")) for row in rows
    }
    assert found == {
        ("a", "dog", "false", "0.8000", "0", "0", "20", "20"),
        ("a", "dog", "false", "0.7000", "60", "0", "20", "8"),
        ("b", "dog", "false", "0.9600", "0", "100", "20", "20"),
        ("c", "dog", "false", "0.9700", "200", "200", "20", "20"),
    }
    assert sorted(row["why"] for row in rows) == [
        *("box is off: IoU 0.40", "duplicate of a surer box"),
        *("on nothing: label missing?", "wrong class: is cat, IoU 1.00"),
    ]
    # A table is saved as it is shown; a name that a spreadsheet would run is text.
    assert page.evaluate("csvOf([['=1+1', 'a,b', '-0.5']])") == '\'=1+1,"a,b",-0.5\n'
    with page.expect_download() as saved:
        page.locator("#errors").get_by_role("button", name="Save as CSV").click()
    saved.value.save_as(tmp_path / "errors.csv")
    assert (tmp_path / "errors.csv").read_text(encoding="utf-8").startswith("type,count,")


def test_images_are_ordered_by_what_they_have(page: Any) -> None:
    names = lambda: page.locator(".shots > li:visible b").all_text_contents()  # noqa: E731
    page.get_by_label("Order").select_option("surest false")
    assert [name[0] for name in names()][:3] == ["c", "b", "a"]  # .97, .96, .8
    page.get_by_label("Order").select_option("lowest F1")
    # Of c nothing is right; of b one of two with one false, 2 / 4; of a one of four with two false, 2 / 7.
    assert [name[0] for name in names()][:3] == ["c", "a", "b"]
