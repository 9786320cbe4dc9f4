"""Suspects on the page of an evaluation: each selects its box and image, and is judged there as on that of labels."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from browser_pages import until
from command_line import run_here

from jaccard_eval.features.labels import SUSPICIONS
from jaccard_eval.features.labels.report import COLUMNS

SAMPLE = Path(__file__).parents[2] / "sample_data/coco"
PAIR = (SAMPLE / "gt.json", SAMPLE / "better.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The list of suspects, with one of an image that the page does not have, and the page."""
    folder = tmp_path_factory.mktemp("suspects")
    assert run_here("labels", *PAIR, "-o", "labels.csv", cwd=folder).returncode == 0
    with (folder / "labels.csv").open("a", newline="") as file:
        csv.writer(file).writerow(["missing", "elsewhere.png", "car", "car", 0.01, 1, 2, 3, 4, "sure", ""])
    done = run_here("evaluate", *PAIR, "--suspects", "labels.csv", "-o", "page.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def page(browser: Any, folder: Path) -> Any:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page, noise = context.new_page(), []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.goto((folder / "page.html").as_uri())
    page.wait_for_selector("[data-boxes=there]")
    yield page
    context.close()
    assert noise == []


def listed(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "labels.csv").read_text().splitlines()))


def status(page: Any) -> str:
    return str(page.locator(".chosen [role=status]").text_content())


def test_every_suspect_selects_its_box_and_its_image(page: Any, folder: Path) -> None:
    rows = listed(folder)
    script = """i => { const { marks, all } = select({ suspect: `${i}` });
      return [...marks.keys()].filter(place => marks[place]).map(place =>
        [store.names[store.image[place]], about.classes[store.label[place]], place < store.m, ...sideOf(place)]); }"""
    for i, row in enumerate(rows):
        found = page.evaluate(script, i)
        if row["image"] == "elsewhere.png":
            assert found == []
            continue
        ((image, name, is_object, *sides),) = found
        assert (image, name, is_object) == (row["image"], row["class"], row["kind"] != "missing")
        left, top, right, bottom = (float(row[edge]) for edge in ("xmin", "ymin", "xmax", "ymax"))
        # Boxes have eighths of a pixel.
        assert sides == pytest.approx([left, top, right - left, bottom - top], abs=1 / 8)
    kinds = Counter(row["kind"] for row in rows if row["image"] != "elsewhere.png")
    for kind in SUSPICIONS:
        chosen = page.evaluate("kind => select({ suspect: kind }).marks.reduce((a, b) => a + b, 0)", kind)
        assert chosen == kinds[kind], kind
    assert "1 box of these is not among the boxes of this page" in page.locator("#review").text_content()


def test_a_suspect_is_chosen_by_its_row_by_its_kind_and_by_the_address(page: Any, folder: Path) -> None:
    row = listed(folder)[0]
    page.locator("#review tbody th button").first.click()
    assert status(page) == f"suspect ({row['kind']}): 1 box in 1 of the {images(page)} images"
    assert "suspect=0" in page.evaluate("location.hash")
    # The list of kinds shows that of the suspect.
    assert page.evaluate("fields.suspect.value") == row["kind"]
    tiles = page.locator(".shots > li:visible")
    assert tiles.count() == 1 and row["image"] in tiles.first.text_content()
    assert page.locator(".shots > li:visible .is-chosen:not(.off)").count() == 1
    n = sum(one["kind"] == "spurious" for one in listed(folder))
    page.locator(".chosen label", has_text="Suspect").locator("select").select_option("spurious")
    assert f"{n} boxes in " in status(page)
    page.evaluate("location.hash = '#suspect=nonsense'")
    until(page, "document.querySelector('.chosen [role=status]').textContent.startsWith('There is no')")
    assert status(page) == "There is no suspect “nonsense” on this page."


def images(page: Any) -> int:
    return int(page.evaluate("store.names.length"))


def test_a_suspect_is_judged_beside_its_picture_and_saved_for_a_review(page: Any, folder: Path) -> None:
    page.locator("#review tbody th button").first.click()
    page.locator(".shots > li:visible .shot").first.click()
    page.locator("dialog [data-verdict=accepted]").first.click()
    page.keyboard.press("Escape")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save reviewed.csv").click()
    path = folder / "reviewed.csv"
    download.value.save_as(path)
    (saved,) = csv.DictReader(path.read_text().splitlines())
    first = listed(folder)[0]
    assert saved["verdict"] == "accepted"
    assert [saved[name] for name in ("kind", "image", "class", "object")] == [
        first[name] for name in ("kind", "image", "class", "object")
    ]
    assert [*saved] == [*COLUMNS, "verdict", "note"]
    done = run_here("labels", *PAIR, "--reviewed", "reviewed.csv", "-o", "left.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    left = list(csv.DictReader((folder / "left.csv").read_text().splitlines()))
    assert (first["kind"], first["object"]) not in {(row["kind"], row["object"]) for row in left}


def test_lists_that_are_none_and_results_without_boxes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("a,b\n1,2\n")
    done = run_here("evaluate", *PAIR, "--suspects", "odd.csv", "-o", "page.html", cwd=tmp_path)
    assert done.returncode == 2 and "odd.csv: expected the columns of labels.csv; kind, image" in done.stderr
    done = run_here("evaluate", *PAIR, "--suspects", "odd.csv", "-o", "page.md", cwd=tmp_path)
    assert done.returncode == 2 and "no output is an .html file" in done.stderr
    assert not [*tmp_path.glob("page.*")]


@pytest.mark.parametrize("how", [("--gallery", "0"), ("--no-errors",), ()])
def test_suspects_are_listed_and_judged_on_pages_without_boxes_as_well(
    how: tuple[str, ...], browser: Any, folder: Path, tmp_path: Path
) -> None:
    words: tuple[Any, ...] = ("evaluate", *PAIR, *how)
    if not how:  # a document has no boxes
        assert run_here("evaluate", *PAIR, "-o", "result.json", cwd=tmp_path).returncode == 0
        words = ("report", "result.json")
    done = run_here(*words, "--suspects", folder / "labels.csv", "-o", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator("#review tbody tr").count() == len(listed(folder))
    page.locator("#review [data-verdict=rejected]").first.click()
    assert "0 accepted, 1 rejected" in page.locator("#review [role=status]").text_content()
    page.close()
    assert errors == []
