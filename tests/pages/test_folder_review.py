"""Suspected labels in the folder of all images: selected, judged with a note, kept by the browser, read by `labels`."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser_pages import until
from command_line import run_here
from test_explorer import EVERY_BUTTON

SAMPLE = Path(__file__).parents[2] / "sample_data" / "coco"
PAIR = (SAMPLE / "gt.json", SAMPLE / "better.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The list of suspects, with one of an image that is not there, and the folder."""
    folder = tmp_path_factory.mktemp("judged")
    assert run_here("labels", *PAIR, "-o", "labels.csv", cwd=folder).returncode == 0
    with (folder / "labels.csv").open("a", newline="") as file:
        csv.writer(file).writerow(["missing", "elsewhere.png", "car", "car", 0.01, 1, 2, 3, 4, "sure", ""])
    done = run_here("evaluate", *PAIR, "--suspects", "labels.csv", "-q", "-o", "out/", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Callable[..., Any]]:
    """Open the folder, or another of its files, in a browser that remembers nothing of other tests."""
    context, noise = browser.new_context(viewport={"width": 1280, "height": 900}), []

    @contextmanager
    def opening(state: str = "", file: str = "index.html") -> Iterator[Any]:
        page = context.new_page()
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.goto(f"{(folder / 'out' / file).as_uri()}#{state}")
        page.wait_for_selector("[data-verdict], [data-boxes=there]")
        yield page
        page.close()

    yield opening
    context.close()
    assert noise == []


def rows(folder: Path, name: str = "labels.csv") -> list[dict[str, str]]:
    return list(csv.DictReader((folder / name).read_text().splitlines()))


@pytest.mark.parametrize("state", [{}, {"class": "dog"}, {"suspect": "box"}, {"suspect": "missing", "size": "medium"}])
def test_kinds_of_suspects_count_what_they_select(opened: Any, folder: Path, state: dict[str, str]) -> None:
    with opened() as page:
        assert page.evaluate(EVERY_BUTTON, state)[1] == []
        page.evaluate("chosen = {}; render()")
        listed = [row["kind"] for row in rows(folder) if row["image"] != "elsewhere.png"]
        assert page.evaluate("tally.suspects") == {kind: listed.count(kind) for kind in listed}


def test_suspects_are_judged_by_keys_and_buttons_with_a_note_and_saved(opened: Any, folder: Path) -> None:
    with opened("suspect=missing&show=boxes") as page:
        status = lambda: page.locator("#review [role=status]").text_content()  # noqa: E731
        save = page.get_by_role("button", name="Save reviewed.csv")
        assert save.is_disabled() and status().startswith("0 accepted, 0 rejected of ")
        page.keyboard.press("j")
        page.keyboard.press("x")
        until(page, "all('.tile.on')[0].textContent.includes('rejected, missing')")
        judged = page.evaluate("items[cursor]")
        page.keyboard.press("x")  # taken back
        until(page, "!all('.tile.on')[0].textContent.includes('rejected')")
        page.keyboard.press("Enter")
        page.wait_for_selector(".hot")
        page.keyboard.press("a")
        until(page, "!!all('[data-verdict=accepted][aria-pressed=true]')[0]")
        note = page.locator(".judged", has=page.locator("[aria-pressed=true]")).locator("input")
        note.fill('=sure, "really"')
        note.press("Tab")
        page.keyboard.press("Escape")
        assert status().startswith("1 accepted, 0 rejected of ")
        with page.expect_download() as download:
            save.click()
        download.value.save_as(folder / "reviewed.csv")
        image, name = page.evaluate("at => [store.names[store.image[at]], about.classes[store.label[at]]]", judged)
    (saved,) = rows(folder, "reviewed.csv")
    assert (saved["kind"], saved["image"], saved["class"]) == ("missing", image, name)
    # A note that a spreadsheet would take for a formula is a text.
    assert (saved["verdict"], saved["note"]) == ("accepted", '\'=sure, "really"')
    done = run_here("labels", *PAIR, "--reviewed", "reviewed.csv", "-o", "left.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    known = ("kind", "image", "class", "xmin")
    assert [saved[key] for key in known] not in [[row[key] for key in known] for row in rows(folder, "left.csv")]
    # The browser keeps it, for the page of numbers as well.
    with opened() as page:
        assert page.locator("#review [role=status]").text_content().startswith("1 accepted")
    with opened(file="numbers.html") as page:
        assert page.locator("#review [aria-pressed=true]").count() == 1
        page.locator("#review [data-verdict=accepted][aria-pressed=true]").click()
        assert page.locator("#review [role=status]").text_content().startswith("0 accepted")


def test_a_note_alone_is_no_verdict(folder: Path) -> None:
    listed = rows(folder)[:2]
    with (folder / "noted.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, [*listed[0], "verdict", "note"])
        table.writeheader()
        table.writerow({**listed[0], "verdict": "", "note": "rejected"})
        table.writerow({**listed[1], "verdict": "accepted", "note": "seen twice"})
    done = run_here("labels", *PAIR, "--reviewed", "noted.csv", "-o", "rest.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    left = [(row["kind"], row["image"], row["object"], row["xmin"]) for row in rows(folder, "rest.csv")]
    first, second = ((row["kind"], row["image"], row["object"], row["xmin"]) for row in listed)
    assert first in left and second not in left
