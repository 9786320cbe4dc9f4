"""The page of an evaluation: its sections in their order, every number as the JSON document has it."""

import html5lib
import pytest
from pictures import det, evaluate, gt

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.options import Bootstrap
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Chart, Drawn, Section, Table
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.outputs import html
from jaccard_eval.report.sections import build_page

NAMESPACE = "{http://www.w3.org/1999/xhtml}"
ORDER = ["headline", "score", "next", "metrics", "errors", "classes", "confusion", "curves", "provenance"]


@pytest.fixture(scope="module")
def result() -> EvaluationResult:
    truth = [gt("cat 0 0 10 10"), gt("dog 50 0 10 10"), gt("dog 0 50 10 10"), gt("cow 80 80 10 10", "b")]
    found = [det("cat 0 0 10 10", 0.9), det("cat 50 0 10 10", 0.8), det("dog 0 50 10 10", 0.7)]
    return evaluate(truth, found, errors=True, bootstrap=Bootstrap(n_resamples=50))


def sections(result: EvaluationResult, **options: str) -> dict[str, Section]:
    return {section.key: section for section in build_page(result, ReportOptions(**options)).sections}  # type: ignore[arg-type]


def table_of(page: str, key: str) -> list[list[str]]:
    """Return the texts of the first table of a section, heading and rows, without what is drawn."""
    section = next(element for element in html5lib.parse(page).iter(f"{NAMESPACE}section") if element.get("id") == key)
    table = next(section.iter(f"{NAMESPACE}table"))
    rows = table.iter(f"{NAMESPACE}tr")
    return [["".join(cell.itertext()).strip() for cell in row if cell.get("class") != "drawn"] for row in rows]


def test_sections_stand_in_their_order(result: EvaluationResult) -> None:
    keys = list(sections(result))
    assert [key for key in keys if key in ORDER] == ORDER


def test_metrics_and_classes_are_those_of_the_document(result: EvaluationResult) -> None:
    page = html.render(result, ReportOptions())
    document = result.to_dict()
    metrics = {row[0]: row[1] for row in table_of(page, "metrics")[1:]}
    undefined = {name for name, value in document["metrics"].items() if value is None}
    assert metrics == {
        name: "n/a" if name in undefined else metric_text(value) for name, value in document["metrics"].items()
    }
    heads, *rows = table_of(page, "classes")
    assert heads[:8] == ["class", "lost", "AP", "AP50", "AP75", "AR100", "gt", "pred"]
    shown = {row[0]: row[2:8] for row in rows}
    for row in document["per_class"]:
        numbers = [metric_text(row[name]) for name in ("AP", "AP50", "AP75", "AR100")]
        assert shown[row["class"]] == [*numbers, str(row["gt"]), str(row["pred"])]
    # The cow was never found, one of two dogs was, and the cat with all.
    assert [row[0] for row in rows] == ["cow", "dog", "cat"]


def test_values_are_drawn_with_their_intervals(result: EvaluationResult) -> None:
    table = next(block for block in sections(result)["metrics"].blocks if isinstance(block, Table))
    drawn = next(cell for cell in table.rows[0] if isinstance(cell, Drawn))
    assert (drawn.value, drawn.interval) == (result.metrics["AP"].value, result.metrics["AP"].interval)


def test_curves_have_each_class_in_grey_and_find_it_again_by_its_place(result: EvaluationResult) -> None:
    charts = [block for block in sections(result)["curves"].blocks if isinstance(block, Chart)]
    assert len(charts) == 4
    faint = [series for series in charts[0].series if series.look == "faint"]
    names = [row.name for row in result.per_class]
    assert [names[int(series.key)] for series in faint] == [series.name for series in faint] == names


def test_how_it_was_made_has_the_protocol_by_field_and_what_is_undefined(result: EvaluationResult) -> None:
    *_, rules, undefined = sections(result)["provenance"].blocks
    assert isinstance(rules, Table)
    assert [row[0] for row in rules.rows] == list(result.to_dict()["protocol"])
    assert isinstance(undefined, Table)
    # Every object has 100 px²: there is no medium one and no large one.
    assert {row[0]: row[1] for row in undefined.rows}["AP_large"] == "no large ground truth"


def test_the_page_of_an_evaluation_without_objects_is_drawn() -> None:
    page = html.render(evaluate([], [det("dog 0 0 9 9", 0.5)], errors=True), ReportOptions())
    assert "AP n/a" in page


def test_the_page_of_an_evaluation_without_detections_is_drawn() -> None:
    page = html.render(evaluate([gt("dog 0 0 9 9")], [], errors=True), ReportOptions())
    assert "AP 0.0000" in page
