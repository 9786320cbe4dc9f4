"""The best and the worst classes, of every command that lists classes."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import box, write_json, write_pair
from label_map_builder import write_png
from result_builder import make_result

from jaccard_eval import evaluate
from jaccard_eval.cli import run
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.features.evaluate.report import build_report
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Note, Section, Table

# c is undefined, b and e are equal.
APS = {"a": 0.9, "b": 0.5, "c": math.nan, "d": 0.1, "e": 0.5}


def sections(**options: Any) -> dict[str, list[str]]:
    """The classes that are listed, by the title of their section."""
    result = make_result(classes={name: {"AP": value} for name, value in APS.items()})
    found = (one for one in build_report(result, ReportOptions(**options)).sections if one.title.startswith("Classes"))
    return {one.title: [str(row[0]) for row in table(one).rows] for one in found}


def table(section: Section) -> Table:
    (found,) = (block for block in section.blocks if isinstance(block, Table))
    return found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"top": 2}, {"Classes, best 2 of 5 by AP": ["a", "b"]}),
        ({"worst": 2}, {"Classes, worst 2 of 5 by AP": ["d", "e"]}),
        ({"worst": 5}, {"Classes, worst 5 of 5 by AP": ["d", "e", "b", "a", "c"]}),  # undefined comes last
        ({"top": 9}, {"Classes, best 5 of 5 by AP": ["a", "b", "e", "d", "c"]}),
        (
            {"top": 2, "worst": 2},
            {"Classes, best 2 of 5 by AP": ["a", "b"], "Classes, worst 2 of 5 by AP": ["d", "e"]},
        ),
        # 10, 20, 30, 40, 50 objects.
        ({"top": 1, "sort": "gt"}, {"Classes, largest 1 of 5 by gt": ["e"]}),
        ({"worst": 1, "sort": "gt"}, {"Classes, smallest 1 of 5 by gt": ["a"]}),
        ({"worst": 2, "sort": "name"}, {"Classes, last 2 of 5 by name": ["e", "d"]}),
        ({"per_class": True}, {"Classes": ["a", "b", "c", "d", "e"]}),
        ({}, {}),
    ],
)  # fmt: skip
def test_the_best_and_the_worst_are_listed(options: dict[str, Any], expected: dict[str, list[str]]) -> None:
    assert sections(**options) == expected


def test_a_last_line_counts_the_classes_that_are_in_neither_list() -> None:
    result = make_result(classes={name: {"AP": value} for name, value in APS.items()})
    for options, text in (
        ({"top": 2}, "and 3 more; -o classes.csv writes all"),
        ({"top": 2, "worst": 2}, "and 1 more; -o classes.csv writes all"),
        ({"top": 3, "worst": 3}, "and 1 more; -o classes.csv writes all"),  # what is undefined is neither
        ({"top": 5}, "n/a: c: no small ground truth"),
    ):
        (*_, last) = (one for one in build_report(result, ReportOptions(**options)).sections if "Classes" in one.title)
        assert last.blocks[-1] == Note(text)


def test_a_table_of_no_classes_has_no_worst_one() -> None:
    report = build_report(make_result(classes={}), ReportOptions(worst=3))
    assert [table(one).rows for one in report.sections if "Classes" in one.title] == [()]


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """1,203 classes with an object each; those of the first 1,200 are found."""
    monkeypatch.chdir(tmp_path)
    ids = range(1, 1204)
    truth = {
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "annotations": [box(1, k, [10.0 * k, 0, 9, 9], id=k, area=81, iscrowd=0) for k in ids],
        "categories": [{"id": k, "name": f"class {k}"} for k in ids],
    }
    found = [box(1, k, [10.0 * k, 0, 9, 9 if k <= 1200 else 3], score=0.9) for k in ids]
    return [str(write_json(tmp_path / "gt.json", truth)), str(write_json(tmp_path / "pred.json", found))]


def test_of_many_classes_a_few_lines_are_printed_and_the_file_that_is_named_has_all(
    many: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(["evaluate", *many, "--per-class", "--worst", "3", "--score", "0.5"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) < 80
    rows = [line.split()[:2] for line in out.splitlines() if line.startswith("  class 1")]
    assert rows == [["class", "1203"], ["class", "1202"], ["class", "1201"]]
    assert "and 1,200 more; -o classes.csv writes all" in out
    assert run.run(["evaluate", *many, "--worst", "3", "-o", "classes.csv", "-o", "result.json"]) == 0
    with Path("classes.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 1 + 1203  # all pooled, and each
    assert len(json.loads(Path("result.json").read_text())["per_class"]) == 1203


def test_classes_are_ranked_by_a_metric_that_their_table_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pair = list(map(str, write_pair(tmp_path)))
    # One of two dogs is found exactly, the cat is missed by 4 px.
    assert run.run(["evaluate", *pair, "--top", "1", "--sort", "mAP@0.85", "-o", "classes.csv"]) == 0
    out = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["class", "gt", "ignored", "pred", "AP", "AP50", "AP75", "AR100", "AP85"] in out
    with Path("classes.csv").open(newline="") as file:
        rows = {row["class"]: row for row in csv.DictReader(file)}
    assert [float(rows[name]["AP85"]) for name in ("dog", "cat")] == [pytest.approx(51 / 101, abs=1e-12), 0.0]
    assert rows["all"]["AP85"] == ""
    # Fewer false positives are better: the detection beside the cat is one, of dogs there is none.
    assert run.run(["evaluate", *pair, "--worst", "1", "--sort", "FP[iou=0.5,score=0.5]"]) == 0
    assert ["cat", "1", "0", "1", "0.0000", "0.0000", "0.0000", "0.0000", "1"] in [
        line.split() for line in capsys.readouterr().out.splitlines()
    ]


@pytest.mark.parametrize(
    ("sort", "message"),
    [
        ("AP83", "IoU 0.83 is not evaluated"),
        ("AP[class=dog]", "cannot sort by 'AP[class=dog]'"),
    ],
)
def test_what_orders_no_classes_is_refused(
    sort: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(["evaluate", *map(str, write_pair(tmp_path)), "--sort", sort]) == 2
    assert message in capsys.readouterr().err


def test_every_class_is_measured_as_it_is_alone(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    measured = evaluate(gt, pred).measured
    for text in ("AP85", "AR_small", "recall[iou=0.5,score=0.4]", "FP[iou=0.5,score=0]"):
        values = measured.class_values(MetricRef.parse(text))
        alone = [measured.value(replace(MetricRef.parse(text), class_name=name)) for name in ("dog", "cat")]
        assert [(repr(one.value), one.n, one.reason) for one in values] == [
            (repr(one.value), one.n, one.reason) for one in alone
        ]


def test_commands_without_a_table_of_metrics_choose_classes_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gt, before = map(str, write_pair(tmp_path))
    after = str(write_json(tmp_path / "after.json", [box(2, 2, [20, 20, 10, 10], score=0.8)]))

    def shown(*argv: str) -> str:
        assert run.run([*argv]) == 0
        return capsys.readouterr().out

    # The cat is found now, the dog no more.
    assert titles(shown("compare", gt, before, after, "--top", "1")) == ["Classes that gained most, AP of B"]
    assert titles(shown("compare", gt, before, after, "--worst", "1")) == ["Classes that lost most, AP of B"]
    inspected = shown("inspect", gt, "--top", "1")
    assert titles(inspected) == ["Classes, largest 1 of 2 by boxes"]
    assert "and 1 more; -o classes.csv writes all" in inspected
    assert run.run(["inspect", gt, "-o", "classes.csv"]) == 0
    assert len(Path("classes.csv").read_text().splitlines()) == 1 + 2
    placed = shown("sensitivity", gt, before, "--worst", "1")
    assert "worst 1 of 2 by IoU" in placed
    assert "and 1 more; -o classes.csv writes all" in placed
    for side, picture in (("truth", "0012"), ("maps", "0011")):
        write_png(tmp_path / side / "a.png", picture)
    # IoU: 1 of class 0, 1/2 of class 1, 0 of class 2.
    maps = shown("pixels", "truth", "maps", "--top", "1", "--worst", "1")
    assert titles(maps) == ["Classes, best 1 of 3 by IoU", "Classes, worst 1 of 3 by IoU"]


def titles(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("Classes")]
