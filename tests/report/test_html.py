"""Whole pages without a browser: parsed strictly, nothing fetched, small, the same bytes, the numbers of the JSON."""

import base64
import hashlib
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import pytest
from command_line import command, run_here

from jaccard_eval.report.numbers import metric_text, signed_text

SAMPLE = Path(__file__).parents[2] / "sample_data" / "coco"
SEGMENTS = SAMPLE.parent / "panoptic"
PAIR = (SAMPLE / "gt.json", SAMPLE / "better.json")
MAPS = Path(__file__).parents[1] / "golden" / "given" / "inputs" / "maps"
GATES = ("--fail-under", "AP=0.9", "--fail-under", "AP50=0.5", "--fail-over", "FP[iou=0.5,score=0.5]=0")
COMMANDS: dict[str, tuple[object, ...]] = {
    "evaluate": (
        "evaluate",
        *PAIR,
        "--bootstrap",
        "50",
        "--slice",
        "first=street_0[1-6]*",
        "--errors",
        *GATES,
        "--exit-zero",
    ),
    "plain": ("evaluate", *PAIR, "--no-errors", "--gallery", "0", "--protocol", "voc2012"),
    "compare": ("compare", PAIR[0], SAMPLE / "worse.json", PAIR[1], "--bootstrap", "50"),
    "pixels": ("pixels", MAPS / "gt", MAPS / "pred", "--classes", "sky,road,car", "--ignore", "9"),
    "panoptic": (
        *("panoptic", SEGMENTS / "gt.json", SEGMENTS / "worse.json", "--against", SEGMENTS / "better.json"),
        *("--bootstrap", "50", "--slice", "first=*1.jpg", "--fail-under", "PQ=0.9", "--exit-zero"),
    ),
    "inspect": ("inspect", *PAIR),
    "explain": ("explain", *PAIR),
    "sensitivity": ("sensitivity", *PAIR),
    "overlap": ("overlap", "6,1,18,9", "1,3,13,11"),
}
XHTML = "{http://www.w3.org/1999/xhtml}"


class Page:
    """A page as a program reads it, and the document that was written beside it."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        self.document: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
        # A strict parser stops at whatever a browser would have to guess.
        self.root: Element = html5lib.HTMLParser(strict=True).parse(self.text)

    def all(self, tag: str) -> Iterator[Element]:
        return self.root.iter(f"{XHTML}{tag}")

    def rows(self, key: str) -> list[dict[str, str]]:
        """The rows of the first table of a section, by heading; a cell that is drawn has no heading."""
        (section,) = (one for one in self.all("section") if one.get("id") == key)
        table = next(iter(section.iter(f"{XHTML}table")))
        head, *body = ([*row] for row in table.iter(f"{XHTML}tr"))
        titles = ["".join(cell.itertext()).strip() for cell in head]
        return [dict(zip(titles, ("".join(cell.itertext()).strip() for cell in row), strict=True)) for row in body]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(params=COMMANDS)
def page(request: pytest.FixtureRequest, folder: Path) -> Page:
    return built(folder, request.param)


def built(folder: Path, name: str) -> Page:
    path = folder / f"{name}.html"
    if not path.exists():
        done = run_here(*COMMANDS[name], "-q", "-o", path, "-o", path.with_suffix(".json"))  # type: ignore[arg-type]
        assert done.returncode == 0, done.stderr
    return Page(path)


def test_a_page_is_parsed_strictly_and_fetches_and_styles_nothing(page: Page) -> None:
    for element in page.root.iter():
        for name, value in element.attrib.items():
            assert name != "style", value
            assert not name.startswith("on"), name
            if name.rpartition("}")[2] in ("src", "href"):
                assert value.startswith(("#", "data:image/")), value
    ids = [element.get("id") for element in page.root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    # A place on the page, or what is chosen there: `#class=dog&error=missed`.
    places = [link for link in re.findall(r'href="#([^"]+)"', page.text) if "=" not in link]
    assert places and {*places} <= {*ids}


def test_the_policy_names_the_style_and_the_script_that_are_there(page: Page) -> None:
    (policy,) = (one.get("content", "") for one in page.all("meta") if one.get("http-equiv"))
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert {rules[name] for name in ("default-src", "base-uri", "form-action")} == {"'none'"}
    scripts = [one for one in page.all("script") if one.get("type") != "application/json"]
    for name, elements in (("style-src", [*page.all("style")]), ("script-src", scripts)):
        (element,) = elements
        digest = hashlib.sha256((element.text or "").encode()).digest()
        assert rules[name] == f"'sha256-{base64.b64encode(digest).decode()}'"


@pytest.mark.parametrize("name", ["evaluate", "plain"])
def test_every_metric_is_that_of_the_document(name: str, folder: Path) -> None:
    page = built(folder, name)
    shown = {row["metric"]: row for row in page.rows("metrics")}
    document = page.document
    assert {key: row["value"] for key, row in shown.items()} == {
        key: metric_text(math.nan if value is None else value) for key, value in document["metrics"].items()
    }
    assert {key: int(row["gt"].replace(",", "")) for key, row in shown.items()} == document["support"]
    for key, (low, high) in document.get("intervals", {}).items():
        assert (shown[key]["low"], shown[key]["high"]) == (metric_text(low), metric_text(high))
    (headline,) = ("".join(one.itertext()) for one in page.all("h1"))
    assert f"AP {metric_text(document['metrics']['AP'])}" in " ".join(headline.split())


@pytest.mark.parametrize("name", ["evaluate", "plain"])
def test_every_class_has_the_numbers_of_the_document(name: str, folder: Path) -> None:
    page = built(folder, name)
    shown = {row["class"]: row for row in page.rows("classes")}
    assert len(shown) == len(page.document["per_class"])
    for row in page.document["per_class"]:
        cells = shown[row["class"]]
        assert (cells["gt"], cells["pred"]) == (f"{row['gt']:,}", f"{row['pred']:,}")
        for metric in row.keys() - {"class", "gt", "pred", "ignored", "intervals", "refused", "sizes"}:
            assert cells[metric] == metric_text(math.nan if row[metric] is None else row[metric]), (row, metric)


def test_every_gate_is_that_of_the_document(folder: Path) -> None:
    page = built(folder, "evaluate")
    rows, gates = page.rows("gates"), page.document["gates"]
    assert sorted(row["status"] for row in rows) == sorted(gate["status"] for gate in gates)
    for gate in gates:
        (row,) = (row for row in rows if row["rule"].startswith(gate["rule"]))
        assert row["status"] == gate["status"]
        assert row["margin"] == signed_text(gate["margin"])
    # What is broken comes first.
    assert rows[0]["status"] == "fail"


def test_confusion_slices_and_findings_are_those_of_the_document(folder: Path) -> None:
    page = built(folder, "evaluate")
    matrix = page.document["errors"]["confusion"]
    rows = page.rows("confusion")
    for name, counts in zip(matrix["classes"], matrix["counts"], strict=True):
        (row,) = (row for row in rows if next(iter(row.values())) == name)
        assert [int(row[other].replace(",", "")) for other in matrix["classes"]] == counts
    slices = {row["slice"]: row for row in page.rows("slices")}
    for part in page.document["slices"]:
        assert slices[part["slice"]]["AP"] == metric_text(part["AP"])
    text = " ".join(" ".join(page.root.itertext()).split())
    for finding in page.document["warnings"]:
        assert finding["code"] in text
    assert page.document["signature"] in text


def test_a_page_is_the_same_bytes_in_another_process_with_another_hash_seed(folder: Path) -> None:
    page = built(folder, "evaluate")
    other = folder / "other.html"
    done = subprocess.run(
        command(*COMMANDS["evaluate"], "-q", "-o", other, "-o", other.with_suffix(".json")),  # type: ignore[arg-type]
        env=os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C"},
        check=True,
        capture_output=True,
    )
    assert done.returncode == 0
    assert other.read_text(encoding="utf-8") == page.text


def test_a_page_above_8_mb_is_refused_with_the_option_that_helps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jaccard_eval.report.outputs import html

    monkeypatch.setattr(html, "LARGEST", 10_000)
    target = folder / "large.html"
    done = run_here("evaluate", *PAIR, "-q", "-o", target)
    assert done.returncode == 2
    assert re.search(r"the page would have .* MB.*--gallery", done.stderr)
    assert not target.exists()


def test_a_saved_run_has_the_page_of_its_evaluation_but_for_the_command(folder: Path) -> None:
    first, again = folder / "first.html", folder / "again.html"
    images = ("--images", SAMPLE.parent / "yolo" / "images" / "val")
    done = run_here(
        "evaluate", *PAIR, *images, "--errors", "-q", "-o", first, "-o", folder / "run.npz", "-o", folder / "run.json"
    )
    assert done.returncode == 0, done.stderr
    assert run_here("report", folder / "run.npz", *images, "-q", "-o", again).returncode == 0
    texts = [
        [line for line in path.read_text(encoding="utf-8").splitlines() if "jaccard-eval evaluate" not in line
         and "jaccard-eval report" not in line]
        for path in (first, again)
    ]  # fmt: skip
    assert texts[0] == texts[1]
    # From the document alone: what it lists, and of what needs the boxes, how to get it.
    small = folder / "document.html"
    assert run_here("report", folder / "run.json", "-q", "-o", small).returncode == 0
    kept = [section.get("id") for section in html5lib.parse(small.read_text()).iter(f"{XHTML}section")]
    assert {"metrics", "classes", "errors", "confusion"} <= {*kept}
    assert "images" in kept and "Write the run with -o run.npz" in small.read_text()
    assert "<li data-image=" not in small.read_text()


@pytest.mark.slow
def test_a_page_of_250000_detections_has_at_most_400_kb_and_5_mb_with_all_its_boxes(tmp_path: Path) -> None:
    from scenes import Scale, write_scene

    write_scene(tmp_path, Scale())
    sides = tmp_path / "gt.json", tmp_path / "dt.json"
    for n_images, limit in ((0, 400_000), (24, 5_000_000)):
        target = tmp_path / f"{n_images}.html"
        subprocess.run(
            [sys.executable, "-m", "jaccard_eval", "evaluate", *sides, "-q", "--gallery", str(n_images), "-o", target],
            check=True,
            capture_output=True,
        )
        assert target.stat().st_size <= limit
