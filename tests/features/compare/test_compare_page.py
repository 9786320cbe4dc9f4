"""The page of a comparison: the verdict above, every class, curves of both sides."""

import numpy as np
import pytest
from pictures import det, evaluate, gt

from jaccard_eval.features.compare import ComparisonResult
from jaccard_eval.features.compare.comparison import CompareOptions, compare_results
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Chart, Drawn, Section, Table
from jaccard_eval.report.sections import build_page

TRUTH = [gt("dog 0 0 10 10"), gt("dog 50 50 10 10"), gt("cat 20 20 10 10", "b")]
DOG, OTHER_DOG = det("dog 0 0 10 10", 0.9), det("dog 50 50 10 10", 0.8)
CAT = det("cat 20 20 10 10", 0.7, "b")


@pytest.fixture(scope="module")
def result() -> ComparisonResult:
    """A finds one dog and the cat, B both dogs and no cat."""
    runs = [evaluate(TRUTH, run) for run in ([DOG, CAT], [DOG, OTHER_DOG])]
    return compare_results(runs, CompareOptions(bootstrap=50), version="0.1.0")


def sections(result: ComparisonResult) -> dict[str, Section]:
    return {section.key: section for section in build_page(result, ReportOptions()).sections}


def test_the_verdict_comes_first_and_how_it_was_made_last(result: ComparisonResult) -> None:
    keys = [section.key for section in build_page(result, ReportOptions()).sections]
    assert keys[0] == "headline"
    assert keys[-1] == "provenance"
    assert [key for key in keys if key in ("metrics", "classes", "curves")] == ["metrics", "classes", "curves"]


def test_every_class_stands_with_its_difference_the_weightiest_first(result: ComparisonResult) -> None:
    _, table = sections(result)["classes"].blocks
    assert isinstance(table, Table)
    # Dogs: 51/101 with one of two found, 1 with both; the cat: 1, and 0 when missed. The weight of the cat is
    # 1 x sqrt(1), that of the dogs 50/101 x sqrt(2) = .70.
    assert [(row[0], row[1], row[2], row[3]) for row in table.rows] == [
        ("cat", pytest.approx(1), 0.0, pytest.approx(-1)),
        ("dog", pytest.approx(51 / 101), pytest.approx(1), pytest.approx(50 / 101)),
    ]
    drawn = table.rows[0][4]
    assert isinstance(drawn, Drawn)
    assert drawn.value == pytest.approx(-1)
    assert -drawn.ends[0] == drawn.ends[1] >= 1


def test_curves_of_both_sides_lie_in_one_chart_the_second_dashed(result: ComparisonResult) -> None:
    charts = sections(result)["curves"].blocks
    assert len(charts) == 3
    for chart in charts:
        assert isinstance(chart, Chart)
        first, second = chart.series
        assert [(series.name, series.look) for series in chart.series] == [("A", "curve"), ("B", "dashes")]
        # The mean of a dog found halfway and the cat; then of both dogs and no cat.
        assert np.array(first.y) == pytest.approx([1.0] * 51 + [0.5] * 50)
        assert np.array(second.y) == pytest.approx([0.5] * 101)
