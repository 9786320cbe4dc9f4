import re

import numpy as np
import pytest
from pictures import det, evaluate, gt

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.errors import UsageError
from jaccard_eval.report import ReportOptions, reporter_for
from jaccard_eval.report.model import build_charts
from jaccard_eval.report.outputs.figure import draw

figures = pytest.importorskip("matplotlib.figure")


def drawn(result: EvaluationResult) -> list:
    """Return the panels: precision by recall three times, confidence curves, confusion, errors, calibration."""
    figure = figures.Figure()
    draw(figure, build_charts(result))
    return figure.axes


@pytest.fixture(scope="module")
def result() -> EvaluationResult:
    truth = [gt("cat 0 0 10 10"), gt("dog 50 0 10 10"), gt("dog 0 50 10 10")]
    return evaluate(
        truth, [det("cat 0 0 10 10", 0.9), det("cat 50 0 10 10", 0.8), det("dog 0 50 10 10", 0.7)], errors=True
    )


def test_the_picture_has_what_each_error_costs_as_bars(result: EvaluationResult) -> None:
    *_, types, _ = drawn(result)
    assert [one.get_text() for one in types.get_yticklabels()][:2] == ["classification (1)", "localisation (0)"]
    # Repaired, the dogs are found first and second instead of first of two alone: 51/101 to 1, half of it in the mean.
    assert types.patches[0].get_width() == pytest.approx((1 - 51 / 101) / 2)


def test_the_picture_has_curves_up_to_the_last_score(result: EvaluationResult) -> None:
    _, _, _, confidence, *_ = drawn(result)
    precision, recall, f1, best = confidence.lines
    assert [line.get_label() for line in (precision, recall, f1, best)] == [
        "Precision",
        "Recall",
        "F1",
        "best F1 at 0.7",
    ]
    assert recall.get_ydata()[[0, 75, 85, 95]] == pytest.approx([2 / 3, 1 / 3, 1 / 3, 0])
    assert np.isnan(precision.get_ydata()[95])


def test_the_matrix_has_its_counts_and_names(result: EvaluationResult) -> None:
    _, _, _, _, confusion, *_ = drawn(result)
    assert [one.get_text() for one in confusion.get_xticklabels()] == ["cat", "dog", "background"]
    assert [one.get_text() for one in confusion.texts] == list("100110000")


def test_a_picture_is_drawn_whatever_the_names_and_the_same_every_time() -> None:
    names = ["$x_1$", "日本語", "\x1b[2J", "a" * 100, "$", "\u202eabc", "😀"]
    truth = [gt(f"x {20 * i} 0 10 10") for i in range(len(names))]
    found = evaluate(truth, [det("x 0 0 10 10", 0.5)], names=names, errors=True)
    pictures = [reporter_for("out.svg").render(found, ReportOptions()) for _ in range(2)]
    assert pictures[0] == pictures[1]


def test_precision_by_recall_comes_first_the_mean_in_front_of_the_classes(result: EvaluationResult) -> None:
    panels = drawn(result)[:3]
    # The cat is found first; one of two dogs is, by the only detection of a dog.
    assert [axes.get_title() for axes in panels] == [
        "AP50 0.7525: precision-recall at IoU 0.50",
        "AP75 0.7525: precision-recall at IoU 0.75",
        "AP 0.7525: precision-recall, mean over IoU 0.50:0.95",
    ]
    for axes in panels:
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("recall", "precision")
        cat, dog, mean = axes.lines
        assert cat.get_ydata() == pytest.approx(np.ones(101))
        assert dog.get_ydata() == pytest.approx([1.0] * 51 + [0.0] * 50)
        assert mean.get_ydata() == pytest.approx([1.0] * 51 + [0.5] * 50)
        assert [text.get_text() for text in axes.get_legend().texts] == ["mean of classes"]


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_without_errors_the_curves_remain(suffix: str) -> None:
    found = evaluate([gt("dog 0 0 9 9")], [])
    pictures = [reporter_for(f"out{suffix}").render(found, ReportOptions()) for _ in range(2)]
    assert pictures[0] == pictures[1]
    assert len(build_charts(found)) == 3


def test_text_of_a_drawing_is_text() -> None:
    drawing = reporter_for("out.svg").render(evaluate([gt("dog 0 0 9 9")], []), ReportOptions()).decode()
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", drawing)
    assert {"recall", "precision", "AP50 0.0000: precision-recall at IoU 0.50"} <= set(shown)


def test_without_ground_truth_there_is_nothing_to_draw() -> None:
    with pytest.raises(UsageError, match="no ground truth that counts"):
        reporter_for("out.png").render(evaluate([], [det("dog 0 0 9 9", 0.5)]), ReportOptions())


def test_of_many_classes_the_most_confused_are_shown_and_every_box_is_counted() -> None:
    names = [f"c{i}" for i in range(40)]
    truth = [gt(f"c{i} {30 * i} 0 10 10") for i in range(40)]
    wrong = [det(f"c{i + 1 if i == 35 else i} {30 * i} 0 10 10", 0.9) for i in range(40)]
    result = evaluate(truth, wrong, names=names, errors=True)
    chart = next(chart for chart in build_charts(result) if chart.kind == "matrix")
    assert chart.title.endswith("(28 of 40 classes)")
    assert {"c35", "c36", "12 others", "background"} <= set(chart.x.names)
    assert sum(map(sum, (series.y for series in chart.series))) == result.errors.confusion.counts.sum() == 40


def test_a_set_without_detections_is_drawn_without_its_calibration() -> None:
    titles = [axes.get_title() for axes in drawn(evaluate([gt("dog 0 0 9 9")], [], errors=True))]
    assert titles[3:5] == [
        "Precision, recall and F1 by confidence threshold",
        "Confusion at score >= 0.00, IoU >= 0.50",
    ]
    assert len(titles) == 6
