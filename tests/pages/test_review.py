"""A review on the page of suspected labels: verdicts are given, kept and saved, for `--reviewed` to read."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here

from jaccard_eval.features.labels.report import COLUMNS

BOX = [10, 10, 30, 30]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten images with a car each, one of them called a truck; and a second car without a label."""
    folder = tmp_path_factory.mktemp("review")
    images = [
        {"id": k, "file_name": 'a, "b".jpg' if k == 5 else f"{k}.jpg", "width": 100, "height": 100} for k in range(10)
    ]
    annotations = [
        {"id": 100 + k, "image_id": k, "category_id": 2 if k == 3 else 1, "bbox": BOX, "area": 900, "iscrowd": 0}
        for k in range(10)
    ]
    categories = [{"id": 1, "name": "car"}, {"id": 2, "name": "truck"}]
    pred = [{"image_id": k, "category_id": 1, "bbox": BOX, "score": 0.9} for k in range(10)]
    pred.append({"image_id": 5, "category_id": 1, "bbox": [60.25, 60, 20, 20], "score": 0.8})
    (folder / "gt.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories})
    )
    (folder / "pred.json").write_text(json.dumps(pred))
    done = run_here("labels", "gt.json", "pred.json", "-o", "labels.html", "-o", "labels.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def page(browser: Any, folder: Path) -> Iterator[Any]:
    """The page in a tab that remembers nothing of others; it fetches nothing and says nothing."""
    context = browser.new_context()
    page, noise = context.new_page(), []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda request: noise.append(request.url[:5]))
    page.goto((folder / "labels.html").as_uri())
    yield page
    context.close()
    assert {*noise} == {"file:"}


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def button(page: Any, word: str, kind: str) -> Any:
    return page.locator("main tbody").get_by_role("button", name=f"{word} {kind} ")


def status(page: Any) -> str:
    return str(page.locator("#review [role=status]").text_content())


def test_what_is_accepted_and_rejected_is_saved_and_read_again(page: Any, folder: Path) -> None:
    listed = rows_of(folder / "labels.csv")
    assert {row["kind"] for row in listed} == {"class", "missing"}
    save = page.get_by_role("button", name="Save reviewed.csv")
    assert save.is_disabled()
    for word, kind, key in (("Accept", "class", "Enter"), ("Reject", "missing", "Space")):
        button(page, word, kind).focus()
        page.keyboard.press(key)
    assert status(page) == "1 accepted, 1 rejected of 2 suspects"
    with page.expect_download() as saved:
        save.click()
    assert saved.value.suggested_filename == "reviewed.csv"
    saved.value.save_as(folder / "reviewed.csv")

    rows = rows_of(folder / "reviewed.csv")
    assert tuple(rows[0]) == (*COLUMNS, "verdict", "note")
    assert {row["kind"]: row["verdict"] for row in rows} == {"class": "accepted", "missing": "rejected"}
    numbers = "score", "xmin", "ymin", "xmax", "ymax"
    for row, own in zip(rows, listed, strict=True):
        assert {name: float(row[name]) for name in numbers} == {name: float(own[name]) for name in numbers}
        assert all(row[name] == own[name] for name in COLUMNS if name not in numbers)

    words = ("labels", "gt.json", "pred.json", "--reviewed", "reviewed.csv")
    done = run_here(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "After corrections" in done.stdout and "with what was accepted  " in done.stdout
    document = json.loads(run_here(*words, "--json", cwd=folder).stdout)
    assert document["suspects"] == []
    # All ten cars are found then, by detections that are surer than that of a car without a label: AP is 1.
    assert document["gain"]["after"] == pytest.approx(1) and document["gain"]["before"] < 0.5
    assert document["gain"]["accepted"] == 1


def test_a_verdict_shows_wherever_its_suspect_does_and_is_taken_back_by_a_second_press(page: Any) -> None:
    accept, reject = button(page, "Accept", "missing"), button(page, "Reject", "missing")
    states = lambda: [one.get_attribute("aria-pressed") for one in (accept, reject)]  # noqa: E731
    assert states() == ["false", "false"]
    accept.click()
    assert states() == ["true", "false"]
    reject.click()
    assert states() == ["false", "true"]
    page.locator(".shot", has=page.locator("svg[aria-label='a, \"b\".jpg']")).click()
    beside = page.locator("dialog").get_by_role("button", name="Reject missing ")
    assert beside.get_attribute("aria-pressed") == "true"
    beside.click()
    assert states() == ["false", "false"] and beside.get_attribute("aria-pressed") == "false"
    assert status(page) == "0 accepted, 0 rejected of 2 suspects"
    assert page.get_by_role("button", name="Save reviewed.csv").is_disabled()


def test_verdicts_outlast_a_reload(page: Any) -> None:
    button(page, "Accept", "class").click()
    page.reload()
    assert status(page) == "1 accepted, 0 rejected of 2 suspects"
    assert button(page, "Accept", "class").get_attribute("aria-pressed") == "true"


def test_where_nothing_may_be_stored_the_page_remembers(browser: Any, folder: Path) -> None:
    context = browser.new_context()
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } });"
    )
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((folder / "labels.html").as_uri())
    button(page, "Reject", "class").click()
    assert status(page) == "0 accepted, 1 rejected of 2 suspects"
    context.close()
    assert errors == []
